/* Who has read which key, and messages to them. See tracking.h.
 *
 * A message is made once, and then copied into the output of each client that gets it. */
#include "server/sessions/tracking.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "server/acl/acl.h"
#include "server/sessions/job.h"

enum {
    NOTES_MAX = 4096, /* then they are told before the end of the tick */
    DRAWN = 5,        /* keys: that with the fewest readers makes room */
    EVICTED_MAX = 64, /* keys in a tick, after CONFIG SET of a lower limit */
};

/* A changed key, and a prefix that it begins with. */
struct tracking_note {
    struct link link; /* first member: a link is cast to its note */
    uint64_t writer;  /* whose commands alone changed it: an id; 0: others, too */
    uint32_t prefix_size;
    uint32_t name_size;
    char name[];
};

/* Keys as they stand in a message; at NULL: null, for all keys. */
struct tracking_message {
    struct server *server;
    struct bytes keys;
    const struct session *writer; /* is not told if it has NOLOOP; NULL: all are told */
};

/* ---- messages ---- */

/* Whom to tell. NULL: nobody, as it is gone. */
static struct session *tracking_receiver(struct server *server, struct session *session) {
    uint64_t id = session->tracking.redirect;
    struct session *receiver = id == 0 ? session : server_find_session(server, id);
    if (receiver != NULL) {
        return receiver;
    }
    session->tracking.is_broken = true;
    struct buffer *out = session->protocol > 2 ? server_push(server, session) : NULL;
    if (out != NULL && !out->is_broken) {
        struct reply reply;
        reply_init(&reply, out, session->protocol);
        reply_push(&reply, 2);
        reply_bulk_text(&reply, "tracking-redir-broken");
        reply_integer(&reply, (int64_t)id);
    }
    return NULL;
}

static void tracking_send(const struct tracking_message *message, struct session *session) {
    struct session *receiver = tracking_receiver(message->server, session);
    bool is_push = receiver != NULL && receiver->protocol > 2;
    if (receiver == NULL ||
        (!is_push && (session->tracking.redirect == 0 || !session_is_subscriber(receiver)))) {
        return; /* RESP2 has messages for subscribers alone */
    }
    /* Behind the reply to the command that runs, and behind that of one which reads in steps: a client must not take
     * for current what it had read before. */
    struct buffer *out = &receiver->kept;
    if (receiver->job == NULL || receiver->is_killed) {
        out = server_push(message->server, receiver);
    } else {
        receiver->kept.size_max = server_output_room(message->server, receiver);
    }
    if (out == NULL || out->is_broken) {
        return;
    }
    buffer_append_bytes(out, is_push
                                 ? BYTES(">2\r\n$10\r\ninvalidate\r\n")
                                 : BYTES("*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n"));
    buffer_append_bytes(out, message->keys.at != NULL ? message->keys
                             : is_push                ? BYTES("_\r\n")
                                                      : BYTES("$-1\r\n"));
}

static void tracking_send_all(struct server *server, bool is_broadcast_only) {
    const struct tracking_message message = {.server = server, .keys = {.at = NULL}};
    struct session *session = server->tracking.first;
    for (; session != NULL; session = session->links[SESSION_TRACKERS].next) {
        if (session->tracking.is_broadcast || !is_broadcast_only) {
            tracking_send(&message, session);
        }
    }
}

/* ---- keys that were read ---- */

static void tracking_tell_reader(void *context, void *owner) {
    const struct tracking_message *message = context;
    struct session *session = owner;
    const struct session_tracking *own = &session->tracking;
    /* Redis, too, keeps quiet of what was read before OFF or BCAST. */
    if (own->is_on && !own->is_broadcast && !(own->is_no_loop && session == message->writer)) {
        tracking_send(message, session);
    }
}

/* One key, as it stands in a message. */
enum { KEY_HEAD_MAX = 32 };
struct tracking_key_text {
    char at[KEY_HEAD_MAX + REGISTRY_NAME_MAX + 2];
};
static struct bytes tracking_print_key(struct tracking_key_text *text, struct bytes name) {
    char head[KEY_HEAD_MAX];
    int size = snprintf(head, sizeof head, "*1\r\n$%zu\r\n", name.size);
    CHECK(size > 0 && size < KEY_HEAD_MAX && name.size <= REGISTRY_NAME_MAX);
    memcpy(text->at, head, (size_t)size);
    if (name.size > 0) {
        memcpy(text->at + size, name.at, name.size);
    }
    memcpy(text->at + size + name.size, "\r\n", 2);
    return (struct bytes){.at = text->at, .size = (size_t)size + name.size + 2};
}

static void tracking_tell_readers(struct server *server, struct bytes name,
                                  const struct session *writer) {
    struct tracking_key_text text;
    struct tracking_message message = {
        .server = server, .keys = tracking_print_key(&text, name), .writer = writer};
    subscription_expel(&server->tracking.keys, SUBSCRIPTION_KEY, name, tracking_tell_reader,
                       &message);
}

static bool tracking_is_full(const struct server *server) {
    uint64_t keys_max = (uint64_t)server->settings.tracking_table_max_keys;
    return keys_max > 0 &&
           (tracking_key_count(&server->tracking) > keys_max ||
            tracking_item_count(&server->tracking) / TRACKING_READERS_MAX > keys_max);
}

/* Make room: tell the readers of one of the keys. */
static void tracking_evict(struct server *server) {
    char copy[REGISTRY_NAME_MAX];
    uint64_t keys_max = (uint64_t)server->settings.tracking_table_max_keys;
    /* With too many readers, any key; with too many keys one that few have read. */
    uint32_t drawn = tracking_key_count(&server->tracking) > keys_max ? DRAWN : 1;
    struct bytes name =
        subscription_draw(&server->tracking.keys, SUBSCRIPTION_KEY, server_random(server), drawn);
    memcpy(copy, name.at, name.size);
    tracking_tell_readers(server, (struct bytes){.at = copy, .size = name.size}, NULL);
}

void tracking_remember(struct server *server, struct session *session, struct bytes name) {
    const struct session_tracking *own = &session->tracking;
    CHECK(own->is_on && !own->is_broadcast);
    bool is_meant = own->is_opt_in ? own->is_caching : own->is_opt_out ? !own->is_caching : true;
    if (!is_meant || name.size > REGISTRY_NAME_MAX) {
        return; /* there is no key of such a name, and there will be none */
    }
    if (!subscription_add(&server->tracking.keys, &session->tracking.keys, session,
                          SUBSCRIPTION_KEY, name)) {
        /* Of this key's changes it will not be told: as if it had changed already. */
        struct tracking_key_text text;
        tracking_tell_reader(
            &(struct tracking_message){.server = server, .keys = tracking_print_key(&text, name)},
            session);
    } else if (tracking_is_full(server)) {
        tracking_evict(server);
    }
}

/* ---- BCAST ---- */

static struct bytes tracking_note_name(const struct tracking_note *note) {
    return (struct bytes){.at = note->name, .size = note->name_size};
}

static void tracking_drop_notes(struct tracking *tracking) {
    struct link_table *notes = &tracking->notes;
    while (notes->count > 0) {
        struct link *last = notes->links[notes->count - 1];
        link_table_take(notes, last);
        memory_free(last);
    }
}

static struct tracking_note *tracking_find_note(const struct link_table *notes, uint64_t hash,
                                                struct bytes name, size_t prefix_size) {
    struct map_find find;
    struct link *link;
    if (link_table_find(notes, hash, &find)) {
        while ((link = link_table_next(notes, &find)) != NULL) {
            struct tracking_note *note = (struct tracking_note *)link;
            if (note->prefix_size == prefix_size && bytes_equal(tracking_note_name(note), name)) {
                return note;
            }
        }
    }
    return NULL;
}

/* By prefix, then by name, as Redis has them. */
static int tracking_compare_notes(const void *a, const void *b) {
    const struct tracking_note *one = *(struct tracking_note *const *)a;
    const struct tracking_note *other = *(struct tracking_note *const *)b;
    if (one->prefix_size != other->prefix_size) {
        return one->prefix_size < other->prefix_size ? -1 : 1;
    }
    return bytes_compare(tracking_note_name(one), tracking_note_name(other));
}

/* A message to clients with BCAST, which is made anew where one gets other keys than the one before. */
struct tracking_broadcast {
    struct tracking_message message;
    struct tracking_note *const *notes; /* of its prefix */
    uint32_t note_count;
    struct buffer keys;
    uint32_t key_count;
    const struct acl_user *user; /* whose keys they are; NULL: of any who may read all */
    uint64_t without;            /* whose own changes they leave out; 0: nobody's */
    bool is_made;
};

static void tracking_make_keys(struct tracking_broadcast *broadcast) {
    struct buffer names;
    struct reply reply;
    buffer_init(&names, 0);
    reply_init(&reply, &names, 2);
    broadcast->key_count = 0;
    for (uint32_t i = 0; i < broadcast->note_count; i++) {
        const struct tracking_note *note = broadcast->notes[i];
        struct bytes name = tracking_note_name(note);
        if ((note->writer == 0 || note->writer != broadcast->without) &&
            (broadcast->user == NULL || acl_user_may_read(broadcast->user, name))) {
            reply_bulk(&reply, name);
            broadcast->key_count++;
        }
    }
    buffer_clear(&broadcast->keys);
    reply_init(&reply, &broadcast->keys, 2);
    reply_array(&reply, broadcast->key_count);
    buffer_append(&broadcast->keys, names.at, names.size);
    /* Without memory for their names: all keys. */
    bool is_broken = names.is_broken || broadcast->keys.is_broken;
    broadcast->message.keys = buffer_bytes(&broadcast->keys);
    if (is_broken) {
        broadcast->message.keys.at = NULL;
    }
    broadcast->is_made = true;
    buffer_deinit(&names);
}

static void tracking_tell_broadcaster(void *context, void *owner, struct bytes pattern) {
    (void)pattern;
    struct tracking_broadcast *broadcast = context;
    struct session *session = owner;
    const struct acl_user *user = session->is_unlimited ? NULL : session->user;
    /* Has it changed one of the noted keys, and is not to be told of it? */
    uint64_t without = 0;
    for (uint32_t i = 0; session->tracking.is_no_loop && i < broadcast->note_count; i++) {
        without = broadcast->notes[i]->writer == session->id ? session->id : without;
    }
    if (!broadcast->is_made || user != broadcast->user || without != broadcast->without) {
        broadcast->user = user;
        broadcast->without = without;
        tracking_make_keys(broadcast);
    }
    if (session->tracking.is_on && broadcast->key_count > 0) {
        tracking_send(&broadcast->message, session);
    }
}

static void tracking_tell_notes(struct server *server) {
    const struct link_table *table = &server->tracking.notes;
    struct tracking_note **notes = memory_allocate(table->count * sizeof(void *));
    if (notes == NULL) {
        tracking_drop_notes(&server->tracking);
        tracking_send_all(server, true);
        return;
    }
    for (uint32_t i = 0; i < table->count; i++) {
        notes[i] = (struct tracking_note *)table->links[i];
    }
    qsort(notes, table->count, sizeof(void *), tracking_compare_notes);
    for (uint32_t begin = 0, end = 1; begin < table->count; begin = end++) {
        while (end < table->count && notes[end]->prefix_size == notes[begin]->prefix_size &&
               memcmp(notes[end]->name, notes[begin]->name, notes[begin]->prefix_size) == 0) {
            end++;
        }
        /* The notes of one prefix. */
        struct tracking_broadcast broadcast = {
            .message = {.server = server}, .notes = notes + begin, .note_count = end - begin};
        struct bytes prefix = {.at = notes[begin]->name, .size = notes[begin]->prefix_size};
        buffer_init(&broadcast.keys, 0);
        subscription_each_receiver(&server->tracking.prefixes, SUBSCRIPTION_PREFIX, prefix,
                                   tracking_tell_broadcaster, &broadcast);
        buffer_deinit(&broadcast.keys);
    }
    memory_free(notes);
    tracking_drop_notes(&server->tracking);
}

/* false: no memory. */
static bool tracking_note_prefix(struct server *server, struct bytes name, size_t prefix_size,
                                 uint64_t writer) {
    struct link_table *notes = &server->tracking.notes;
    uint64_t hash = XXH3_64bits_withSeed(name.at, name.size, server->hash_seed + prefix_size);
    struct tracking_note *note = tracking_find_note(notes, hash, name, prefix_size);
    if (note != NULL) {
        note->writer = note->writer == writer ? writer : 0;
        return true;
    }
    if (notes->count == NOTES_MAX) {
        tracking_tell_notes(server);
    }
    note = link_table_reserve(notes) ? memory_allocate(sizeof *note + name.size) : NULL;
    if (note == NULL) {
        link_table_shrink(notes);
        return false;
    }
    *note = (struct tracking_note){
        .link = {.hash = hash},
        .writer = writer,
        .prefix_size = (uint32_t)prefix_size,
        .name_size = (uint32_t)name.size,
    };
    if (name.size > 0) {
        memcpy(note->name, name.at, name.size);
    }
    link_table_put(notes, &note->link);
    return true;
}

enum { SIZES_END = 4 * 64 - 1 }; /* prefixes of this size and longer share a bit */

static void tracking_add_size(void *context, struct bytes prefix) {
    uint64_t *sizes = context;
    size_t bit = prefix.size < SIZES_END ? prefix.size : SIZES_END;
    sizes[bit / 64] |= UINT64_C(1) << bit % 64;
}

/* Prefixes are looked up by each size that any has, so that a change costs the same however many there are. */
static void tracking_note_change(struct server *server, struct bytes name,
                                 const struct session *writer) {
    struct tracking *tracking = &server->tracking;
    if (!tracking->are_sizes_known) {
        memset(tracking->prefix_sizes, 0, sizeof tracking->prefix_sizes);
        subscription_each_topic(&tracking->prefixes, SUBSCRIPTION_PREFIX, tracking_add_size,
                                tracking->prefix_sizes);
        tracking->are_sizes_known = true;
    }
    for (size_t size = 0; size <= name.size; size++) {
        size_t bit = size < SIZES_END ? size : SIZES_END;
        struct bytes prefix = {.at = name.at, .size = size};
        bool is_any = (tracking->prefix_sizes[bit / 64] >> bit % 64 & 1) != 0;
        if (!is_any && bit == SIZES_END) {
            return;
        }
        if (is_any &&
            subscription_subscriber_count(&tracking->prefixes, SUBSCRIPTION_PREFIX, prefix) > 0 &&
            !tracking_note_prefix(server, name, size, writer != NULL ? writer->id : 0)) {
            tracking_send_all(server, true);
            return;
        }
    }
}

/* ---- changes ---- */

void tracking_touch(struct server *server, struct bytes name, const struct session *writer) {
    if (tracking_key_count(&server->tracking) > 0) {
        tracking_tell_readers(server, name, writer);
    }
    if (server->tracking.prefixes.client_count > 0) {
        tracking_note_change(server, name, writer);
    }
}

bool tracking_step(struct server *server) {
    struct tracking *tracking = &server->tracking;
    if (tracking->owes_null) {
        tracking->owes_null = false;
        tracking_drop_notes(tracking);
        struct session *session = server->sessions.first; /* some track no more */
        for (; session != NULL; session = session->next) {
            subscription_leave(&tracking->keys, &session->tracking.keys, SUBSCRIPTION_KEY);
        }
        tracking_send_all(server, false);
    } else if (tracking->notes.count > 0) {
        tracking_tell_notes(server);
    }
    for (int i = 0; i < EVICTED_MAX && tracking_is_full(server); i++) {
        tracking_evict(server);
    }
    return tracking_is_full(server);
}

/* ---- clients ---- */

static void tracking_redirect(struct server *server, struct session *session, uint64_t id) {
    struct session *before = server_find_session(server, session->tracking.redirect);
    struct session *after = server_find_session(server, id);
    if (before != NULL) {
        before->tracking.source_count--;
    }
    if (after != NULL) {
        after->tracking.source_count++;
    }
    session->tracking.redirect = id;
}

bool tracking_begin(struct server *server, struct session *session,
                    const struct tracking_options *options) {
    struct tracking *tracking = &server->tracking;
    struct session_tracking *own = &session->tracking;
    uint32_t count_before = own->prefixes.counts[SUBSCRIPTION_PREFIX];
    static const struct bytes all_keys = BYTES_INIT("");
    const struct bytes *prefixes = options->prefix_count > 0 ? options->prefixes : &all_keys;
    uint32_t count = !options->is_broadcast      ? 0
                     : options->prefix_count > 0 ? options->prefix_count
                                                 : 1;
    tracking->are_sizes_known = tracking->are_sizes_known && count == 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!subscription_add(&tracking->prefixes, &own->prefixes, session, SUBSCRIPTION_PREFIX,
                              prefixes[i])) {
            subscription_cut(&tracking->prefixes, &own->prefixes, SUBSCRIPTION_PREFIX,
                             count_before);
            return false;
        }
    }
    if (!own->is_on) {
        session_link(&tracking->first, session, SESSION_TRACKERS);
        tracking->client_count++;
    }
    own->is_on = true;
    own->is_broadcast = options->is_broadcast;
    own->is_opt_in = options->is_opt_in;
    own->is_opt_out = options->is_opt_out;
    own->is_no_loop = options->is_no_loop;
    own->is_broken = false;
    tracking_redirect(server, session, options->redirect);
    return true;
}

void tracking_end(struct server *server, struct session *session) {
    struct tracking *tracking = &server->tracking;
    struct session_tracking *own = &session->tracking;
    if (!own->is_on) {
        return;
    }
    tracking_redirect(server, session, 0);
    tracking->are_sizes_known = tracking->are_sizes_known && !own->is_broadcast;
    subscription_clear(&tracking->prefixes, &own->prefixes, SUBSCRIPTION_PREFIX);
    session_unlink(&tracking->first, session, SESSION_TRACKERS);
    own->is_on = false;
    own->is_broadcast = false;
    own->is_opt_in = false;
    own->is_opt_out = false;
    own->is_no_loop = false;
    own->is_caching = false;
    own->is_broken = false;
    if (--tracking->client_count == 0) {
        tracking->writer = NULL;
        tracking_drop_notes(tracking);
    }
}

void tracking_forget(struct server *server, struct session *session) {
    tracking_end(server, session);
    subscription_clear(&server->tracking.keys, &session->tracking.keys, SUBSCRIPTION_KEY);
}

void tracking_deinit(struct tracking *tracking) {
    CHECK(tracking->client_count == 0);
    subscription_deinit(&tracking->keys);
    subscription_deinit(&tracking->prefixes);
}

/* ---- validation ---- */

static const char *tracking_check_session(const struct session *session) {
    const struct session_tracking *own = &session->tracking;
    bool has_prefixes = own->prefixes.counts[SUBSCRIPTION_PREFIX] > 0;
    if (has_prefixes != own->is_broadcast) {
        return "tracking: a client has prefixes without BCAST, or BCAST without prefixes";
    }
    if (!own->is_on && (own->is_broadcast || own->is_opt_in || own->is_opt_out || own->is_caching ||
                        own->is_broken || own->redirect != 0)) {
        return "tracking: a client that does not track has options";
    }
    return own->is_opt_in && own->is_opt_out ? "tracking: a client has OPTIN and OPTOUT" : NULL;
}

bool tracking_validate(const struct server *server, const char **reason) {
    const struct tracking *tracking = &server->tracking;
    uint64_t source_total = 0, redirect_total = 0;
    uint32_t on_count = 0, listed_count = 0;
    if (!subscription_validate(&tracking->keys, reason) ||
        !subscription_validate(&tracking->prefixes, reason) ||
        !link_table_validate(&tracking->notes, reason)) {
        return false;
    }
    *reason = NULL;
    for (uint32_t i = 0; i < tracking->notes.count; i++) {
        const struct tracking_note *note = (const struct tracking_note *)tracking->notes.links[i];
        if (tracking_find_note(&tracking->notes, note->link.hash, tracking_note_name(note),
                               note->prefix_size) != note) {
            *reason = "tracking: a note is not found by its name";
        }
    }
    const struct session *session = server->sessions.first;
    for (; session != NULL && *reason == NULL; session = session->next) {
        const struct session_tracking *own = &session->tracking;
        *reason = tracking_check_session(session);
        on_count += own->is_on;
        source_total += own->source_count;
        redirect_total += own->redirect != 0 && server_find_session(server, own->redirect) != NULL;
    }
    for (session = tracking->first; session != NULL;
         session = session->links[SESSION_TRACKERS].next) {
        listed_count += session->tracking.is_on;
    }
    if (*reason == NULL &&
        (on_count != tracking->client_count || listed_count != tracking->client_count)) {
        *reason = "tracking: clients are not counted right";
    }
    if (*reason == NULL && source_total != redirect_total) {
        *reason = "tracking: redirections are not counted right";
    }
    if (*reason == NULL && tracking->client_count == 0 &&
        (tracking->notes.count > 0 || tracking->writer != NULL)) {
        *reason = "tracking: something is noted, and nobody tracks";
    }
    return *reason == NULL;
}
