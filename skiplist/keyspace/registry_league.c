/* See registry_league.h. */
#include "skiplist/keyspace/registry_league.h"

#include "skiplist/keyspace/archive_name.h"
#include "skiplist/keyspace/registry_parts.h"

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

/* Is there a league of this name, with its template? */
static bool registry_league_find(struct settling *settling, struct bytes name) {
    struct league_names names;
    const struct database *database =
        registry_read(settling->registry, settling->archive->database);
    struct registry_key *key = league_is_name(name) ? registry_find_name(database, name) : NULL;
    if (key == NULL || key->kind != REGISTRY_BOARD || registry_rules(key)->league.room == 0) {
        return false;
    }
    league_names_init(&names, name);
    const struct registry_key *rooms = registry_find_name(database, league_template(&names));
    if (rooms == NULL || rooms->kind != REGISTRY_BOARD ||
        registry_rules(rooms)->period.unit == PERIOD_NONE) {
        return false;
    }
    settling->league = key;
    settling->period = &registry_rules(rooms)->period;
    return true;
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
    board_seek(archive, 0, &cursor);
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
    struct bytes name;
    struct bytes prefix;
    struct bytes inner;
    *work = 0;
    if (registry_league_count(registry) == 0 || key->kind != REGISTRY_BOARD ||
        board_count(&key->board) > ARCHIVE_MEMBERS_MAX ||
        !archive_find_board(registry_name(key), &name) ||
        !league_parse_room(name, &prefix, &inner, &settling.entry)) {
        return REGISTRY_LEAGUE_SETTLED;
    }
    settling.suffix = bytes_behind(registry_name(key), name.size);
    if (!registry_league_find(&settling, prefix) && !registry_league_find(&settling, inner)) {
        return REGISTRY_LEAGUE_SETTLED;
    }
    return registry_league_settle_members(&settling, members_max, work);
}
