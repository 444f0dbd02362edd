/* What becomes of a member's values, and LB.ADD once its options are parsed. The command is all or nothing:
 * lb_results.h. A single member without tags and hash needs no undo, and is put as soon as its step is known. */
#include "server/commands/lb/lb_add_apply.h"

#include "server/commands/lb/lb_record.h"
#include "server/commands/lb/lb_results.h"
#include "skiplist/keyspace/registry.h"
#include "skiplist/lookup.h"

enum { RESULTS_ON_STACK = 16 }; /* so many need no heap memory */

/* ---- planning a member ---- */

/* Add to a field of *key. */
static bool lb_add_apply_add_value(const struct call *call, const struct layout *layout,
                                   const struct lb_add *add, unsigned field_index,
                                   struct bytes text, bool is_skipped, uint64_t *key) {
    const struct layout_field *field = &layout->fields[field_index];
    uint64_t ordinal = layout_ordinal(layout, *key, field_index);
    struct decimal delta;
    if (!lb_parse_decimal(call, field, text, &delta)) {
        return false;
    }
    if (is_skipped) {
        return true;
    }
    uint64_t sum;
    int64_t time_us = add->time == LB_ADD_TIME_GIVEN ? add->at_us : call->now_us;
    if (layout_field_add_at(field, ordinal, delta, time_us, call->now_us, &sum) != LAYOUT_OK) {
        return zset_refuse_sum(call, field, ordinal, delta, time_us);
    }
    *key = layout_with_ordinal(layout, *key, field_index, sum);
    return true;
}

/* Apply one value, "v", "=v" or "*", to a field of *key. false: the error was replied. */
static bool lb_add_apply_value(const struct call *call, const struct layout *layout,
                               const struct lb_add *add, unsigned field_index, struct bytes text,
                               bool is_skipped, uint64_t *key) {
    bool is_set = text.size > 0 && text.at[0] == '=';
    uint64_t ordinal;
    if (text.size == 1 && text.at[0] == '*') {
        return true;
    }
    if (add->operation == LB_ADD_INCREMENT && !is_set) {
        return lb_add_apply_add_value(call, layout, add, field_index, text, is_skipped, key);
    }
    if (is_set) {
        text = (struct bytes){.at = text.at + 1, .size = text.size - 1};
    }
    if (!lb_parse_value(call, &layout->fields[field_index], text, &ordinal)) {
        return false;
    }
    *key = layout_with_ordinal(layout, *key, field_index, ordinal);
    return true;
}

/* Apply a member's values to *key. They must be valid even if the member is skipped. */
static bool lb_add_apply_values(const struct call *call, const struct layout *layout,
                                const struct lb_add *add, const struct bytes *values,
                                bool is_skipped, uint64_t *key) {
    if (add->operation == LB_ADD_PACKED) {
        if (layout_key_parse(layout, values[0], key)) {
            return true;
        }
        char error[LAYOUT_ERROR_MAX];
        layout_explain_key(layout, values[0], error);
        return call_refuse_format(call, "ERR %s", error);
    }
    for (unsigned i = 0; i < layout->field_count; i++) {
        if (!lb_add_apply_value(call, layout, add, i, values[i], is_skipped, key)) {
            return false;
        }
    }
    return true;
}

/* Set the time of the step's key, and determine whether it is written. On entry the key has the
 * member's previous time. */
static bool lb_add_apply_stamp(const struct call *call, const struct layout *layout,
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

/* Is the current key kept because it is as good as the new one or better (KEEP BEST, BEST)? */
static bool lb_add_apply_is_beaten(const struct rules *rules, const struct lb_add *add,
                                   const struct lb_add_step *before, uint64_t key) {
    if (!before->is_there) {
        return false;
    }
    if (add->operation != LB_ADD_INCREMENT && !rules_take(rules, before->key, key)) {
        return true;
    }
    return add->operation == LB_ADD_BEST && layout_without_time(&rules->layout, key) <=
                                                layout_without_time(&rules->layout, before->key);
}

bool lb_add_plan(const struct writing *writing, const struct lb_add *add,
                 const struct bytes *values, const struct lb_add_step *before,
                 struct lb_add_step *step) {
    const struct call *call = writing->call;
    const struct rules *rules = writing->rules;
    const struct layout *layout = &rules->layout;
    bool is_skipped = before->is_there ? add->is_new_only : add->is_existing_only;
    *step = *before;
    step->is_written = false;
    uint64_t key = before->is_there ? before->key : layout_zero_key(layout);
    if (!writing_check_member(writing, values[add->value_count]) ||
        !lb_add_apply_values(call, layout, add, values, is_skipped, &key)) {
        return false;
    }
    bool stays = lb_add_apply_is_beaten(rules, add, before, key);
    /* With STALE, TOUCH says that the member is there, whatever its results are. */
    bool may_touch = !rules->keeps_best || rules->stale_ms > 0;
    if (is_skipped || (stays && (!may_touch || add->time != LB_ADD_TIME_NOW))) {
        return true;
    }
    step->key = stays ? before->key : key;
    return lb_add_apply_stamp(call, layout, add, before, step) &&
           (!step->is_written || writing_check_put(writing, values[add->value_count], step->key));
}

bool lb_add_changes_fields(const struct writing *writing, const struct lb_add_step *step,
                           struct bytes member) {
    return step->is_written && step->has_new_fields &&
           writing_changes_shown(writing, member, step->key);
}

/* ---- putting ---- */

struct lb_add_step lb_add_step_of(const struct writing *writing, const struct lb_add *add,
                                  const struct board_member *member) {
    struct board_member shown = *member;
    const struct board *board = writing_shown(writing);
    if (add->with_rank && writing->whole != NULL) {
        board_look_up(board, member->name, NULL, &shown);
    }
    bool has_rank = add->with_rank && shown.is_there;
    return (struct lb_add_step){
        .key = member->key,
        .is_there = member->is_there,
        .was_there = member->is_there,
        .had_rank = has_rank,
        .previous_rank = has_rank ? board_rank_of(board, &shown) : 0,
    };
}

/* ---- replies ---- */

static void lb_add_apply_write_rank(const struct call *call, struct lb_writer *writer,
                                    const struct board_member *member,
                                    const struct lb_add_step *step) {
    if (member->is_there) {
        lb_write_record(writer, member->name, member->key, board_rank_of(writer->board, member));
    } else {
        reply_null_array(call->reply);
    }
    if (step == NULL && member->is_there) {
        reply_integer(call->reply, board_rank_of(writer->board, member));
    } else if (step != NULL && step->had_rank) {
        reply_integer(call->reply, step->previous_rank);
    } else {
        reply_null(call->reply);
    }
}

void lb_add_answer_result(const struct call *call, const struct board *board,
                          const struct lb_add *add, const struct lb_add_step *step) {
    struct lb_writer writer;
    struct board_member member;
    lb_begin_records(call, board, (struct lb_shape){.with_strings = add->with_strings}, &writer);
    board_look_up(board, lb_add_name(call->request, add, 0), NULL, &member);
    reply_array(call->reply, 3U + add->with_repeat);
    lb_add_apply_write_rank(call, &writer, &member, step);
    reply_integer(call->reply, step != NULL && step->is_written);
    if (add->with_repeat) {
        reply_integer(call->reply, step == NULL);
    }
}

/* Ranks as they are after the whole command. list: NULL, if the result came before (ONCE). */
static void lb_add_apply_answer_ranks(const struct call *call, const struct board *board,
                                      const struct lb_add *add, const struct lb_result *list) {
    struct lb_writer writer;
    struct lookup ahead[LOOKUP_GROUP];
    lb_begin_records(call, board, (struct lb_shape){.with_strings = add->with_strings}, &writer);
    reply_array(call->reply, add->member_count);
    for (uint32_t i = 0; i < add->member_count; i++) {
        if (i % LOOKUP_GROUP == 0) {
            lookup_members(board, &lb_add_values(call->request, add, i)[add->value_count],
                           add->value_count + 1, lookup_group_size(add->member_count, i), ahead);
        }
        struct board_member member;
        board_look_up(board, lb_add_name(call->request, add, i), &ahead[i % LOOKUP_GROUP], &member);
        reply_array(call->reply, 2U + add->with_repeat);
        lb_add_apply_write_rank(call, &writer, &member, list != NULL ? &list[i].step : NULL);
        if (add->with_repeat) {
            reply_integer(call->reply, list == NULL);
        }
    }
}

void lb_add_answer_unchanged(const struct call *call, const struct board *board,
                             const struct lb_add *add) {
    lb_add_apply_answer_ranks(call, board, add, NULL);
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

static void lb_add_apply_answer(const struct call *call, const struct board *board,
                                const struct lb_add *add, const struct lb_result *list) {
    if (add->with_rank) {
        lb_add_apply_answer_ranks(call, board, add, list);
        return;
    }
    uint32_t written_count = 0;
    for (uint32_t i = 0; i < add->member_count; i++) {
        written_count += list[i].step.is_written;
    }
    reply_integer(call->reply, written_count);
}

/* ---- one member ---- */

static void lb_add_apply_add_one(const struct call *call, struct writing *writing,
                                 const struct lb_add *add) {
    struct board_member member;
    struct lb_result result;
    struct lb_add_step *step = &result.step;
    board_look_up(writing->board, lb_add_name(call->request, add, 0), call->ahead, &member);
    struct lb_add_step before = lb_add_step_of(writing, add, &member);
    if (!lb_add_plan(writing, add, lb_add_values(call->request, add, 0), &before, step)) {
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
    lb_add_apply_answer(call, writing_shown(writing), add, &result);
}

/* ---- many members, tags, hashes ---- */

static void lb_add_apply_add_all(const struct call *call, struct writing *writing,
                                 const struct lb_add *add, struct lb_results *results) {
    for (uint32_t i = 0; i < add->member_count; i++) {
        results->list[i] = (struct lb_result){.writing = writing, .index = i};
    }
    bool is_put = lb_results_prepare(results);
    if (is_put) {
        lb_results_put(results);
    }
    lb_results_end(results);
    if (is_put) {
        lb_add_apply_answer(call, writing_shown(writing), add, results->list);
    }
}

static void lb_add_apply_add_many(const struct call *call, struct writing *writing,
                                  const struct lb_add *add) {
    struct lb_result list[RESULTS_ON_STACK];
    uint32_t slots[4 * RESULTS_ON_STACK] = {0};
    struct lb_results results = {.call = call,
                                 .add = add,
                                 .list = list,
                                 .count = add->member_count,
                                 .slots = slots,
                                 .slot_mask = 4 * RESULTS_ON_STACK - 1};
    bool is_long = add->member_count > RESULTS_ON_STACK;
    if (is_long) {
        uint32_t slot_count = 4 * RESULTS_ON_STACK;
        while (slot_count < 2 * add->member_count) {
            slot_count *= 2;
        }
        results.list = memory_allocate(add->member_count * sizeof list[0]);
        results.slots = memory_allocate_zeroed(slot_count * sizeof slots[0]);
        results.slot_mask = slot_count - 1;
    }
    if (results.list != NULL && results.slots != NULL) {
        lb_add_apply_add_all(call, writing, add, &results);
    } else {
        call_out_of_memory(call);
    }
    if (is_long) {
        memory_free(results.list);
        memory_free(results.slots);
    }
}

void lb_add_apply(const struct call *call, struct writing *writing, const struct lb_add *add) {
    writing->is_only = add->member_count == 1;
    if (writing->is_only && add->tags.count == 0 && !lb_hset_is_asked(&add->hset)) {
        lb_add_apply_add_one(call, writing, add);
    } else {
        lb_add_apply_add_many(call, writing, add);
    }
}
