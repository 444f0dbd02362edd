/* Results that come again. See once.h. */
#include "server/commands/once.h"

#include "server/acl/acl.h"

enum { ONCE_SHARE = 4 }; /* times what is free */

static struct registry_key *once_find_ids(const struct once *once) {
    return once_ids_find(once->call->server, once->call->session->database, once->key);
}

static void once_look_up(struct once *once, const struct once_mark *mark) {
    board_look_up(&once->ids->board, mark->name, NULL, &once->member);
    once->count = board_count(&once->ids->board);
}

static bool once_is_known(struct once *once, const struct once_mark *mark) {
    if (once->ids == NULL) {
        return false;
    }
    once_look_up(once, mark);
    return once->member.is_there &&
           once_ids_is_young(once->call->server, once_ids_time_of(once->member.key), once->time);
}

/* ---- room ---- */

static bool once_fits(const struct once *once, uint64_t all, uint64_t own) {
    uint64_t ids_max = (uint64_t)once->call->server->settings.once_max;
    uint64_t added = once->mark_count;
    return all + added <= ids_max && (own == 0 || own + added <= ONCE_SHARE * (ids_max - all));
}

/* Is there room for another id, if need be where old ones of the same user were? What a user has is only counted where
 * it may be too much. */
static bool once_has_room(struct once *once, struct once_ids_share *share) {
    struct server *server = once->call->server;
    uint64_t all = once_ids_count(server, once->ids);
    *share = (struct once_ids_share){.oldest = UINT64_MAX};
    if (once_fits(once, all, all)) {
        return true;
    }
    *share = once_ids_share_of(server, once->ids, once->owner);
    if (once_fits(once, all, share->count)) {
        return true;
    }
    once_ids_forget(server, once->ids, once->owner);
    once->ids = once_find_ids(once);
    *share = once_ids_share_of(server, once->ids, once->owner);
    return once_fits(once, once_ids_count(server, once->ids), share->count);
}

static void once_refuse_full(const struct once *once, const struct once_ids_share *share) {
    const struct call *call = once->call;
    struct server *server = call->server;
    struct once_ids_share top[ONCE_IDS_TOP];
    uint64_t window_ms = (uint64_t)server->settings.once_window_s * 1000;
    /* Seconds until the oldest id of the user goes, or where it has none, the oldest of those who have most. */
    uint64_t oldest = share->oldest;
    unsigned count = oldest == UINT64_MAX ? once_ids_top(server, top) : 0;
    for (unsigned i = 0; i < count; i++) {
        oldest = top[i].oldest < oldest ? top[i].oldest : oldest;
    }
    uint64_t goes_at = (oldest < once->time ? oldest : once->time) + window_ms;
    uint64_t left_ms = goes_at > once->time ? goes_at - once->time : 0;
    uint32_t retry_s = left_ms > 0 ? (uint32_t)((left_ms + 999) / 1000) : 1;
    long long ids_max = (long long)server->settings.once_max;
    uint64_t all = once_ids_count(server, once->ids);
    server->stats.once_refused++;
    if (all + once->mark_count > (uint64_t)ids_max) {
        reply_error_format(call->reply,
                           "TRYAGAIN there are %lld ids (once-max) younger than once-window: send "
                           "this again in %u seconds",
                           ids_max, retry_s);
    } else {
        reply_error_format(call->reply,
                           "TRYAGAIN user '%s' has %llu of the %lld ids (once-max) younger than "
                           "once-window, and the others need room: send this again in %u seconds",
                           bytes_show(call->session->user->name).text,
                           (unsigned long long)share->count, ids_max, retry_s);
    }
    call->reply->error_wait_s = retry_s;
}

/* ---- the parts of a command ---- */

enum once_status once_begin(const struct call *call, struct bytes key, struct bytes id,
                            struct once *once) {
    struct server *server = call->server;
    struct once_ids_share share;
    if (!call_check_key(call, key)) {
        return ONCE_REFUSED;
    }
    const char *refusal = once_ids_find_refusal(server, key);
    if (refusal != NULL) {
        reply_error(call->reply, refusal);
        return ONCE_REFUSED;
    }
    *once = (struct once){.call = call, .key = key, .time = once_ids_now(server)};
    char own[DIGEST_SIZE];
    id = call->session->player != NULL ? once_ids_own(call->session, id, own) : id;
    once->owner = once_ids_owner(call->session);
    /* The one by which a repeat is known is the first. */
    struct session_once *asked = call->session->once;
    struct once_mark *marks = once->marks;
    once->mark_count = asked != NULL ? ONCE_MARKS_MAX : 1;
    if (asked == NULL) {
        marks[0].name = once_ids_member(key, id, marks[0].room);
    } else {
        marks[0].name = once_ids_mark(call->session, id, asked->fingerprint, marks[0].room);
        marks[1].name = once_ids_mark(call->session, id, BYTES(""), marks[1].room);
    }
    once->ids = once_find_ids(once);
    if (once_is_known(once, &once->marks[0])) {
        server->stats.once_repeated++;
        if (asked != NULL) {
            asked->is_repeated = true;
        }
        /* The first one may not be everywhere yet: this answer waits for that as one of a change, and so does WAIT
         * behind it. */
        server->durability.effect_count++;
        return ONCE_REPEATED;
    }
    if (once->mark_count > 1 && once_is_known(once, &once->marks[1])) {
        reply_error(call->reply, "ERR this id was sent with another result before: a new result "
                                 "needs a new id");
        return ONCE_REFUSED;
    }
    if (!once_has_room(once, &share)) {
        once_refuse_full(once, &share);
        return ONCE_REFUSED;
    }
    return ONCE_NEW;
}

bool once_put(struct once *once) {
    struct server *server = once->call->server;
    uint64_t key = once_ids_key_of(once->owner, once->time);
    struct registry_key *ids =
        once_ids_find_or_create(server, once->call->session->database, once->key);
    if (ids == NULL) {
        return call_out_of_memory(once->call);
    }
    /* The last mark was looked up by once_begin. */
    bool is_looked_up = ids == once->ids && board_count(&ids->board) == once->count;
    once->ids = ids;
    for (uint32_t i = once->mark_count; i-- > 0; is_looked_up = false) {
        if (!is_looked_up) {
            once_look_up(once, &once->marks[i]);
        }
        if (registry_board_put(server->registry, once->ids, &once->member, key) != BOARD_OK) {
            once_take_back(once);
            return call_out_of_memory(once->call);
        }
    }
    registry_tell_members(server->registry, once->ids);
    return true;
}

void once_take_back(struct once *once) {
    struct registry *registry = once->call->registry;
    for (uint32_t i = 0; i < once->mark_count; i++) {
        once_look_up(once, &once->marks[i]);
        if (once->member.is_there) {
            registry_board_take(registry, once->ids, &once->member);
        }
    }
    if (board_count(&once->ids->board) == 0) {
        registry_remove(registry, once->ids);
    }
}
