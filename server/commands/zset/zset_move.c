/* ZMOVE, BZMOVE and ZMOVEMEMBER: members of one board go to another, with their scores.
 *
 *     ZMOVE waiting playing MIN COUNT 2
 *       which of the source's members -> is every one taken there? -> put, then take -> reply which
 *
 * Where both boards have the same layout, a member keeps its whole packed key, also its time; otherwise its
 * score and its time are converted. All is checked before the first change. A member that the destination does not
 * keep (KEEP BEST, CAP) stays where it is. */
#include "server/commands/lb/board_task.h"
#include "server/commands/writing.h"
#include "server/commands/zset/zset_store.h"
#include "server/dispatch/syntax.h"
#include "server/dispatch/waiting.h"

/* A member that is to be moved. */
struct moved {
    struct bytes name;
    uint64_t key; /* the source's; later the destination's */
    bool is_taken;
    bool is_same; /* the destination has it so already */
};
/* Names are every so manyth one for writing_reserve. */
enum { MOVED_STRIDE = sizeof(struct moved) / sizeof(struct bytes) };
_Static_assert(sizeof(struct moved) % sizeof(struct bytes) == 0, "names lie at a stride");

struct moving {
    const struct call *call;
    struct bytes from, to; /* keys */
    bool is_new_only;      /* NX: only what the destination does not have */
    bool is_existing_only; /* XX */
    bool is_worst_first;   /* the members, as they rank at the source */
    struct moved *members;
    uint32_t count;
    char *texts; /* the names of a span; NULL: they are the request's */
    struct writing writing;
    struct registry_key *source;
};

/* ---- which ---- */

static void zset_move_end(struct moving *moving) {
    memory_free(moving->members);
    memory_free(moving->texts);
}

/* Copy the names of a span in the order of a walk over it. false: the error was replied. */
static bool zset_move_take_span(struct moving *moving, const struct board *board,
                                struct zset_span span, bool is_best_first) {
    struct board_cursor cursor;
    struct board_stored entry;
    char room[NAME_TEXT_ROOM];
    moving->members = memory_allocate_zeroed(((size_t)span.count + 1) * sizeof *moving->members);
    size_t size = 1;
    board_cursor_seek(board, span.rank, &cursor);
    for (uint32_t i = 0; i < span.count && board_cursor_read(&cursor, &entry); i++) {
        size += name_text(entry.member, room).size;
        board_cursor_next(&cursor);
    }
    moving->texts = memory_allocate(size);
    if (moving->members == NULL || moving->texts == NULL) {
        return call_out_of_memory(moving->call);
    }
    char *at = moving->texts;
    moving->is_worst_first = !is_best_first;
    board_cursor_seek(board, span.rank, &cursor);
    while (moving->count < span.count && board_cursor_read(&cursor, &entry)) {
        struct bytes name = name_text(entry.member, room);
        uint32_t place = is_best_first ? moving->count : span.count - 1 - moving->count;
        memcpy(at, name.at, name.size);
        moving->members[place] =
            (struct moved){.name = {.at = at, .size = name.size}, .key = entry.key};
        at += name.size;
        moving->count++;
        board_cursor_next(&cursor);
    }
    return true;
}

/* ---- what they become ---- */

/* The member's score at the source, at the scale of that board's lead field. */
static wide zset_move_score(const struct moving *moving, const struct moved *moved) {
    const struct layout *from = board_layout(&moving->source->board);
    return decimal_to_wide(layout_field_decimal_at(
        &from->fields[0], layout_ordinal(from, moved->key, 0), moving->call->now_us));
}

static enum decimal_status zset_move_judge(const void *scores, const struct layout *layout) {
    const struct moving *moving = scores;
    unsigned scale = board_layout(&moving->source->board)->fields[0].scale;
    enum decimal_status status = DECIMAL_OK;
    uint64_t ordinal;
    for (uint32_t i = 0; i < moving->count && status == DECIMAL_OK; i++) {
        status = zset_store_score(&layout->fields[0], zset_move_score(moving, &moving->members[i]),
                                  scale, moving->call->now_us, &ordinal);
    }
    return status;
}

/* false: the error was replied. */
static bool zset_move_convert(const struct moving *moving, const struct moved *moved,
                              const struct board_member *there, uint64_t *key) {
    const struct call *call = moving->call;
    const struct layout *from = board_layout(&moving->source->board);
    const struct layout *to = board_layout(moving->writing.board);
    uint64_t ordinal;
    int64_t time_us = call->now_us;
    unsigned scale = from->fields[0].scale;
    wide score = zset_move_score(moving, moved);
    enum decimal_status status =
        zset_store_score(&to->fields[0], score, scale, call->now_us, &ordinal);
    if (status != DECIMAL_OK) {
        char text[DECIMAL_WIDE_TEXT_MAX];
        size_t size = decimal_wide_print(text, score, scale);
        return zset_refuse_value(call, &to->fields[0], (struct bytes){.at = text, .size = size},
                                 status);
    }
    uint64_t base = there->is_there ? there->key : layout_zero_key(to);
    (void)!layout_time_us(from, moved->key, &time_us);
    return layout_stamp(to, layout_with_ordinal(to, base, 0, ordinal), time_us, key) == LAYOUT_OK ||
           call_refuse_time(call, to, time_us);
}

/* Set the member's key at the destination, and whether it is put there. false: the error was
 * replied. */
static bool zset_move_check_member(struct moving *moving, struct moved *moved,
                                   uint32_t *newcomers) {
    struct writing *writing = &moving->writing;
    struct board_member there;
    bool is_alike =
        layout_keys_equal(board_layout(&moving->source->board), board_layout(writing->board));
    board_look_up(writing->board, moved->name, NULL, &there);
    if (there.is_there ? moving->is_new_only : moving->is_existing_only) {
        return true;
    }
    if (!writing_check_member(writing, moved->name) ||
        (!is_alike && !zset_move_convert(moving, moved, &there, &moved->key))) {
        return false;
    }
    moved->is_same = there.is_there && there.key == moved->key;
    moved->is_taken = moved->is_same || writing_takes(writing, &there, moved->key, false);
    *newcomers += moved->is_taken && !there.is_there;
    return true;
}

/* false: the error was replied; nothing has changed. */
static bool zset_move_check(struct moving *moving) {
    uint32_t newcomers = 0;
    if (moving->writing.whole != NULL) {
        return !writing_explain(moving->call, registry_options(moving->writing.whole),
                                BOARD_WRITE_WHOLE);
    }
    if (!writing_choose(&moving->writing, zset_move_judge, moving)) {
        return false;
    }
    /* Would something of the members be lost? */
    const struct layout *from = board_layout(&moving->source->board);
    if (tags_has_values(&moving->source->board)) {
        return call_refuse(moving->call, "ERR the source's members have tags, which would be lost");
    }
    if (from->field_count > 1 && !layout_keys_equal(from, board_layout(moving->writing.board))) {
        return call_refuse(moving->call,
                           "ERR the boards have different layouts: of the source's members, all "
                           "fields but the first would be lost");
    }
    for (uint32_t i = 0; i < moving->count; i++) {
        if (!zset_move_check_member(moving, &moving->members[i], &newcomers)) {
            return false;
        }
    }
    if (newcomers > writing_room(&moving->writing)) {
        writing_refuse_full(moving->call, moving->writing.options);
        return false;
    }
    return writing_reserve(&moving->writing, &moving->members[0].name, MOVED_STRIDE, moving->count,
                           false, 0) ||
           call_out_of_memory(moving->call);
}

/* ---- moving ---- */

/* A member comes to rank behind its equals, or with LATEST before them: they are put so that they keep their
 * order. */
static void zset_move_put(struct moving *moving) {
    struct writing *writing = &moving->writing;
    struct board_member member;
    bool is_backwards = moving->is_worst_first != board_layout(writing->board)->time.is_latest;
    writing->is_only = moving->count == 1;
    for (uint32_t i = 0; i < moving->count; i++) {
        struct moved *moved = &moving->members[is_backwards ? moving->count - 1 - i : i];
        if (moved->is_taken && !moved->is_same) {
            board_look_up(writing->board, moved->name, NULL, &member);
            enum writing_status status = writing_put(writing, &member, moved->key, false);
            CHECK(status != WRITING_FAILED);
            /* One that is named twice is left the second time. */
            moved->is_taken = status == WRITING_PUT;
        }
    }
    memory_reserve_end();
    /* Only now: a pass notes names, which must not take what was reserved for the members. */
    for (uint32_t i = 0; i < moving->count; i++) {
        const struct moved *moved = &moving->members[i];
        if (moved->is_taken && !moved->is_same) {
            board_task_pass_note_moved(moving->call->server, writing_shown_key(writing),
                                       moved->name);
        }
    }
    writing_settle(writing);
}

/* Take off the source what the destination has; returns how many. */
static uint32_t zset_move_take(struct moving *moving) {
    struct writing *writing = &moving->writing;
    struct board_member member;
    uint32_t taken_count = 0;
    for (uint32_t i = 0; i < moving->count; i++) {
        struct moved *moved = &moving->members[i];
        if (moved->is_taken && writing->has_lost) {
            board_look_up(writing->board, moved->name, NULL, &member);
            moved->is_taken = member.is_there;
        }
        if (moved->is_taken) {
            board_look_up(&moving->source->board, moved->name, NULL, &member);
            moved->is_taken = member.is_there;
        }
        if (moved->is_taken) {
            registry_board_take(moving->call->registry, moving->source, &member);
            taken_count++;
        }
    }
    return taken_count;
}

/* The members are known. */
static void zset_move_run(struct moving *moving) {
    const struct call *call = moving->call;
    uint32_t taken_count = 0;
    if (moving->count == 0) {
        reply_null_array(call->reply);
        return;
    }
    if (!writing_begin(call, moving->to, &moving->writing)) {
        return;
    }
    moving->source = call_find_key(call, moving->from);
    bool is_fine = zset_move_check(moving);
    if (is_fine) {
        zset_move_put(moving);
        taken_count = zset_move_take(moving);
    }
    writing_end(&moving->writing, "zadd");
    if (taken_count > 0) {
        registry_tell_members(call->registry, moving->source);
        zset_end_removal(call, moving->source, "zrem");
    }
    if (is_fine && taken_count == 0) {
        reply_null_array(call->reply);
    } else if (is_fine) {
        reply_array(call->reply, taken_count);
        for (uint32_t i = 0; i < moving->count; i++) {
            if (moving->members[i].is_taken) {
                reply_bulk(call->reply, moving->members[i].name);
            }
        }
    }
}

/* *source: the board that members are to leave; NULL: there is none, or it is the destination itself. false: the error
 * was replied. */
static bool zset_move_find(const struct call *call, struct bytes from, struct bytes to,
                           struct registry_key **source) {
    struct registry_key *destination;
    if (!call_find_kind(call, from, REGISTRY_BOARD, source)) {
        return false;
    }
    if (*source == NULL) {
        return true;
    }
    if (!call_find_kind(call, to, REGISTRY_BOARD, &destination)) {
        return false;
    }
    if (destination == *source) {
        *source = NULL;
        return true;
    }
    return !writing_refuses(call, registry_options(*source), BOARD_WRITE_WHOLE);
}

static void zset_move_move_span(const struct call *call, const struct registry_key *source,
                                struct bytes to, struct zset_span span, bool is_best_first) {
    struct moving moving = {.call = call, .from = registry_name(source), .to = to};
    if (zset_move_take_span(&moving, &source->board, span, is_best_first)) {
        zset_move_run(&moving);
    }
    zset_move_end(&moving);
}

/* count members from one end. */
static void zset_move_move_end(const struct call *call, const struct registry_key *source,
                               struct bytes to, bool is_reverse, int64_t count) {
    bool is_best_first = zset_is_best_first(&source->board, is_reverse);
    struct zset_span span = zset_part_of_limit(zset_whole(&source->board), is_best_first, 0, count);
    zset_move_move_span(call, source, to, span, is_best_first);
}

/* ---- ZMOVE ---- */

/* false: the error was replied. */
static bool zset_move_find_span(const struct call *call, const struct zset_taking *zmove,
                                const struct board *board, struct zset_span *span) {
    struct zset_span all = {0};
    bool is_by_score = zmove->where == ZSET_BY_SCORE;
    if (is_by_score) {
        if (!zset_span_of_scores(call, board, call_arg(call, 4), call_arg(call, 5), &all)) {
            return false;
        }
    } else if (board != NULL) {
        all = zset_whole(board);
    }
    int64_t count = zmove->count > 0 ? zmove->count : is_by_score ? -1 : 1;
    *span = all;
    if (board != NULL) {
        *span =
            zset_part_of_limit(all, zset_is_best_first(board, zmove->where == ZSET_MAX), 0, count);
    }
    return true;
}

static uint64_t zset_move_count(const struct cost_view *view) {
    struct zset_taking zmove = {.count = 0};
    struct zset_span span;
    return syntax_read(view->call, &zmove) &&
                   zset_move_find_span(view->call, &zmove, cost_board(view, 1), &span)
               ? span.count
               : 0;
}

static void zmove_run(struct call *call) {
    struct zset_taking zmove = {.count = 0};
    struct registry_key *source;
    struct zset_span span;
    struct bytes to = call_arg(call, 2);
    if (!syntax_read(call, &zmove) || !zset_move_find_span(call, &zmove, NULL, &span) ||
        !zset_move_find(call, call_arg(call, 1), to, &source)) {
        return;
    }
    if (source == NULL) {
        reply_null_array(call->reply);
    } else if (zset_move_find_span(call, &zmove, &source->board, &span)) {
        zset_move_move_span(call, source, to, span,
                            zset_is_best_first(&source->board, zmove.where == ZSET_MAX));
    }
}

const struct command command_zmove = {
    .name = "ZMOVE",
    .syntax =
        "source:key destination:key where=<MIN | MAX | byscore=(BYSCORE score-min score-max)> "
        "[COUNT count:integer]",
    .bindings = zset_taking_bindings,
    .reply = "[s]?",
    .summary = "Move members with the lowest, the highest or the given scores to another board, "
               "and return them",
    .complexity = "O(m * log n) for m members moved",
    .flags = COMMAND_WRITE | COMMAND_DENYOOM,
    .key_access = "RW access delete|RW update",
    .cost = COST(COMMAND_BY_PRODUCT, zset_move_count, 1200, 2, "member moved", "a smaller `COUNT`"),
    .run = zmove_run,
};

/* ---- BZMOVE ---- */

static void bzmove_run(struct call *call) {
    struct zset_taking zmove = {.count = 0};
    struct registry_key *source;
    struct bytes to = call_arg(call, 2);
    int64_t due_ms;
    if (!syntax_read(call, &zmove) || !zset_pop_read_timeout(call, call_arg(call, 4), &due_ms) ||
        !zset_move_find(call, call_arg(call, 1), to, &source)) {
        return;
    }
    int64_t count = zmove.count > 0 ? zmove.count : 1;
    bool is_reverse = zmove.where == ZSET_MAX;
    if (bytes_equal(call_arg(call, 1), to)) {
        reply_null_array(call->reply);
    } else if (source != NULL && board_count(&source->board) > 0) {
        zset_move_move_end(call, source, to, is_reverse, count);
    } else if (wait_set_target(call->session, to)) {
        const struct option_values key = {.at = &call->request->args[1], .count = 1};
        zset_pop_wait_for(call, key, due_ms, is_reverse, count);
        if (call->session->wait.state == WAIT_NONE) { /* in a transaction, or without memory */
            wait_drop_target(call->session);
        }
    } else {
        call_out_of_memory(call);
    }
}

/* The destination may have become another one meanwhile. */
static void zset_move_serve(const struct call *call, struct registry_key *key) {
    const struct wait *wait = &call->session->wait;
    struct bytes to = {.at = wait->target, .size = wait->target_size};
    struct registry_key *source;
    if (zset_move_find(call, registry_name(key), to, &source)) {
        zset_move_move_end(call, key, to, wait->is_reverse, wait->count);
    }
}

static uint64_t zset_move_count_waited_for(const struct cost_view *view) {
    struct zset_taking zmove = {.count = 0};
    uint32_t size = cost_size(view, 1);
    if (!syntax_read(view->call, &zmove)) {
        return 0;
    }
    uint64_t count = zmove.count > 0 ? (uint64_t)zmove.count : 1;
    return count < size ? count : size;
}

const struct command command_bzmove = {
    .name = "BZMOVE",
    .syntax = "source:key destination:key where=<MIN | MAX> timeout:double [COUNT count:integer]",
    .bindings = zset_taking_bindings,
    .reply = "[s]?",
    .summary = "Move members with the lowest or the highest scores to another board, and return "
               "them; if there are none, wait for them",
    .complexity = "O(m * log n) for m members moved",
    .flags = COMMAND_WRITE | COMMAND_DENYOOM | COMMAND_BLOCKING,
    .key_access = "RW access delete|RW update",
    .cost = COST(COMMAND_BY_PRODUCT, zset_move_count_waited_for, 1200, 2, "member moved",
                 "a smaller `COUNT`"),
    .run = bzmove_run,
    .serve = zset_move_serve,
};

/* ---- ZMOVEMEMBER ---- */

static const struct binding zmovemember_bindings[] = {
    {BIND("NX", struct moving, is_new_only)},
    {BIND("XX", struct moving, is_existing_only)},
    {0},
};

static void zmovemember_run(struct call *call) {
    struct moving moving = {.call = call, .from = call_arg(call, 1), .to = call_arg(call, 2)};
    struct registry_key *source;
    uint32_t at = 3;
    int64_t count;
    if (!syntax_read_options(call, &at, &moving)) {
        return;
    }
    if ((moving.is_new_only && moving.is_existing_only) || call->request->count - at < 3 ||
        !call_arg_is(call, at, "MEMBERS")) {
        (void)call_syntax_error(call);
        return;
    }
    uint32_t first = at + 2;
    if (!zset_pop_read_positive(call, at + 1, "ERR num-members should be greater than 0", &count)) {
        return;
    }
    if (count != (int64_t)(call->request->count - first)) {
        (void)call_syntax_error(call);
        return;
    }
    if (!zset_move_find(call, moving.from, moving.to, &source)) {
        return;
    }
    if (source == NULL) {
        reply_null_array(call->reply);
        return;
    }
    moving.members = memory_allocate_zeroed(((size_t)count + 1) * sizeof *moving.members);
    if (moving.members == NULL) {
        call_out_of_memory(call);
        return;
    }
    /* Those of the request's members that are on the board. */
    for (uint32_t i = first; i < call->request->count; i++) {
        struct board_member member;
        if (zset_look_up(call, &source->board, call_arg(call, i), &member)) {
            moving.members[moving.count++] = (struct moved){.name = member.name, .key = member.key};
        }
    }
    zset_move_run(&moving);
    zset_move_end(&moving);
}

static uint64_t zset_move_count_named(const struct cost_view *view) {
    return view->call->request->count - 3;
}

const struct command command_zmovemember = {
    .name = "ZMOVEMEMBER",
    .syntax = "source:key destination:key condition=[NX | XX] "
              "members=(MEMBERS num-members:integer member...)",
    .bindings = zmovemember_bindings,
    .reply = "[s]?",
    .summary = "Move the members named to another board, and return those that were moved",
    .complexity = "O(m * log n) for m members named",
    .flags = COMMAND_WRITE | COMMAND_DENYOOM,
    .key_access = "RW access delete|RW update",
    .cost = COST(COMMAND_BY_ARGUMENTS, zset_move_count_named, 2500, 0, "member named",
                 "several commands of a thousand each"),
    .run = zmovemember_run,
};
