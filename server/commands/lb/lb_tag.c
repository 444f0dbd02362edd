/* LB.TAG: sets tags of one member, if others hold. LB.TAGS: reads them.
 *
 *     LB.TAG race@2026-11-16 ann claimed 1 IF claimed ""
 *
 * Tags change no result, so they are also written on boards that are frozen or closed. */
#include "server/commands/lb/lb_tags.h"
#include "server/commands/window.h"
#include "server/commands/zset/zset.h"
#include "server/dispatch/syntax.h"
#include "skiplist/lookup.h"

enum { ARG_MEMBER = 2, FIRST_OF_MANY = 2 };

/* Names and values. */
struct lb_tag {
    struct option_values tags, conditions;
};
static const struct binding lb_tag_bindings[] = {
    {BIND("tag", struct lb_tag, tags)},
    {BIND("IF", struct lb_tag, conditions), .repeat = BINDING_ONCE},
    {0},
};

/* The names behind IF must be known even if no member is asked. false: the error was replied. */
static bool lb_tag_read(const struct call *call, const struct tag_set *tags,
                        const struct lb_tag *tag, struct tag_values *values) {
    unsigned ignored;
    values->mask = 0;
    for (uint32_t i = 0; i < tag->tags.count; i += 2) {
        if (!lb_tags_read(call, tags, tag->tags.at[i], tag->tags.at[i + 1], values)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < tag->conditions.count; i += 2) {
        if (!lb_tags_find(call, tags, tag->conditions.at[i], &ignored)) {
            return false;
        }
    }
    return true;
}

static bool lb_tag_holds(const struct tag_set *tags, const struct option_values *conditions,
                         const struct tag_values *current) {
    for (uint32_t i = 0; i < conditions->count; i += 2) {
        int tag = tag_set_find(tags, conditions->at[i]);
        if (!bytes_equal(lb_tags_value(current, (unsigned)tag), conditions->at[i + 1])) {
            return false;
        }
    }
    return true;
}

/* WINDOW: the running period's results have the tags of the board, where there is room. */
static void lb_tag_set_on_share(const struct call *call, const struct registry_key *key,
                                struct bytes name, const struct tag_values *values) {
    const struct board_options *options = registry_options(key);
    struct board_member member;
    unsigned full;
    bool is_taken;
    struct registry_key *share =
        options->window.count > 0 ? window_find_share(call->registry, key, options->period_start_ms,
                                                      call->now_ms, &is_taken)
                                  : NULL;
    if (share == NULL ||
        !tag_set_equal(&board_layout(&share->board)->tags, &options->layout.tags)) {
        return;
    }
    board_look_up(&share->board, name, NULL, &member);
    if (member.is_there &&
        registry_board_tag(call->registry, share, &member, values, &full) == TAGS_OK) {
        registry_tell_members(call->registry, share);
        call_notify_command(call, SETTING_EVENT_ZSET, registry_name(share));
    }
}

/* Set the values, and reply. */
static void lb_tag_set(const struct call *call, struct registry_key *key,
                       const struct board_member *member, const struct tag_values *values) {
    unsigned full = 0;
    switch (registry_board_tag(call->registry, key, member, values, &full)) {
    case TAGS_OK:
        lb_tag_set_on_share(call, key, member->name, values);
        registry_tell_members(call->registry, key);
        call_notify_command(call, SETTING_EVENT_ZSET, registry_name(key));
        reply_integer(call->reply, 1);
        break;
    case TAGS_SAME:
        reply_integer(call->reply, 0);
        break;
    case TAGS_OUT_OF_MEMORY:
        call_out_of_memory(call);
        break;
    case TAGS_FULL:
        lb_tags_refuse_full(call, &key->board, values, full);
        break;
    }
}

static void lb_tag_run(struct call *call) {
    struct registry_key *key;
    struct board_member member;
    struct tag_values values;
    struct tag_values current;
    struct lb_tag tag = {.tags = {.count = 0}};
    if (!syntax_read(call, &tag) || !call_check_own(call, call_arg(call, ARG_MEMBER)) ||
        !call_find_kind(call, call_arg(call, 1), REGISTRY_BOARD, &key)) {
        return;
    }
    if (key == NULL) {
        reply_integer(call->reply, 0);
        return;
    }
    const struct tag_set *tags = &board_layout(&key->board)->tags;
    if (!lb_tag_read(call, tags, &tag, &values)) {
        return;
    }
    if (!zset_look_up(call, &key->board, call_arg(call, ARG_MEMBER), &member)) {
        reply_integer(call->reply, 0);
        return;
    }
    tags_of(&key->board, &member, &current);
    if (lb_tag_holds(tags, &tag.conditions, &current)) {
        lb_tag_set(call, key, &member, &values);
    } else {
        reply_integer(call->reply, 0);
    }
}

const struct command command_lb_tag = {
    .name = "LB.TAG",
    .syntax = "key member tag=(tag value)... [IF (tag value)...]",
    .bindings = lb_tag_bindings,
    .reply = "b",
    .summary = "Set tags of a member, if (IF) others have these values; 1 if that changed one",
    .complexity = "O(log n) in the members of the board",
    .flags = COMMAND_WRITE | COMMAND_DENYOOM | COMMAND_FAST | COMMAND_OWN_MEMBER,
    .key_access = "RW access update",
    .member_arg = ARG_MEMBER,
    .run = lb_tag_run,
};

/* ---- reading ---- */

static void lb_tag_reply_one(const struct call *call, const struct board *board, struct bytes name,
                             const struct lookup *ahead) {
    struct board_member member;
    struct tag_values values;
    if (!zset_look_up_ahead(board, name, ahead, &member)) {
        reply_null_array(call->reply);
        return;
    }
    tags_of(board, &member, &values);
    lb_tags_reply(call->reply, &board_layout(board)->tags, &values);
}

static void lb_tags_run(struct call *call) {
    uint32_t count = call->request->count - FIRST_OF_MANY;
    const struct bytes *names = &call->request->args[FIRST_OF_MANY];
    struct lookup ahead[LOOKUP_GROUP];
    const struct board *board;
    if (!call_find_board(call, call_arg(call, 1), &board)) {
        return;
    }
    reply_array(call->reply, count);
    for (uint32_t i = 0; i < count && !reply_is_lost(call->reply); i++) {
        if (board != NULL && count > 1 && i % LOOKUP_GROUP == 0) {
            lookup_members(board, &names[i], 1, lookup_group_size(count, i), ahead);
        }
        lb_tag_reply_one(call, board, names[i], count > 1 ? &ahead[i % LOOKUP_GROUP] : call->ahead);
    }
}

const struct command command_lb_tags = {
    .name = "LB.TAGS",
    .syntax = "key member...",
    .reply = "[{s}?]",
    .summary = "The tags of many members",
    .complexity = "O(m log n) for m of the board's n members",
    .flags = COMMAND_READ | COMMAND_FAST,
    .member_arg = FIRST_OF_MANY,
    .member_step = 1,
    .cost = COST(COMMAND_BY_ARGUMENTS, cost_count_members, 1000, 0, "requested member",
                 "several commands of a thousand each"),
    .run = lb_tags_run,
};
