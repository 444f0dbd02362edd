/* See lb_results.h. */
#include "server/commands/lb/lb_results.h"

#include "skiplist/lookup.h"

static struct bytes lb_results_name(const struct lb_results *results, uint32_t at) {
    return lb_add_name(results->call->request, results->add, results->list[at].index);
}

static bool lb_results_begins_board(const struct lb_results *results, uint32_t at) {
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
static void lb_results_begin_group(const struct lb_results *results, uint32_t begin, bool will_put,
                                   struct results_group *group) {
    const struct lb_add *add = results->add;
    const struct lb_result *first = &results->list[begin];
    uint64_t keys[LOOKUP_GROUP];
    group->begin = begin;
    group->count = 1;
    group->board = first->writing->board;
    if (begin + 1 == results->count || lb_results_begins_board(results, begin + 1)) {
        return;
    }
    while (begin + group->count < results->count && group->count < LOOKUP_GROUP &&
           !lb_results_begins_board(results, begin + group->count)) {
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

static void lb_results_look_up(const struct lb_results *results, const struct results_group *group,
                               unsigned index, struct board_member *member) {
    board_look_up(group->board, lb_results_name(results, group->begin + index),
                  group->count > 1 ? &group->ahead[index]
                                   : lookup_on(results->call->ahead, group->board),
                  member);
}

/* ---- planning ---- */

/* The slot of a member's latest step, or the free one to use for it. */
static uint32_t *lb_results_find_slot(const struct lb_results *results,
                                      const struct board_member *member) {
    uint32_t at = (uint32_t)(member->hash >> 32) & results->slot_mask;
    while (results->slots[at] != 0 &&
           !bytes_equal(lb_results_name(results, results->slots[at] - 1), member->name)) {
        at = (at + 1) & results->slot_mask;
    }
    return &results->slots[at];
}

/* is_again: the member was named before. */
static bool lb_results_check_limits(const struct lb_results *results, struct lb_result *result,
                                    struct bytes member, const struct lb_add_step *before,
                                    bool is_again) {
    const struct lb_add *add = results->add;
    result->limited.size = 0;
    if (is_again) {
        return call_refuse_format(results->call,
                                  "ERR member '%s' is given twice: a board with LIMITS takes one "
                                  "result of a member at a time",
                                  bytes_show(member).text);
    }
    return (before->is_there ? add->is_new_only : add->is_existing_only) ||
           limiting_check(result->writing, member, before->is_there, before->key, result->step.key,
                          result->step.is_written, &result->limited);
}

static bool lb_results_plan_one(const struct lb_results *results, uint32_t at,
                                const struct board_member *member) {
    const struct lb_add *add = results->add;
    struct lb_result *result = &results->list[at];
    uint32_t *slot = results->slots != NULL ? lb_results_find_slot(results, member) : NULL;
    struct lb_add_step before = slot != NULL && *slot != 0
                                    ? results->list[*slot - 1].step
                                    : lb_add_step_of(result->writing, add, member);
    if (!lb_add_plan(result->writing, add,
                     lb_add_values(results->call->request, add, result->index), &before,
                     &result->step)) {
        return false;
    }
    if (limiting_applies(result->writing) &&
        !lb_results_check_limits(results, result, member->name, &before,
                                 slot != NULL && *slot != 0)) {
        return false;
    }
    /* HSET needs the right to the hash, whatever becomes of the result. */
    if (lb_hset_is_asked(&add->hset) &&
        !lb_hset_begin(results->call, &add->hset, writing_shown_key(result->writing), member->name,
                       NULL)) {
        return false;
    }
    result->is_new = !before.is_there && result->step.is_there;
    if (slot != NULL) {
        *slot = at + 1;
    }
    return true;
}

/* The tags of the command, as those of a board. false: the error was replied. */
static bool lb_results_read_tags(const struct lb_results *results, const struct writing *writing,
                                 struct tag_values *tags) {
    return results->add->tags.count == 0 ||
           lb_add_read_tags(results->call, results->add, writing_shown(writing), tags);
}

static bool lb_results_plan(struct lb_results *results) {
    struct results_group group;
    struct tag_values tags;
    for (uint32_t begin = 0; begin < results->count; begin += group.count) {
        results->failed = begin;
        if (lb_results_begins_board(results, begin) &&
            !lb_results_read_tags(results, results->list[begin].writing, &tags)) {
            return false;
        }
        lb_results_begin_group(results, begin, false, &group);
        for (unsigned i = 0; i < group.count; i++) {
            struct board_member member;
            results->failed = begin + i;
            /* Of a group of one it is kept: that is put as it was found. */
            struct board_member *found = &member;
            if (group.count == 1) {
                found = &results->list[begin].member;
            }
            lb_results_look_up(results, &group, i, found);
            if (!lb_results_plan_one(results, begin + i, found)) {
                return false;
            }
        }
    }
    return true;
}

/* ---- what may fail behind the plan ---- */

static bool lb_results_check_room(struct lb_results *results) {
    uint64_t new_count = 0;
    for (uint32_t i = 0; i < results->count; i++) {
        const struct writing *writing = results->list[i].writing;
        new_count = lb_results_begins_board(results, i) ? 0 : new_count;
        new_count += results->list[i].is_new;
        if (new_count > writing_room(writing)) {
            results->failed = i;
            writing_refuse_full(results->call, writing->options);
            return false;
        }
    }
    return true;
}

/* Find or make the hashes of the members whose fields change. */
static bool lb_results_begin_hashes(struct lb_results *results, size_t *size) {
    const struct lb_hset *hset = &results->add->hset;
    for (uint32_t i = 0; lb_hset_is_asked(hset) && i < results->count; i++) {
        struct lb_result *result = &results->list[i];
        struct bytes name = lb_results_name(results, i);
        /* The hash of a period is of the period's results, whatever the WINDOW shows. */
        bool is_changed = lb_hset_names_period(hset)
                              ? result->step.is_written && result->step.has_new_fields
                              : lb_add_changes_fields(result->writing, &result->step, name);
        if (!is_changed) {
            continue;
        }
        if (!lb_hset_begin(results->call, hset, writing_shown_key(result->writing), name,
                           &result->place)) {
            results->failed = lb_hset_names_board(hset) ? i : results->count;
            return false;
        }
        *size += lb_hset_growth_size(hset, &result->place);
    }
    return true;
}

static size_t lb_results_growth_size(const struct lb_results *results) {
    bool with_tags = results->add->tags.count > 0;
    size_t size = results->more;
    size_t names_size = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < results->count; i++) {
        const struct writing *writing = results->list[i].writing;
        size += lb_results_name(results, i).size * (writing->whole != NULL ? 2 : 1);
        count++;
        names_size += lb_results_name(results, i).size;
        if (i + 1 == results->count || lb_results_begins_board(results, i + 1)) {
            size += writing_growth_size(writing, count, with_tags);
            size +=
                limiting_applies(writing) ? limiting_growth_size(writing, count, names_size) : 0;
            names_size = 0;
            count = 0;
        }
    }
    return size;
}

bool lb_results_prepare(struct lb_results *results) {
    struct once *once = results->add->once;
    size_t hashes_size = 0;
    if (!lb_results_plan(results) || !lb_results_check_room(results) ||
        !lb_results_begin_hashes(results, &hashes_size)) {
        return false;
    }
    results->failed = results->count;
    if (once != NULL && !once_put(once)) {
        return false;
    }
    results->is_reserved = memory_reserve_begin(hashes_size + lb_results_growth_size(results));
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

static void lb_results_put_members(struct lb_results *results) {
    struct results_group group;
    bool is_one_each = results->list[0].writing != results->list[results->count - 1].writing ||
                       results->count == 1;
    for (uint32_t begin = 0; begin < results->count; begin += group.count) {
        lb_results_begin_group(results, begin, true, &group);
        for (unsigned i = 0; i < group.count; i++) {
            struct lb_result *result = &results->list[begin + i];
            if (result->step.is_written) {
                /* Where a hash was opened, something may have expired, and have changed the board. */
                if (!is_one_each || lb_hset_is_asked(&results->add->hset)) {
                    lb_results_look_up(results, &group, i, &result->member);
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
        if (limiting_applies(writing)) {
            limiting_put(writing, lb_results_name(results, i), &results->list[i].limited);
        }
        if (lb_results_begins_board(results, i)) {
            writing_settle(writing);
        }
    }
}

/* Those that NX leaves alone keep their tags; those that XX or CAP keeps off the board have none. */
static void lb_results_put_tags(struct lb_results *results) {
    struct results_group group;
    struct tag_values tags;
    for (uint32_t begin = 0; begin < results->count; begin += group.count) {
        if (lb_results_begins_board(results, begin)) {
            bool is_read = lb_results_read_tags(results, results->list[begin].writing, &tags);
            CHECK(is_read);
        }
        lb_results_begin_group(results, begin, false, &group);
        for (unsigned i = 0; i < group.count; i++) {
            const struct lb_result *result = &results->list[begin + i];
            struct board_member member;
            lb_results_look_up(results, &group, i, &member);
            if (member.is_there && !(results->add->is_new_only && result->step.was_there)) {
                writing_tag(result->writing, &member, &tags);
            }
        }
    }
}

void lb_results_put(struct lb_results *results) {
    lb_results_put_members(results);
    if (results->add->tags.count > 0) {
        lb_results_put_tags(results);
    }
    /* Fields are set of those who are on the board; members who have come and gone do not count
     * as added. */
    const struct lb_hset *hset = &results->add->hset;
    bool is_one_hash = results->list[0].writing != results->list[results->count - 1].writing &&
                       !lb_hset_names_board(hset);
    bool is_set = false;
    for (uint32_t i = 0; i < results->count; i++) {
        struct lb_result *result = &results->list[i];
        uint64_t key;
        /* CAP may have removed it since. */
        bool has_stayed = result->is_put &&
                          (!result->writing->has_lost ||
                           board_find(result->writing->board, lb_results_name(results, i), &key));
        if (has_stayed && result->place.key != NULL && !(is_one_hash && is_set)) {
            lb_hset_put(results->call, hset, &result->place);
            is_set = true;
        }
        result->step.is_written = result->step.is_written && (has_stayed || result->step.was_there);
    }
}

void lb_results_end(struct lb_results *results) {
    if (results->is_reserved) {
        memory_reserve_end();
    }
    for (uint32_t i = 0; i < results->count && lb_hset_is_asked(&results->add->hset); i++) {
        lb_hset_end(results->call, &results->list[i].place);
    }
}
