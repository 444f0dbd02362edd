/* Arithmetic and names of leagues; their members whose period is over. See league.h. */
#include "skiplist/keyspace/league.h"

#include "skiplist/keyspace/registry.h"
#include "skiplist/keyspace/registry_private.h"

#define LEAGUE_EPOCH_MS (INT64_C(1577836800) * 1000) /* 2020-01-01T00:00Z */
#define HOUR_MS         (INT64_C(3600) * 1000)

void league_init_layout(struct layout *layout) {
    const struct bytes words[] = {BYTES("FIELD"), BYTES("tier"),   BYTES("8"),
                                  BYTES("FIELD"), BYTES("period"), BYTES("24"),
                                  BYTES("FIELD"), BYTES("room"),   BYTES("32")};
    char error[LAYOUT_ERROR_MAX];
    bool is_parsed =
        layout_parse_words(words, sizeof words / sizeof words[0], layout, error) == LAYOUT_OK;
    CHECK(is_parsed);
}

/* ---- periods ---- */

uint32_t league_period(int64_t start_ms) {
    if (start_ms <= LEAGUE_EPOCH_MS) {
        return 0;
    }
    int64_t hours = (start_ms - LEAGUE_EPOCH_MS) / HOUR_MS;
    return hours < LEAGUE_PERIOD_MAX ? (uint32_t)hours : LEAGUE_PERIOD_MAX;
}

/* A time in the period with this number: it begins in this hour, perhaps at half past. */
static int64_t league_time_in(uint32_t number) {
    return LEAGUE_EPOCH_MS + (number + INT64_C(1)) * HOUR_MS - 1;
}

int64_t league_period_start(const struct period *period, uint32_t number) {
    return period_start(period, league_time_in(number));
}

uint32_t league_count_between(const struct period *period, uint32_t from, uint32_t to,
                              uint32_t maximum) {
    uint32_t count = 0;
    int64_t end_ms = league_period_start(period, to);
    int64_t start_ms = period_start_after(period, league_period_start(period, from), 1);
    while (count < maximum && start_ms < end_ms) {
        count++;
        start_ms = period_start_after(period, start_ms, 1);
    }
    return count;
}

/* ---- tiers ---- */

/* The number of tiers may have been other when the entry was written. */
static uint32_t league_clamp(const struct board_league *league, uint32_t tier) {
    tier = tier < league->tiers ? tier : league->tiers;
    return tier > 1 ? tier : 1;
}

uint32_t league_tier_after(const struct board_league *league, uint32_t tier, uint32_t rank,
                           uint32_t count) {
    CHECK(rank < count);
    tier = league_clamp(league, tier);
    if (rank < league->up) {
        return league_clamp(league, tier + 1);
    }
    return count - rank <= league->down ? league_clamp(league, tier - 1) : tier;
}

uint32_t league_tier_idle(const struct board_league *league, uint32_t tier, uint32_t periods) {
    tier = league_clamp(league, tier);
    if (!league->idle_goes_down) {
        return tier;
    }
    return tier > periods ? tier - periods : 1;
}

/* ---- names ---- */

/* As Redis Cluster finds it: what is between the first brace and the next closing one. */
static bool league_has_tag(struct bytes name) {
    const char *open = memchr(name.at, '{', name.size);
    if (open == NULL) {
        return false;
    }
    size_t left = (size_t)(name.at + name.size - open - 1);
    const char *close = left > 0 ? memchr(open + 1, '}', left) : NULL;
    return close != NULL && close > open + 1;
}

bool league_is_name(struct bytes name) {
    return name.size >= 1 && name.size <= REGISTRY_KEY_MAX - LEAGUE_SUFFIX_MAX &&
           (league_has_tag(name) || memchr(name.at, '}', name.size) == NULL);
}

void league_names_init(struct league_names *names, struct bytes league) {
    size_t size = 0;
    bool has_tag = league_has_tag(league);
    CHECK(league.size <= REGISTRY_KEY_MAX);
    if (!has_tag) {
        names->at[size++] = '{';
    }
    memcpy(names->at + size, league.at, league.size);
    size += league.size;
    if (!has_tag) {
        names->at[size++] = '}';
    }
    names->at[size++] = ':';
    names->prefix_size = size;
}

static struct bytes league_finish(struct league_names *names, size_t size) {
    return (struct bytes){.at = names->at, .size = size};
}

struct bytes league_pattern(struct league_names *names) {
    names->at[names->prefix_size] = '*';
    return league_finish(names, names->prefix_size + 1);
}

/* Behind the prefix, which ends with a colon. */
static const char template_word[] = {'r', 'o', 'o', 'm', 's'};

struct bytes league_template(struct league_names *names) {
    memcpy(names->at + names->prefix_size, template_word, sizeof template_word);
    return league_finish(names, names->prefix_size + sizeof template_word);
}

struct bytes league_room(struct league_names *names, uint32_t tier, uint32_t room) {
    size_t size = names->prefix_size;
    size += bytes_print_u64(names->at + size, tier);
    names->at[size++] = ':';
    return league_finish(names, size + bytes_print_u64(names->at + size, room));
}

/* What an archive's name has behind the room's, in out (REGISTRY_SUFFIX_MAX); returns the size. */
static size_t league_print_suffix(const struct period *period, uint32_t number, char *out) {
    return registry_roll_archive_suffix(period, league_time_in(number), out);
}

struct bytes league_archive(struct league_names *names, struct league_entry entry,
                            const struct period *period) {
    size_t size = league_room(names, entry.tier, entry.room).size;
    return league_finish(names, size + league_print_suffix(period, entry.period, names->at + size));
}

/* Take ":17" from the end. */
static bool league_take_number(struct bytes *name, uint64_t maximum, uint32_t *number) {
    size_t digits = 0;
    uint64_t value;
    while (digits < name->size && name->at[name->size - digits - 1] != ':') {
        digits++;
    }
    if (digits == name->size || digits > 10 ||
        !bytes_parse_u64(bytes_behind(*name, name->size - digits), &value) || value < 1 ||
        value > maximum) {
        return false;
    }
    *number = (uint32_t)value;
    name->size -= digits + 1;
    return true;
}

/* What names of its boards begin with, without the colon, and the name that the league may have instead: "{daily}" is of
 * "daily", too. false: no league's begin so. */
static bool league_split_prefix(struct bytes name, struct bytes *prefix, struct bytes *inner) {
    if (!league_has_tag(name)) {
        return false;
    }
    *prefix = name;
    bool is_whole = name.at[0] == '{' && name.at[name.size - 1] == '}';
    *inner = is_whole ? (struct bytes){.at = name.at + 1, .size = name.size - 2} : name;
    return true;
}

bool league_parse_room(struct bytes name, struct bytes *prefix, struct bytes *inner,
                       struct league_entry *entry) {
    *entry = (struct league_entry){.period = 0};
    return league_take_number(&name, UINT32_MAX, &entry->room) &&
           league_take_number(&name, LEAGUE_TIERS_MAX, &entry->tier) &&
           league_split_prefix(name, prefix, inner);
}

/* Where an archive got a number because its name was taken (registry_roll.c), so many are tried. */
enum { ARCHIVES_TRIED = 8 };

/* ---- a member that comes ---- */

bool league_find_tier(struct registry *registry, const struct registry_key *league,
                      struct league_names *names, struct bytes member, struct league_entry entry,
                      const struct period *period, uint32_t now_period, int64_t now_ms,
                      league_open *open, const void *context, uint32_t *tier) {
    const struct board_league *options = &registry_options(league)->league;
    struct bytes name =
        entry.room > 0 ? league_archive(names, entry, period) : (struct bytes){.size = 0};
    size_t size = name.size;
    *tier = entry.tier;
    for (uint64_t number = 2; size > 0 && number < 2 + ARCHIVES_TRIED; number++) {
        if (!open(context, name)) {
            return false;
        }
        /* One that has expired and is there all the same has members who are not settled: nothing expires now, or there
         * was no memory for it. */
        const struct registry_key *archive =
            registry_find(registry, league->database, name, now_ms);
        if (archive == NULL) {
            archive = registry_find_name(registry_read(registry, league->database), name);
        }
        if (archive == NULL) {
            break;
        }
        if (archive->kind == REGISTRY_BOARD) {
            struct board_member found;
            board_look_up(&archive->board, member, NULL, &found);
            if (found.is_there) {
                *tier = league_tier_after(options, *tier, board_rank_of(&archive->board, &found),
                                          board_count(&archive->board));
                break;
            }
        }
        names->at[size] = '.';
        name.size = size + 1 + bytes_print_u64(names->at + size + 1, number);
    }
    uint32_t idle_count = options->idle_goes_down ? league_count_between(period, entry.period,
                                                                         now_period, options->tiers)
                                                  : 0;
    *tier = league_tier_idle(options, *tier, idle_count);
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

static struct registry_key *league_find_board(const struct registry *registry, uint32_t number,
                                              struct bytes name) {
    struct registry_key *key =
        league_is_name(name) ? registry_find_name(registry_read(registry, number), name) : NULL;
    return key != NULL && key->kind == REGISTRY_BOARD && registry_options(key)->league.room > 0
               ? key
               : NULL;
}

/* The league of this name, and the options of its template. NULL: there is none, or it has none with a PERIOD. */
static struct registry_key *league_find(const struct registry *registry, uint32_t number,
                                        struct bytes name, const struct board_options **rooms) {
    struct league_names names;
    struct registry_key *key = league_find_board(registry, number, name);
    if (key == NULL) {
        return NULL;
    }
    league_names_init(&names, name);
    const struct registry_key *template =
        registry_find_name(registry_read(registry, number), league_template(&names));
    if (template == NULL || template->kind != REGISTRY_BOARD ||
        registry_options(template)->period.unit == PERIOD_NONE) {
        return NULL;
    }
    *rooms = registry_options(template);
    return key;
}

struct registry_key *league_find_of_room(const struct registry *registry, uint32_t number,
                                         struct bytes name, struct league_entry *entry,
                                         const struct board_options **rooms) {
    struct bytes prefix;
    struct bytes inner;
    if (!league_parse_room(name, &prefix, &inner, entry)) {
        return NULL;
    }
    struct registry_key *league = league_find(registry, number, prefix, rooms);
    return league != NULL ? league : league_find(registry, number, inner, rooms);
}

struct registry_key *league_find_of_template(const struct registry *registry, uint32_t number,
                                             struct bytes name) {
    struct bytes prefix;
    struct bytes inner;
    size_t size = name.size > sizeof template_word ? name.size - sizeof template_word : 0;
    if (size == 0 || name.at[size - 1] != ':' ||
        memcmp(name.at + size, template_word, sizeof template_word) != 0 ||
        !league_split_prefix((struct bytes){.at = name.at, .size = size - 1}, &prefix, &inner)) {
        return NULL;
    }
    struct registry_key *league = league_find_board(registry, number, prefix);
    return league != NULL ? league : league_find_board(registry, number, inner);
}

/* false: no memory. */
static bool league_settle_member(struct settling *settling, struct bytes name, uint32_t rank) {
    struct board_member member;
    char text[REGISTRY_SUFFIX_MAX];
    const struct board_league *options = &registry_options(settling->league)->league;
    board_look_up(&settling->league->board, name, NULL, &member);
    if (!member.is_there) {
        return true;
    }
    /* Did it have its last result in this archive? There may be a number behind its name. */
    struct league_entry entry = league_entry_of(member.key);
    if (entry.tier != settling->entry.tier || entry.room != settling->entry.room) {
        return true;
    }
    size_t size = league_print_suffix(settling->period, entry.period, text);
    if (settling->suffix.size < size || memcmp(settling->suffix.at, text, size) != 0 ||
        (settling->suffix.size > size && settling->suffix.at[size] != '.')) {
        return true;
    }
    entry.tier =
        league_tier_after(options, entry.tier, rank, board_count(&settling->archive->board));
    entry.room = 0;
    settling->settled_count++;
    settling->registry->totals.league_settled++;
    return registry_board_put(settling->registry, settling->league, &member, league_key(entry)) ==
           BOARD_OK;
}

static enum key_expiry league_settle_members(struct settling *settling, uint32_t members_max,
                                             uint32_t *work) {
    const struct board *archive = &settling->archive->board;
    enum key_expiry status = KEY_EXPIRY_READY;
    struct board_cursor cursor;
    struct board_stored entry;
    char room[NAME_TEXT_ROOM];
    board_cursor_seek(archive, 0, &cursor);
    while (status == KEY_EXPIRY_READY && board_cursor_read(&cursor, &entry)) {
        if (settling->settled_count == members_max) {
            status = KEY_EXPIRY_MORE;
        } else if (!league_settle_member(settling, name_text(entry.member, room), (*work)++)) {
            status = KEY_EXPIRY_OUT_OF_MEMORY;
        }
        board_cursor_next(&cursor);
    }
    if (settling->settled_count > 0) {
        registry_tell_members(settling->registry, settling->league);
    }
    return status;
}

enum key_expiry league_settle(struct registry *registry, const struct registry_key *key,
                              uint32_t members_max, uint32_t *work) {
    struct settling settling = {.registry = registry, .archive = key};
    const struct board_options *rooms;
    struct bytes name;
    *work = 0;
    if (registry_league_count(registry) == 0 || key->kind != REGISTRY_BOARD ||
        board_count(&key->board) > ARCHIVE_MEMBERS_MAX ||
        !registry_roll_archive_board(registry_name(key), &name)) {
        return KEY_EXPIRY_READY;
    }
    settling.suffix = bytes_behind(registry_name(key), name.size);
    settling.league = league_find_of_room(registry, key->database, name, &settling.entry, &rooms);
    if (settling.league == NULL) {
        return KEY_EXPIRY_READY;
    }
    settling.period = &rooms->period;
    return league_settle_members(&settling, members_max, work);
}

/* ---- members whose results are put together ---- */

bool league_parts(const struct registry *registry, const struct registry_key *key, struct bytes one,
                  struct bytes other) {
    struct league_entry room;
    const struct board_options *rooms;
    uint64_t keys[2];
    bool is_league = registry_options(key)->league.room > 0;
    if (registry_league_count(registry) == 0) {
        return false;
    }
    struct bytes name = registry_name(key);
    const struct registry_key *league =
        is_league ? league_find(registry, key->database, name, &rooms)
                  : league_find_of_room(registry, key->database, name, &room, &rooms);
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
