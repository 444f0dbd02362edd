/* LB.MATCH LB.PREDICT LB.RATE LB.RATING: boards that rate (RATING).
 *
 *     LB.MATCH ladder ONCE m17 TEAM 2 ann bob TEAM 1 cid
 *       words -> teams -> records of all players -> rating_match -> notes, and keys of those who are ranked
 *
 * A match is all or nothing: memory is reserved for all players before the first one changes. */
#include <stdlib.h>

#include "codec/bytes.h"
#include "server/commands/lb/lb.h"
#include "server/commands/lb/lb_rating.h"
#include "server/commands/once.h"
#include "server/commands/writing.h"
#include "server/dispatch/cost.h"
#include "server/sessions/job.h"
#include "skiplist/lookup.h"

enum {
    FIRST_OPTION = 2,
    WEIGHT_DECIMALS = 6, /* of WEIGHTS and SCORES */
    CHANCE_DECIMALS = 6,
};
_Static_assert((int)LOOKUP_GROUP <= (int)HASH_PREFETCH_MAX,
               "records of a group are fetched together");
_Static_assert(RATING_CHANCE_ONE == 1000000, "chances have six decimals");

/* ---- records ---- */

enum {
    SIX = 6, /* bytes of numbers and times */
    RESETS_MAX = 100,
    NOTE_KEPT = 1,
    NOTE_SEASON = 2,
    NOTE_PERIOD = 3,
    KEPT_BYTES = 1 + SIX + SIX + 8,
    SEASON_BYTES = 1 + SIX,
    PERIOD_BYTES = 1 + SIX + 8 + 8,
};

size_t lb_match_rating_pack(const struct lb_rated *rated, char note[LB_RATING_NOTE_MAX]) {
    char *at = note + RATING_RECORD_BYTES;
    rating_pack(&rated->record, note);
    if (rated->token != 0) {
        *at = NOTE_KEPT;
        bytes_put_u48(at + 1, rated->token);
        bytes_put_u48(at + 1 + SIX, rated->last);
        bytes_put_u64(at + 1 + SIX + SIX, (uint64_t)rated->best);
        at += KEPT_BYTES;
    }
    if (rated->season_ms > 0) {
        *at = NOTE_SEASON;
        bytes_put_u48(at + 1, (uint64_t)rated->season_ms);
        at += SEASON_BYTES;
    }
    if (rated->record.period_ms > 0) {
        *at = NOTE_PERIOD;
        bytes_put_u48(at + 1, (uint64_t)rated->record.period_ms);
        bytes_put_u64(at + 1 + SIX, (uint64_t)rated->record.learned);
        bytes_put_u64(at + 1 + SIX + 8, (uint64_t)rated->record.gained);
        at += PERIOD_BYTES;
    }
    return (size_t)(at - note);
}

static void lb_match_unpack_parts(struct bytes note, struct lb_rated *rated) {
    const char *at = note.at + RATING_RECORD_BYTES;
    size_t left = note.size - RATING_RECORD_BYTES;
    if (left >= KEPT_BYTES && *at == NOTE_KEPT) {
        rated->token = bytes_get_u48(at + 1);
        rated->last = bytes_get_u48(at + 1 + SIX);
        rated->best = (int64_t)bytes_get_u64(at + 1 + SIX + SIX);
        if (rated->best < -RATING_LIMIT || rated->best > RATING_LIMIT) {
            rated->best = rated->record.value;
        }
        at += KEPT_BYTES;
        left -= KEPT_BYTES;
    }
    if (left >= SEASON_BYTES && *at == NOTE_SEASON) {
        rated->season_ms = (int64_t)bytes_get_u48(at + 1);
        at += SEASON_BYTES;
        left -= SEASON_BYTES;
    }
    if (left >= PERIOD_BYTES && *at == NOTE_PERIOD) {
        rated->record.period_ms = (int64_t)bytes_get_u48(at + 1);
        rated->record.learned = (int64_t)bytes_get_u64(at + 1 + SIX);
        rated->record.gained = (int64_t)bytes_get_u64(at + 1 + SIX + 8);
        if (!rating_is_sum(rated->record.learned) || !rating_is_sum(rated->record.gained)) {
            rated->record.learned = rated->record.gained = 0;
        }
    }
}

bool lb_match_rating_find(const struct registry_key *key, struct bytes member, int64_t now_ms,
                          struct lb_rated *rated) {
    const struct board_options *options = registry_options(key);
    struct bytes note;
    *rated = (struct lb_rated){.record = rating_record_start(&options->rating)};
    bool is_there = registry_note_find(key, member, &note) && !registry_note_is_own(member) &&
                    note.size >= RATING_RECORD_BYTES && rating_unpack(note.at, &rated->record);
    if (is_there && note.size > RATING_RECORD_BYTES) {
        lb_match_unpack_parts(note, rated);
    }
    if (lb_rating_has_periods(options)) {
        /* RESET and EVERY-HOURS: what has become of it by now. */
        const struct rating_rule *rule = &options->rating;
        if (rule->of[RATING_EVERY_HOURS] > 0) {
            rated->is_due = rating_record_end_period(rule, &rated->record, now_ms);
        }
        if (rule->of[RATING_RESET] > 0 && !options->is_archive) {
            /* As many as periods have ended; behind some nothing changes any more. */
            for (int i = 0; i < RESETS_MAX && rated->season_ms > 0 &&
                            rated->season_ms < options->period_start_ms;
                 i++) {
                rating_record_reset(rule, &rated->record);
                rated->season_ms = period_start_after(&options->period, rated->season_ms, 1);
                rated->is_due = true;
            }
            rated->season_ms = options->period_start_ms;
        }
    }
    return is_there;
}

/* Can the player have this name? false: the error was replied. */
static bool lb_match_check_name(const struct call *call, struct bytes name) {
    return !registry_note_is_own(name) ||
           call_refuse(call, "ERR the name of a player may not begin with a zero byte");
}

bool lb_match_rating_check(const struct call *call, const struct registry_key *key) {
    return key == NULL || registry_options(key)->has_rating ||
           call_refuse(call, "ERR board has no RATING: LB.CREATE key ... RATING "
                             "ELO|GLICKO2|OPENSKILL makes one that has");
}

bool lb_match_is_ranked(const struct rating_rule *rating, const struct rating_record *record) {
    return rating_games(record) >= (uint64_t)rating->of[RATING_MINGAMES] &&
           (rating->of[RATING_MAXDEV] == 0 || record->deviation <= rating->of[RATING_MAXDEV]);
}

static void lb_match_put_value(struct reply *reply, const struct rating_rule *rating,
                               int64_t value) {
    reply_decimal(reply, decimal_from_i64(value), rating_decimals(rating->system));
}

static void lb_match_put_deviation(struct reply *reply, const struct rating_rule *rating,
                                   const struct rating_record *record, int64_t now_ms) {
    if (rating->system == RATING_ELO) {
        reply_null(reply);
    } else {
        lb_match_put_value(reply, rating, rating_now(rating, record, now_ms));
    }
}

/* rating, deviation, volatility, games, won, drawn, lost, last: so many elements. */
enum { LB_RATING_ELEMENTS = 8 };
static void lb_match_put_record(struct reply *reply, const struct rating_rule *rating,
                                const struct rating_record *record, int64_t now_ms) {
    lb_match_put_value(reply, rating, record->value);
    lb_match_put_deviation(reply, rating, record, now_ms);
    if (rating->system == RATING_GLICKO2) {
        reply_decimal(reply, decimal_from_i64(record->volatility), RATING_VOLATILITY_DECIMALS);
    } else {
        reply_null(reply);
    }
    reply_integer(reply, (int64_t)rating_games(record));
    reply_integer(reply, record->won);
    reply_integer(reply, record->drawn);
    reply_integer(reply, record->lost);
    if (record->last_ms > 0) {
        reply_integer(reply, record->last_ms);
    } else {
        reply_null(reply);
    }
}

void lb_match_rating_reply(struct reply *reply, const struct registry_key *key, struct bytes member,
                           int64_t now_ms) {
    struct lb_rated rated;
    if (!lb_match_rating_find(key, member, now_ms, &rated)) {
        reply_null_array(reply);
        return;
    }
    reply_array(reply, LB_RATING_ELEMENTS);
    lb_match_put_record(reply, &registry_options(key)->rating, &rated.record, now_ms);
}

/* ---- the words of a match ---- */

struct teams {
    struct bytes once_id; /* at NULL: none */
    int64_t at_ms;
    uint32_t count, player_count, rank_count, weight_count;
    bool has_at, has_scores;
    uint32_t sizes[RATING_TEAMS_MAX];
    uint32_t ranks[RATING_TEAMS_MAX];
    int64_t scores[RATING_TEAMS_MAX]; /* SCORES: higher is better */
    uint32_t weights[RATING_PLAYERS_MAX];
    struct bytes names[RATING_PLAYERS_MAX];
};

static bool lb_match_refuse_many(const struct call *call) {
    return call_refuse_format(call, "ERR a match has at most %d teams and %d players",
                              (int)RATING_TEAMS_MAX, (int)RATING_PLAYERS_MAX);
}

/* TEAM n member ... */
static bool lb_match_read_team(const struct call *call, uint32_t *next, struct teams *teams) {
    uint32_t left = call->request->count - *next;
    int64_t size;
    if (left == 0 || !call_parse_integer(call, call_arg(call, *next), &size)) {
        return left != 0 ? false : call_syntax_error(call);
    }
    if (size < 1 || size >= left) {
        return call_refuse(call, "ERR TEAM needs a number of players, and as many members");
    }
    if (teams->count == RATING_TEAMS_MAX || size > RATING_PLAYERS_MAX - teams->player_count) {
        return lb_match_refuse_many(call);
    }
    teams->sizes[teams->count++] = (uint32_t)size;
    for (int64_t i = 0; i < size; i++) {
        struct bytes name = call_arg(call, *next + 1 + (uint32_t)i);
        if (!zset_check_name(call, name) || !lb_match_check_name(call, name)) {
            return false;
        }
        teams->names[teams->player_count++] = name;
    }
    *next += 1 + (uint32_t)size;
    return true;
}

/* The number at an argument; false: it is none, and no error was replied. */
static bool lb_match_read_number(const struct call *call, uint32_t index, unsigned decimals,
                                 int64_t *number) {
    struct decimal value;
    if (index >= call->request->count ||
        decimal_parse(call_arg(call, index), decimals, &value) != DECIMAL_OK ||
        value.magnitude > INT64_MAX) {
        return false;
    }
    *number = value.is_negative ? -(int64_t)value.magnitude : (int64_t)value.magnitude;
    return true;
}

/* RANKS, SCORES and WEIGHTS: numbers up to the next word. */
static bool lb_match_read_numbers(const struct call *call, const char *word, uint32_t *next,
                                  struct teams *teams) {
    bool is_ranks = word[0] == 'R';
    bool is_weights = word[0] == 'W';
    uint32_t *count = is_weights ? &teams->weight_count : &teams->rank_count;
    uint32_t most = is_weights ? (uint32_t)RATING_PLAYERS_MAX : (uint32_t)RATING_TEAMS_MAX;
    int64_t largest = is_ranks ? UINT32_MAX : is_weights ? RATING_WEIGHT_MAX : INT64_MAX;
    int64_t number;
    if (*count > 0) {
        return call_refuse(call, is_weights ? "ERR WEIGHTS may be given once"
                                            : "ERR RANKS or SCORES may be given once");
    }
    while (lb_match_read_number(call, *next, is_ranks ? 0 : WEIGHT_DECIMALS, &number)) {
        if ((word[0] != 'S' && number < 0) || number > largest) {
            return call_refuse_word(call, call_arg(call, *next), "is out of range", NULL);
        }
        if (*count == most) {
            return lb_match_refuse_many(call);
        }
        if (is_weights) {
            teams->weights[*count] = (uint32_t)number;
        } else if (is_ranks) {
            teams->ranks[*count] = (uint32_t)number;
        } else {
            teams->scores[*count] = number;
        }
        ++*count;
        ++*next;
    }
    teams->has_scores |= word[0] == 'S';
    return *count > 0 || call_refuse_format(call, "ERR %s needs a number for each %s", word,
                                            is_weights ? "player" : "team");
}

static bool lb_match_read_word(const struct call *call, uint32_t *next, struct teams *teams) {
    uint32_t at = *next;
    struct bytes value =
        at + 1 < call->request->count ? call_arg(call, at + 1) : (struct bytes){.at = NULL};
    ++*next;
    if (call_arg_is(call, at, "TEAM")) {
        return lb_match_read_team(call, next, teams);
    }
    if (call_arg_is(call, at, "RANKS") || call_arg_is(call, at, "SCORES") ||
        call_arg_is(call, at, "WEIGHTS")) {
        const char *word = call_arg_is(call, at, "RANKS")    ? "RANKS"
                           : call_arg_is(call, at, "SCORES") ? "SCORES"
                                                             : "WEIGHTS";
        return lb_match_read_numbers(call, word, next, teams);
    }
    ++*next;
    if (call_arg_is(call, at, "ONCE") && value.at != NULL && teams->once_id.at == NULL) {
        teams->once_id = value;
        return once_is_id(value) || call_refuse(call, "ERR ONCE takes an id of 1 to 64 bytes");
    }
    if (call_arg_is(call, at, "AT") && value.at != NULL && !teams->has_at) {
        teams->has_at = true;
        return call_parse_integer(call, value, &teams->at_ms) &&
               ((teams->at_ms >= 1 && teams->at_ms <= RATING_MS_MAX) ||
                call_refuse_word(call, value, "is not a time of a match", NULL));
    }
    return call_syntax_error(call);
}

static int lb_match_compare_names(const void *left, const void *right) {
    const struct bytes *a = left;
    const struct bytes *b = right;
    size_t size = a->size < b->size ? a->size : b->size;
    int order = memcmp(a->at, b->at, size);
    return order != 0 ? order : a->size < b->size ? -1 : a->size > b->size;
}

static bool lb_match_refuse_twice(const struct call *call, struct bytes name) {
    return call_refuse_format(call, "ERR player '%s' is in the match twice", bytes_show(name).text);
}

/* Equal of equal names, and seldom of others. */
static uint64_t lb_match_mark(struct bytes name) {
    uint64_t first = 0, last = 0;
    if (name.size >= sizeof first) {
        memcpy(&first, name.at, sizeof first);
        memcpy(&last, name.at + name.size - sizeof last, sizeof last);
    } else if (name.size > 0) {
        memcpy(&last, name.at, name.size);
    }
    return (first << 1 | first >> 63) + last;
}

/* Is nobody there twice? false: the error was replied. */
static bool lb_match_check_twice(const struct call *call, const struct teams *teams) {
    enum { PAIRED_MAX = 64 /* names; of more, pairs take longer than sorting */ };
    const struct bytes *names = teams->names;
    uint32_t count = teams->player_count;
    if (count > PAIRED_MAX) {
        struct bytes sorted[RATING_PLAYERS_MAX];
        memcpy(sorted, names, count * sizeof names[0]);
        qsort(sorted, count, sizeof sorted[0], lb_match_compare_names);
        for (uint32_t i = 1; i < count; i++) {
            if (bytes_equal(sorted[i - 1], sorted[i])) {
                return lb_match_refuse_twice(call, sorted[i]);
            }
        }
        return true;
    }
    uint64_t marks[PAIRED_MAX];
    for (uint32_t i = 0; i < count; i++) {
        marks[i] = lb_match_mark(names[i]);
        for (uint32_t j = 0; j < i; j++) {
            if (marks[i] == marks[j] && bytes_equal(names[i], names[j])) {
                return lb_match_refuse_twice(call, names[i]);
            }
        }
    }
    return true;
}

/* The arrays are set as far as they are counted. false: the error was replied. */
static bool lb_match_read(const struct call *call, struct teams *teams) {
    uint32_t next = FIRST_OPTION;
    teams->once_id = (struct bytes){.at = NULL};
    teams->at_ms = call->now_ms;
    teams->count = 0;
    teams->player_count = 0;
    teams->rank_count = 0;
    teams->weight_count = 0;
    teams->has_at = false;
    teams->has_scores = false;
    while (next < call->request->count) {
        if (!lb_match_read_word(call, &next, teams)) {
            return false;
        }
    }
    if (teams->count < 2) {
        return call_refuse(call, "ERR a match needs two teams or more");
    }
    if (teams->rank_count > 0 && teams->rank_count != teams->count) {
        return call_refuse_format(call, "ERR %s needs a number for each team",
                                  teams->has_scores ? "SCORES" : "RANKS");
    }
    if (teams->weight_count > 0 && teams->weight_count != teams->player_count) {
        return call_refuse(call, "ERR WEIGHTS needs a number for each player");
    }
    /* Of RANKS: as they are. Of SCORES: how many teams have more. */
    for (uint32_t i = 0; i < teams->count && teams->has_scores; i++) {
        teams->ranks[i] = 0;
        for (uint32_t j = 0; j < teams->count; j++) {
            teams->ranks[i] += teams->scores[j] > teams->scores[i];
        }
    }
    return lb_match_check_twice(call, teams);
}

static struct rating_match lb_match_of(const struct teams *teams) {
    return (struct rating_match){.sizes = teams->sizes,
                                 .ranks = teams->rank_count > 0 ? teams->ranks : NULL,
                                 .weights = teams->weight_count > 0 ? teams->weights : NULL,
                                 .teams = teams->count,
                                 .at_ms = teams->at_ms};
}

static bool lb_match_check(const struct call *call, const struct rating_rule *rule,
                           const struct rating_match *match) {
    switch (rating_match_check(rule, match)) {
    case RATING_OK:
        return true;
    case RATING_TEAMS_WRONG:
        return lb_match_refuse_many(call);
    case RATING_TIME_WRONG:
        return call_refuse(call, "ERR a match cannot have this time");
    case RATING_WEIGHTS_WRONG:
        break;
    }
    return call_refuse(call, "ERR WEIGHTS are for RATING OPENSKILL");
}

/* ---- players ---- */

bool lb_match_begin_players(struct lb_players *players, const struct bytes *names, uint32_t count) {
    players->names = names;
    players->count = count;
    players->note_count = count;
    players->heap = NULL;
    players->records = players->few_records;
    players->list = players->few;
    players->lookups = players->few_lookups;
    players->notes = players->few_notes;
    if (count > LB_PLAYERS_FEW) {
        size_t each = sizeof(struct lb_player) + sizeof(struct rating_record) +
                      sizeof(struct lookup) + 2 * sizeof(struct bytes);
        players->heap = memory_allocate(count * each);
        players->list = players->heap;
        if (players->heap == NULL) {
            return false;
        }
        players->lookups = (void *)(players->list + count);
        players->records = (void *)(players->lookups + count);
        players->notes = (void *)(players->records + count);
    }
    return true;
}

void lb_match_end_players(struct lb_players *players) {
    memory_free(players->heap);
}

void lb_match_find_players(struct lb_players *players, int64_t now_ms) {
    const struct board *board = &players->key->board;
    struct hash_prefetch notes;
    for (uint32_t begin = 0; begin < players->count;) {
        unsigned count = lookup_group_size(players->count, begin);
        struct lookup *lookups = players->lookups + begin;
        for (unsigned i = 0; i < count; i++) {
            lookup_begin(&lookups[i], board, players->names[begin + i], true);
        }
        /* Memory is waited for at the same time. */
        hash_prefetch_begin(&notes, registry_note_hash(players->key), players->names + begin,
                            count);
        lookup_run(lookups, count, LOOKUP_NODE);
        hash_prefetch_places(&notes);
        lookup_run(lookups, count, LOOKUP_LEAF);
        hash_prefetch_entries(&notes);
        lookup_run(lookups, count, LOOKUP_ENTRY);
        for (uint32_t i = begin; i < begin + count; i++) {
            struct lb_player *player = &players->list[i];
            (void)lb_match_rating_find(players->key, players->names[i], now_ms, &player->rated);
            players->records[i] = player->rated.record;
            board_look_up(board, players->names[i], &players->lookups[i], &player->member);
            player->rank_before =
                player->member.is_there ? board_rank_of(board, &player->member) : UINT32_MAX;
        }
        begin += count;
    }
}

/* EVERY-HOURS: before the records change. */
static void lb_match_enter_periods(struct lb_players *players, int64_t now_ms) {
    const struct rating_rule *rule = &registry_options(players->key)->rating;
    for (uint32_t i = 0; i < players->count && rule->of[RATING_EVERY_HOURS] > 0; i++) {
        rating_record_enter_period(rule, &players->records[i], now_ms);
        players->list[i].rated.record = players->records[i];
    }
}

/* The note, and whether the player is to be on the board. */
static void lb_match_plan_note(const struct lb_players *players, uint32_t i) {
    struct lb_player *player = &players->list[i];
    struct lb_rated after = player->rated;
    after.record = players->records[i];
    players->notes[(size_t)2 * i] = players->names[i];
    players->notes[(size_t)2 * i + 1] =
        (struct bytes){.at = player->note, .size = lb_match_rating_pack(&after, player->note)};
    player->is_ranked =
        lb_match_is_ranked(&registry_options(players->key)->rating, &players->records[i]);
}

/* The key with the rating. The options were checked: the field has room for every one. */
static uint64_t lb_match_key(const struct lb_players *players, uint32_t i, uint64_t key) {
    const struct board_options *options = registry_options(players->key);
    const struct layout_field *lead = &options->layout.fields[0];
    uint64_t ordinal;
    bool has_room =
        layout_field_ordinal(
            lead,
            decimal_from_i64(rating_ranks(&options->rating, &players->records[i], lead->scale)),
            &ordinal) == LAYOUT_OK;
    CHECK(has_room);
    return layout_with_ordinal(&options->layout, key, 0, ordinal);
}

/* What ranks, and since when. false: the error was replied. */
static bool lb_match_plan_player(const struct call *call, const struct lb_players *players,
                                 uint32_t i, int64_t at_ms) {
    const struct layout *layout = &registry_options(players->key)->layout;
    const struct rating_record *record = &players->records[i];
    int64_t time_us = (record->last_ms > at_ms ? record->last_ms : at_ms) * 1000;
    uint64_t stamped;
    lb_match_plan_note(players, i);
    /* Who is not ranked yet will be, and not before this match. */
    if (layout_stamp(layout, layout_zero_key(layout), time_us, &stamped) != LAYOUT_OK) {
        return call_refuse_time(call, layout, time_us);
    }
    if (players->list[i].is_ranked) {
        players->list[i].key = lb_match_key(players, i, stamped);
    }
    return true;
}

void lb_match_plan_change(struct lb_players *players, uint32_t i) {
    struct lb_player *player = &players->list[i];
    lb_match_plan_note(players, i);
    player->is_ranked &= player->member.is_there;
    if (player->is_ranked) {
        player->key = lb_match_key(players, i, player->member.key);
    }
}

bool lb_match_settle(struct registry *registry, struct registry_key *key, struct bytes name,
                     int64_t now_ms, bool *is_changed) {
    struct lb_players players;
    bool has_room = lb_match_begin_players(&players, &name, 1);
    CHECK(has_room);
    players.key = key;
    lb_match_find_players(&players, now_ms);
    struct lb_player *player = &players.list[0];
    if (!player->rated.is_due) {
        return true;
    }
    lb_match_plan_change(&players, 0);
    if (!memory_reserve_begin(hash_growth_size(registry_note_hash(key), players.notes, 1) +
                              board_growth_size(&key->board, 1))) {
        return false;
    }
    bool is_put = registry_note_put(registry, key, name, players.notes[1]);
    CHECK(is_put);
    if (player->is_ranked) {
        enum board_status status = registry_board_put(registry, key, &player->member, player->key);
        CHECK(status == BOARD_OK);
    } else if (player->member.is_there) {
        registry_board_take(registry, key, &player->member);
    }
    memory_reserve_end();
    *is_changed = true;
    return true;
}

bool lb_match_reserve(struct writing *writing, const struct lb_players *players, size_t more) {
    const struct hash *notes = registry_note_hash(players->key);
    if (!hash_has_room(notes, players->notes, players->note_count)) {
        return call_refuse_format(writing->call, "ERR board is full: at most %u players",
                                  (unsigned)HASH_FIELDS_END - 1);
    }
    return writing_reserve(writing, players->names, 1, players->count, false,
                           hash_growth_size(notes, players->notes, players->note_count) + more) ||
           call_out_of_memory(writing->call);
}

void lb_match_write(struct writing *writing, struct lb_players *players) {
    struct registry *registry = writing->call->registry;
    struct board *board = &players->key->board;
    uint64_t keys[LOOKUP_GROUP];
    for (uint32_t i = 0; i < players->count; i++) {
        struct lb_player *player = &players->list[i];
        if (i % LOOKUP_GROUP == 0) { /* where they come to: hints, as each changes the board */
            unsigned count = lookup_group_size(players->count, i);
            for (unsigned j = 0; j < count; j++) {
                keys[j] = players->list[i + j].is_ranked ? players->list[i + j].key : 0;
            }
            lookup_places(players->lookups + i, count, keys);
        }
        board_look_up(board, players->names[i], &players->lookups[i], &player->member);
        bool is_put = registry_note_put(registry, players->key, players->names[i],
                                        players->notes[(size_t)2 * i + 1]);
        CHECK(is_put);
        if (player->is_ranked) {
            enum writing_status status = writing_put(writing, &player->member, player->key, true);
            CHECK(status == WRITING_PUT);
            players->lookups[i] = lookup_after_put(&players->lookups[i]);
        } else if (player->member.is_there) {
            registry_board_take(registry, players->key, &player->member);
        }
    }
    for (uint32_t i = players->count; i < players->note_count; i++) {
        bool is_put = registry_note_put(registry, players->key, players->notes[(size_t)2 * i],
                                        players->notes[(size_t)2 * i + 1]);
        CHECK(is_put);
    }
    writing->is_changed = true;
}

static void lb_match_put_rank(struct reply *reply, bool is_there, uint32_t rank) {
    if (is_there) {
        reply_integer(reply, rank);
    } else {
        reply_null(reply);
    }
}

void lb_match_reply(const struct call *call, const struct lb_players *players) {
    enum { ELEMENTS = 7 };
    const struct board *board = &players->key->board;
    const struct rating_rule *rating = &registry_options(players->key)->rating;
    reply_array(call->reply, players->count);
    for (uint32_t i = 0; i < players->count && !reply_is_lost(call->reply); i++) {
        const struct lb_player *player = &players->list[i];
        struct board_member member;
        board_look_up(board, players->names[i], &players->lookups[i], &member);
        reply_array(call->reply, ELEMENTS);
        reply_bulk(call->reply, players->names[i]);
        lb_match_put_value(call->reply, rating, player->rated.record.value);
        lb_match_put_value(call->reply, rating, players->records[i].value);
        lb_match_put_deviation(call->reply, rating, &players->records[i], call->now_ms);
        reply_integer(call->reply, (int64_t)rating_games(&players->records[i]));
        lb_match_put_rank(call->reply, player->rank_before != UINT32_MAX, player->rank_before);
        lb_match_put_rank(call->reply, member.is_there,
                          member.is_there ? board_rank_of(board, &member) : 0);
    }
}

/* ---- LB.MATCH ---- */

bool lb_match_begin(const struct call *call, struct writing *writing) {
    struct bytes name = call_arg(call, 1);
    *writing = (struct writing){.call = call, .has_bans = ban_exists(call->registry)};
    if (call_find_key(call, name) == NULL) {
        if (!call_check_key(call, name)) {
            return false;
        }
        if (!setting_board_options_for(&call->server->settings, name, 0)->has_rating) {
            return call_refuse_no_key(call);
        }
    }
    writing->key = registry_find_or_create(call->registry, call->session->database, name,
                                           call->now_ms, &writing->is_new);
    if (writing->key == NULL) {
        return call_out_of_memory(call);
    }
    if (!call_check_kind(call, writing->key, REGISTRY_BOARD) ||
        !lb_match_rating_check(call, writing->key)) {
        return false;
    }
    writing->board = &writing->key->board;
    writing->options = registry_options(writing->key);
    return true;
}

/* The rest, with a board; the caller ends it. once: NULL: none. false: the error was replied, and nothing has changed. */
static bool lb_match_play(const struct call *call, struct teams *teams, struct once *once,
                          struct writing *writing, struct lb_players *players,
                          struct lb_keeping *keeping) {
    const struct board_options *options = writing->options;
    const struct rating_match match = lb_match_of(teams);
    if (writing_refuses(call, options, BOARD_WRITE_RATED) ||
        !lb_match_check(call, &options->rating, &match)) {
        return false;
    }
    for (uint32_t i = 0; i < teams->player_count && writing->has_bans; i++) {
        if (writing_refuse_banned(writing, teams->names[i])) {
            return false;
        }
    }
    players->key = writing->key;
    lb_match_find_players(players, call->now_ms);
    lb_match_enter_periods(players, call->now_ms);
    rating_match(&options->rating, &match, players->records);
    bool keeps = options->rating.of[RATING_KEEP_MATCHES] > 0;
    if (keeps && !lb_kept_plan(players, &match, teams->once_id, call->now_ms, keeping)) {
        return call_out_of_memory(call);
    }
    for (uint32_t i = 0; i < players->count; i++) {
        if (!lb_match_plan_player(call, players, i, teams->at_ms)) {
            return false;
        }
    }
    if (once != NULL && !once_put(once)) {
        return false;
    }
    if (!lb_match_reserve(writing, players, 0)) {
        if (once != NULL) {
            once_take_back(once);
        }
        return false;
    }
    lb_match_write(writing, players);
    if (keeps) {
        lb_kept_written(call->registry, players->key, keeping);
    }
    memory_reserve_end();
    lb_match_reply(call, players);
    return true;
}

/* The records as they are now, whatever has become of the board; none if it is gone. */
static void lb_match_answer_repeat(const struct call *call, const struct teams *teams) {
    struct lb_players players;
    if (!call_find_kind(call, call_arg(call, 1), REGISTRY_BOARD, &players.key)) {
        return;
    }
    if (players.key == NULL || !registry_options(players.key)->has_rating) {
        reply_array(call->reply, 0);
    } else if (!lb_match_begin_players(&players, teams->names, teams->player_count)) {
        call_out_of_memory(call);
    } else {
        lb_match_find_players(&players, call->now_ms);
        lb_match_reply(call, &players);
        lb_match_end_players(&players);
    }
}

static void lb_match_run(struct call *call) {
    struct teams teams;
    struct once once;
    struct writing writing;
    struct lb_players players;
    if (!lb_match_read(call, &teams)) {
        return;
    }
    bool has_id = teams.once_id.at != NULL;
    if (has_id) {
        enum once_status status = once_begin(call, call_arg(call, 1), teams.once_id, &once);
        if (status == ONCE_REPEATED) {
            lb_match_answer_repeat(call, &teams);
        }
        if (status != ONCE_NEW) {
            return;
        }
    }
    if (!lb_match_begin(call, &writing)) {
        return;
    }
    if (!lb_match_begin_players(&players, teams.names, teams.player_count)) {
        call_out_of_memory(call);
    } else {
        struct lb_keeping keeping = {.room = NULL};
        (void)!lb_match_play(call, &teams, has_id ? &once : NULL, &writing, &players, &keeping);
        memory_free(keeping.room);
        lb_match_end_players(&players);
    }
    writing_end(&writing, "zadd");
}

/* Players, of whom each is at least one word. */
static uint64_t lb_match_count(const struct cost_view *view) {
    uint32_t count = view->call->request->count;
    return count > FIRST_OPTION ? count - FIRST_OPTION : 0;
}

#define LB_TEAMS_SYNTAX "teams=(TEAM n:integer member...)..."

const struct command command_lb_match = {
    .name = "LB.MATCH",
    .arity = -8,
    .syntax = "key [ONCE id] [AT unix-time-milliseconds:unix-time] "
              "[RANKS rank:double...] [SCORES score:double...] [WEIGHTS "
              "weight:double...] " LB_TEAMS_SYNTAX,
    .reply = "[@Played]",
    .summary = "Rate a match of two teams or more, the best first: all players at once",
    .complexity = "O(p log n) for p players and n members of the board",
    .flags = COMMAND_WRITE | COMMAND_DENYOOM,
    .key_access = "RW update",
    .cost = COST(COMMAND_BY_ARGUMENTS, lb_match_count, 2000, 0, "word behind the key",
                 "a match is one command"),
    .run = lb_match_run,
};

/* ---- LB.PREDICT ---- */

static void lb_predict_run(struct call *call) {
    struct teams teams;
    struct lb_players players;
    struct registry_key *key;
    uint32_t chances[RATING_TEAMS_MAX];
    uint32_t quality;
    if (!lb_match_read(call, &teams) || !call_need_board(call, call_arg(call, 1), &key) ||
        !lb_match_rating_check(call, key)) {
        return;
    }
    if (teams.rank_count > 0 || teams.weight_count > 0 || teams.has_at ||
        teams.once_id.at != NULL) {
        call_reply_syntax_error(call);
        return;
    }
    const struct rating_rule *rule = &registry_options(key)->rating;
    const struct rating_match match = lb_match_of(&teams);
    if (!lb_match_check(call, rule, &match)) {
        return;
    }
    if (!lb_match_begin_players(&players, teams.names, teams.player_count)) {
        call_out_of_memory(call);
        return;
    }
    for (uint32_t i = 0; i < players.count; i++) {
        if (i % HASH_PREFETCH_MAX == 0) {
            uint32_t left = players.count - i;
            hash_prefetch_fields(registry_note_hash(key), players.names + i,
                                 left < HASH_PREFETCH_MAX ? left : (uint32_t)HASH_PREFETCH_MAX);
        }
        struct lb_rated rated;
        (void)lb_match_rating_find(key, players.names[i], call->now_ms, &rated);
        players.records[i] = rated.record;
    }
    rating_predict(rule, &match, players.records, chances, &quality);
    lb_match_end_players(&players);
    reply_array(call->reply, 2);
    reply_array(call->reply, teams.count);
    for (uint32_t i = 0; i < teams.count; i++) {
        reply_decimal(call->reply, decimal_from_i64(chances[i]), CHANCE_DECIMALS);
    }
    reply_decimal(call->reply, decimal_from_i64(quality), CHANCE_DECIMALS);
}

const struct command command_lb_predict = {
    .name = "LB.PREDICT",
    .arity = -8,
    .syntax = "key " LB_TEAMS_SYNTAX,
    .reply = "[chances:[n] quality:n]",
    .summary = "Each team's chance to win, and how even the match would be, from 0 to 1",
    .complexity = "O(p + t^2) for p players in t teams",
    .flags = COMMAND_READ,
    .cost =
        COST(COMMAND_BY_ARGUMENTS, lb_match_count, 500, 0, "word behind the key", "fewer teams"),
    .run = lb_predict_run,
};

/* ---- LB.RATE ---- */

/* A rating or a deviation. false: the error was replied. */
static bool lb_match_read_rating(const struct call *call, const struct rating_rule *rating,
                                 uint32_t index, bool is_deviation, int64_t *number) {
    unsigned decimals = rating_decimals(rating->system);
    struct decimal value;
    if (decimal_parse(call_arg(call, index), decimals, &value) != DECIMAL_OK ||
        value.magnitude > (uint64_t)RATING_LIMIT || (is_deviation && value.is_negative)) {
        return call_refuse_word(call, call_arg(call, index),
                                is_deviation ? "is not a deviation" : "is not a rating", NULL);
    }
    *number = value.is_negative ? -(int64_t)value.magnitude : (int64_t)value.magnitude;
    return true;
}

static bool lb_match_seed(const struct call *call, struct writing *writing,
                          struct lb_players *players) {
    const struct rating_rule *rating = &writing->options->rating;
    int64_t value;
    int64_t deviation = -1;
    if (writing_refuses(call, writing->options, BOARD_WRITE_RATED) ||
        !writing_check_member(writing, call_arg(call, 2)) ||
        !lb_match_check_name(call, call_arg(call, 2)) ||
        !lb_match_read_rating(call, rating, 3, false, &value) ||
        (call->request->count > 4 && !lb_match_read_rating(call, rating, 4, true, &deviation))) {
        return false;
    }
    if (deviation >= 0 && rating->system == RATING_ELO) {
        return call_refuse(call, "ERR RATING ELO has no deviation");
    }
    players->key = writing->key;
    lb_match_find_players(players, call->now_ms);
    lb_match_enter_periods(players, call->now_ms);
    rating_record_seed(rating, &players->records[0], value, deviation);
    if (!lb_match_plan_player(call, players, 0, call->now_ms) ||
        !lb_match_reserve(writing, players, 0)) {
        return false;
    }
    lb_match_write(writing, players);
    memory_reserve_end();
    return true;
}

static void lb_match_put_rated(const struct call *call, const struct registry_key *key,
                               struct bytes name, const struct lookup *ahead);

static void lb_rate_run(struct call *call) {
    struct writing writing;
    struct lb_players players;
    struct bytes name = call_arg(call, 2);
    if (!lb_match_begin(call, &writing)) {
        return;
    }
    bool has_room = lb_match_begin_players(&players, &name, 1);
    CHECK(has_room);
    if (lb_match_seed(call, &writing, &players)) {
        lb_match_put_rated(call, writing.key, name, NULL);
    }
    writing_end(&writing, "zadd");
}

const struct command command_lb_rate = {
    .name = "LB.RATE",
    .syntax = "key member rating:double [deviation:double]",
    .reply = "@Rated",
    .summary = "Give a player a rating, and a deviation, without a match; games stay as they are",
    .complexity = "O(log n) in the members of the board",
    .flags = COMMAND_WRITE | COMMAND_DENYOOM | COMMAND_FAST,
    .key_access = "RW update",
    .run = lb_rate_run,
};

/* ---- LB.RATING ---- */

/* [member, rank, rating, deviation, volatility, games, won, drawn, lost, last], or nil. ahead: as for board_look_up. */
static void lb_match_put_rated(const struct call *call, const struct registry_key *key,
                               struct bytes name, const struct lookup *ahead) {
    struct lb_rated rated;
    struct board_member member;
    if (!zset_is_member(name) || !lb_match_rating_find(key, name, call->now_ms, &rated)) {
        reply_null_array(call->reply);
        return;
    }
    board_look_up(&key->board, name, ahead, &member);
    reply_array(call->reply, 2 + LB_RATING_ELEMENTS);
    reply_bulk(call->reply, name);
    lb_match_put_rank(call->reply, member.is_there,
                      member.is_there ? board_rank_of(&key->board, &member) : 0);
    lb_match_put_record(call->reply, &registry_options(key)->rating, &rated.record, call->now_ms);
}

static void lb_rating_run(struct call *call) {
    struct registry_key *key;
    if (!call_need_board(call, call_arg(call, 1), &key) || !lb_match_rating_check(call, key)) {
        return;
    }
    struct lookup ahead[LOOKUP_GROUP];
    const struct bytes *names = &call->request->args[2];
    uint32_t count = call->request->count - 2;
    reply_array(call->reply, count);
    for (uint32_t i = 0; i < count && !reply_is_lost(call->reply); i++) {
        if (i % LOOKUP_GROUP == 0) {
            unsigned some = lookup_group_size(count, i);
            hash_prefetch_fields(registry_note_hash(key), names + i, some);
            lookup_members(&key->board, names + i, 1, some, ahead);
        }
        lb_match_put_rated(call, key, names[i], &ahead[i % LOOKUP_GROUP]);
    }
}

const struct command command_lb_rating = {
    .name = "LB.RATING",
    .syntax = "key member...",
    .reply = "[@Rated?]",
    .summary = "Players' ratings, also of players who are not ranked, with the deviations of "
               "now",
    .complexity = "O(m log n) for m members of the board's n",
    .flags = COMMAND_READ,
    .member_arg = 2,
    .member_step = 1,
    .cost = COST(COMMAND_BY_ARGUMENTS, cost_count_members, 1200, 0, "member named",
                 "several commands of a hundred each"),
    .run = lb_rating_run,
};

/* ---- what periods do ---- */

/* What periods do to records (RESET, EVERY-HOURS) is written in steps (server/sessions/job.h): a board's period has ended
 * (RESET), or an hour has (EVERY-HOURS).
 *
 * Whoever reads or changes a record before the job has come to it computes the same (lb_rating.h): what is late is the
 * place on the board alone. Records say of which periods they are, so a job that begins again changes nothing twice. */
enum {
#ifdef SKIPLIST_TINY
    STEP_RECORDS = 2,
#else
    STEP_RECORDS = 32, /* looked at in a step; about a microsecond each where they change */
#endif
    MS_OF_HOUR = 3600000,
};

static bool lb_match_concerns_due(struct board_job *job, const struct registry_key *board) {
    const struct board_options *options = registry_options(board);
    if (!lb_rating_has_periods(options)) {
        return false;
    }
    if (options->rating.of[RATING_EVERY_HOURS] > 0) {
        job_board_await(job, (job->server->clock.now_ms / MS_OF_HOUR + 1) * MS_OF_HOUR);
    }
    return registry_note_count(board) > 0;
}

/* Records that are new, or come to other places by a removal, are of the running periods or still ahead. */
static enum job_board_change lb_match_visit_due(struct board_job *job, struct registry_key *board,
                                                struct bytes name) {
    struct lb_rated rated;
    bool is_changed = false;
    int64_t now_ms = job->server->clock.now_ms;
    if (registry_note_is_own(name) || !lb_match_rating_find(board, name, now_ms, &rated) ||
        !rated.is_due) {
        return JOB_BOARD_SAME;
    }
    if (!lb_match_settle(job->server->registry, board, name, now_ms, &is_changed)) {
        return JOB_BOARD_NO_MEMORY;
    }
    return is_changed ? JOB_BOARD_CHANGED : JOB_BOARD_SAME;
}

static bool lb_match_step_due(struct board_job *job, struct registry_key *board) {
    return job_board_step_notes(job, board, STEP_RECORDS, STEP_RECORDS, lb_match_visit_due);
}

const struct board_work rating_job = {
    .size = sizeof(struct board_job), .concerns = lb_match_concerns_due, .step = lb_match_step_due};
