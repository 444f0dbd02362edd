/* See registry_league.h. */
#include "skiplist/keyspace/registry_league.h"

#include "skiplist/keyspace/archive_name.h"
#include "skiplist/keyspace/registry_private.h"

/* Where an archive got a number because its name was taken (registry_roll.c), so many are tried. */
enum { ARCHIVES_TRIED = 8 };

uint64_t registry_league_count(const struct registry *registry) {
    return registry->rules.league_count;
}

/* ---- a member that comes ---- */

/* Its tier, from an archive that has it; false: it has not. */
static bool registry_league_read(const struct rules_league *league, const struct board *archive,
                                 struct bytes member, uint32_t *tier) {
    struct board_member found;
    board_look_up(archive, member, NULL, &found);
    if (found.is_there) {
        *tier =
            league_tier_after(league, *tier, board_rank_of(archive, &found), board_count(archive));
    }
    return found.is_there;
}

/* One that has expired and is there all the same has members who are not settled: nothing expires now, or
 * there was no memory for it. */
static const struct registry_key *registry_league_find_archive(struct registry *registry,
                                                               uint32_t database, struct bytes name,
                                                               int64_t now_ms) {
    const struct registry_key *archive = registry_find(registry, database, name, now_ms);
    return archive != NULL ? archive : registry_find_name(registry_read(registry, database), name);
}

bool registry_league_tier(struct registry *registry, const struct registry_key *league,
                          struct league_names *names, struct bytes member,
                          struct league_entry entry, const struct period *period,
                          uint32_t now_period, int64_t now_ms, registry_league_open *open,
                          const void *context, uint32_t *tier) {
    const struct rules_league *rules = &registry_rules(league)->league;
    struct bytes name =
        entry.room > 0 ? league_archive(names, entry, period) : (struct bytes){.size = 0};
    size_t size = name.size;
    *tier = entry.tier;
    for (uint64_t number = 2; size > 0 && number < 2 + ARCHIVES_TRIED; number++) {
        if (!open(context, name)) {
            return false;
        }
        const struct registry_key *archive =
            registry_league_find_archive(registry, league->database, name, now_ms);
        if (archive == NULL || (archive->kind == REGISTRY_BOARD &&
                                registry_league_read(rules, &archive->board, member, tier))) {
            break;
        }
        names->at[size] = '.';
        name.size = size + 1 + bytes_print_u64(names->at + size + 1, number);
    }
    uint32_t idle_count = rules->idle_goes_down
                              ? league_count_between(period, entry.period, now_period, rules->tiers)
                              : 0;
    *tier = league_tier_idle(rules, *tier, idle_count);
    return true;
}

/* ---- an archive that goes ---- */

/* More members than rooms have come to an archive only from elsewhere: it is not looked through. */
enum { ARCHIVE_MEMBERS_MAX = 4 * LEAGUE_ROOM_MAX };

struct settling {
    struct registry *registry;
    const struct registry_key *archive;
    struct registry_key *league;
    const struct period *period; /* of the template */
    struct league_entry entry;   /* tier and room of the archive */
    struct bytes suffix;         /* "@2026-11-16" in its name */
    uint32_t settled_count;
};

/* The league of this name, and the rules of its template. NULL: there is none, or it has none with a PERIOD. */
static struct registry_key *registry_league_find(const struct registry *registry, uint32_t number,
                                                 struct bytes name, const struct rules **rooms) {
    struct league_names names;
    const struct database *database = registry_read(registry, number);
    struct registry_key *key = league_is_name(name) ? registry_find_name(database, name) : NULL;
    if (key == NULL || key->kind != REGISTRY_BOARD || registry_rules(key)->league.room == 0) {
        return NULL;
    }
    league_names_init(&names, name);
    const struct registry_key *template = registry_find_name(database, league_template(&names));
    if (template == NULL || template->kind != REGISTRY_BOARD ||
        registry_rules(template)->period.unit == PERIOD_NONE) {
        return NULL;
    }
    *rooms = registry_rules(template);
    return key;
}

/* The league that has a room of this name, likewise. */
static struct registry_key *registry_league_find_of_room(const struct registry *registry,
                                                         uint32_t number, struct bytes name,
                                                         struct league_entry *entry,
                                                         const struct rules **rooms) {
    struct bytes prefix;
    struct bytes inner;
    if (!league_parse_room(name, &prefix, &inner, entry)) {
        return NULL;
    }
    struct registry_key *league = registry_league_find(registry, number, prefix, rooms);
    return league != NULL ? league : registry_league_find(registry, number, inner, rooms);
}

/* Did the member have its last result in this archive? */
static bool registry_league_is_of(const struct settling *settling, uint64_t key) {
    char text[REGISTRY_SUFFIX_MAX];
    struct league_entry entry = league_entry_of(key);
    if (entry.tier != settling->entry.tier || entry.room != settling->entry.room) {
        return false;
    }
    /* Perhaps with a number behind it. */
    size_t size = league_print_suffix(settling->period, entry.period, text);
    return settling->suffix.size >= size && memcmp(settling->suffix.at, text, size) == 0 &&
           (settling->suffix.size == size || settling->suffix.at[size] == '.');
}

/* false: no memory. */
static bool registry_league_settle_member(struct settling *settling, struct bytes name,
                                          uint32_t rank) {
    struct board_member member;
    const struct rules_league *rules = &registry_rules(settling->league)->league;
    board_look_up(&settling->league->board, name, NULL, &member);
    if (!member.is_there || !registry_league_is_of(settling, member.key)) {
        return true;
    }
    struct league_entry entry = league_entry_of(member.key);
    entry.tier = league_tier_after(rules, entry.tier, rank, board_count(&settling->archive->board));
    entry.room = 0;
    settling->settled_count++;
    settling->registry->totals.league_settled++;
    return registry_put_member(settling->registry, settling->league, &member, league_key(entry)) ==
           BOARD_OK;
}

static enum registry_league_status
registry_league_settle_members(struct settling *settling, uint32_t members_max, uint32_t *work) {
    const struct board *archive = &settling->archive->board;
    enum registry_league_status status = REGISTRY_LEAGUE_SETTLED;
    struct board_cursor cursor;
    struct board_stored entry;
    char room[NAME_TEXT_ROOM];
    board_cursor_seek(archive, 0, &cursor);
    while (status == REGISTRY_LEAGUE_SETTLED && board_cursor_read(&cursor, &entry)) {
        if (settling->settled_count == members_max) {
            status = REGISTRY_LEAGUE_MORE;
        } else if (!registry_league_settle_member(settling, name_text(entry.member, room),
                                                  (*work)++)) {
            status = REGISTRY_LEAGUE_OUT_OF_MEMORY;
        }
        board_cursor_next(&cursor);
    }
    if (settling->settled_count > 0) {
        registry_tell_members(settling->registry, settling->league);
    }
    return status;
}

enum registry_league_status registry_league_settle(struct registry *registry,
                                                   const struct registry_key *key,
                                                   uint32_t members_max, uint32_t *work) {
    struct settling settling = {.registry = registry, .archive = key};
    const struct rules *rooms;
    struct bytes name;
    *work = 0;
    if (registry_league_count(registry) == 0 || key->kind != REGISTRY_BOARD ||
        board_count(&key->board) > ARCHIVE_MEMBERS_MAX ||
        !archive_find_board(registry_name(key), &name)) {
        return REGISTRY_LEAGUE_SETTLED;
    }
    settling.suffix = bytes_behind(registry_name(key), name.size);
    settling.league =
        registry_league_find_of_room(registry, key->database, name, &settling.entry, &rooms);
    if (settling.league == NULL) {
        return REGISTRY_LEAGUE_SETTLED;
    }
    settling.period = &rooms->period;
    return registry_league_settle_members(&settling, members_max, work);
}

/* ---- members whose results are put together ---- */

bool registry_league_parts(const struct registry *registry, const struct registry_key *key,
                           struct bytes one, struct bytes other) {
    struct league_entry room;
    const struct rules *rooms;
    uint64_t keys[2];
    bool is_league = registry_rules(key)->league.room > 0;
    if (registry_league_count(registry) == 0) {
        return false;
    }
    struct bytes name = registry_name(key);
    const struct registry_key *league =
        is_league ? registry_league_find(registry, key->database, name, &rooms)
                  : registry_league_find_of_room(registry, key->database, name, &room, &rooms);
    if (league == NULL || !board_find(&league->board, one, &keys[0]) ||
        !board_find(&league->board, other, &keys[1]) || keys[0] == keys[1]) {
        return false;
    }
    bool is_of_room = is_league;
    for (unsigned i = 0; i < 2; i++) {
        struct league_entry entry = league_entry_of(keys[i]);
        if (entry.room == 0 || entry.period != league_period(rooms->period_start_ms)) {
            return false;
        }
        is_of_room = is_of_room || (entry.tier == room.tier && entry.room == room.room);
    }
    return is_of_room;
}
