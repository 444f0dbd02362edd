/* Results that come again. See once.h. */
#include "server/commands/once.h"

static void once_look_up(struct once *once) {
    board_look_up(&once->ids->board, once->name, NULL, &once->member);
    once->count = board_count(&once->ids->board);
}

static bool once_is_known(struct once *once) {
    if (once->ids == NULL) {
        return false;
    }
    once_look_up(once);
    return once->member.is_there &&
           once_ids_is_young(once->call->server, once_ids_time_of(once->member.key), once->time);
}

static struct registry_key *once_find_ids(const struct once *once) {
    return once_ids_find(once->call->server, once->call->session->database, once->key);
}

/* Is there room for another id, if need be where old ones were? */
static bool once_has_room(struct once *once) {
    struct server *server = once->call->server;
    uint64_t ids_max = (uint64_t)server->settings.once_max;
    if (once_ids_count(server, once->ids) < ids_max) {
        return true;
    }
    once_ids_forget(server, once->ids);
    once->ids = once_find_ids(once);
    return once_ids_count(server, once->ids) < ids_max;
}

enum once_status once_begin(const struct call *call, struct bytes key, struct bytes id,
                            struct once *once) {
    struct server *server = call->server;
    if (!call_check_key(call, key)) {
        return ONCE_REFUSED;
    }
    const char *refusal = once_ids_find_refusal(server, key);
    if (refusal != NULL) {
        reply_error(call->reply, refusal);
        return ONCE_REFUSED;
    }
    *once = (struct once){.call = call, .key = key, .time = once_ids_now(server)};
    once->name = once_ids_member(key, id, once->room);
    once->ids = once_find_ids(once);
    if (once_is_known(once)) {
        server->stats.once_repeated++;
        /* The first one may not be everywhere yet: this answer waits for that as one of a change, and so does WAIT
         * behind it. */
        server->durability.effect_count++;
        return ONCE_REPEATED;
    }
    if (!once_has_room(once)) {
        server->stats.once_refused++;
        reply_error_format(call->reply,
                           "TRYAGAIN there are %lld ids (once-max) younger than once-window: send "
                           "this again later",
                           (long long)server->settings.once_max);
        return ONCE_REFUSED;
    }
    return ONCE_NEW;
}

bool once_put(struct once *once) {
    struct server *server = once->call->server;
    struct registry_key *ids =
        once_ids_find_or_create(server, once->call->session->database, once->key);
    if (ids == NULL) {
        return call_out_of_memory(once->call);
    }
    if (ids != once->ids || board_count(&ids->board) != once->count) {
        once->ids = ids;
        once_look_up(once);
    }
    if (registry_put_member(server->registry, ids, &once->member, once_ids_key_of(once->time)) !=
        BOARD_OK) {
        once_take_back(once);
        return call_out_of_memory(once->call);
    }
    registry_tell_members(server->registry, ids);
    return true;
}

void once_take_back(struct once *once) {
    struct registry *registry = once->call->registry;
    once_look_up(once);
    if (once->member.is_there) {
        registry_take_member(registry, once->ids, &once->member);
    }
    if (board_count(&once->ids->board) == 0) {
        registry_remove(registry, once->ids);
    }
}
