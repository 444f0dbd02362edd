/* LB.ADD: writes of whole tuples, of single fields, of times, and of keys packed by clients.
 *
 *     LB.ADD board BEST AT 1571819021259 TAG country DE WITHRANK 200 1 zoe 100 * kim
 *       options -> the board, and from it the number of values per member -> a plan for each -> lb_add_results_prepare
 *
 * The command is all or nothing. A single member without tags and hash needs no undo, and is put as soon as
 * its step is known. */
#include <stdio.h>

#include "server/commands/lb/lb_add.h"
#include "server/commands/lb/lb_record.h"
#include "server/dispatch/syntax.h"
#include "skiplist/keyspace/registry.h"
#include "skiplist/lookup.h"

enum {
    FIRST_OPTION = 2,
    RESULTS_ON_STACK = 16, /* so many need no heap memory */
};

/* ---- parsing ---- */

static bool lb_add_read_at(const struct call *call, uint32_t index, void *target) {
    int64_t at_ms;
    return call_parse_integer(call, call_arg(call, index), &at_ms) &&
           (!__builtin_mul_overflow(at_ms, 1000, &((struct lb_add *)target)->at_us) ||
            call_refuse_integer(call, call_arg(call, index)));
}

static bool lb_add_check_once(const struct call *call, uint32_t index, void *target) {
    (void)target;
    return once_is_id(call_arg(call, index)) ||
           call_refuse_reason(call, "ONCE takes an id of 1 to 64 bytes");
}

static bool lb_add_read_hset(const struct call *call, uint32_t index, void *target) {
    return lb_data_hset_read(call, index, &((struct lb_add *)target)->hset);
}

const struct lb_add lb_add_plain = {.operation = LB_ADD_UNSAID};

const struct binding lb_add_bindings[] = {
    {BIND("NX", struct lb_add, is_new_only)},
    {BIND("XX", struct lb_add, is_existing_only)},
    {BIND("NOCREATE", struct lb_add, is_old_board)},
    {BIND("operator", struct lb_add, operation)},
    {BIND("time", struct lb_add, time)},
    {"AT", .read = lb_add_read_at},
    {BIND("TAG", struct lb_add, tags)},
    {BIND("TICKET", struct lb_add, tickets)},
    {BIND("ONCE", struct lb_add, once_id), .repeat = BINDING_ONCE, .read = lb_add_check_once},
    {BIND("WITHREPEAT", struct lb_add, with_repeat)},
    {"HSET", .repeat = BINDING_ONCE, .read = lb_add_read_hset},
    {BIND("WITHRANK", struct lb_add, with_rank)},
    {BIND("WITHHELD", struct lb_add, with_held)},
    {BIND("STRINGS", struct lb_add, with_strings)},
    {0},
};

/* Options come before the first value, which begins with no letter. Usually there is none. */
bool lb_add_read_options(const struct call *call, struct lb_add *add) {
    struct bytes word = call_arg(call, add->first);
    if (word.size == 0 || word.at[0] < 'A') {
        return true;
    }
    if (!syntax_read_options(call, &add->first, add)) {
        return false;
    }
    if (add->first < call->request->count) {
        if (call_arg_is(call, add->first, "PACKED")) {
            return call_refuse_reason(call, "PACKED must be the only option");
        }
        if (syntax_is_option(call, add->first)) { /* without its values */
            return call_syntax_error(call);
        }
    }
    if (add->with_repeat && add->once_id.at == NULL) {
        return call_refuse_reason(call, "WITHREPEAT needs ONCE");
    }
    if (add->tickets.count > TICKETING_MAX) {
        return call_refuse_reason(call, "TICKET may be given %d times at the most",
                                  (int)TICKETING_MAX);
    }
    if (add->with_rank && add->with_held) {
        return call_refuse_reason(call, "WITHRANK and WITHHELD exclude each other");
    }
    return !add->is_new_only || !add->is_existing_only || call_syntax_error(call);
}

bool lb_add_check_board(const struct call *call, const struct lb_add *add, struct bytes name) {
    return !add->is_old_board || call_find_key(call, name) != NULL || call_refuse_no_key(call);
}

static bool lb_add_read(const struct call *call, struct lb_add *add) {
    bool is_packed = call_arg_is(call, FIRST_OPTION, "PACKED");
    add->first = is_packed ? FIRST_OPTION + 1 : FIRST_OPTION;
    add->operation = is_packed ? LB_ADD_PACKED : LB_ADD_UNSAID;
    return is_packed || lb_add_read_options(call, add);
}

/* The layout determines the number of values per member. false: the argument count does not fit. */
static bool lb_add_find_members(const struct request *request, const struct layout *layout,
                                struct lb_add *add) {
    uint32_t arg_count = request->count - add->first;
    add->value_count = add->operation == LB_ADD_PACKED ? 1 : layout->field_count;
    add->member_count = arg_count / (add->value_count + 1);
    return arg_count > 0 && arg_count % (add->value_count + 1) == 0;
}

/* Do the arguments fit the board, and does who has counted its values mean such a board? Otherwise names of members
 * that are numbers could be taken for values. */
static bool lb_add_fits(const struct call *call, const struct layout *layout, struct lb_add *add) {
    uint32_t meant = call->session->value_count;
    return lb_add_find_members(call->request, layout, add) &&
           (meant == 0 || meant == add->value_count);
}

/* Either a word that is no number is in a value's place, or something is missing at the end, or too much where one member
 * alone is written. */
static void lb_add_refuse_count(const struct call *call, const struct layout *layout,
                                const struct lb_add *add, bool is_only) {
    char takes[LAYOUT_ERROR_MAX];
    struct bytes last = call_arg(call, call->request->count - 1);
    uint32_t place = 0;
    if (add->operation == LB_ADD_PACKED) {
        (void)call_refuse_reason(call, "member expected after '%s': each follows its packed key",
                                 bytes_show(last).text);
        return;
    }
    size_t size =
        (size_t)snprintf(takes, sizeof takes, "this board takes %u value%s before each member:",
                         (unsigned)layout->field_count, layout->field_count == 1 ? "" : "s");
    for (unsigned i = 0; i < layout->field_count && size < sizeof takes; i++) {
        size += (size_t)snprintf(takes + size, sizeof takes - size, " %s", layout->fields[i].name);
    }
    for (uint32_t i = add->first; i < call->request->count; i++) {
        const struct layout_field *field = &layout->fields[place];
        struct bytes word = call_arg(call, i);
        struct decimal value;
        word = bytes_behind(word, word.size > 0 && word.at[0] == '=');
        if (place < layout->field_count && !bytes_is(word, "*") &&
            layout_field_parse(field, word, &value) == DECIMAL_NOT_A_NUMBER) {
            (void)call_refuse_value(call, call_arg(call, i), field->name, takes);
            return;
        }
        place = place < layout->field_count ? place + 1 : 0;
    }
    uint32_t behind = add->first + layout->field_count + 1;
    if (is_only && behind < call->request->count) {
        (void)call_refuse_word(call, call_arg(call, behind),
                               "is one word too many: one member is written at a time", NULL);
        return;
    }
    (void)call_refuse_reason(call, "%s expected after '%s': %s",
                             place < layout->field_count ? layout->fields[place].name : "member",
                             bytes_show(last).text, takes);
}

bool lb_add_check_only(const struct call *call, const struct layout *layout, struct lb_add *add) {
    bool is_one = lb_add_find_members(call->request, layout, add) && add->member_count == 1;
    if (!is_one) {
        lb_add_refuse_count(call, layout, add, true);
    }
    return is_one;
}

bool lb_add_check_at(const struct call *call, const struct layout *layout,
                     const struct lb_add *add) {
    uint64_t stamped;
    bool has_time = add->time == LB_ADD_TIME_GIVEN || add->operation == LB_ADD_PACKED;
    if ((has_time || add->time == LB_ADD_TIME_KEPT) && call->session->player != NULL) {
        return call_refuse(call,
                           "NOPERM players say no time (AT, KEEPTIME, or in a PACKED key): it "
                           "is taken when the result comes");
    }
    if (add->time != LB_ADD_TIME_GIVEN || add->operation == LB_ADD_PACKED) {
        return true;
    }
    if (layout->time.bits == 0) {
        return call_refuse(call, "ERR AT is not allowed: this layout has no TIME");
    }
    return layout_stamp(layout, 0, add->at_us, &stamped) == LAYOUT_OK ||
           call_refuse_time(call, layout, add->at_us);
}

/* ---- planning a member ---- */

/* Apply one value, "v", "=v" or "*", to a field of *key. false: the error was replied. */
static bool lb_add_set_value(const struct call *call, const struct layout *layout,
                             const struct lb_add *add, unsigned field_index, struct bytes text,
                             bool is_skipped, uint64_t *key) {
    const struct layout_field *field = &layout->fields[field_index];
    bool is_set = text.size > 0 && text.at[0] == '=';
    uint64_t ordinal;
    if (text.size == 1 && text.at[0] == '*') {
        return true;
    }
    if (add->operation == LB_ADD_INCREMENT && !is_set) {
        uint64_t old = layout_ordinal(layout, *key, field_index);
        int64_t time_us = add->time == LB_ADD_TIME_GIVEN ? add->at_us : call->now_us;
        struct decimal delta;
        if (!lb_parse_decimal(call, field, text, &delta)) {
            return false;
        }
        if (is_skipped) {
            return true;
        }
        if (layout_field_add_at(field, old, delta, time_us, call->now_us, &ordinal) != LAYOUT_OK) {
            return zset_refuse_sum(call, field, old, delta, time_us);
        }
    } else if (!lb_parse_value(call, field, bytes_behind(text, is_set), &ordinal)) {
        return false;
    }
    *key = layout_with_ordinal(layout, *key, field_index, ordinal);
    return true;
}

/* Apply a member's values to *key. They must be valid even if the member is skipped. read: of these values, on the board
 * before; or NULL. */
static bool lb_add_set_values(const struct call *call, const struct layout *layout,
                              const struct lb_add *add, const struct bytes *values, bool is_skipped,
                              struct lb_add_read *read, uint64_t *key) {
    if (read != NULL && read->layout == layout) {
        *key = read->key | (*key & layout->time.mask);
        return true;
    }
    if (add->operation == LB_ADD_PACKED) {
        if (layout_key_parse(layout, values[0], key)) {
            return true;
        }
        char error[LAYOUT_ERROR_MAX];
        layout_explain_key(layout, values[0], error);
        return call_refuse_format(call, "ERR %s", error);
    }
    bool is_any = add->operation != LB_ADD_INCREMENT;
    for (unsigned i = 0; i < layout->field_count; i++) {
        if (!lb_add_set_value(call, layout, add, i, values[i], is_skipped, key)) {
            return false;
        }
        is_any = is_any && !bytes_is(values[i], "*");
    }
    if (read != NULL && is_any) {
        *read = (struct lb_add_read){layout, layout_without_time(layout, *key)};
    }
    return true;
}

/* Set the time of the step's key, and determine whether it is written. On entry the key has the
 * member's previous time. */
static bool lb_add_stamp(const struct call *call, const struct layout *layout,
                         const struct lb_add *add, const struct lb_add_step *before,
                         struct lb_add_step *step) {
    bool is_changed = !before->is_there || layout_without_time(layout, step->key) !=
                                               layout_without_time(layout, before->key);
    /* DECAY: a result that comes so late that nothing is left of it. */
    bool is_void = add->operation == LB_ADD_INCREMENT && layout_field_decays(&layout->fields[0]) &&
                   add->time == LB_ADD_TIME_GIVEN;
    bool is_kept = add->time == ADD_TIME_OF_CHANGE || is_void
                       ? !is_changed
                       : add->time == LB_ADD_TIME_KEPT && before->is_there;
    int64_t time_us = add->time == LB_ADD_TIME_GIVEN ? add->at_us : call->now_us;
    if (add->operation != LB_ADD_PACKED && !is_kept &&
        layout_stamp(layout, step->key, time_us, &step->key) != LAYOUT_OK) {
        return call_refuse_time(call, layout, time_us);
    }
    step->is_there = true;
    step->has_new_fields = is_changed;
    step->is_written =
        !before->is_there || step->key != before->key || add->time == LB_ADD_TIME_NOW;
    return true;
}

/* A result that was held meets a later one: of each field the last counts that was changed. */
static uint64_t lb_add_merge(const struct layout *layout, uint64_t before, uint64_t later,
                             uint64_t key) {
    for (unsigned i = 0; i < layout->field_count; i++) {
        uint64_t ordinal = layout_ordinal(layout, later, i);
        if (ordinal != layout_ordinal(layout, before, i)) {
            key = layout_with_ordinal(layout, key, i, ordinal);
        }
    }
    return key;
}

static bool lb_add_plan(const struct writing *writing, const struct lb_add *add,
                        const struct bytes *values, const struct lb_add_step *before,
                        struct lb_add_read *read, struct lb_add_step *step) {
    const struct call *call = writing->call;
    const struct board_options *options = writing->options;
    const struct layout *layout = &options->layout;
    bool is_skipped = before->is_there ? add->is_new_only : add->is_existing_only;
    *step = *before;
    step->is_written = false;
    uint64_t key = before->is_there ? before->key : layout_zero_key(layout);
    if (!writing_check_member(writing, values[add->value_count]) ||
        !lb_add_set_values(call, layout, add, values, is_skipped, read, &key)) {
        return false;
    }
    /* What is there is as good as the new key or better (KEEP BEST, BEST). */
    bool stays =
        before->is_there &&
        ((add->operation != LB_ADD_INCREMENT && !board_options_take(options, before->key, key)) ||
         (add->operation == LB_ADD_BEST &&
          layout_without_time(layout, key) <= layout_without_time(layout, before->key)));
    int64_t before_us;
    bool is_late = writing->is_approval && before->is_there &&
                   layout_time_us(layout, before->key, &before_us) && before_us > call->now_us;
    bool is_sum = add->operation == LB_ADD_INCREMENT;
    bool is_merged = is_late && (is_sum || (add->operation != LB_ADD_BEST && !options->keeps_best));
    if (is_merged && !is_sum) {
        key = lb_add_merge(layout, add->held_before, before->key, key);
        stays |= layout_without_time(layout, key) == layout_without_time(layout, before->key);
    }
    /* With STALE, TOUCH says that the member is there, whatever its results are. */
    bool may_touch = !options->keeps_best || options->stale_ms > 0;
    if (is_skipped || (stays && (!may_touch || is_late || add->time != LB_ADD_TIME_NOW))) {
        return true;
    }
    step->key = stays ? before->key : key;
    if (!lb_add_stamp(call, layout, add, before, step)) {
        return false;
    }
    if (is_merged) { /* what the member has was reached by the later one */
        step->key = layout_without_time(layout, step->key) |
                    layout_later_time(layout, step->key, before->key);
    }
    return (!step->is_written || writing_check_put(writing, values[add->value_count], step->key));
}

/* ---- putting ---- */

static struct lb_add_step lb_add_step_of(const struct writing *writing, const struct lb_add *add,
                                         const struct board_member *member) {
    const struct board_member *shown = member;
    struct board_member whole;
    const struct board *board = writing_shown(writing);
    if (add->with_rank && writing->whole != NULL) {
        board_look_up(board, member->name, lookup_on(writing->call->ahead, board), &whole);
        shown = &whole;
    }
    bool has_rank = add->with_rank && shown->is_there;
    return (struct lb_add_step){
        .key = member->key,
        .is_there = member->is_there,
        .was_there = member->is_there,
        .had_rank = has_rank,
        .previous_rank = has_rank ? board_rank_of(board, shown) : 0,
    };
}

/* ---- results ---- */

static inline struct bytes lb_add_result_name(const struct lb_results *results, uint32_t at) {
    return lb_add_name(results->call->request, results->add, results->list[at].index);
}

static inline bool lb_add_begins_board(const struct lb_results *results, uint32_t at) {
    return at == 0 || results->list[at].writing != results->list[at - 1].writing;
}

/* ---- groups: some results on one board, whose members are looked up together ---- */

struct results_group {
    uint32_t begin;
    unsigned count;
    const struct board *board;
    struct lookup ahead[LOOKUP_GROUP];
};

/* The group that begins there. will_put: the members will get the keys of their steps. */
static void lb_add_begin_group(const struct lb_results *results, uint32_t begin, bool will_put,
                               struct results_group *group) {
    const struct lb_add *add = results->add;
    const struct lb_result *first = &results->list[begin];
    uint64_t keys[LOOKUP_GROUP];
    group->begin = begin;
    group->count = 1;
    group->board = first->writing->board;
    if (begin + 1 == results->count || lb_add_begins_board(results, begin + 1)) {
        return;
    }
    while (begin + group->count < results->count && group->count < LOOKUP_GROUP &&
           !lb_add_begins_board(results, begin + group->count)) {
        group->count++;
    }
    const struct bytes *names =
        &lb_add_values(results->call->request, add, first->index)[add->value_count];
    if (!will_put) {
        lookup_members(group->board, names, add->value_count + 1, group->count, group->ahead);
        return;
    }
    for (unsigned i = 0; i < group->count; i++) {
        keys[i] = first[i].step.key;
    }
    lookup_members_to_put(group->board, names, add->value_count + 1, group->count, keys,
                          group->ahead);
}

static void lb_add_look_up(const struct lb_results *results, const struct results_group *group,
                           unsigned index, struct board_member *member) {
    board_look_up(group->board, lb_add_result_name(results, group->begin + index),
                  group->count > 1 ? &group->ahead[index]
                                   : lookup_on(results->call->ahead, group->board),
                  member);
}

/* ---- planning ---- */

struct lb_add_words {
    const struct lb_results *results;
    const struct lb_result *result;
};

/* The words of a result that is held, as they will be read again when it is approved. */
static void lb_add_put_words(const void *context, struct held_words *words) {
    const struct lb_add_words *of = context;
    const struct call *call = of->results->call;
    const struct lb_add *add = of->results->add;
    const struct bytes *values = lb_add_values(call->request, add, of->result->index);
    static const char *const operations[] = {
        [LB_ADD_UNSAID] = NULL, [LB_ADD_SET] = "SET",       [LB_ADD_INCREMENT] = "INCR",
        [LB_ADD_BEST] = "BEST", [LB_ADD_PACKED] = "PACKED",
    };
    static const char *const times[] = {
        [ADD_TIME_OF_CHANGE] = NULL,
        [LB_ADD_TIME_GIVEN] = "AT",
        [LB_ADD_TIME_NOW] = "TOUCH",
        [LB_ADD_TIME_KEPT] = "KEEPTIME",
    };
    /* NX and XX were true when it came. */
    const char *const options[] = {operations[add->operation], times[add->time]};
    char number[BYTES_INTEGER_TEXT_MAX];
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        if (options[i] != NULL) {
            guarding_held_add_word(words, bytes_from_text(options[i]));
        }
    }
    if (add->time == LB_ADD_TIME_GIVEN && add->operation != LB_ADD_PACKED) {
        guarding_held_add_word(words,
                               (struct bytes){number, bytes_print_i64(number, add->at_us / 1000)});
    }
    struct option_uses left = add->tags;
    uint32_t at;
    while (syntax_take_use(call, &left, &at) != NULL) {
        for (uint32_t i = 0; i < 3; i++) {
            guarding_held_add_word(words, call_arg(call, at + i));
        }
    }
    if (lb_data_hset_is_asked(&add->hset)) {
        guarding_held_add_word(words, BYTES("HSET"));
        guarding_held_add_word(words, add->hset.pattern);
        guarding_held_add_word(words,
                               (struct bytes){number, bytes_print_i64(number, add->hset.count)});
        for (uint32_t i = 0; i < 2 * add->hset.count; i++) {
            guarding_held_add_word(words, add->hset.args[i]);
        }
    }
    for (uint32_t i = 0; i < add->value_count; i++) {
        guarding_held_add_word(words, values[i]);
    }
}

/* LIMITS and HOLD. is_again: the member was named before. */
static bool lb_add_guard(struct lb_results *results, struct lb_result *result, struct bytes member,
                         const struct lb_add_step *before, bool is_again) {
    const struct lb_add *add = results->add;
    const struct lb_add_words words = {results, result};
    result->guarded = (struct guarded){.held = 0};
    if (is_again) {
        return guarding_refuse_again(results->call, member);
    }
    if (before->is_there ? add->is_new_only : add->is_existing_only) {
        return true;
    }
    const struct guarding_result guarding = {.member = member,
                                             .had_result = before->is_there,
                                             .is_written = result->step.is_written,
                                             .before = before->key,
                                             .after = result->step.key,
                                             .put_words = lb_add_put_words,
                                             .context = &words};
    if (!guarding_plan(result->writing, &guarding, &results->guards, &result->guarded)) {
        return false;
    }
    if (result->guarded.held != 0) {
        result->step = *before;
        result->step.is_written = false;
    }
    return true;
}

static bool lb_add_plan_one(struct lb_results *results, uint32_t at,
                            const struct board_member *member) {
    const struct lb_add *add = results->add;
    struct lb_result *result = &results->list[at];
    /* Of the member's latest step, or the free one for it. */
    uint32_t *slot =
        results->names.slots != NULL ? writing_names_find(&results->names, member) : NULL;
    struct lb_add_step before = slot != NULL && *slot != 0
                                    ? results->list[*slot - 1].step
                                    : lb_add_step_of(result->writing, add, member);
    if (!lb_add_plan(result->writing, add,
                     lb_add_values(results->call->request, add, result->index), &before,
                     result->index == 0 ? &results->read : NULL, &result->step)) {
        return false;
    }
    if (guarding_applies(result->writing) &&
        !lb_add_guard(results, result, member->name, &before, slot != NULL && *slot != 0)) {
        return false;
    }
    /* HSET needs the right to the hash, whatever becomes of the result. */
    if (lb_data_hset_is_asked(&add->hset) &&
        !lb_data_hset_begin(results->call, &add->hset, writing_shown_key(result->writing),
                            member->name, NULL)) {
        return false;
    }
    result->is_new = !before.is_there && result->step.is_there;
    if (slot != NULL) {
        *slot = at + 1;
    }
    return true;
}

/* The tags of the command, as those of a board. false: the error was replied. */
static bool lb_add_read_tags(const struct lb_results *results, const struct writing *writing,
                             struct tag_values *tags) {
    struct board *board = writing_shown(writing);
    struct option_uses left = results->add->tags;
    uint32_t at;
    tags->mask = 0;
    while (syntax_take_use(results->call, &left, &at) != NULL) {
        if (!lb_tag_values_read(results->call, &board_layout(board)->tags,
                                call_arg(results->call, at + 1), call_arg(results->call, at + 2),
                                tags)) {
            return false;
        }
    }
    return lb_tag_values_check_room(results->call, board, tags);
}

static bool lb_add_plan_all(struct lb_results *results) {
    struct results_group group;
    struct tag_values tags;
    for (uint32_t begin = 0; begin < results->count; begin += group.count) {
        results->failed = begin;
        if (lb_add_begins_board(results, begin)) {
            results->guards = (struct guards){.count = 0};
        }
        if (results->add->tags.count > 0 && lb_add_begins_board(results, begin) &&
            !lb_add_read_tags(results, results->list[begin].writing, &tags)) {
            return false;
        }
        lb_add_begin_group(results, begin, false, &group);
        for (unsigned i = 0; i < group.count; i++) {
            struct board_member member;
            results->failed = begin + i;
            /* Of a group of one it is kept: that is put as it was found. */
            struct board_member *found = &member;
            if (group.count == 1) {
                found = &results->list[begin].member;
            }
            lb_add_look_up(results, &group, i, found);
            if (!lb_add_plan_one(results, begin + i, found)) {
                return false;
            }
        }
    }
    return true;
}

/* ---- what may fail behind the plan ---- */

/* Find or make the hashes of the members whose fields change. */
static bool lb_add_begin_hashes(struct lb_results *results, size_t *size) {
    const struct lb_hset *hset = &results->add->hset;
    for (uint32_t i = 0; lb_data_hset_is_asked(hset) && i < results->count; i++) {
        struct lb_result *result = &results->list[i];
        struct bytes name = lb_add_result_name(results, i);
        /* The hash of a period is of the period's results, whatever the board shows. */
        if (!result->step.is_written || !result->step.has_new_fields ||
            (!lb_data_hset_names_period(hset) &&
             !writing_changes_shown(result->writing, name, result->step.key))) {
            continue;
        }
        if (!lb_data_hset_begin(results->call, hset, writing_shown_key(result->writing), name,
                                &result->place)) {
            results->failed = lb_data_hset_names_board(hset) ? i : results->count;
            return false;
        }
        *size += lb_data_keys_growth_size(hset, &result->place);
    }
    return true;
}

/* TICKETS: a result of one member, on one board or on many. */
__attribute__((noinline)) static bool lb_add_check_tickets(struct lb_results *results) {
    const struct call *call = results->call;
    struct option_uses left = results->add->tickets;
    struct bytes tickets[TICKETING_MAX];
    struct ticketing_board boards[TICKETING_MAX + 1];
    uint32_t places[TICKETING_MAX + 1];
    uint32_t count = 0;
    uint32_t ticket_count = 0;
    uint32_t failed;
    uint32_t at;
    for (uint32_t i = 0; i < results->count && count <= TICKETING_MAX; i++) {
        const struct writing *writing = results->list[i].writing;
        if (!ticketing_applies(writing, left.count > 0)) {
            continue;
        }
        if (count > 0 && !lb_add_begins_board(results, i)) {
            return call_refuse(call, "ERR a board with TICKETS takes one result at a time");
        }
        places[count] = i;
        boards[count++] = (struct ticketing_board){
            .writing = writing,
            .name = results->whole.at != NULL ? results->whole
                                              : registry_name(writing_shown_key(writing))};
    }
    if (count == 0) {
        return true;
    }
    while (syntax_take_use(call, &left, &at) != NULL) {
        tickets[ticket_count++] = call_arg(call, at + 1);
    }
    bool is_right = ticketing_check(call, tickets, ticket_count, boards, count,
                                    lb_add_result_name(results, 0), &results->ticketing, &failed);
    results->failed = failed < count ? places[failed] : results->count;
    return is_right;
}

bool lb_add_results_prepare(struct lb_results *results) {
    struct once *once = results->add->once;
    struct guards guards = {.count = 0};
    uint32_t count = 0;
    bool has_tickets = false;
    for (uint32_t i = 0; i < results->count && !has_tickets; i++) {
        has_tickets = ticketing_applies(results->list[i].writing, results->add->tickets.count > 0);
    }
    if ((has_tickets && !lb_add_check_tickets(results)) || !lb_add_plan_all(results)) {
        return false;
    }
    size_t size = results->more + ticketing_growth_size(&results->ticketing);
    /* LIMIT: are there more new members than places? */
    for (uint32_t i = 0; i < results->count; i++) {
        const struct writing *writing = results->list[i].writing;
        count = lb_add_begins_board(results, i) ? 0 : count;
        count += results->list[i].is_new;
        if (count > writing_room(writing)) {
            results->failed = i;
            writing_refuse_full(results->call, writing->options);
            return false;
        }
    }
    if (!lb_add_begin_hashes(results, &size)) {
        return false;
    }
    results->failed = results->count;
    if (once != NULL && !once_put(once)) {
        return false;
    }
    for (uint32_t i = 0; i < results->count; i++) {
        const struct writing *writing = results->list[i].writing;
        guards.names_size += lb_add_result_name(results, i).size;
        guards.held_count += results->list[i].guarded.held != 0;
        guards.count++;
        if (i + 1 == results->count || lb_add_begins_board(results, i + 1)) {
            size += writing_growth_size(writing, guards.count, guards.names_size,
                                        results->add->tags.count > 0);
            size += guarding_applies(writing) ? guarding_growth_size(writing, &guards) : 0;
            guards = (struct guards){.count = 0};
        }
    }
    results->is_reserved = memory_reserve_begin(size);
    if (!results->is_reserved) {
        if (once != NULL) {
            once_take_back(once);
        }
        return call_out_of_memory(results->call);
    }
    for (uint32_t i = 0; i < results->count; i++) {
        results->list[i].writing->is_reserved = true;
    }
    return true;
}

/* ---- putting ---- */

static void lb_add_put_members(struct lb_results *results) {
    struct results_group group;
    bool is_one_each = results->list[0].writing != results->list[results->count - 1].writing ||
                       results->count == 1;
    for (uint32_t begin = 0; begin < results->count; begin += group.count) {
        lb_add_begin_group(results, begin, true, &group);
        for (unsigned i = 0; i < group.count; i++) {
            struct lb_result *result = &results->list[begin + i];
            if (result->step.is_written) {
                /* Where a hash was opened, something may have expired, and have changed the board. */
                if (!is_one_each || lb_data_hset_is_asked(&results->add->hset)) {
                    lb_add_look_up(results, &group, i, &result->member);
                }
                enum writing_status status = writing_put(result->writing, &result->member,
                                                         result->step.key, true); /* as planned */
                CHECK(status != WRITING_FAILED);
                result->is_put = status == WRITING_PUT;
                result->step.is_written = result->is_put && !result->writing->is_as_before;
            }
        }
    }
    for (uint32_t i = 0; i < results->count; i++) {
        struct writing *writing = results->list[i].writing;
        if (guarding_applies(writing)) {
            const struct lb_add_words words = {results, &results->list[i]};
            const struct guarding_result guarding = {.member = lb_add_result_name(results, i),
                                                     .put_words = lb_add_put_words,
                                                     .context = &words};
            guarding_put(writing, &guarding, &results->list[i].guarded);
        }
        if (lb_add_begins_board(results, i)) {
            writing_settle(writing);
        }
    }
}

/* Those that NX leaves alone keep their tags; those that XX or CAP keeps off the board have none. */
static void lb_add_put_tags(struct lb_results *results) {
    struct results_group group;
    struct tag_values tags;
    for (uint32_t begin = 0; begin < results->count; begin += group.count) {
        if (lb_add_begins_board(results, begin)) {
            bool is_read = lb_add_read_tags(results, results->list[begin].writing, &tags);
            CHECK(is_read);
        }
        lb_add_begin_group(results, begin, false, &group);
        for (unsigned i = 0; i < group.count; i++) {
            const struct lb_result *result = &results->list[begin + i];
            struct board_member member;
            lb_add_look_up(results, &group, i, &member);
            if (member.is_there && result->guarded.held == 0 &&
                !(results->add->is_new_only && result->step.was_there)) {
                writing_tag(result->writing, &member, &tags);
            }
        }
    }
}

void lb_add_results_put(struct lb_results *results) {
    lb_add_put_members(results);
    if (results->ticketing.key != NULL) {
        ticketing_put(results->call, &results->ticketing);
    }
    if (results->add->tags.count > 0) {
        lb_add_put_tags(results);
    }
    /* Fields are set of those who are on the board; members who have come and gone do not count
     * as added. */
    const struct lb_hset *hset = &results->add->hset;
    bool is_one_hash = results->list[0].writing != results->list[results->count - 1].writing &&
                       !lb_data_hset_names_board(hset);
    bool is_set = false;
    for (uint32_t i = 0; i < results->count; i++) {
        struct lb_result *result = &results->list[i];
        uint64_t key;
        /* CAP may have removed it since. */
        bool has_stayed = result->is_put && (!result->writing->has_lost ||
                                             board_find(result->writing->board,
                                                        lb_add_result_name(results, i), &key));
        if (has_stayed && result->place.key != NULL && !(is_one_hash && is_set)) {
            lb_data_keys_put(results->call, hset, &result->place);
            is_set = true;
        }
        result->step.is_written = result->step.is_written && (has_stayed || result->step.was_there);
    }
}

void lb_add_results_end(struct lb_results *results) {
    if (results->is_reserved) {
        memory_reserve_end();
    }
    if (results->ticketing.key != NULL) {
        ticketing_end(results->call, &results->ticketing);
    }
    for (uint32_t i = 0; i < results->count && lb_data_hset_is_asked(&results->add->hset); i++) {
        lb_data_keys_end(results->call, &results->list[i].place);
    }
}

/* ---- replies ---- */

/* Reply [record, previous rank | nil] of a member as it is now, and which of these follow: 1 or 0 for whether it was
 * written, and for whether the result came before. step: as in lb_add_answer_result. */
static void lb_add_answer_member(const struct lb_writer *writer, const struct lb_add *add,
                                 const struct board_member *member, const struct lb_add_step *step,
                                 bool with_written) {
    struct reply *reply = writer->reply;
    size_t size = 4 * (size_t)REPLY_PUT_HEADER_ROOM + writer->room + member->name.size;
    char *begin = reply->is_silent ? NULL : buffer_reserve(reply->out, size);
    if (begin == NULL) {
        return;
    }
    bool has_previous = step != NULL ? step->had_rank : member->is_there;
    uint32_t previous_rank = has_previous && step != NULL ? step->previous_rank : 0;
    char *out = reply_put_header(begin, '*', 2U + with_written + add->with_repeat);
    if (member->is_there) {
        uint32_t rank = board_rank_of(writer->board, member);
        previous_rank = step != NULL ? previous_rank : rank;
        out = lb_record_put_at(writer, out, member->name, member->key, rank);
    } else {
        out = reply_put_nothing(out, '*', reply->version);
    }
    out = has_previous ? reply_put_header(out, ':', previous_rank)
                       : reply_put_nothing(out, '$', reply->version);
    if (with_written) {
        out = reply_put_header(out, ':', step != NULL && step->is_written);
    }
    if (add->with_repeat) {
        out = reply_put_header(out, ':', step == NULL);
    }
    buffer_commit(reply->out, (size_t)(out - begin));
}

void lb_add_answer_result(const struct lb_writer *writer, const struct lb_add *add,
                          const struct lb_add_step *step) {
    const struct call *call = writer->call;
    const struct lookup *ahead = lookup_on(call->ahead, writer->board);
    struct board_member member;
    struct lookup after;
    if (ahead != NULL && step != NULL && step->is_written) {
        after = lookup_after_put(ahead);
        ahead = &after;
    }
    board_look_up(writer->board, lb_add_name(call->request, add, 0), ahead, &member);
    lb_add_answer_member(writer, add, &member, step, true);
}

/* Ranks as they are after the whole command. list: NULL, if the result came before (ONCE). */
static void lb_add_answer_ranks(const struct call *call, const struct board *board,
                                const struct lb_add *add, const struct lb_result *list) {
    struct lb_writer writer;
    struct lookup ahead[LOOKUP_GROUP];
    lb_record_begin(call, board, (struct lb_shape){.with_strings = add->with_strings}, &writer);
    reply_array(call->reply, add->member_count);
    if (add->member_count == 1) {
        const struct lookup *found = lookup_on(call->ahead, board);
        if (found != NULL && list != NULL && list[0].step.is_written) {
            ahead[0] = lookup_after_put(found);
            found = &ahead[0];
        }
        struct board_member member;
        board_look_up(board, lb_add_name(call->request, add, 0), found, &member);
        lb_add_answer_member(&writer, add, &member, list != NULL ? &list[0].step : NULL, false);
        return;
    }
    for (uint32_t i = 0; i < add->member_count; i++) {
        if (i % LOOKUP_GROUP == 0) {
            lookup_members(board, &lb_add_values(call->request, add, i)[add->value_count],
                           add->value_count + 1, lookup_group_size(add->member_count, i), ahead);
        }
        struct board_member member;
        board_look_up(board, lb_add_name(call->request, add, i), &ahead[i % LOOKUP_GROUP], &member);
        lb_add_answer_member(&writer, add, &member, list != NULL ? &list[i].step : NULL, false);
    }
}

void lb_add_answer_repeated(const struct call *call, struct bytes name, void *context,
                            void (*answer)(void *context, const struct board *board)) {
    struct registry_key *key;
    struct board none;
    if (!call_find_kind(call, name, REGISTRY_BOARD, &key)) {
        return;
    }
    if (key != NULL) {
        answer(context, &key->board);
    } else if (registry_create_board(call->registry, name, call->now_ms, &none)) {
        answer(context, &none);
        registry_discard_board(call->registry, &none);
    } else {
        call_out_of_memory(call);
    }
}

static void lb_add_answer(const struct call *call, const struct board *board,
                          const struct lb_add *add, const struct lb_result *list) {
    if (add->with_rank) {
        lb_add_answer_ranks(call, board, add, list);
        return;
    }
    uint32_t written_count = 0;
    for (uint32_t i = 0; i < add->member_count; i++) {
        written_count += list[i].step.is_written;
    }
    if (add->with_held) {
        uint32_t held_count = 0;
        for (uint32_t i = 0; i < add->member_count; i++) {
            held_count += list[i].guarded.held != 0;
        }
        reply_array(call->reply, 2);
        reply_integer(call->reply, written_count);
        reply_integer(call->reply, held_count);
        return;
    }
    reply_integer(call->reply, written_count);
}

/* ---- one member ---- */

static void lb_add_run_one(const struct call *call, struct writing *writing,
                           const struct lb_add *add) {
    struct board_member member;
    struct lb_result result;
    struct lb_add_step *step = &result.step;
    board_look_up(writing->board, lb_add_name(call->request, add, 0),
                  lookup_on(call->ahead, writing->board), &member);
    struct lb_add_step before = lb_add_step_of(writing, add, &member);
    if (!lb_add_plan(writing, add, lb_add_values(call->request, add, 0), &before, NULL, step)) {
        return;
    }
    if (add->once != NULL && !once_put(add->once)) {
        return;
    }
    if (step->is_written) {
        enum writing_status status =
            writing_put(writing, &member, step->key, true); /* lb_add_plan knows KEEP BEST */
        if (status == WRITING_FAILED) {
            if (add->once != NULL) {
                once_take_back(add->once);
            }
            return;
        }
        step->is_written = status == WRITING_PUT && !writing->is_as_before;
    }
    writing_settle(writing);
    lb_add_answer(call, writing_shown(writing), add, &result);
}

/* ---- many members, tags, hashes ---- */

static void lb_add_run_many(const struct call *call, struct writing *writing,
                            const struct lb_add *add) {
    struct lb_result list[RESULTS_ON_STACK];
    uint32_t slots[4 * RESULTS_ON_STACK] = {0};
    const struct bytes *values = lb_add_values(call->request, add, 0);
    struct lb_results results;
    lb_results_init(&results, call, add, list, add->member_count);
    results.names = (struct writing_names){.first = &values[add->value_count],
                                           .step = add->value_count + 1,
                                           .slots = slots,
                                           .mask = 4 * RESULTS_ON_STACK - 1};
    bool is_long = add->member_count > RESULTS_ON_STACK;
    CHECK(results.count > 0); /* lb_add_fits */
    if (is_long) {
        uint32_t slot_count = writing_names_slots(add->member_count);
        results.list = memory_allocate(add->member_count * sizeof list[0]);
        results.names.slots = memory_allocate_zeroed(slot_count * sizeof slots[0]);
        results.names.mask = slot_count - 1;
    }
    if (results.list != NULL && results.names.slots != NULL) {
        for (uint32_t i = 0; i < add->member_count; i++) {
            lb_result_init(&results.list[i], writing, i);
        }
        bool is_put = lb_add_results_prepare(&results);
        if (is_put) {
            lb_add_results_put(&results);
        }
        lb_add_results_end(&results);
        if (is_put) {
            lb_add_answer(call, writing_shown(writing), add, results.list);
        }
    } else {
        call_out_of_memory(call);
    }
    if (is_long) {
        memory_free(results.list);
        memory_free(results.names.slots);
    }
}

/* ---- the command ---- */

/* Options are behind the keys. */
bool lb_add_new_key(const struct command *command, const struct layout *layout,
                    const struct request *request, int64_t now_us, uint64_t *key) {
    struct lb_add add = lb_add_plain;
    int64_t key_count;
    bool is_counted = (command->flags & COMMAND_MOVABLE_KEYS) != 0;
    add.first = FIRST_OPTION;
    if (is_counted) {
        if (!bytes_parse_i64(request->args[command->key_count_arg], &key_count) || key_count < 1 ||
            key_count + command->key_count_arg + 3 > request->count) {
            return false;
        }
        add.first = (uint32_t)(command->key_count_arg + 1 + key_count);
    }
    struct buffer nowhere = {.at = NULL};
    struct reply reply = {.out = &nowhere, .is_silent = true};
    const struct call call = {.command = command, .request = request, .reply = &reply};
    if (request->count < 4 ||
        !(is_counted ? lb_add_read_options(&call, &add) : lb_add_read(&call, &add)) ||
        !lb_add_find_members(request, layout, &add) || add.member_count != 1 ||
        add.operation == LB_ADD_INCREMENT || add.time == LB_ADD_TIME_KEPT) {
        return false;
    }
    const struct bytes *values = &request->args[add.first];
    if (add.operation == LB_ADD_PACKED) {
        return layout_key_parse(layout, values[0], key);
    }
    *key = 0;
    for (unsigned i = 0; i < layout->field_count; i++) {
        const struct layout_field *field = &layout->fields[i];
        size_t mark_size = values[i].size > 0 && values[i].at[0] == '=';
        struct bytes text = {values[i].at + mark_size, values[i].size - mark_size};
        struct decimal value;
        uint64_t ordinal;
        if (layout_field_parse(field, text, &value) != DECIMAL_OK ||
            layout_field_ordinal(field, value, &ordinal) != LAYOUT_OK) {
            return false;
        }
        *key = layout_with_ordinal(layout, *key, i, ordinal);
    }
    return layout_stamp(layout, *key, add.time == LB_ADD_TIME_GIVEN ? add.at_us : now_us, key) ==
           LAYOUT_OK;
}

static enum decimal_status lb_add_judge_member(const struct lb_add_of_call *of, uint32_t index,
                                               const struct layout *layout) {
    enum decimal_status status = DECIMAL_OK;
    for (unsigned i = 0; i < layout->field_count && status == DECIMAL_OK; i++) {
        const struct layout_field *field = &layout->fields[i];
        struct bytes text = lb_add_values(of->call->request, of->add, index)[i];
        size_t mark_size = text.size > 0 && text.at[0] == '=';
        struct decimal value;
        uint64_t ordinal;
        if (text.size == 1 && text.at[0] == '*') {
            continue;
        }
        text = (struct bytes){.at = text.at + mark_size, .size = text.size - mark_size};
        status = layout_field_parse(field, text, &value);
        if (status == DECIMAL_OK &&
            layout_field_add_at(field, layout_field_zero(field), value, of->call->now_us,
                                of->call->now_us, &ordinal) != LAYOUT_OK) {
            status = DECIMAL_OUT_OF_RANGE;
        }
    }
    return status;
}

enum decimal_status lb_add_judge(const void *scores, const struct layout *layout) {
    const struct lb_add_of_call *of = scores;
    enum decimal_status status = DECIMAL_OK;
    if (of->add->operation == LB_ADD_PACKED || of->add->value_count != layout->field_count ||
        (of->add->time == LB_ADD_TIME_GIVEN && layout->time.bits == 0)) {
        return DECIMAL_NOT_A_NUMBER;
    }
    for (uint32_t i = 0; i < of->add->member_count && status == DECIMAL_OK; i++) {
        status = lb_add_judge_member(of, i, layout);
    }
    return status;
}

/* ---- a result that came before ---- */

struct repeated {
    const struct call *call;
    struct lb_add *add;
};

static void lb_add_answer_repeat(void *context, const struct board *board) {
    const struct repeated *repeated = context;
    const struct layout *layout = board_layout(board);
    if (lb_add_fits(repeated->call, layout, repeated->add)) {
        lb_add_answer_ranks(repeated->call, board, repeated->add, NULL);
    } else {
        lb_add_refuse_count(repeated->call, layout, repeated->add, false);
    }
}

/* The values depend on the board's layout, so a new board is created first. */
static void lb_add_run(struct call *call) {
    struct lb_add add = lb_add_plain;
    struct once once;
    if (!lb_add_read(call, &add)) {
        return;
    }
    if (add.once_id.at != NULL) {
        enum once_status state = once_begin(call, call_arg(call, 1), add.once_id, &once);
        if (state == ONCE_REPEATED && add.with_rank) {
            struct repeated repeated = {.call = call, .add = &add};
            lb_add_answer_repeated(call, call_arg(call, 1), &repeated, lb_add_answer_repeat);
        } else if (state == ONCE_REPEATED) {
            if (add.with_held) {
                reply_array(call->reply, 2);
            }
            reply_integer(call->reply, add.with_repeat ? -1 : 0);
            if (add.with_held) {
                reply_integer(call->reply, 0);
            }
        }
        if (state != ONCE_NEW) {
            return;
        }
        add.once = &once;
    }
    struct writing writing;
    if (lb_add_check_board(call, &add, call_arg(call, 1)) &&
        writing_begin(call, call_arg(call, 1), &writing)) {
        const struct lb_add_of_call scores = {.call = call, .add = &add};
        bool is_chosen = !lb_add_fits(call, board_layout(writing.board), &add) ||
                         writing_choose(&writing, lb_add_judge, &scores);
        const struct layout *layout = board_layout(writing.board);
        if (is_chosen && !lb_add_fits(call, layout, &add)) {
            lb_add_refuse_count(call, layout, &add, false);
        } else if (is_chosen && lb_add_check_at(call, layout, &add) &&
                   lb_data_hset_check(call, &add.hset, add.member_count)) {
            bool is_simple = add.tags.count == 0 && !lb_data_hset_is_asked(&add.hset) &&
                             !add.with_held && !guarding_applies(&writing) &&
                             !ticketing_has(&writing);
            writing.is_only = add.member_count == 1;
            (writing.is_only && is_simple ? lb_add_run_one : lb_add_run_many)(call, &writing, &add);
        }
        writing_end(&writing, add.operation == LB_ADD_INCREMENT ? "zincr" : "zadd");
    }
}

bool lb_add_approve(const struct call *call, const struct call *rights, struct registry_key *key,
                    uint64_t before, size_t more,
                    void (*then)(void *context, struct registry_key *key), void *context) {
    struct lb_add add = lb_add_plain;
    struct writing writing;
    struct lb_result result;
    struct lb_results results;
    add.held_before = before;
    if (!lb_add_read(call, &add)) {
        return false;
    }
    writing_begin_approval(call, key, &writing);
    lb_result_init(&result, &writing, 0);
    lb_results_init(&results, call, &add, &result, 1);
    results.more = more;
    const struct layout *layout = board_layout(writing.board);
    bool is_put =
        lb_add_check_only(call, layout, &add) && lb_add_check_at(call, layout, &add) &&
        lb_data_hset_check(call, &add.hset, 1) &&
        (!lb_data_hset_is_asked(&add.hset) ||
         lb_data_hset_begin(rights, &add.hset, key, lb_add_name(call->request, &add, 0), NULL)) &&
        lb_add_results_prepare(&results);
    if (is_put) {
        lb_add_results_put(&results);
        then(context, writing.key);
    }
    lb_add_results_end(&results);
    writing.has_held = is_put; /* and no more: the board has changed, be it in its notes alone */
    writing_end(&writing, add.operation == LB_ADD_INCREMENT ? "zincr" : "zadd");
    return is_put;
}

/* Of words that do not fit the layout, all but the options' are counted. */
static uint64_t lb_add_count(const struct cost_view *view) {
    const struct registry_key *key = cost_key(view, 1);
    const struct board *board = call_board(key);
    struct lb_add add = lb_add_plain;
    if (!lb_add_read(view->call, &add)) {
        return 0;
    }
    bool has_more_words = board != NULL && add.operation != LB_ADD_PACKED;
    uint64_t words = 1 + (has_more_words ? (uint64_t)board_layout(board)->field_count : 1);
    return (view->call->request->count - add.first) / words * cost_of_result(key);
}

const struct command command_lb_add = {
    .name = "LB.ADD",
    .syntax =
        "key condition=[NX | XX] [NOCREATE] " LB_ADD_SYNTAX " [WITHRANK] [WITHHELD] [STRINGS] "
        "members=<results=(field... member)... | PACKED "
        "packed_member=(packed-key:integer member)...>",
    .bindings = lb_add_bindings,
    .reply = "i|WITHRANK=[@Placed]|WITHHELD=[changed:i held:i]",
    .summary = "Write fields, times and tags of members, all of them or nothing; count those added "
               "or changed",
    .complexity = "O(log n) for each member named, n being the members of the board",
    .flags = COMMAND_WRITE | COMMAND_DENYOOM | COMMAND_FAST | COMMAND_OWN_MEMBER,
    .key_access = "RW access update",
    .member_arg = -1,
    .member_step = COMMAND_STEP_OF_VALUES,
    .new_key = lb_add_new_key,
    .cost = COST(COMMAND_BY_RESULTS, lb_add_count, 1200, 1, "member named",
                 "several commands of a thousand each"),
    .run = lb_add_run,
};
