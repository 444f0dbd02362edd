/* ZADD and ZINCRBY: writes by score.
 *
 * A write changes only the lead field; the other fields keep their values, and are 0 for a new
 * member. The member's time is set when its score changes. All writes of one command use one time.
 *
 *     ZADD board GT CH 100 zoe 120 kim
 *       parse options -> find or create the board -> parse scores -> put, pair by pair -> reply
 *
 * The command is all or nothing: scores are parsed and range-checked first; a time outside the
 * layout fails the first put, as it would every other; and for more than one pair the memory is
 * reserved before the first put. */
#include "server/commands/guarding.h"
#include "server/commands/ticketing.h"
#include "server/dispatch/syntax.h"
#include "skiplist/lookup.h"

enum {
    /* Up to this many pairs need no heap memory. */
    PAIRS_ON_STACK = 16,
};

/* One command: its options, its pairs and their results. */
struct zadd {
    bool is_new_only;       /* NX */
    bool is_existing_only;  /* XX */
    bool is_greater_only;   /* GT */
    bool is_less_only;      /* LT */
    bool is_change_counted; /* CH */
    bool is_increment;      /* INCR, ZINCRBY */
    bool is_sum_wanted;     /* ZINCRBY: reply with the sum in any case */
    uint32_t first_pair;    /* index of the first score */
    uint32_t pair_count;
    /* By pair: the ordinal to set; afterwards, whether the pair added its member. An increment has
     * a single pair and uses delta. */
    uint64_t *ordinals;
    struct decimal delta;
    uint32_t added_count;
    uint32_t updated_count;
    const struct zadd_guarded *guarded; /* LIMITS and HOLD; NULL: neither */
    bool is_skipped; /* the last pair was skipped by an option or removed by CAP, or is held */
    uint64_t result; /* otherwise the last pair's ordinal */
};

static struct bytes zset_add_pair_score(const struct call *call, const struct zadd *zadd,
                                        uint32_t pair) {
    return call_arg(call, zadd->first_pair + pair * 2);
}

static struct bytes zset_add_pair_member(const struct call *call, const struct zadd *zadd,
                                         uint32_t pair) {
    return call_arg(call, zadd->first_pair + pair * 2 + 1);
}

/* ---- parsing ---- */

static const struct binding zadd_bindings[] = {
    {BIND("NX", struct zadd, is_new_only)},
    {BIND("XX", struct zadd, is_existing_only)},
    {BIND("GT", struct zadd, is_greater_only)},
    {BIND("LT", struct zadd, is_less_only)},
    {BIND("CH", struct zadd, is_change_counted)},
    {BIND("INCR", struct zadd, is_increment)},
    {0},
};

static bool zset_add_check_options(const struct call *call, struct zadd *zadd) {
    uint32_t arg_count = call->request->count - zadd->first_pair;
    zadd->pair_count = arg_count / 2;
    if (arg_count == 0 || arg_count % 2 != 0) {
        return call_syntax_error(call);
    }
    if (zadd->is_new_only && zadd->is_existing_only) {
        return call_refuse(call, "ERR XX and NX options at the same time are not compatible");
    }
    if (zadd->is_new_only + zadd->is_greater_only + zadd->is_less_only > 1) {
        return call_refuse(call,
                           "ERR GT, LT, and/or NX options at the same time are not compatible");
    }
    if (zadd->is_increment && zadd->pair_count > 1) {
        return call_refuse(call, "ERR INCR option supports a single increment-element pair");
    }
    return true;
}

static enum decimal_status zset_add_read_score(const struct layout_field *lead, struct bytes text,
                                               struct zadd *zadd, uint32_t pair) {
    struct decimal score;
    enum decimal_status status = layout_field_parse(lead, text, &score);
    if (status == DECIMAL_OK && zadd->is_increment) {
        zadd->delta = score;
    } else if (status == DECIMAL_OK &&
               layout_field_ordinal(lead, score, &zadd->ordinals[pair]) != LAYOUT_OK) {
        status = DECIMAL_OUT_OF_RANGE;
    }
    return status;
}

struct zadd_of_call {
    const struct call *call;
    struct zadd *zadd;
};

static enum decimal_status zset_add_judge(const void *scores, const struct layout *layout) {
    const struct zadd_of_call *of = scores;
    const struct layout_field *lead = &layout->fields[0];
    enum decimal_status status = DECIMAL_OK;
    for (uint32_t pair = 0; pair < of->zadd->pair_count && status == DECIMAL_OK; pair++) {
        struct bytes text = zset_add_pair_score(of->call, of->zadd, pair);
        uint64_t sum;
        status = zset_add_read_score(lead, text, of->zadd, pair);
        if (status == DECIMAL_OK && of->zadd->is_increment &&
            layout_field_add_at(lead, layout_field_zero(lead), of->zadd->delta, of->call->now_us,
                                of->call->now_us, &sum) != LAYOUT_OK) {
            status = DECIMAL_OUT_OF_RANGE;
        }
    }
    return status;
}

/* Check every score and every member before changing anything. */
static bool zset_add_read_pairs(const struct call *call, struct writing *writing,
                                struct zadd *zadd) {
    const struct zadd_of_call scores = {.call = call, .zadd = zadd};
    if (!writing_choose(writing, zset_add_judge, &scores)) {
        return false;
    }
    const struct layout_field *lead = zset_lead(writing->board);
    for (uint32_t pair = 0; pair < zadd->pair_count; pair++) {
        struct bytes text = zset_add_pair_score(call, zadd, pair);
        enum decimal_status status = zset_add_read_score(lead, text, zadd, pair);
        if (status != DECIMAL_OK) {
            return zset_refuse_value(call, lead, text, status);
        }
    }
    for (uint32_t pair = 0; pair < zadd->pair_count; pair++) {
        if (!writing_check_member(writing, zset_add_pair_member(call, zadd, pair))) {
            return false;
        }
    }
    return true;
}

/* ---- applying ---- */

/* Put a member with this score and the time. false: the error was replied; the board is
 * unchanged. */
static bool zset_add_put(const struct call *call, struct writing *writing, struct zadd *zadd,
                         uint32_t pair, const struct board_member *member, uint64_t key) {
    const struct layout *layout = board_layout(writing->board);
    uint64_t stamped;
    if (!writing_takes(writing, member, key, zadd->is_increment)) {
        return true;
    }
    if (layout_stamp(layout, key, call->now_us, &stamped) != LAYOUT_OK) {
        return call_refuse_time(call, layout, call->now_us);
    }
    /* Of many pairs all were checked before the first change. */
    if (zadd->pair_count == 1 && !writing_check_put(writing, member->name, stamped)) {
        return false;
    }
    enum writing_status status = writing_put(writing, member, stamped, zadd->is_increment);
    zadd->is_skipped = status == WRITING_PUSHED_OUT && !zadd->is_sum_wanted;
    if (status == WRITING_PUT && !writing->is_as_before) {
        zadd->added_count += writing->is_newcomer ? 1 : 0;
        zadd->updated_count += writing->is_newcomer ? 0 : 1;
        zadd->ordinals[pair] = writing->is_newcomer;
    }
    return status != WRITING_FAILED;
}

/* Of a board with LIMITS or HOLD. */
struct zadd_guarded {
    struct guarded *list; /* of each pair */
    struct guards guards;
    struct writing_names names;
};

/* What a pair does to its member. */
struct zadd_step {
    struct board_member member;
    bool is_skipped;        /* by NX, XX, GT, LT */
    uint64_t before, after; /* ordinals of the first field */
    uint64_t key;           /* without the time of the change */
};

/* Inlined into the path of every pair, so that a step is in registers. false: the error was replied. */
__attribute__((always_inline)) static inline bool
zset_add_plan_pair(const struct call *call, const struct writing *writing, const struct zadd *zadd,
                   uint32_t pair, const struct lookup *ahead, struct zadd_step *step) {
    const struct layout *layout = board_layout(writing->board);
    const struct layout_field *lead = &layout->fields[0];
    struct board_member *member = &step->member;
    board_look_up(writing->board, zset_add_pair_member(call, zadd, pair), ahead, member);
    step->is_skipped = member->is_there ? zadd->is_new_only : zadd->is_existing_only;
    if (step->is_skipped) {
        return true;
    }
    step->key = member->is_there ? member->key : layout_zero_key(layout);
    step->before = layout_ordinal(layout, step->key, 0);
    step->after = zadd->is_increment ? 0 : zadd->ordinals[pair];
    if (zadd->is_increment && layout_field_add_at(lead, step->before, zadd->delta, call->now_us,
                                                  call->now_us, &step->after) != LAYOUT_OK) {
        return zset_refuse_sum(call, lead, step->before, zadd->delta, call->now_us);
    }
    step->is_skipped =
        member->is_there && ((zadd->is_greater_only && step->after <= step->before) ||
                             (zadd->is_less_only && step->after >= step->before));
    step->key = layout_with_ordinal(layout, step->key, 0, step->after);
    return true;
}

/* false: the error was replied; the board is unchanged. */
static bool zset_add_apply_pair(const struct call *call, struct writing *writing, struct zadd *zadd,
                                uint32_t pair, const struct lookup *ahead) {
    struct zadd_step step;
    if (!zset_add_plan_pair(call, writing, zadd, pair, ahead, &step)) {
        return false;
    }
    zadd->ordinals[pair] = false;
    zadd->is_skipped = step.is_skipped;
    if (zadd->guarded != NULL && zadd->guarded->list[pair].held != 0) {
        zadd->is_skipped = !zadd->is_sum_wanted;
        zadd->result = step.before;
        return true;
    }
    if (step.is_skipped) {
        return true;
    }
    zadd->result = step.after;
    if (step.member.is_there && step.after == step.before) {
        return true;
    }
    return zset_add_put(call, writing, zadd, pair, &step.member, step.key);
}

/* ---- many pairs ---- */

/* Members of consecutive pairs; names are every other argument. */
static const struct bytes *zset_add_pair_members(const struct call *call, const struct zadd *zadd,
                                                 uint32_t pair) {
    return &call->request->args[zadd->first_pair + pair * 2 + 1];
}

/* The number of a group's members that are on the board. is_added_only: count only those added by
 * this command. */
static uint32_t zset_add_count_found(const struct call *call, const struct board *board,
                                     const struct zadd *zadd, uint32_t begin, bool is_added_only) {
    unsigned count = lookup_group_size(zadd->pair_count, begin);
    const struct bytes *names = zset_add_pair_members(call, zadd, begin);
    struct lookup ahead[LOOKUP_GROUP];
    struct board_member member;
    uint32_t found_count = 0;
    lookup_members(board, names, 2, count, ahead);
    for (unsigned i = 0; i < count; i++) {
        if (!is_added_only || zadd->ordinals[begin + i] != 0) {
            board_look_up(board, names[(size_t)i * 2], &ahead[i], &member);
            found_count += member.is_there;
        }
    }
    return found_count;
}

/* Prefetch what all pairs of the group touch before putting the first. */
static bool zset_add_apply_group(const struct call *call, struct writing *writing,
                                 struct zadd *zadd, uint32_t begin) {
    unsigned count = lookup_group_size(zadd->pair_count, begin);
    const struct layout *layout = board_layout(writing->board);
    struct lookup ahead[LOOKUP_GROUP];
    uint64_t keys[LOOKUP_GROUP];
    for (unsigned i = 0; i < count; i++) {
        /* The key that a new member would get; an existing one may have other fields. */
        uint64_t key =
            layout_with_ordinal(layout, layout_zero_key(layout), 0, zadd->ordinals[begin + i]);
        uint64_t stamped;
        bool is_stamped = layout_stamp(layout, key, call->now_us, &stamped) == LAYOUT_OK;
        keys[i] = is_stamped ? stamped : key;
    }
    lookup_members_to_put(writing->board, zset_add_pair_members(call, zadd, begin), 2, count, keys,
                          ahead);
    for (unsigned i = 0; i < count; i++) {
        if (!zset_add_apply_pair(call, writing, zadd, begin + i, &ahead[i])) {
            return false;
        }
    }
    return true;
}

/* Do all fit what is shown of several periods? */
static bool zset_add_check_sums(const struct call *call, const struct writing *writing,
                                const struct zadd *zadd) {
    const struct layout *layout = board_layout(writing->board);
    for (uint32_t pair = 0; writing->whole != NULL && pair < zadd->pair_count; pair++) {
        struct board_member member;
        board_look_up(writing->board, zset_add_pair_member(call, zadd, pair), NULL, &member);
        uint64_t key = member.is_there ? member.key : layout_zero_key(layout);
        if (!writing_check_sum(writing, member.name,
                               layout_with_ordinal(layout, key, 0, zadd->ordinals[pair]))) {
            return false;
        }
    }
    return true;
}

/* ---- LIMITS and HOLD ---- */

struct zadd_words {
    const struct call *call;
    const struct layout *layout;
    const struct zadd *zadd;
    uint32_t pair;
};

/* The words of the LB.ADD that writes the same: of the other fields none is named. */
static void zset_add_put_words(const void *context, struct held_words *words) {
    const struct zadd_words *of = context;
    const struct zadd *zadd = of->zadd;
    bool is_best = of->layout->fields[0].is_ascending ? zadd->is_less_only : zadd->is_greater_only;
    if (zadd->is_increment || is_best) {
        guarding_held_add_word(words, bytes_from_text(zadd->is_increment ? "INCR" : "BEST"));
    }
    guarding_held_add_word(words, zset_add_pair_score(of->call, zadd, of->pair));
    for (unsigned i = 1; i < of->layout->field_count; i++) {
        guarding_held_add_word(words, BYTES("*"));
    }
}

/* false: the error was replied. */
__attribute__((noinline)) static bool zset_add_plan_guarded(const struct call *call,
                                                            const struct writing *writing,
                                                            const struct zadd *zadd,
                                                            struct zadd_guarded *guarded) {
    const struct layout *layout = board_layout(writing->board);
    guarded->guards.count = zadd->pair_count;
    for (uint32_t pair = 0; pair < zadd->pair_count; pair++) {
        struct zadd_step step;
        if (!zset_add_plan_pair(call, writing, zadd, pair, NULL, &step)) {
            return false;
        }
        uint32_t *slot = writing_names_find(&guarded->names, &step.member);
        if (*slot != 0) {
            return guarding_refuse_again(call, step.member.name);
        }
        *slot = pair + 1;
        guarded->guards.names_size += step.member.name.size;
        if (step.is_skipped) {
            continue;
        }
        bool is_put = (!step.member.is_there || step.after != step.before) &&
                      writing_takes(writing, &step.member, step.key, zadd->is_increment);
        if (is_put && layout_stamp(layout, step.key, call->now_us, &step.key) != LAYOUT_OK) {
            return call_refuse_time(call, layout, call->now_us);
        }
        const struct zadd_words words = {call, layout, zadd, pair};
        const struct guarding_result result = {.member = step.member.name,
                                               .had_result = step.member.is_there,
                                               .is_written = is_put,
                                               .before = step.member.key,
                                               .after = step.key,
                                               .put_words = zset_add_put_words,
                                               .context = &words};
        if (!guarding_plan(writing, &result, &guarded->guards, &guarded->list[pair])) {
            return false;
        }
    }
    return true;
}

/* guarded: NULL: the board has neither LIMITS nor HOLD. false: the error was replied; the board is unchanged. */
static bool zset_add_apply_all(const struct call *call, struct writing *writing, struct zadd *zadd,
                               const struct zadd_guarded *guarded) {
    size_t guarded_size = guarded != NULL ? guarding_growth_size(writing, &guarded->guards) : 0;
    /* Does the board have room for every pair's member? Only counted when the board is nearly full; a newcomer that is
     * named twice then counts twice. */
    uint32_t room = writing_room(writing);
    uint32_t new_count = zadd->is_existing_only ? 0 : zadd->pair_count;
    for (uint32_t pair = 0; new_count > room && pair < zadd->pair_count; pair += LOOKUP_GROUP) {
        new_count -= zset_add_count_found(call, writing_shown(writing), zadd, pair, false);
    }
    if (new_count > room) {
        writing_refuse_full(call, writing->options);
        return false;
    }
    if (zadd->pair_count > 1 && !zset_add_check_sums(call, writing, zadd)) {
        return false;
    }
    if (!writing_reserve(writing, zset_add_pair_members(call, zadd, 0), 2, zadd->pair_count, false,
                         guarded_size)) {
        return call_out_of_memory(call);
    }
    /* A few pairs have already been prefetched by the tick. */
    bool is_grouped = zadd->pair_count >= LOOKUP_OWN_MIN;
    bool is_applied = true;
    for (uint32_t pair = 0; pair < zadd->pair_count && is_applied;
         pair += is_grouped ? LOOKUP_GROUP : 1) {
        is_applied = is_grouped ? zset_add_apply_group(call, writing, zadd, pair)
                                : zset_add_apply_pair(call, writing, zadd, pair, NULL);
    }
    for (uint32_t pair = 0; guarded != NULL && pair < zadd->pair_count && is_applied; pair++) {
        const struct zadd_words words = {call, board_layout(writing->board), zadd, pair};
        const struct guarding_result result = {.member = zset_add_pair_member(call, zadd, pair),
                                               .put_words = zset_add_put_words,
                                               .context = &words};
        guarding_put(writing, &result, &guarded->list[pair]);
    }
    writing_settle(writing);
    /* Members that were added and then removed by CAP in the same command do not count as added. */
    if (writing->has_lost) {
        zadd->added_count = 0;
        for (uint32_t pair = 0; pair < zadd->pair_count; pair += LOOKUP_GROUP) {
            zadd->added_count += zset_add_count_found(call, writing->board, zadd, pair, true);
        }
    }
    memory_reserve_end();
    return is_applied;
}

__attribute__((noinline)) static bool
zset_add_apply_guarded(const struct call *call, struct writing *writing, struct zadd *zadd) {
    uint32_t slot_count = writing_names_slots(zadd->pair_count);
    struct zadd_guarded guarded = {
        .list = memory_allocate_zeroed(zadd->pair_count * sizeof *guarded.list),
        .names = {.first = zset_add_pair_members(call, zadd, 0),
                  .step = 2,
                  .slots = memory_allocate_zeroed(slot_count * sizeof *guarded.names.slots),
                  .mask = slot_count - 1},
    };
    zadd->guarded = &guarded;
    bool is_done =
        ((guarded.list != NULL && guarded.names.slots != NULL) || call_out_of_memory(call)) &&
        zset_add_plan_guarded(call, writing, zadd, &guarded) &&
        zset_add_apply_all(call, writing, zadd, &guarded);
    memory_free(guarded.list);
    memory_free(guarded.names.slots);
    zadd->guarded = NULL;
    return is_done;
}

static bool zset_add_apply_pairs(const struct call *call, struct writing *writing,
                                 struct zadd *zadd) {
    if (guarding_applies(writing)) {
        return zset_add_apply_guarded(call, writing, zadd);
    }
    return zadd->pair_count == 1 ? zset_add_apply_pair(call, writing, zadd, 0, call->ahead)
                                 : zset_add_apply_all(call, writing, zadd, NULL);
}

static void zset_add_run_on_board(const struct call *call, struct writing *writing,
                                  struct zadd *zadd) {
    uint64_t on_stack[PAIRS_ON_STACK];
    zadd->ordinals = on_stack;
    if (zadd->pair_count > PAIRS_ON_STACK) {
        zadd->ordinals = memory_allocate(zadd->pair_count * sizeof(zadd->ordinals[0]));
        if (zadd->ordinals == NULL) {
            call_out_of_memory(call);
            return;
        }
    }
    if (zset_add_read_pairs(call, writing, zadd) && zset_add_apply_pairs(call, writing, zadd)) {
        /* An increment replies with what is shown: the sum of all periods. */
        uint64_t key;
        const struct board *board = writing_shown(writing);
        if (board != writing->board && zadd->is_increment && !zadd->is_skipped &&
            board_find(board, zset_add_pair_member(call, zadd, 0), &key)) {
            zadd->result = layout_ordinal(board_layout(board), key, 0);
        }
        if (!zadd->is_increment) {
            uint32_t updated_count = zadd->is_change_counted ? zadd->updated_count : 0;
            reply_integer(call->reply, (int64_t)zadd->added_count + updated_count);
        } else if (zadd->is_skipped) {
            reply_null(call->reply);
        } else {
            zset_reply_score(call, zset_lead(writing->board), zadd->result);
        }
    }
    if (zadd->ordinals != on_stack) {
        memory_free(zadd->ordinals);
    }
    zadd->ordinals = NULL;
}

/* The range of scores depends on the board's layout, so a new board is created first. */
static void zset_add_run(const struct call *call, struct zadd *zadd) {
    struct writing writing;
    if (writing_begin(call, call_arg(call, 1), &writing)) {
        writing.is_only = zadd->pair_count == 1;
        if (!ticketing_refuses(&writing)) {
            zset_add_run_on_board(call, &writing, zadd);
        }
        writing_end(&writing, zadd->is_increment ? "zincr" : "zadd");
    }
}

static void zadd_run(struct call *call) {
    struct zadd zadd = {.first_pair = 2};
    struct bytes word = call_arg(call, 2);
    /* Options come before the first score, and usually there is none. */
    bool has_options = word.size > 0 && word.at[0] >= 'A';
    if ((!has_options || syntax_read_options(call, &zadd.first_pair, &zadd)) &&
        zset_add_check_options(call, &zadd)) {
        zset_add_run(call, &zadd);
    }
}

const struct command command_zadd = {
    .name = "ZADD",
    .syntax = "key condition=[NX | XX] comparison=[GT | LT] change=[CH] increment=[INCR] "
              "score_member=(score:double member)...",
    .bindings = zadd_bindings,
    .reply = "i|INCR=n?",
    .summary = "Set the scores of members, adding those that are not on the board",
    .complexity = "O(log n) for each pair, n being the members of the board",
    .flags = COMMAND_WRITE | COMMAND_DENYOOM | COMMAND_FAST | COMMAND_OWN_MEMBER,
    .member_arg = 3,
    .member_step = 2,
    .score_arg = 2,
    .cost = COST(COMMAND_BY_RESULTS, cost_count_scores, 1200, 1, "pair",
                 "several commands of a thousand each"),
    .run = zadd_run,
};

static void zincrby_run(struct call *call) {
    struct zadd zadd = {
        .is_increment = true, .is_sum_wanted = true, .first_pair = 2, .pair_count = 1};
    zset_add_run(call, &zadd);
}

const struct command command_zincrby = {
    .name = "ZINCRBY",
    .syntax = "key increment:double member",
    .reply = "n",
    .summary = "Add to a member's score, which begins at 0, and return the sum",
    .complexity = "O(log n) in the members of the board",
    .flags = COMMAND_WRITE | COMMAND_DENYOOM | COMMAND_FAST | COMMAND_OWN_MEMBER,
    .key_access = "RW access update",
    .member_arg = 3,
    .run = zincrby_run,
};
