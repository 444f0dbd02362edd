/* ZUNION, ZINTER and ZDIFF, their STORE forms, and ZINTERCARD.
 *
 *     ZUNIONSTORE week 2 mon tue WEIGHTS 1 2
 *       parse the number of keys -> the options -> find the boards -> combine (combine.h) ->
 *       reply in Redis's order, or store (zset_store.h)
 *
 * Redis orders a result by score, lowest first, and equal scores by name. Here equal scores have
 * the order that ZRANGE would give them on a board with the layout of the first key that exists. */
#include <inttypes.h>

#include "server/commands/ban.h"
#include "server/commands/zset/zset_store.h"
#include "server/dispatch/syntax.h"
#include "server/sessions/job.h"
#include "skiplist/keyspace/registry_mirror.h"

enum {
    COUNTED_RUNS = 128, /* of at most BLOCK_RUN_MAX members: well below a millisecond */
    SHOWN_MAX = 64,     /* bytes of a weight shown in an error */
};

/* The command's variant. */
struct combining {
    enum combine_kind kind;
    bool is_counted; /* ZINTERCARD */
};

enum { QUERY_SOURCES_FEW = 16 };

/* One command. */
struct zset_query {
    uint32_t first_source; /* index of the first source's key */
    struct combine combine;
    struct combine_source few_sources[QUERY_SOURCES_FEW];
    bool with_scores;
    bool is_counted; /* ZINTERCARD */
    int64_t limit;
};

/* Does a destination precede the keys? */
static bool zset_combine_query_is_stored(const struct call *call) {
    return (call->command->flags & COMMAND_WRITE) != 0;
}

/* ---- parsing ---- */

static bool zset_combine_read_source_count(const struct call *call, uint32_t index, void *target) {
    struct zset_query *query = target;
    int64_t count;
    if (!call_parse_integer(call, call_arg(call, index), &count)) {
        return false;
    }
    if (count < 1) {
        return call_refuse_format(call, "ERR at least 1 input key is needed for '%s' command",
                                  command_full_name(command_index(call->command)));
    }
    if (count > (int64_t)call->request->count - index - 1) {
        return call_syntax_error(call);
    }
    query->first_source = index + 1;
    query->combine.source_count = (uint32_t)count;
    return true;
}

/* The keys: their boards are found before the options are read. */
static bool zset_combine_find_sources(const struct call *call, uint32_t index, void *target) {
    struct zset_query *query = target;
    struct combine *combine = &query->combine;
    if (combine->source_count > QUERY_SOURCES_FEW) {
        combine->sources = memory_allocate(combine->source_count * sizeof(*combine->sources));
        if (combine->sources == NULL) {
            return call_out_of_memory(call);
        }
    }
    for (uint32_t i = 0; i < combine->source_count; i++) {
        combine->sources[i] = (struct combine_source){.weight = {.magnitude = 1}};
    }
    for (uint32_t i = 0; i < combine->source_count; i++) {
        if (!call_find_board(call, call_arg(call, index + i), &combine->sources[i].board)) {
            return false;
        }
    }
    return true;
}

static bool zset_combine_refuse_weight(const struct call *call, struct bytes text,
                                       enum decimal_status status) {
    int shown = bytes_shown_size(text, SHOWN_MAX);
    switch (status) {
    case DECIMAL_TOO_PRECISE:
        return call_refuse_format(call, "ERR weight %.*s has too many decimals: at most %d", shown,
                                  text.at, (int)DECIMAL_SCALE_MAX);
    case DECIMAL_OUT_OF_RANGE:
        return call_refuse_format(call,
                                  "ERR weight %.*s is out of range: its digits, without the point, "
                                  "may be at most %" PRIu64 "",
                                  shown, text.at, UINT64_MAX);
    case DECIMAL_OK:
    case DECIMAL_NOT_A_NUMBER:
        break;
    }
    return call_refuse(call, "ERR weight value is not a float");
}

/* WEIGHTS */
static bool zset_combine_read_weights(const struct call *call, uint32_t index, void *target) {
    struct combine *combine = &((struct zset_query *)target)->combine;
    for (uint32_t i = 0; i < combine->source_count; i++) {
        struct combine_source *source = &combine->sources[i];
        struct bytes text = call_arg(call, index + i);
        char shorter[DECIMAL_SHORT_MAX];
        size_t size = decimal_shorten(text, shorter);
        text = size > 0 ? (struct bytes){.at = shorter, .size = size} : text;
        unsigned scale = 0;
        enum decimal_status status = decimal_parse_exact(text, &source->weight, &scale);
        if (status != DECIMAL_OK) {
            return zset_combine_refuse_weight(call, text, status);
        }
        source->weight_scale = (uint8_t)scale;
    }
    return true;
}

/* LIMIT */
static bool zset_combine_read_limit(const struct call *call, uint32_t index, void *target) {
    int64_t *limit = &((struct zset_query *)target)->limit;
    return (bytes_parse_i64(call_arg(call, index), limit) && *limit >= 0) ||
           call_refuse(call, "ERR LIMIT can't be negative");
}

static const struct binding bindings[] = {
    {"numkeys", .read = zset_combine_read_source_count},
    {"key", .read = zset_combine_find_sources},
    {"WEIGHTS", .read = zset_combine_read_weights},
    {BIND("AGGREGATE", struct zset_query, combine.aggregate)},
    {BIND("WITHSCORES", struct zset_query, with_scores)},
    {"LIMIT", .read = zset_combine_read_limit},
    {0},
};

/* ---- combining ---- */

static void zset_combine_reply_value(const struct call *call, wide value, unsigned scale) {
    struct decimal decimal;
    if (scale <= DECIMAL_SCALE_MAX &&
        decimal_from_wide(value, scale, scale, &decimal) == DECIMAL_OK) {
        reply_decimal(call->reply, decimal, scale);
        return;
    }
    char text[DECIMAL_WIDE_TEXT_MAX];
    size_t size = decimal_wide_print(text, value, scale);
    reply_decimal_text(call->reply, (struct bytes){.at = text, .size = size});
}

static enum zset_shape zset_combine_shape(const struct call *call, const struct zset_query *query) {
    return query->with_scores ? zset_shape_with_scores(call) : ZSET_MEMBERS;
}

/* The first board, whose layout gives equal scores their order. NULL: none exists. */
static const struct board *zset_combine_query_board(const struct zset_query *query) {
    const struct board *board = NULL;
    for (uint32_t i = 0; i < query->combine.source_count && board == NULL; i++) {
        board = query->combine.sources[i].board;
    }
    return board;
}

/* Reply the results, whose tally is sorted: how many, and then at most so many at a time. Are there more? */
static struct tally_walk zset_combine_query_reply_begin(const struct call *call,
                                                        struct zset_query *query) {
    const struct board *board = zset_combine_query_board(query);
    zset_reply_header(call, query->combine.tally.count, zset_combine_shape(call, query));
    return combine_tally_walk(&query->combine.tally,
                              board != NULL && zset_lead(board)->is_ascending);
}

static bool zset_combine_query_reply_some(const struct call *call, const struct zset_query *query,
                                          struct tally_walk *walk, uint32_t count) {
    enum zset_shape shape = zset_combine_shape(call, query);
    const struct tally_entry *entry = NULL;
    char room[NAME_TEXT_ROOM];
    for (uint32_t i = 0; i < count && !reply_is_lost(call->reply) &&
                         (entry = combine_tally_walk_next(walk)) != NULL;
         i++) {
        if (shape == ZSET_PAIRS) {
            reply_array(call->reply, 2);
        }
        reply_bulk(call->reply, name_text(combine_tally_member(entry), room));
        if (shape != ZSET_MEMBERS) {
            zset_combine_reply_value(call, entry->result.value, query->combine.scale);
        }
    }
    return entry != NULL && !reply_is_lost(call->reply);
}

/* Run it on the boards that it has, at once. */
static void zset_combine_query_answer(const struct call *call, struct zset_query *query) {
    struct combine *combine = &query->combine;
    uint64_t count = 0;
    enum combine_status status = query->is_counted
                                     ? combine_count(combine, (uint64_t)query->limit, &count)
                                     : combine_run(combine);
    if (status != COMBINE_OK) {
        zset_store_reply_failure(call, combine, status);
    } else if (query->is_counted) {
        reply_integer(call->reply, (int64_t)count);
    } else if (zset_combine_query_is_stored(call)) {
        zset_store_results(call, call_arg(call, 1), combine);
    } else {
        const struct board *board = zset_combine_query_board(query);
        bool is_ascending = board != NULL && zset_lead(board)->is_ascending;
        bool is_latest = board != NULL && board_layout(board)->time.is_latest;
        if (!combine_tally_sort(&combine->tally, is_ascending, is_latest)) {
            call_out_of_memory(call);
            return;
        }
        struct tally_walk walk = zset_combine_query_reply_begin(call, query);
        (void)!zset_combine_query_reply_some(call, query, &walk, UINT32_MAX);
    }
}

/* Everything but the boards. zset_combine_query_end follows in any case. false: the error was replied. */
static bool zset_combine_query_begin(const struct call *call, struct zset_query *query) {
    const struct combining *combining = call->command->variant;
    *query = (struct zset_query){.combine = {.kind = combining->kind, .now_us = call->now_us},
                                 .is_counted = combining->is_counted};
    query->combine.sources = query->few_sources;
    combine_tally_init(&query->combine.tally, call->server->hash_seed);
    return syntax_read(call, query) &&
           (!zset_combine_query_is_stored(call) || call_check_key(call, call_arg(call, 1)));
}

static void zset_combine_query_end(struct zset_query *query) {
    combine_end(&query->combine);
    combine_tally_deinit(&query->combine.tally);
    if (query->combine.sources != query->few_sources) {
        memory_free(query->combine.sources);
    }
}

/* ---- in steps ---- */

/* Of boards with many members, and ZRANGESTORE of many: between the commands of other clients (server/sessions/job.h).
 *
 *     GATHER     each board is copied, and the copies follow (registry_mirror.h); when all are whole at one moment,
 *                they stay as they are. ZUNION, ZINTER, ZDIFF and ZINTERCARD reply what was so at that moment
 *     COMBINE    the copies, a run of members at a time; and SORT
 *     REPLY      ZUNION, ZINTER and ZDIFF: some results at a time, sent as they come
 *     FILL       STORE: the new board, among those that are staged (registry_board_stage), in order of arrival
 *     CHANGE     STORE: whoever changed on the boards meanwhile is combined anew, from the boards themselves. When nobody
 *                is left, the board takes the destination's place: so it is true of this moment, as if all was done now
 *     CLEAR      what was needed for it is freed
 *
 * ZRANGESTORE stages the part of the board around the range, in order of arrival. Who changes meanwhile is put or taken anew
 * before more is added, so what is staged is the first members of that part. When it is whole, the range is where it is at
 * this moment, and what is staged takes the destination's place without what is beside it.
 *
 * A crash, or another master, leaves the destination as it was. A board that is removed, replaced or altered begins all
 * anew; after ATTEMPTS_MAX of these it is done at once. */
enum {
    AT_ONCE_MAX = 4000, /* members that are looked at */
    SOURCES_MAX = 64,   /* of more boards it is done at once */
    STEP_ENTRIES = 16,
    FILL_ENTRIES = BLOCK_LOADED_MIN + BLOCK_LOADED_MAX, /* put at once, as two leaves */
    SORTED_RUN = 1024,
    ATTEMPTS_MAX = 8,
    BESIDE_SHARE = 64, /* of a range's members, so many are copied on each side */
    BESIDE_MIN = 64,
};

enum phase {
    PHASE_SPAN, /* ZRANGESTORE */
    PHASE_GATHER,
    PHASE_COMBINE,
    PHASE_SORT,
    PHASE_REPLY,
    PHASE_FILL,
    PHASE_CHANGE,
    PHASE_CLEAR
};

struct steps {
    struct job job;          /* first */
    struct transaction kept; /* a copy of the request */
    const struct command *command;
    struct session session; /* stands in for the client's, which may be gone */
    enum phase phase;
    unsigned attempt_count;
    bool is_answered;
    struct zset_query query;
    uint32_t source; /* GATHER: the one that is copied now */
    struct registry_mirror
        mirrors[SOURCES_MAX]; /* copy NULL: there is no such board, or the same once more */
    struct effect_listener bans;
    bool are_bans_changed, is_open; /* the listener is there */
    struct buffer
        changed; /* since the copies stay: sizes and names of members, and how many are done */
    size_t changed_at;
    bool is_filling;
    unsigned choice; /* of the layouts that a new board may have (default-layout) */
    struct zset_filling filling;
    /* ZRANGESTORE: the keys of the part, and that of the member staged last. */
    uint64_t low, high, last_key;
    struct tally_walk walk;
    struct buffer reply;
};

static const struct request *zset_combine_steps_request(const struct steps *steps) {
    return &steps->kept.first->request;
}

static struct bytes zset_combine_steps_key(const struct steps *steps, uint32_t source) {
    return zset_combine_steps_request(steps)->args[steps->query.first_source + source];
}

/* ---- the copies ---- */

/* The first source with the same key. */
static uint32_t zset_combine_steps_first_of(const struct steps *steps, uint32_t source) {
    uint32_t first = 0;
    while (
        !bytes_equal(zset_combine_steps_key(steps, first), zset_combine_steps_key(steps, source))) {
        first++;
    }
    return first;
}

static bool zset_combine_steps_note_changed(void *context, struct bytes member) {
    struct steps *steps = context;
    uint32_t size = (uint32_t)member.size;
    buffer_append(&steps->changed, &size, sizeof size);
    buffer_append(&steps->changed, member.at, member.size);
    return !steps->changed.is_broken;
}

static void zset_combine_steps_discard(struct registry *registry, struct steps *steps) {
    if (steps->is_filling) {
        zset_store_discard(registry, &steps->filling);
        steps->is_filling = false;
    }
}

static void zset_combine_steps_drop(struct registry *registry, struct steps *steps) {
    if (steps->is_filling) {
        zset_store_drop(registry, &steps->filling);
    }
    zset_combine_steps_discard(registry, steps);
}

static void zset_combine_steps_end_copies(struct steps *steps) {
    for (uint32_t i = 0; i < SOURCES_MAX; i++) {
        registry_mirror_end(&steps->mirrors[i]);
    }
}

/* Back to the beginning. */
static void zset_combine_steps_restart(const struct call *call, struct steps *steps) {
    zset_combine_steps_end_copies(steps);
    zset_combine_steps_drop(call->registry, steps);
    combine_end(&steps->query.combine);
    combine_tally_deinit(&steps->query.combine.tally);
    buffer_cut(&steps->changed, 0);
    steps->changed_at = 0;
    steps->source = 0;
    steps->choice = 0;
    steps->phase = PHASE_GATHER;
    steps->attempt_count++;
}

/* The boards as they are now, for what is combined at once or for a member that has changed. false: one is of another
 * kind; the error was replied. */
static bool zset_combine_steps_use_boards(const struct call *call, struct steps *steps) {
    for (uint32_t i = 0; i < steps->query.combine.source_count; i++) {
        if (!call_find_board(call, zset_combine_steps_key(steps, i),
                             &steps->query.combine.sources[i].board)) {
            return false;
        }
    }
    return true;
}

/* One step of a source's copy. *is_whole: of that board; also where there is none. false: it is over. */
static bool zset_combine_steps_copy(const struct call *call, struct steps *steps, uint32_t source,
                                    bool *is_whole) {
    struct registry_mirror *mirror = &steps->mirrors[source];
    const struct registry_key *key = call_find_key(call, zset_combine_steps_key(steps, source));
    *is_whole = zset_combine_steps_first_of(steps, source) != source ||
                (key == NULL && mirror->copy == NULL);
    if (*is_whole) {
        return true;
    }
    if (!call_check_kind(call, key, REGISTRY_BOARD)) {
        return false;
    }
    if (mirror->copy == NULL || key == NULL) {
        registry_mirror_end(mirror);
        return key == NULL || registry_mirror_begin_members(mirror, call->registry, key) ||
               call_out_of_memory(call);
    }
    switch (registry_mirror_step(mirror, REGISTRY_MIRROR_STEP)) {
    case REGISTRY_MIRROR_OUT_OF_MEMORY:
        return call_out_of_memory(call);
    case REGISTRY_MIRROR_LOST:
        zset_combine_steps_restart(call, steps);
        return true;
    case REGISTRY_MIRROR_WHOLE:
        *is_whole = true;
        break;
    case REGISTRY_MIRROR_MORE:
        break;
    }
    return true;
}

/* All at once whole? Then they stay as they are. false: it is over. */
static bool zset_combine_steps_gather(const struct call *call, struct steps *steps) {
    uint32_t count = steps->query.combine.source_count;
    bool is_whole = true;
    if (steps->source < count) {
        return zset_combine_steps_copy(call, steps, steps->source, &is_whole) &&
               (steps->source += is_whole, true);
    }
    for (uint32_t i = 0; i < count && is_whole; i++) {
        unsigned attempt = steps->attempt_count;
        if (!zset_combine_steps_copy(call, steps, i, &is_whole)) {
            return false;
        }
        is_whole = is_whole && attempt == steps->attempt_count;
        steps->source = is_whole ? steps->source : attempt == steps->attempt_count ? i : 0;
    }
    if (!is_whole) {
        return true;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (steps->mirrors[i].copy != NULL) {
            registry_mirror_freeze(&steps->mirrors[i], zset_combine_steps_note_changed, steps);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct registry_mirror *mirror =
            &steps->mirrors[zset_combine_steps_first_of(steps, i)];
        steps->query.combine.sources[i].board = mirror->copy != NULL ? &mirror->copy->board : NULL;
    }
    enum combine_status status =
        combine_begin(&steps->query.combine, steps->query.is_counted, (uint64_t)steps->query.limit);
    if (status != COMBINE_OK) {
        zset_store_reply_failure(call, &steps->query.combine, status);
    }
    steps->phase = PHASE_COMBINE;
    return status == COMBINE_OK;
}

/* ---- the result ---- */

static bool zset_combine_steps_begin_sort(const struct call *call, struct steps *steps) {
    const struct board *board = zset_combine_query_board(&steps->query);
    if (zset_combine_query_is_stored(call)) {
        steps->are_bans_changed = false;
        steps->changed_at = 0;
        steps->is_filling = zset_store_begin(call, call_arg(call, 1), steps->choice,
                                             steps->query.combine.tally.count, &steps->filling);
        if (!steps->is_filling) {
            return false;
        }
        board = &steps->filling.board;
    }
    steps->phase = PHASE_SORT;
    return combine_tally_sort_begin(
               &steps->query.combine.tally, board != NULL && zset_lead(board)->is_ascending,
               board != NULL && board_layout(board)->time.is_latest, SORTED_RUN) ||
           call_out_of_memory(call);
}

static bool zset_combine_steps_combine(const struct call *call, struct steps *steps) {
    struct combine *combine = &steps->query.combine;
    bool is_over;
    enum combine_status status = combine_step(combine, &is_over);
    if (status != COMBINE_OK) {
        zset_store_reply_failure(call, combine, status);
        return false;
    }
    if (!is_over) {
        return true;
    }
    if (steps->query.is_counted) {
        reply_integer(call->reply, (int64_t)combine->work.count);
        return false;
    }
    return zset_combine_steps_begin_sort(call, steps);
}

/* A result was not put. Where it does not fit the new board's layout, and there is another, the board begins anew
 * with that. false: the error was replied. */
static bool zset_combine_steps_choose(const struct call *call, struct steps *steps) {
    if (!steps->filling.is_refused || !steps->filling.has_choice) {
        return false;
    }
    zset_combine_steps_drop(call->registry, steps);
    steps->choice++;
    return zset_combine_steps_begin_sort(call, steps);
}

static bool zset_combine_steps_fill(const struct call *call, struct steps *steps) {
    for (uint32_t i = 0; i < FILL_ENTRIES; i++) {
        const struct tally_entry *entry = combine_tally_walk_next(&steps->walk);
        if (entry == NULL) {
            steps->phase = PHASE_CHANGE;
            break;
        }
        if (!zset_store_add(call, call_arg(call, 1), &steps->filling, steps->query.combine.scale,
                            entry)) {
            return zset_combine_steps_choose(call, steps);
        }
    }
    return zset_store_put(call, &steps->filling);
}

/* The next member that has changed: false: there is none. It stays until another one changes. */
static bool zset_combine_steps_next_changed(struct steps *steps, struct bytes *member) {
    uint32_t size;
    if (steps->changed_at == steps->changed.size) {
        return false;
    }
    memcpy(&size, steps->changed.at + steps->changed_at, sizeof size);
    *member = (struct bytes){steps->changed.at + steps->changed_at + sizeof size, size};
    steps->changed_at += sizeof size + size;
    return true;
}

static bool zset_combine_steps_change(const struct call *call, struct steps *steps) {
    struct combine *combine = &steps->query.combine;
    struct bytes member;
    bool is_outdated = steps->are_bans_changed;
    bool is_left = true;
    if (!zset_combine_steps_use_boards(call, steps)) {
        return false;
    }
    for (uint32_t i = 0;
         i < STEP_ENTRIES && (is_left = zset_combine_steps_next_changed(steps, &member)); i++) {
        struct tally_result result;
        bool is_there;
        if (combine_member(combine, member, &result, &is_there) != COMBINE_OK) {
            struct packed_name form;
            name_pack(member, &form);
            combine->culprit = name_from(member, &form);
            zset_store_reply_failure(call, combine, COMBINE_OUT_OF_RANGE);
            return false;
        }
        if (!zset_store_change(call, call_arg(call, 1), &steps->filling, combine->scale, member,
                               is_there ? &result : NULL)) {
            return zset_combine_steps_choose(call, steps);
        }
    }
    if (is_left) {
        return true;
    }
    if (!is_outdated) {
        zset_store_end(call, call_arg(call, 1), &steps->filling, &is_outdated);
    }
    if (is_outdated) { /* the destination has other options, or members are banned from it */
        zset_combine_steps_restart(call, steps);
        return true;
    }
    zset_combine_steps_end_copies(steps);
    steps->phase = PHASE_CLEAR;
    return combine_tally_free_step(&combine->tally);
}

/* ---- ZRANGESTORE ---- */

/* Can a copy of the board take the destination's place? */
static bool zset_combine_steps_may_copy(const struct call *call,
                                        const struct registry_key *destination,
                                        const struct board *board) {
    return registry_count(call->registry, BAN_DATABASE) <= AT_ONCE_MAX &&
           zset_store_is_unchanged(call, call_arg(call, 1), destination, board);
}

/* Is there so much to do, of boards with so many members, that it is done in steps? */
static bool zset_combine_steps_are_due(const struct call *call, uint64_t member_count,
                                       uint32_t source_count) {
    return member_count > AT_ONCE_MAX && source_count <= SOURCES_MAX &&
           !call->session->transaction.is_running && call->server->jobs.count < JOBS_MAX &&
           !registry_is_embedded(call->registry);
}

bool zset_combine_steps_are_due_for_span(const struct call *call,
                                         const struct registry_key *destination,
                                         const struct board *board, struct zset_span span) {
    return zset_combine_steps_are_due(call, span.count, 1) &&
           zset_combine_steps_may_copy(call, destination, board);
}

/* Begin with the part around the span, and some members beside it: it may move meanwhile. */
static bool zset_combine_steps_begin_part(const struct call *call, struct steps *steps,
                                          const struct registry_key *destination,
                                          const struct registry_key *key, struct zset_span span) {
    const struct board *board = call_board(key);
    registry_mirror_end(&steps->mirrors[0]);
    zset_combine_steps_drop(call->registry, steps);
    buffer_cut(&steps->changed, 0);
    steps->changed_at = 0;
    if (steps->attempt_count++ >= ATTEMPTS_MAX || span.count <= AT_ONCE_MAX ||
        !zset_combine_steps_may_copy(call, destination, board)) {
        zset_store_span(call, call_arg(call, 1), board, span);
        return false;
    }
    uint32_t beside = span.count / BESIDE_SHARE + BESIDE_MIN, end = span.rank + span.count;
    bool is_near_last = board_count(board) - end <= beside, is_near_first = span.rank <= beside;
    steps->low = is_near_last ? 0 : board_at(board, end + beside - 1).key;
    steps->high = is_near_first ? UINT64_MAX : board_at(board, span.rank - beside).key;
    if (!registry_mirror_watch(&steps->mirrors[0], call->registry, key,
                               zset_combine_steps_note_changed, steps)) {
        return call_out_of_memory(call);
    }
    steps->is_filling = zset_store_begin(call, call_arg(call, 1), 0, span.count, &steps->filling);
    return steps->is_filling;
}

static bool zset_combine_steps_stage_part(const struct call *call, struct steps *steps,
                                          const struct board *board, struct zset_span left) {
    bool is_latest = board_is_latest(board);
    struct board_cursor cursor;
    struct board_stored entry;
    board_cursor_seek(board, is_latest ? left.rank + left.count - 1 : left.rank, &cursor);
    for (uint32_t i = 0; i < FILL_ENTRIES && i < left.count; i++) {
        bool is_there = board_cursor_read(&cursor, &entry);
        CHECK(is_there);
        zset_store_add_member(&steps->filling, entry.member, entry.key);
        steps->last_key = entry.key;
        (is_latest ? board_cursor_previous : board_cursor_next)(&cursor);
    }
    return zset_store_put(call, &steps->filling);
}

static bool zset_combine_steps_span(const struct call *call, struct steps *steps) {
    const struct registry_mirror *mirror = &steps->mirrors[0];
    const struct registry_key *key;
    struct zset_span span;
    struct bytes member;
    /* What is due for the one may end the other, an archive: so both are looked up before either is used. */
    (void)call_find_key(call, call_arg(call, 1));
    if (!zset_range_find(call, &key, &span)) {
        return false;
    }
    const struct registry_key *destination = call_find_key(call, call_arg(call, 1));
    if (mirror->copy == NULL || key == NULL || mirror->status == REGISTRY_MIRROR_LOST) {
        return zset_combine_steps_begin_part(call, steps, destination, key, span);
    }
    const struct board *board = call_board(key);
    bool is_left = true;
    for (uint32_t i = 0;
         i < STEP_ENTRIES && (is_left = zset_combine_steps_next_changed(steps, &member)); i++) {
        /* Next to an equal of last_key a member that has changed is beyond what is staged. */
        struct board_member found;
        board_look_up(board, member, NULL, &found);
        bool is_staged =
            found.is_there && found.key >= steps->low && found.key <= steps->high &&
            board_count(zset_store_staged(call, &steps->filling)) > 0 &&
            (board_is_latest(board) ? found.key < steps->last_key : found.key > steps->last_key);
        if (!zset_store_change_member(call, &steps->filling, member, is_staged, found.key)) {
            return false;
        }
    }
    if (is_left) {
        return true;
    }
    /* The ranks of the part. */
    uint32_t first = steps->high == UINT64_MAX ? 0 : board_count_above(board, steps->high);
    uint32_t end = steps->low == 0 ? board_count(board) : board_count_from(board, steps->low);
    struct zset_span part = (struct zset_span){.rank = first, .count = end - first};
    uint32_t staged = board_count(zset_store_staged(call, &steps->filling));
    if (staged < part.count) {
        part.rank += board_is_latest(board) ? 0 : staged;
        part.count -= staged;
        return zset_combine_steps_stage_part(call, steps, board, part);
    }
    bool is_outdated = span.count == 0 || span.rank < part.rank ||
                       span.rank + span.count > part.rank + part.count ||
                       !zset_combine_steps_may_copy(call, destination, board);
    if (!is_outdated) {
        span.rank -= part.rank;
        zset_store_end_span(call, call_arg(call, 1), &steps->filling, span, &is_outdated);
    }
    return is_outdated && zset_combine_steps_begin_part(call, steps, destination, key, span);
}

/* ---- steps ---- */

/* The results are in order. false: no memory for a piece of the reply. */
static bool zset_combine_steps_begin_walk(const struct call *call, struct steps *steps) {
    if (zset_combine_query_is_stored(call)) {
        steps->walk = combine_tally_walk(&steps->query.combine.tally,
                                         !board_layout(&steps->filling.board)->time.is_latest);
        steps->phase = PHASE_FILL;
        return true;
    }
    enum { PIECE_SIZE = STEP_ENTRIES * (NAME_TEXT_ROOM + 64) };
    if (buffer_reserve(&steps->reply, PIECE_SIZE) == NULL) {
        return false;
    }
    /* What is pushed to the client meanwhile follows the reply. */
    server_begin_reply(steps->job.session);
    steps->job.streams = true;
    steps->walk = zset_combine_query_reply_begin(call, &steps->query);
    steps->phase = steps->job.is_silent ? PHASE_CLEAR : PHASE_REPLY;
    return true;
}

/* Some more results, after what is in the reply already. false: the client is, or is to be, gone. */
static bool zset_combine_steps_reply(const struct call *call, struct steps *steps) {
    struct session *client = steps->job.session;
    bool is_outdated = steps->job.epoch != replication_answer_epoch(&call->server->replication);
    bool has_more = zset_combine_query_reply_some(call, &steps->query, &steps->walk, STEP_ENTRIES);
    if (is_outdated || steps->reply.is_broken) {
        server_kill_session(call->server, client);
    }
    struct buffer *output = server_output(call->server, client);
    if (output != NULL) {
        buffer_append(output, steps->reply.at, steps->reply.size);
    }
    buffer_clear(&steps->reply);
    if (!has_more) {
        zset_combine_steps_end_copies(steps);
        steps->phase = PHASE_CLEAR;
    }
    return output != NULL && !output->is_broken;
}

/* false: it is over; the reply is written. */
static bool zset_combine_steps_go_on(const struct call *call, struct steps *steps) {
    if (steps->phase == PHASE_CLEAR) {
        return combine_tally_free_step(&steps->query.combine.tally);
    }
    if (steps->phase == PHASE_REPLY) {
        return zset_combine_steps_reply(call, steps);
    }
    if (server_is_over_memory(call->server)) { /* many may have begun below it */
        return call_refuse(call, SERVER_OVER_MEMORY_ERROR);
    }
    if (steps->phase == PHASE_SPAN) {
        return zset_combine_steps_span(call, steps);
    }
    /* Is a board another one than that which was copied, or was there none? What is due for the boards happens now. */
    bool is_lost = false;
    uint32_t count = steps->phase == PHASE_CHANGE ? steps->query.combine.source_count : 0;
    for (uint32_t i = 0; i < count && !is_lost; i++) {
        const struct registry_mirror *mirror =
            &steps->mirrors[zset_combine_steps_first_of(steps, i)];
        bool is_there = call_find_key(call, zset_combine_steps_key(steps, i)) != NULL;
        is_lost = is_there != (mirror->copy != NULL) ||
                  (is_there && mirror->status == REGISTRY_MIRROR_LOST);
    }
    if (is_lost) {
        zset_combine_steps_restart(call, steps);
    }
    if (steps->attempt_count > ATTEMPTS_MAX) {
        if (zset_combine_steps_use_boards(call, steps)) {
            zset_combine_query_answer(call, &steps->query);
        }
        return false;
    }
    switch (steps->phase) {
    case PHASE_GATHER:
        return zset_combine_steps_gather(call, steps);
    case PHASE_COMBINE:
        return zset_combine_steps_combine(call, steps);
    case PHASE_SORT:
        return !combine_tally_sort_step(&steps->query.combine.tally) ||
               zset_combine_steps_begin_walk(call, steps);
    case PHASE_FILL:
        return zset_combine_steps_fill(call, steps);
    case PHASE_CHANGE:
    case PHASE_SPAN:
    case PHASE_REPLY:
    case PHASE_CLEAR:
        break;
    }
    return zset_combine_steps_change(call, steps);
}

static bool zset_combine_steps_step(struct server *server, struct job *job) {
    struct steps *steps = (struct steps *)job;
    struct reply reply;
    reply_init(&reply, &steps->reply, steps->session.protocol);
    struct call call = call_begin(server, &steps->session, steps->command,
                                  zset_combine_steps_request(steps), &reply);
    bool is_over = !zset_combine_steps_go_on(&call, steps);
    if (is_over) {
        zset_combine_steps_drop(server->registry, steps);
    }
    return is_over;
}

static bool zset_combine_steps_is_ready(const struct server *server, const struct job *job) {
    (void)server;
    (void)job;
    return memory_is_ready();
}

/* What the steps replied; an error in a way that it is counted. */
static void zset_combine_steps_answer(struct server *server, struct job *job, struct reply *reply) {
    struct steps *steps = (struct steps *)job;
    struct buffer *own = &steps->reply;
    (void)server;
    if (own->is_broken) {
        reply_error(reply, "OOM out of memory");
    } else if (own->size > 0 && own->at[0] == '-') {
        reply_error_format(reply, "%.*s", (int)(own->size - 3), own->at + 1);
    } else if (!reply->is_silent) {
        buffer_append(reply->out, own->at, own->size);
    }
}

static void zset_combine_steps_destroy(struct server *server, struct job *job) {
    struct steps *steps = (struct steps *)job;
    zset_combine_steps_end_copies(steps);
    if (steps->is_open) {
        effect_listener_remove(server->registry, &steps->bans);
    }
    zset_combine_steps_discard(server->registry, steps);
    zset_combine_query_end(&steps->query);
    buffer_deinit(&steps->changed);
    buffer_deinit(&steps->reply);
    session_transaction_clear(&steps->kept);
    session_deinit(&steps->session);
    memory_free(steps);
}

static const struct job_kind reading = {.is_ready = zset_combine_steps_is_ready,
                                        .step = zset_combine_steps_step,
                                        .answer = zset_combine_steps_answer,
                                        .destroy = zset_combine_steps_destroy};
static const struct job_kind writing = {.writes = true,
                                        .is_ready = zset_combine_steps_is_ready,
                                        .step = zset_combine_steps_step,
                                        .answer = zset_combine_steps_answer,
                                        .destroy = zset_combine_steps_destroy};

/* ---- beginning ---- */

static void zset_combine_steps_hear_of_bans(void *context, const struct effect *effect) {
    struct steps *steps = context;
    steps->are_bans_changed = steps->are_bans_changed || effect->database == BAN_DATABASE;
}

/* NULL: the error was replied. */
static struct steps *zset_combine_steps_create(const struct call *call) {
    struct steps *steps = memory_allocate_zeroed(sizeof *steps);
    if (steps == NULL) {
        call_out_of_memory(call);
        return NULL;
    }
    steps->command = call->command;
    steps->query.combine.sources = steps->query.few_sources;
    session_init(&steps->session, 0, call->server->clock.monotonic_ms);
    steps->session.database = call->session->database;
    steps->session.protocol = call->session->protocol;
    buffer_init(&steps->changed, 0);
    buffer_init(&steps->reply, 0);
    if (!session_transaction_queue(&steps->kept, call->request, 0, 0)) {
        call_out_of_memory(call);
        zset_combine_steps_destroy(call->server, &steps->job);
        return NULL;
    }
    return steps;
}

void zset_combine_steps_begin_span(const struct call *call) {
    struct steps *steps = zset_combine_steps_create(call);
    if (steps != NULL) {
        steps->phase = PHASE_SPAN;
        job_begin(call->server, call->session, &writing, call->reply->is_silent, &steps->job);
    }
}

/* The client waits, and is answered at the end. */
static void zset_combine_steps_begin(const struct call *call) {
    struct steps *steps = zset_combine_steps_create(call);
    if (steps == NULL) {
        return;
    }
    struct call own = *call;
    own.request = zset_combine_steps_request(steps);
    steps->phase = PHASE_GATHER;
    if (!zset_combine_query_begin(&own, &steps->query)) {
        zset_combine_steps_destroy(call->server, &steps->job);
        return;
    }
    if (zset_combine_query_is_stored(call)) {
        steps->bans.receive = zset_combine_steps_hear_of_bans;
        steps->bans.context = steps;
        effect_listener_add(call->registry, &steps->bans);
        steps->is_open = true;
    }
    job_begin(call->server, call->session, zset_combine_query_is_stored(call) ? &writing : &reading,
              call->reply->is_silent, &steps->job);
}

/* ---- the run of a command ---- */

static void zset_combine_run(struct call *call) {
    struct zset_query query;
    struct combine *combine = &query.combine;
    if (!zset_combine_query_begin(call, &query)) {
        zset_combine_query_end(&query);
        return;
    }
    /* The members that are looked at: of an intersection those of the smallest board, on each. */
    uint64_t sum = 0, smallest = UINT64_MAX;
    for (uint32_t i = 0; i < combine->source_count; i++) {
        const struct board *board = combine->sources[i].board;
        uint64_t count = board != NULL ? board_count(board) : 0;
        smallest = count < smallest ? count : smallest;
        sum += count;
    }
    if (combine->kind == COMBINE_INTERSECTION) {
        sum = smallest * combine->source_count;
    } else if (combine->kind == COMBINE_DIFFERENCE && combine->sources[0].board == NULL) {
        sum = 0;
    }
    bool is_long = zset_combine_steps_are_due(call, sum, combine->source_count);
    if (!is_long) {
        zset_combine_query_answer(call, &query);
    } else if (query.limit > 0) {
        /* Count as far as a short command may; a LIMIT is likely to be reached. */
        enum combine_status status = combine_begin(combine, true, (uint64_t)query.limit);
        bool is_over = status != COMBINE_OK;
        for (uint32_t i = 0; i < COUNTED_RUNS && !is_over; i++) {
            status = combine_step(combine, &is_over);
        }
        if (status != COMBINE_OK) {
            zset_store_reply_failure(call, combine, status);
        } else if (is_over) {
            reply_integer(call->reply, (int64_t)combine->work.count);
        }
        combine_end(combine);
        is_long = !is_over;
    }
    if (is_long) {
        zset_combine_steps_begin(call);
    }
    zset_combine_query_end(&query);
}

/* ---- cost ---- */

/* Sizes of the boards named by the arguments. */
struct sizes {
    uint32_t source_count; /* 0: the arguments are malformed */
    uint64_t first, smallest, sum;
};

static struct sizes zset_combine_measure(const struct cost_view *view) {
    struct zset_query query;
    struct sizes sizes = {.smallest = UINT64_MAX};
    if (!zset_combine_read_source_count(view->call, (uint32_t)view->call->command->key_count_arg,
                                        &query)) {
        return sizes;
    }
    sizes.source_count = query.combine.source_count;
    for (uint32_t i = 0; i < sizes.source_count; i++) {
        uint64_t size = cost_size(view, query.first_source + i);
        sizes.first = i == 0 ? size : sizes.first;
        sizes.smallest = size < sizes.smallest ? size : sizes.smallest;
        sizes.sum += size;
    }
    return sizes;
}

/* Outside of MULTI long ones are done in steps. */
static uint64_t zset_combine_count_at_once(const struct cost_view *view, uint64_t members,
                                           uint32_t source_count) {
    return view->call->session->transaction.is_open ||
                   !zset_combine_steps_are_due(view->call, members, source_count)
               ? members
               : 0;
}

/* The overlap of the boards is unknown: assume that half the members are on several boards. */
static uint64_t zset_combine_count_union(const struct cost_view *view) {
    struct sizes sizes = zset_combine_measure(view);
    return zset_combine_count_at_once(view, sizes.sum, sizes.source_count);
}

static uint64_t zset_combine_count_intersection(const struct cost_view *view) {
    struct sizes sizes = zset_combine_measure(view);
    uint64_t members = sizes.source_count > 0 ? sizes.smallest * sizes.source_count : 0;
    return zset_combine_count_at_once(view, members, sizes.source_count);
}

/* The first board's members, and the cheaper of the two ways to look them up (combine.h). */
static uint64_t zset_combine_count_difference(const struct cost_view *view) {
    struct sizes sizes = zset_combine_measure(view);
    uint64_t members = sizes.first;
    if (sizes.source_count >= 2 && sizes.first > 0) {
        uint64_t looking = sizes.first * (sizes.source_count - 1);
        uint64_t marking = sizes.sum - sizes.first;
        members += looking < marking ? looking : marking;
    }
    return zset_combine_count_at_once(view, members, sizes.source_count);
}

/* ---- the commands ---- */

#define COMBINED                                                                                   \
    "numkeys:integer key... [WEIGHTS weight:integer...] [AGGREGATE <SUM | MIN | MAX | COUNT>]"
/* Only in MULTI it is so much; elsewhere nothing. */
#define UNION_COST(grown_key)                                                                      \
    COST(COMMAND_BY_PRODUCT, zset_combine_count_union, 300, grown_key,                             \
         "in `MULTI`: member of all boards",                                                       \
         "store the result once: `ZINCRBY` both boards as points arrive, or `PERIOD` boards")
#define INTERSECTION_COST(ns, grown_key, other)                                                    \
    COST(COMMAND_BY_PRODUCT, zset_combine_count_intersection, ns, grown_key,                       \
         "in `MULTI`: member of the smallest board, for each board", other)
#define DIFFERENCE_COST(ns, grown_key)                                                             \
    COST(COMMAND_BY_PRODUCT, zset_combine_count_difference, ns, grown_key,                         \
         "in `MULTI`: member of the first board, and look-up", IN_PARTS)
#define IN_PARTS                "`LB.GET` or `ZMSCORE` of some members at a time"
#define UNION_COMPLEXITY        "O(n) in the members of all boards"
#define INTERSECTION_COMPLEXITY "O(n k) for n members on the smallest of k boards"
#define DIFFERENCE_COMPLEXITY                                                                      \
    "O(n k) for n members on the first of k boards or, if that is less, O(n + s log n) for s on "  \
    "the others"

const struct command command_zunion = {
    .name = "ZUNION",
    .syntax = COMBINED " [WITHSCORES]",
    .bindings = bindings,
    .reply = "[s]|WITHSCORES=[[member:s score:n]...]",
    .summary =
        "The members of any of several boards, and the sum (or MIN, MAX) of their scores, or "
        "how many boards have them (COUNT)",
    .complexity = UNION_COMPLEXITY,
    .flags = COMMAND_READ,
    .cost = UNION_COST(0),
    .variant = &(const struct combining){.kind = COMBINE_UNION},
    .run = zset_combine_run,
};

const struct command command_zunionstore = {
    .name = "ZUNIONSTORE",
    .syntax = "destination:key " COMBINED,
    .bindings = bindings,
    .reply = "i",
    .summary = "Store a union of boards, with the times at which the results were reached",
    .complexity = UNION_COMPLEXITY,
    .flags = COMMAND_WRITE | COMMAND_DENYOOM,
    .cost = UNION_COST(1),
    .variant = &(const struct combining){.kind = COMBINE_UNION},
    .run = zset_combine_run,
};

const struct command command_zinter = {
    .name = "ZINTER",
    .syntax = COMBINED " [WITHSCORES]",
    .bindings = bindings,
    .reply = "[s]|WITHSCORES=[[member:s score:n]...]",
    .summary =
        "The members that are on all of several boards, and the sum (or MIN, MAX) of their scores, "
        "or of the boards' weights (COUNT)",
    .complexity = INTERSECTION_COMPLEXITY,
    .flags = COMMAND_READ,
    .cost = INTERSECTION_COST(250, 0, IN_PARTS),
    .variant = &(const struct combining){.kind = COMBINE_INTERSECTION},
    .run = zset_combine_run,
};

const struct command command_zinterstore = {
    .name = "ZINTERSTORE",
    .syntax = "destination:key " COMBINED,
    .bindings = bindings,
    .reply = "i",
    .summary = "Store an intersection of boards, with the times at which the results were reached",
    .complexity = INTERSECTION_COMPLEXITY,
    .flags = COMMAND_WRITE | COMMAND_DENYOOM,
    .cost = INTERSECTION_COST(300, 1, IN_PARTS),
    .variant = &(const struct combining){.kind = COMBINE_INTERSECTION},
    .run = zset_combine_run,
};

const struct command command_zintercard = {
    .name = "ZINTERCARD",
    .syntax = "numkeys:integer key... [LIMIT limit:integer]",
    .bindings = bindings,
    .reply = "i",
    .summary = "How many members are on all of several boards, counted up to a limit",
    .complexity = INTERSECTION_COMPLEXITY,
    .flags = COMMAND_READ,
    .cost = COST(COMMAND_BY_PRODUCT, zset_combine_count_intersection, 60, 0,
                 "in `MULTI`: member of the smallest board, for each board",
                 "`LIMIT`, if it need not be exact"),
    .variant = &(const struct combining){.kind = COMBINE_INTERSECTION, .is_counted = true},
    .run = zset_combine_run,
};

const struct command command_zdiff = {
    .name = "ZDIFF",
    .syntax = "numkeys:integer key... [WITHSCORES]",
    .bindings = bindings,
    .reply = "[s]|WITHSCORES=[[member:s score:n]...]",
    .summary = "The members of the first board that are on none of the others",
    .complexity = DIFFERENCE_COMPLEXITY,
    .flags = COMMAND_READ,
    .cost = DIFFERENCE_COST(110, 0),
    .variant = &(const struct combining){.kind = COMBINE_DIFFERENCE},
    .run = zset_combine_run,
};

const struct command command_zdiffstore = {
    .name = "ZDIFFSTORE",
    .syntax = "destination:key numkeys:integer key...",
    .bindings = bindings,
    .reply = "i",
    .summary =
        "Store the members of the first board that are on none of the others, with their times",
    .complexity = DIFFERENCE_COMPLEXITY,
    .flags = COMMAND_WRITE | COMMAND_DENYOOM,
    .cost = DIFFERENCE_COST(300, 1),
    .variant = &(const struct combining){.kind = COMBINE_DIFFERENCE},
    .run = zset_combine_run,
};
