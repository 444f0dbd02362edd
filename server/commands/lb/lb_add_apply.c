/* Applies LB.ADD once its options are parsed.
 *
 *     plan every member -> reserve memory -> put, member by member -> reply
 *
 * The command is all or nothing. The result of a member can depend on its current state (an
 * increment may leave its field's range), so all results are computed before the first change: one
 * step per member. If a member is named twice, its second step continues from the first. A single
 * member without tags needs no undo and is put as soon as its step is known. */
#include "server/commands/lb/lb_add_apply.h"

#include "server/commands/lb/lb_record.h"
#include "skiplist/keyspace/registry.h"
#include "skiplist/lookup.h"

enum {
    /* Up to this many steps need no heap memory. */
    STEPS_ON_STACK = 16,
};

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
    if (layout_field_add_at(field, ordinal, delta, time_us, &sum) != LAYOUT_OK) {
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
    bool is_kept = add->time == ADD_TIME_OF_CHANGE
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
    reply_array(call->reply, 3);
    lb_add_apply_write_rank(call, &writer, &member, step);
    reply_integer(call->reply, step != NULL && step->is_written);
}

/* Ranks as they are after the whole command. steps: NULL, if it has changed nothing. */
static void lb_add_apply_answer_ranks(const struct call *call, const struct board *board,
                                      const struct lb_add *add, const struct lb_add_step *steps) {
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
        reply_array(call->reply, 2);
        lb_add_apply_write_rank(call, &writer, &member, steps != NULL ? &steps[i] : NULL);
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
                                const struct lb_add *add, const struct lb_add_step *steps) {
    if (add->with_rank) {
        lb_add_apply_answer_ranks(call, board, add, steps);
        return;
    }
    uint32_t written_count = 0;
    for (uint32_t i = 0; i < add->member_count; i++) {
        written_count += steps[i].is_written;
    }
    reply_integer(call->reply, written_count);
}

static void lb_add_apply_take_back_id(const struct lb_add *add) {
    if (add->once != NULL) {
        once_take_back(add->once);
    }
}

/* ---- one member ---- */

static void lb_add_apply_add_one(const struct call *call, struct writing *writing,
                                 const struct lb_add *add) {
    struct board_member member;
    struct lb_add_step step;
    board_look_up(writing->board, lb_add_name(call->request, add, 0), call->ahead, &member);
    struct lb_add_step before = lb_add_step_of(writing, add, &member);
    if (!lb_add_plan(writing, add, lb_add_values(call->request, add, 0), &before, &step)) {
        return;
    }
    if (add->once != NULL && !once_put(add->once)) {
        return;
    }
    if (step.is_written) {
        enum writing_status status =
            writing_put(writing, &member, step.key, true); /* lb_add_plan knows KEEP BEST */
        if (status == WRITING_FAILED) {
            lb_add_apply_take_back_id(add);
            return;
        }
        step.is_written = status == WRITING_PUT;
    }
    writing_settle(writing);
    lb_add_apply_answer(call, writing_shown(writing), add, &step);
}

/* ---- many members ---- */

/* Steps by member's name: open addressing, at most half full. */
struct step_table {
    uint32_t *slots; /* index of a step plus one; 0: free */
    uint32_t mask;
};

struct many {
    const struct call *call;
    const struct lb_add *add;
    struct writing *writing;
    struct board *board;
    struct lb_add_step *steps;
    struct lb_hset_place *places; /* of HSET; NULL: none */
    struct step_table table;
    uint64_t new_count; /* members that the command adds to the board */
};

/* The slot of a member's latest step, or the free slot to use for it. */
static uint32_t *lb_add_apply_find_slot(const struct many *many, struct bytes name, uint64_t hash) {
    const struct step_table *table = &many->table;
    uint32_t at = (uint32_t)(hash >> 32) & table->mask;
    while (table->slots[at] != 0 &&
           !bytes_equal(lb_add_name(many->call->request, many->add, table->slots[at] - 1), name)) {
        at = (at + 1) & table->mask;
    }
    return &table->slots[at];
}

static bool lb_add_apply_plan_group(struct many *many, uint32_t begin, unsigned count) {
    const struct call *call = many->call;
    const struct lb_add *add = many->add;
    struct lookup ahead[LOOKUP_GROUP];
    lookup_members(many->board, &lb_add_values(call->request, add, begin)[add->value_count],
                   add->value_count + 1, count, ahead);
    for (uint32_t i = begin; i < begin + count; i++) {
        struct board_member member;
        board_look_up(many->board, lb_add_name(call->request, add, i), &ahead[i - begin], &member);
        uint32_t *slot = lb_add_apply_find_slot(many, member.name, member.hash);
        struct lb_add_step before =
            *slot != 0 ? many->steps[*slot - 1] : lb_add_step_of(many->writing, add, &member);
        if (!lb_add_plan(many->writing, add, lb_add_values(call->request, add, i), &before,
                         &many->steps[i])) {
            return false;
        }
        many->new_count += !before.is_there && many->steps[i].is_there;
        *slot = i + 1;
    }
    return true;
}

static bool lb_add_apply_put_group(struct many *many, uint32_t begin, unsigned count) {
    const struct lb_add *add = many->add;
    struct lookup ahead[LOOKUP_GROUP];
    uint64_t keys[LOOKUP_GROUP];
    CHECK(count > 0 && count <= LOOKUP_GROUP);
    for (unsigned i = 0; i < count; i++) {
        keys[i] = many->steps[begin + i].key;
    }
    lookup_members_to_put(many->board,
                          &lb_add_values(many->call->request, add, begin)[add->value_count],
                          add->value_count + 1, count, keys, ahead);
    for (unsigned i = 0; i < count; i++) {
        struct lb_add_step *step = &many->steps[begin + i];
        if (step->is_written) {
            struct board_member member;
            board_look_up(many->board, ahead[i].member, &ahead[i], &member);
            enum writing_status status = writing_put(many->writing, &member, keys[i], true);
            if (status == WRITING_FAILED) {
                return false;
            }
            step->is_written = status == WRITING_PUT;
        }
    }
    return true;
}

/* Those that NX leaves alone keep their tags; those that XX or CAP keeps off the board have none. */
static bool lb_add_apply_tag_group(struct many *many, uint32_t begin, unsigned count) {
    const struct lb_add *add = many->add;
    struct lookup ahead[LOOKUP_GROUP];
    lookup_members(many->board, &lb_add_values(many->call->request, add, begin)[add->value_count],
                   add->value_count + 1, count, ahead);
    for (uint32_t i = begin; i < begin + count; i++) {
        struct board_member member;
        board_look_up(many->board, lb_add_name(many->call->request, add, i), &ahead[i - begin],
                      &member);
        if (member.is_there && !(add->is_new_only && many->steps[i].was_there)) {
            writing_tag(many->writing, &member, add->tags);
        }
    }
    return true;
}

typedef bool many_group(struct many *many, uint32_t begin, unsigned count);

static bool lb_add_apply_for_each_group(struct many *many, many_group *run_group) {
    uint32_t count = many->add->member_count;
    for (uint32_t begin = 0; begin < count; begin += LOOKUP_GROUP) {
        if (!run_group(many, begin, lookup_group_size(count, begin))) {
            return false;
        }
    }
    return true;
}

/* Members that were added and then removed by CAP in the same command do not count as added. */
static void lb_add_apply_take_back_lost(struct many *many) {
    for (uint32_t i = 0; i < many->add->member_count; i++) {
        uint64_t key;
        many->steps[i].is_written =
            many->steps[i].is_written &&
            (many->steps[i].was_there ||
             board_find(many->board, lb_add_name(many->call->request, many->add, i), &key));
    }
}

/* Find or make the hashes of the members whose fields change. *size: what they may need. false: the error was
 * replied. */
static bool lb_add_apply_begin_hashes(struct many *many, size_t *size) {
    const struct lb_add *add = many->add;
    struct bytes board = registry_name(writing_shown_key(many->writing));
    for (uint32_t i = 0; many->places != NULL && i < add->member_count; i++) {
        struct bytes name = lb_add_name(many->call->request, add, i);
        if (lb_add_changes_fields(many->writing, &many->steps[i], name)) {
            if (!lb_hset_begin(many->call, &add->hset, board, name, &many->places[i])) {
                return false;
            }
            *size += lb_hset_growth_size(&add->hset, &many->places[i]);
        }
    }
    return true;
}

/* Those that CAP has kept off the board, or removed again, are passed over. */
static void lb_add_apply_set_hashes(const struct many *many) {
    for (uint32_t i = 0; many->places != NULL && i < many->add->member_count; i++) {
        uint64_t key;
        if (many->steps[i].is_written &&
            (!many->writing->has_lost ||
             board_find(many->board, lb_add_name(many->call->request, many->add, i), &key))) {
            lb_hset_put(many->call, &many->add->hset, &many->places[i]);
        }
    }
}

static void lb_add_apply_end_hashes(const struct many *many) {
    for (uint32_t i = 0; many->places != NULL && i < many->add->member_count; i++) {
        lb_hset_end(many->call, &many->places[i]);
    }
}

/* What may fail behind the plan: hashes, the id, and memory for all. false: the error was replied, and nothing has
 * changed. */
static bool lb_add_apply_prepare(struct many *many) {
    const struct lb_add *add = many->add;
    size_t size = 0;
    if (many->new_count > writing_room(many->writing)) {
        writing_refuse_full(many->call, many->writing->rules);
        return false;
    }
    if (!lb_add_apply_begin_hashes(many, &size) || (add->once != NULL && !once_put(add->once))) {
        return false;
    }
    if (!writing_reserve(many->writing,
                         &lb_add_values(many->call->request, add, 0)[add->value_count],
                         add->value_count + 1, add->member_count, add->tags != NULL, size)) {
        lb_add_apply_take_back_id(add);
        return call_out_of_memory(many->call);
    }
    return true;
}

static void lb_add_apply_plan_and_put(struct many *many) {
    const struct lb_add *add = many->add;
    if (!lb_add_apply_for_each_group(many, lb_add_apply_plan_group) ||
        !lb_add_apply_prepare(many)) {
        return;
    }
    bool is_put = lb_add_apply_for_each_group(many, lb_add_apply_put_group);
    if (is_put && add->tags != NULL) {
        writing_settle(many->writing);
        (void)lb_add_apply_for_each_group(many, lb_add_apply_tag_group);
    }
    if (is_put) {
        writing_settle(many->writing);
        lb_add_apply_set_hashes(many);
    } else {
        lb_add_apply_take_back_id(add);
    }
    memory_reserve_end();
    if (is_put) {
        if (many->writing->has_lost) {
            lb_add_apply_take_back_lost(many);
        }
        lb_add_apply_answer(many->call, writing_shown(many->writing), many->add, many->steps);
    }
}

static void lb_add_apply_add_many(const struct call *call, struct writing *writing,
                                  const struct lb_add *add) {
    struct lb_add_step steps[STEPS_ON_STACK];
    struct lb_hset_place places[STEPS_ON_STACK] = {{.key = NULL}};
    bool has_hashes = lb_hset_is_asked(&add->hset);
    uint32_t slots[4 * STEPS_ON_STACK] = {0};
    struct many many = {.call = call,
                        .add = add,
                        .writing = writing,
                        .board = writing->board,
                        .steps = steps,
                        .places = has_hashes ? places : NULL};
    many.table = (struct step_table){.slots = slots, .mask = 4 * STEPS_ON_STACK - 1};
    if (add->member_count > STEPS_ON_STACK) {
        uint32_t slot_count = 4 * STEPS_ON_STACK;
        while (slot_count < 2 * add->member_count) {
            slot_count *= 2;
        }
        many.steps = memory_allocate(add->member_count * sizeof(steps[0]));
        many.table.slots = memory_allocate_zeroed(slot_count * sizeof(slots[0]));
        many.table.mask = slot_count - 1;
        if (has_hashes) {
            many.places = memory_allocate_zeroed(add->member_count * sizeof *many.places);
        }
    }
    if (many.steps != NULL && many.table.slots != NULL && (many.places != NULL || !has_hashes)) {
        lb_add_apply_plan_and_put(&many);
        lb_add_apply_end_hashes(&many);
    } else {
        call_out_of_memory(call);
    }
    if (add->member_count > STEPS_ON_STACK) {
        memory_free(many.steps);
        memory_free(many.table.slots);
        memory_free(many.places);
    }
}

void lb_add_apply(const struct call *call, struct writing *writing, const struct lb_add *add) {
    if (add->member_count == 1 && add->tags == NULL && !lb_hset_is_asked(&add->hset)) {
        lb_add_apply_add_one(call, writing, add);
    } else {
        lb_add_apply_add_many(call, writing, add);
    }
}
