/* LB.TAG: sets tags of one member, if others hold. LB.TAGS: reads them. And what other commands with tags need.
 *
 *     LB.TAG race@2026-11-16 ann claimed 1 IF claimed ""
 *
 * Tags change no result, so they are also written on boards that are frozen or closed. */
#include "server/commands/lb/lb.h"

#include <stdio.h>

#include "protocol/reply.h"
#include "server/commands/window.h"
#include "server/commands/zset/zset.h"
#include "server/dispatch/syntax.h"
#include "skiplist/lookup.h"

enum {
    NAMES_SIZE_MAX = TAGS_MAX * (TAG_NAME_MAX + 2) + 1,
    ARG_MEMBER = 2,
    FIRST_OF_MANY = 2,
};

bool lb_tag_values_find(const struct call *call, const struct tag_set *tags, struct bytes name,
                        unsigned *tag) {
    char names[NAMES_SIZE_MAX];
    int index = tag_set_find(tags, name);
    if (index >= 0) {
        *tag = (unsigned)index;
        return true;
    }
    if (name.size > 0 && memchr(name.at, '=', name.size) != NULL) { /* WHERE country=DE COMP */
        return call_refuse_word(call, name, "is not a tag", NULL);
    }
    /* "country, class" */
    size_t size = 0;
    *names = '\0';
    for (unsigned i = 0; i < tags->count; i++) {
        size += (size_t)snprintf(names + size, NAMES_SIZE_MAX - size, "%s%s", i > 0 ? ", " : "",
                                 tags->tags[i].name);
    }
    reply_error_format(call->reply, "ERR no tag '%s': this board has %s", bytes_show(name).text,
                       tags->count == 0 ? "no tags" : names);
    call->reply->error_cause = REPLY_NO_TAG;
    return false;
}

bool lb_tag_values_read(const struct call *call, const struct tag_set *tags, struct bytes name,
                        struct bytes value, struct tag_values *values) {
    unsigned tag;
    if (!lb_tag_values_find(call, tags, name, &tag)) {
        return false;
    }
    if (value.size > TAG_VALUE_MAX) {
        return call_refuse_format(
            call, "ERR value '%s' of tag '%s' is %zu bytes long: at most %d are allowed",
            bytes_show(value).text, tags->tags[tag].name, value.size, (int)TAG_VALUE_MAX);
    }
    values->mask |= 1U << tag;
    values->at[tag] = value;
    return true;
}

static bool lb_tag_refuse_full(const struct call *call, const struct board *board,
                               const struct tag_values *values, unsigned tag) {
    const struct tag *full = &board_layout(board)->tags.tags[tag];
    return call_refuse_format(call,
                              "ERR no room for value '%s' of tag '%s': its %u bits allow %u "
                              "different values at a time",
                              bytes_show(values->at[tag]).text, full->name, (unsigned)full->bits,
                              (unsigned)tag_values_max(full));
}

bool lb_tag_values_check_room(const struct call *call, struct board *board,
                              const struct tag_values *values) {
    unsigned full = 0;
    bool has_room = tags_fit(board, values, &full);
    while (!has_room && board_free_remains(board)) { /* as registry_board_tag does */
        has_room = tags_fit(board, values, &full);
    }
    return has_room || lb_tag_refuse_full(call, board, values, full);
}

_Static_assert((int)TAG_NAME_MAX <= (int)REPLY_PUT_SHORT_MAX &&
                   (int)TAG_VALUE_MAX <= (int)REPLY_PUT_SHORT_MAX,
               "names and values are short");

size_t lb_tag_values_room(const struct tag_set *tags) {
    return REPLY_PUT_HEADER_ROOM + 2 * (size_t)REPLY_PUT_SHORT_ROOM * tags->count;
}

char *lb_tag_values_put(char *out, const struct tag_set *tags, const struct tag_values *values,
                        uint8_t version) {
    unsigned count = 0;
    for (unsigned i = 0; i < tags->count; i++) {
        count += lb_tag_values_value(values, i).size > 0;
    }
    out = reply_put_header(out, version == 3 ? '%' : '*', version == 3 ? count : 2 * count);
    for (unsigned i = 0; i < tags->count; i++) {
        struct bytes value = lb_tag_values_value(values, i);
        if (value.size > 0) {
            out = reply_put_short_bulk(out, bytes_from_text(tags->tags[i].name));
            out = reply_put_short_bulk(out, value);
        }
    }
    return out;
}

/* ---- LB.TAG ---- */

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
        if (!lb_tag_values_read(call, tags, tag->tags.at[i], tag->tags.at[i + 1], values)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < tag->conditions.count; i += 2) {
        if (!lb_tag_values_find(call, tags, tag->conditions.at[i], &ignored)) {
            return false;
        }
    }
    return true;
}

/* The running period's results have the tags of the board, where there is room. */
static void lb_tag_set_on_share(const struct call *call, const struct registry_key *key,
                                struct bytes name, const struct tag_values *values) {
    const struct board_options *options = registry_options(key);
    struct board_member member;
    unsigned full;
    struct registry_key *share = window_find_running(call->registry, key, call->now_ms);
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
        lb_tag_refuse_full(call, &key->board, values, full);
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
    bool holds = true; /* IF */
    for (uint32_t i = 0; i < tag.conditions.count && holds; i += 2) {
        int index = tag_set_find(tags, tag.conditions.at[i]);
        struct bytes value = lb_tag_values_value(&current, (unsigned)index);
        holds = bytes_equal(value, tag.conditions.at[i + 1]);
    }
    if (holds) {
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
        struct board_member member;
        struct tag_values values;
        const struct lookup *found = count > 1 ? &ahead[i % LOOKUP_GROUP] : call->ahead;
        if (!zset_look_up_ahead(board, names[i], found, &member)) {
            reply_null_array(call->reply);
            continue;
        }
        tags_of(board, &member, &values);
        const struct tag_set *tags = &board_layout(board)->tags;
        struct reply *reply = call->reply;
        char *out = reply->is_silent ? NULL : buffer_reserve(reply->out, lb_tag_values_room(tags));
        if (out != NULL) {
            char *end = lb_tag_values_put(out, tags, &values, reply->version);
            buffer_commit(reply->out, (size_t)(end - out));
        }
    }
}

const struct command command_lb_tags = {
    .name = "LB.TAGS",
    .syntax = "key member...",
    .reply = "[{s}?]",
    .summary = "The tags of many members",
    .complexity = "O(m log n) for m of the board's n members",
    .flags = COMMAND_READ | COMMAND_FAST | COMMAND_OWN_MEMBER,
    .member_arg = FIRST_OF_MANY,
    .member_step = 1,
    .cost = COST(COMMAND_BY_ARGUMENTS, cost_count_members, 1000, 0, "requested member",
                 "several commands of a thousand each"),
    .run = lb_tags_run,
};
