/* Arithmetic and names of leagues. See league.h. */
#include "skiplist/keyspace/league.h"

#include "skiplist/keyspace/archive_name.h"

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
static uint32_t league_clamp(const struct rules_league *league, uint32_t tier) {
    tier = tier < league->tiers ? tier : league->tiers;
    return tier > 1 ? tier : 1;
}

uint32_t league_tier_after(const struct rules_league *league, uint32_t tier, uint32_t rank,
                           uint32_t count) {
    CHECK(rank < count);
    tier = league_clamp(league, tier);
    if (rank < league->up) {
        return league_clamp(league, tier + 1);
    }
    return count - rank <= league->down ? league_clamp(league, tier - 1) : tier;
}

uint32_t league_tier_idle(const struct rules_league *league, uint32_t tier, uint32_t periods) {
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

struct bytes league_template(struct league_names *names) {
    static const char word[] = {'r', 'o', 'o', 'm', 's'};
    memcpy(names->at + names->prefix_size, word, sizeof word);
    return league_finish(names, names->prefix_size + sizeof word);
}

struct bytes league_room(struct league_names *names, uint32_t tier, uint32_t room) {
    size_t size = names->prefix_size;
    size += bytes_print_u64(names->at + size, tier);
    names->at[size++] = ':';
    return league_finish(names, size + bytes_print_u64(names->at + size, room));
}

struct bytes league_archive(struct league_names *names, struct league_entry entry,
                            const struct period *period) {
    size_t size = league_room(names, entry.tier, entry.room).size;
    return league_finish(names, size + league_print_suffix(period, entry.period, names->at + size));
}

size_t league_print_suffix(const struct period *period, uint32_t number, char *out) {
    return archive_print_suffix(period, league_time_in(number), out);
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

bool league_parse_room(struct bytes name, struct bytes *prefix, struct bytes *inner,
                       struct league_entry *entry) {
    *entry = (struct league_entry){.period = 0};
    if (!league_take_number(&name, UINT32_MAX, &entry->room) ||
        !league_take_number(&name, LEAGUE_TIERS_MAX, &entry->tier) || !league_has_tag(name)) {
        return false;
    }
    *prefix = name;
    bool is_whole = name.at[0] == '{' && name.at[name.size - 1] == '}';
    *inner = is_whole ? (struct bytes){.at = name.at + 1, .size = name.size - 2} : name;
    return true;
}
