/* ZADD and ZINCRBY: writes by score.
 *
 * A write changes the lead field alone; the other fields stay, and are 0 for a new member. The
 * member's time is set when its score changes, and all writes of one command carry one time.
 *
 *     ZADD board GT CH 100 zoe 120 kim
 *       read options -> find or make the board -> read scores -> put, pair by pair -> answer
 *
 * The whole command is applied, or nothing of it: scores are read and held against their range
 * first; a time outside the layout fails the first put, as every other one would; and for more
 * than one pair the memory is held back before the first. */
#include "server/command_zset.h"
#include "server/writing.h"

enum {
    /* Pairs whose scores need no memory of their own. */
    PAIRS_ON_STACK = 16,
};

/* One command: its options, its pairs, and what has come of them. */
struct zadd {
    bool is_new_only;       /* NX */
    bool is_existing_only;  /* XX */
    bool is_greater_only;   /* GT */
    bool is_less_only;      /* LT */
    bool is_change_counted; /* CH */
    bool is_increment;      /* INCR, ZINCRBY */
    bool is_sum_wanted;     /* ZINCRBY: the sum is the answer, whatever comes of it */
    uint32_t first_pair;    /* index of the first score */
    uint32_t pair_count;
    /* By pair: what to set, and after that whether it has added its member. An increment is one
     * pair, and is in delta. */
    uint64_t *ordinals;
    uint64_t ordinals_on_stack[PAIRS_ON_STACK];
    struct decimal delta;
    uint32_t added_count;
    uint32_t updated_count;
    bool is_skipped; /* the last pair was left alone by an option, or pushed out */
    uint64_t result; /* the last pair's ordinal otherwise */
};

static struct bytes pair_score(const struct call *call, const struct zadd *zadd, uint32_t pair) {
    return call_arg(call, zadd->first_pair + pair * 2);
}

static struct bytes pair_member(const struct call *call, const struct zadd *zadd, uint32_t pair) {
    return call_arg(call, zadd->first_pair + pair * 2 + 1);
}

/* ---- what the client asks for ---- */

/* The flag that an option sets; NULL: it is none. */
static bool *option_flag(struct zadd *zadd, struct bytes word) {
    /* Nearly always this is the first score already. */
    if (word.size == 0 || word.at[0] < 'A') {
        return NULL;
    }
    return bytes_is(word, "NX")     ? &zadd->is_new_only
           : bytes_is(word, "XX")   ? &zadd->is_existing_only
           : bytes_is(word, "GT")   ? &zadd->is_greater_only
           : bytes_is(word, "LT")   ? &zadd->is_less_only
           : bytes_is(word, "CH")   ? &zadd->is_change_counted
           : bytes_is(word, "INCR") ? &zadd->is_increment
                                    : NULL;
}

/* Options come before the first score, in any order, and may repeat. */
static void read_options(const struct call *call, struct zadd *zadd) {
    uint32_t index = 2;
    for (; index < call->request->count; index++) {
        bool *flag = option_flag(zadd, call_arg(call, index));
        if (flag == NULL) {
            break;
        }
        *flag = true;
    }
    zadd->first_pair = index;
}

static bool check_options(const struct call *call, struct zadd *zadd) {
    uint32_t arg_count = call->request->count - zadd->first_pair;
    zadd->pair_count = arg_count / 2;
    if (arg_count == 0 || arg_count % 2 != 0) {
        call_syntax_error(call);
        return false;
    }
    if (zadd->is_new_only && zadd->is_existing_only) {
        reply_error(call->reply, "ERR XX and NX options at the same time are not compatible");
        return false;
    }
    if (zadd->is_new_only + zadd->is_greater_only + zadd->is_less_only > 1) {
        reply_error(call->reply,
                    "ERR GT, LT, and/or NX options at the same time are not compatible");
        return false;
    }
    if (zadd->is_increment && zadd->pair_count > 1) {
        reply_error(call->reply, "ERR INCR option supports a single increment-element pair");
        return false;
    }
    return true;
}

static void explain_score(const struct call *call, const struct layout_field *lead,
                          struct bytes text, enum decimal_status status) {
    char error[LAYOUT_ERROR_MAX];
    layout_explain_value(lead, text, status, error);
    reply_error_format(call->reply, "ERR %s", error);
}

static bool read_score(const struct call *call, const struct layout_field *lead, struct zadd *zadd,
                       uint32_t pair) {
    struct bytes text = pair_score(call, zadd, pair);
    struct decimal score;
    enum decimal_status status = layout_field_parse(lead, text, &score);
    if (status == DECIMAL_OK && zadd->is_increment) {
        zadd->delta = score;
    } else if (status == DECIMAL_OK &&
               layout_field_ordinal(lead, score, &zadd->ordinals[pair]) != LAYOUT_OK) {
        status = DECIMAL_OUT_OF_RANGE;
    }
    if (status != DECIMAL_OK) {
        explain_score(call, lead, text, status);
        return false;
    }
    return true;
}

/* Every score and every member, before anything changes. */
static bool read_pairs(const struct call *call, const struct layout_field *lead,
                       struct zadd *zadd) {
    for (uint32_t pair = 0; pair < zadd->pair_count; pair++) {
        if (!read_score(call, lead, zadd, pair)) {
            return false;
        }
    }
    for (uint32_t pair = 0; pair < zadd->pair_count; pair++) {
        if (!zset_check_member(call, pair_member(call, zadd, pair))) {
            return false;
        }
    }
    return true;
}

/* ---- what comes of it ---- */

static void explain_sum(const struct call *call, const struct layout_field *lead, uint64_t ordinal,
                        struct decimal delta) {
    char error[LAYOUT_ERROR_MAX];
    layout_explain_sum(lead, ordinal, delta, error);
    reply_error_format(call->reply, "ERR %s", error);
}

/* Put a member with this score and the time. false: the error is answered, and the board is as it
 * was. */
static bool put(const struct call *call, struct writing *writing, struct zadd *zadd, uint32_t pair,
                const struct board_member *member, uint64_t key) {
    const struct layout *layout = board_layout(writing->board);
    uint64_t stamped;
    if (!writing_takes(writing, member, key, zadd->is_increment)) {
        return true;
    }
    if (layout_stamp(layout, key, call->now_us, &stamped) != LAYOUT_OK) {
        char error[LAYOUT_ERROR_MAX];
        layout_explain_time(layout, call->now_us, error);
        reply_error_format(call->reply, "ERR %s", error);
        return false;
    }
    enum writing_status status = writing_put(writing, member, stamped, zadd->is_increment);
    zadd->is_skipped = status == WRITING_PUSHED_OUT && !zadd->is_sum_wanted;
    if (status == WRITING_PUT) {
        zadd->added_count += member->is_there ? 0 : 1;
        zadd->updated_count += member->is_there ? 1 : 0;
        zadd->ordinals[pair] = !member->is_there;
    }
    return status != WRITING_FAILED;
}

/* false: the error is answered, and the board is as it was. */
static bool apply_pair(const struct call *call, struct writing *writing, struct zadd *zadd,
                       uint32_t pair) {
    const struct layout *layout = board_layout(writing->board);
    const struct layout_field *lead = &layout->fields[0];
    struct board_member member;
    board_look_up(writing->board, pair_member(call, zadd, pair), call->ahead, &member);
    bool is_there = member.is_there;
    uint64_t after = zadd->is_increment ? 0 : zadd->ordinals[pair];
    zadd->ordinals[pair] = false;
    zadd->is_skipped = is_there ? zadd->is_new_only : zadd->is_existing_only;
    if (zadd->is_skipped) {
        return true;
    }
    uint64_t key = is_there ? member.key : layout_zero_key(layout);
    uint64_t before = layout_ordinal(layout, key, 0);
    if (zadd->is_increment && layout_field_add(lead, before, zadd->delta, &after) != LAYOUT_OK) {
        explain_sum(call, lead, before, zadd->delta);
        return false;
    }
    zadd->is_skipped = is_there && ((zadd->is_greater_only && after <= before) ||
                                    (zadd->is_less_only && after >= before));
    if (zadd->is_skipped) {
        return true;
    }
    zadd->result = after;
    if (is_there && after == before) {
        return true;
    }
    return put(call, writing, zadd, pair, &member, layout_with_ordinal(layout, key, 0, after));
}

/* Are there places for every pair's member? Counted only when the board is nearly full. */
static bool has_room(const struct call *call, const struct board *board, const struct zadd *zadd) {
    uint32_t room = BOARD_MEMBERS_MAX - board_count(board);
    if (zadd->pair_count <= room) {
        return true;
    }
    uint32_t new_count = 0;
    for (uint32_t pair = 0; pair < zadd->pair_count; pair++) {
        uint64_t key;
        new_count += board_find(board, pair_member(call, zadd, pair), &key) ? 0 : 1;
    }
    return new_count <= room;
}

static bool reserve(const struct call *call, const struct board *board, const struct zadd *zadd) {
    size_t size = board_growth_size(board, zadd->pair_count);
    for (uint32_t pair = 0; pair < zadd->pair_count; pair++) {
        size += pair_member(call, zadd, pair).size;
    }
    return memory_reserve_begin(size);
}

/* Members that were added and pushed out again by others of the same command were not added. */
static void take_back_lost(const struct call *call, const struct board *board, struct zadd *zadd) {
    for (uint32_t pair = 0; pair < zadd->pair_count; pair++) {
        uint64_t key;
        bool is_lost =
            zadd->ordinals[pair] != 0 && !board_find(board, pair_member(call, zadd, pair), &key);
        zadd->added_count -= is_lost;
    }
}

static bool apply_many(const struct call *call, struct writing *writing, struct zadd *zadd) {
    bool is_applied = true;
    for (uint32_t pair = 0; pair < zadd->pair_count && is_applied; pair++) {
        is_applied = apply_pair(call, writing, zadd, pair);
    }
    writing_settle(writing);
    if (writing->has_lost) {
        take_back_lost(call, writing->board, zadd);
    }
    return is_applied;
}

static bool apply_pairs(const struct call *call, struct writing *writing, struct zadd *zadd) {
    if (zadd->pair_count == 1) {
        return apply_pair(call, writing, zadd, 0);
    }
    if (!has_room(call, writing->board, zadd)) {
        writing_refuse_full(call);
        return false;
    }
    if (!reserve(call, writing->board, zadd)) {
        call_out_of_memory(call);
        return false;
    }
    bool is_applied = apply_many(call, writing, zadd);
    memory_reserve_end();
    return is_applied;
}

static void answer(const struct call *call, const struct layout_field *lead,
                   const struct zadd *zadd) {
    if (!zadd->is_increment) {
        uint32_t updated_count = zadd->is_change_counted ? zadd->updated_count : 0;
        reply_integer(call->reply, (int64_t)zadd->added_count + updated_count);
    } else if (zadd->is_skipped) {
        reply_null(call->reply);
    } else {
        zset_reply_score(call, lead, zadd->result);
    }
}

static void run_on_board(const struct call *call, struct writing *writing, struct zadd *zadd) {
    const struct layout_field *lead = zset_lead(writing->board);
    zadd->ordinals = zadd->ordinals_on_stack;
    if (zadd->pair_count > PAIRS_ON_STACK) {
        zadd->ordinals = memory_allocate(zadd->pair_count * sizeof(zadd->ordinals[0]));
        if (zadd->ordinals == NULL) {
            call_out_of_memory(call);
            return;
        }
    }
    if (read_pairs(call, lead, zadd) && apply_pairs(call, writing, zadd)) {
        answer(call, lead, zadd);
    }
    if (zadd->ordinals != zadd->ordinals_on_stack) {
        memory_free(zadd->ordinals);
    }
}

/* The board gives the scores their range, so a new one is made first. */
static void run(const struct call *call, struct zadd *zadd) {
    struct writing writing;
    if (writing_begin(call, call_arg(call, 1), &writing)) {
        writing.is_only = zadd->pair_count == 1;
        run_on_board(call, &writing, zadd);
        writing_end(&writing);
    }
}

static void zadd_run(struct call *call) {
    struct zadd zadd = {.is_skipped = false};
    read_options(call, &zadd);
    if (check_options(call, &zadd)) {
        run(call, &zadd);
    }
}

static const struct argument zadd_arguments[] = {
    {.name = "key", .type = ARGUMENT_KEY},
    {.name = "condition",
     .type = ARGUMENT_ONEOF,
     .flags = ARGUMENT_OPTIONAL,
     .children =
         (const struct argument[]){
             {.name = "nx", .type = ARGUMENT_PURE_TOKEN, .token = "NX"},
             {.name = "xx", .type = ARGUMENT_PURE_TOKEN, .token = "XX"},
             {0},
         }},
    {.name = "comparison",
     .type = ARGUMENT_ONEOF,
     .flags = ARGUMENT_OPTIONAL,
     .children =
         (const struct argument[]){
             {.name = "gt", .type = ARGUMENT_PURE_TOKEN, .token = "GT"},
             {.name = "lt", .type = ARGUMENT_PURE_TOKEN, .token = "LT"},
             {0},
         }},
    {.name = "change", .type = ARGUMENT_PURE_TOKEN, .token = "CH", .flags = ARGUMENT_OPTIONAL},
    {.name = "increment", .type = ARGUMENT_PURE_TOKEN, .token = "INCR", .flags = ARGUMENT_OPTIONAL},
    {.name = "score_member",
     .type = ARGUMENT_BLOCK,
     .flags = ARGUMENT_MULTIPLE,
     .children =
         (const struct argument[]){
             {.name = "score", .type = ARGUMENT_DOUBLE},
             {.name = "member", .type = ARGUMENT_STRING},
             {0},
         }},
    {0},
};

const struct command command_zadd = {
    .name = "ZADD",
    .summary = "Set the scores of members, adding those that are not on the board",
    .complexity = "O(log n) for each pair, n being the members of the board",
    .since = "1.0.0",
    .group = "sorted-set",
    .arity = -4,
    .flags = COMMAND_WRITE | COMMAND_DENYOOM | COMMAND_FAST,
    .first_key = 1,
    .last_key = 1,
    .key_step = 1,
    .member_arg = 3,
    .member_step = 2,
    .score_arg = 2,
    .arguments = zadd_arguments,
    .run = zadd_run,
};

static void zincrby_run(struct call *call) {
    struct zadd zadd = {
        .is_increment = true, .is_sum_wanted = true, .first_pair = 2, .pair_count = 1};
    run(call, &zadd);
}

static const struct argument zincrby_arguments[] = {
    {.name = "key", .type = ARGUMENT_KEY},
    {.name = "increment", .type = ARGUMENT_DOUBLE},
    {.name = "member", .type = ARGUMENT_STRING},
    {0},
};

const struct command command_zincrby = {
    .name = "ZINCRBY",
    .summary = "Add to a member's score, which begins at 0, and return the sum",
    .complexity = "O(log n) in the members of the board",
    .since = "1.0.0",
    .group = "sorted-set",
    .arity = 4,
    .flags = COMMAND_WRITE | COMMAND_DENYOOM | COMMAND_FAST,
    .first_key = 1,
    .last_key = 1,
    .key_step = 1,
    .member_arg = 3,
    .arguments = zincrby_arguments,
    .run = zincrby_run,
};
