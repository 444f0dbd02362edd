/* SUBSCRIBE PSUBSCRIBE SSUBSCRIBE, UNSUBSCRIBE PUNSUBSCRIBE SUNSUBSCRIBE, PUBLISH SPUBLISH, PUBSUB.
 *
 * The replies to the first six are pushes: one for each channel, and sent even where CLIENT REPLY
 * has turned replies off, as in Redis. Without a cluster, shard channels are merely channels with
 * names of their own. */
#include "codec/glob.h"
#include "server/dispatch/cost.h"
#include "server/sessions/board_events.h"
#include "server/sessions/notify.h"

/* What a command works on: its entry's variant. */
struct pubsub_variant {
    enum subscription_kind kind;
    const char *word; /* of its pushes; NULL: none */
};

static const struct pubsub_variant *pubsub_variant_of(const struct call *call) {
    return call->command->variant;
}

/* Redis counts channels and patterns together, and shard channels alone. */
static int64_t pubsub_shown_count(const struct session *session, enum subscription_kind kind) {
    const uint32_t *counts = session->subscriptions.counts;
    return kind == SUBSCRIPTION_SHARD
               ? counts[kind]
               : (int64_t)counts[SUBSCRIPTION_CHANNEL] + counts[SUBSCRIPTION_PATTERN];
}

static void pubsub_reply_change(struct reply *reply, const char *word, struct bytes name,
                                int64_t count) {
    bool was_silent = reply->is_silent;
    reply->is_silent = false;
    reply_push(reply, 3);
    reply_bulk_text(reply, word);
    if (name.at != NULL) {
        reply_bulk(reply, name);
    } else {
        reply_null(reply);
    }
    reply_integer(reply, count);
    reply->is_silent = was_silent;
}

/* ---- SUBSCRIBE ---- */

static bool pubsub_check_name(const struct call *call, enum subscription_kind kind,
                              struct bytes name) {
    if (kind == SUBSCRIPTION_PATTERN) {
        return name.size <= GLOB_PATTERN_MAX ||
               call_refuse_format(call, "ERR pattern is too long: at most %d bytes",
                                  GLOB_PATTERN_MAX);
    }
    return name.size <= SUBSCRIPTION_NAME_MAX ||
           call_refuse_format(call, "ERR channel name is too long: at most %d bytes",
                              SUBSCRIPTION_NAME_MAX);
}

/* Above maxmemory clients may still subscribe, as in Redis: Sentinels find each other by it. But not to any number. */
enum { WHEN_FULL_MAX = 128 };

/* Channels are added in order; if memory runs out, those that were added are removed again. */
static void subscribe_run(struct call *call) {
    const struct pubsub_variant *variant = pubsub_variant_of(call);
    struct session *session = call->session;
    struct subscriptions *all = &call->server->subscriptions;
    uint32_t count_before = session->subscriptions.counts[variant->kind];
    size_t size_before = call->reply->out->size;
    if (session->transaction.is_running && variant->kind == SUBSCRIPTION_SHARD) {
        reply_error(call->reply, "ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client");
        return;
    }
    uint64_t count = call->request->count - 1;
    for (int kind = 0; kind < SUBSCRIPTION_KINDS; kind++) {
        count += session->subscriptions.counts[kind];
    }
    if (count > WHEN_FULL_MAX && server_is_over_memory(call->server)) {
        reply_error(call->reply, SERVER_OVER_MEMORY_ERROR);
        return;
    }
    for (uint32_t i = 1; i < call->request->count; i++) {
        if (!pubsub_check_name(call, variant->kind, call_arg(call, i))) {
            return;
        }
    }
    for (uint32_t i = 1; i < call->request->count && !call->reply->out->is_broken; i++) {
        struct bytes name = call_arg(call, i);
        const char *refusal = variant->kind == SUBSCRIPTION_CHANNEL
                                  ? board_events_refuse(call->server, session, name)
                                  : NULL;
        if (refusal != NULL) {
            subscription_cut(all, &session->subscriptions, variant->kind, count_before);
            buffer_cut(call->reply->out, size_before);
            reply_error(call->reply, refusal);
            return;
        }
        if (!subscription_add(all, &session->subscriptions, session, variant->kind, name)) {
            subscription_cut(all, &session->subscriptions, variant->kind, count_before);
            buffer_cut(call->reply->out, size_before);
            call_out_of_memory(call);
            return;
        }
        pubsub_reply_change(call->reply, variant->word, name,
                            pubsub_shown_count(session, variant->kind));
    }
}

static uint64_t pubsub_count_names(const struct cost_view *view) {
    return view->call->request->count - 1;
}
static const struct command_cost name_cost =
    COST_ROW(COMMAND_BY_ARGUMENTS, pubsub_count_names, 1200, 0, "channel named",
             "some thousand channels a request");

#define SUBSCRIBER_FLAGS (COMMAND_PUBSUB | COMMAND_SUBSCRIBER | COMMAND_LOADING)
#define VARIANT(...)     (&(const struct pubsub_variant){__VA_ARGS__})

#define SUBSCRIBE_ENTRY(word, argument, what, which, of, more, ...)                                \
    {                                                                                              \
        .name = word, .syntax = argument "...", .reply = "[kind:s channel:s count:i]",             \
        .summary = "Receive the messages published to " what,                                      \
        .complexity = "O(n) in the " of " named", .flags = SUBSCRIBER_FLAGS | (more),              \
        .channels = which, .cost = &name_cost, .variant = VARIANT(__VA_ARGS__),                    \
        .run = subscribe_run                                                                       \
    }

const struct command command_subscribe =
    SUBSCRIBE_ENTRY("SUBSCRIBE", "channel", "these channels", COMMAND_CHANNELS_SUBSCRIBE,
                    "channels", 0, SUBSCRIPTION_CHANNEL, "subscribe");
const struct command command_psubscribe =
    SUBSCRIBE_ENTRY("PSUBSCRIBE", "pattern", "the channels that match these patterns",
                    COMMAND_CHANNELS_PATTERNS, "patterns", 0, SUBSCRIPTION_PATTERN, "psubscribe");
const struct command command_ssubscribe = SUBSCRIBE_ENTRY(
    "SSUBSCRIBE", "shardchannel", "these channels by SPUBLISH", COMMAND_CHANNELS_SUBSCRIBE,
    "channels", COMMAND_SHARD, SUBSCRIPTION_SHARD, "ssubscribe");

/* ---- UNSUBSCRIBE ---- */

static void unsubscribe_run(struct call *call) {
    const struct pubsub_variant *variant = pubsub_variant_of(call);
    struct session *session = call->session;
    struct subscription_list *list = &session->subscriptions;
    if (call->request->count == 1) {
        /* All of them; they are freed in steps, however many they are. */
        int64_t count = pubsub_shown_count(session, variant->kind);
        const struct subscription *each = subscription_first(list, variant->kind);
        if (each == NULL) {
            pubsub_reply_change(call->reply, variant->word, (struct bytes){.at = NULL}, count);
        }
        for (; each != NULL; each = subscription_next(each)) {
            pubsub_reply_change(call->reply, variant->word, subscription_name(each), --count);
        }
        subscription_clear(&call->server->subscriptions, list, variant->kind);
    }
    for (uint32_t i = 1; i < call->request->count; i++) {
        struct bytes name = call_arg(call, i);
        subscription_remove(&call->server->subscriptions, list, variant->kind, name);
        pubsub_reply_change(call->reply, variant->word, name,
                            pubsub_shown_count(session, variant->kind));
    }
}

static uint64_t pubsub_count_gone(const struct cost_view *view) {
    const struct call *call = view->call;
    const struct pubsub_variant *variant = pubsub_variant_of(call);
    return call->request->count > 1 ? call->request->count - 1
                                    : call->session->subscriptions.counts[variant->kind];
}
static const struct command_cost gone_cost = COST_ROW(
    COMMAND_BY_MEMORY, pubsub_count_gone, 700, 0, "subscription ended", "closing the connection");

#define UNSUBSCRIBE_ENTRY(word, argument, which, more, ...)                                        \
    {                                                                                              \
        .name = word, .syntax = "[" argument "...]", .reply = "[kind:s channel:s? count:i]",       \
        .summary = "End the subscriptions " which ", or to all",                                   \
        .complexity = "O(n) in the subscriptions that end", .flags = SUBSCRIBER_FLAGS | (more),    \
        .cost = &gone_cost, .variant = VARIANT(__VA_ARGS__), .run = unsubscribe_run                \
    }

const struct command command_unsubscribe = UNSUBSCRIBE_ENTRY(
    "UNSUBSCRIBE", "channel", "to these channels", 0, SUBSCRIPTION_CHANNEL, "unsubscribe");
const struct command command_punsubscribe = UNSUBSCRIBE_ENTRY(
    "PUNSUBSCRIBE", "pattern", "to these patterns", 0, SUBSCRIPTION_PATTERN, "punsubscribe");
const struct command command_sunsubscribe =
    UNSUBSCRIBE_ENTRY("SUNSUBSCRIBE", "shardchannel", "of SSUBSCRIBE to these channels",
                      COMMAND_SHARD, SUBSCRIPTION_SHARD, "sunsubscribe");

/* ---- PUBLISH ---- */

static void publish_run(struct call *call) {
    enum subscription_kind kind = pubsub_variant_of(call)->kind;
    if (pubsub_check_name(call, kind, call_arg(call, 1))) {
        reply_integer(call->reply, (int64_t)notify_publish(call->server, kind, call_arg(call, 1),
                                                           call_arg(call, 2)));
    }
}

static uint64_t pubsub_count_tests(const struct cost_view *view) {
    enum { PATTERNS = 8 };
    const struct call *call = view->call;
    const struct subscriptions *all = &call->server->subscriptions;
    enum subscription_kind kind = pubsub_variant_of(call)->kind;
    return (uint64_t)subscription_subscriber_count(all, kind, call_arg(call, 1)) +
           (kind == SUBSCRIPTION_SHARD
                ? 0
                : subscription_topic_count(all, SUBSCRIPTION_PATTERN) / PATTERNS);
}
static const struct command_cost publish_cost = COST_ROW(
    COMMAND_BY_MEMORY, pubsub_count_tests, 200, 0,
    "subscriber of the channel, and 8 patterns that anyone subscribes to", "fewer patterns");

#define PUBLISH_ENTRY(word, channel, who, of, more, kind)                                          \
    {                                                                                              \
        .name = (word), .syntax = channel " message", .reply = "i",                                \
        .summary = "Send a message to " who, .complexity = "O(n" of,                               \
        .flags = COMMAND_PUBSUB | COMMAND_LOADING | COMMAND_FAST | (more),                         \
        .channels = COMMAND_CHANNELS_PUBLISH, .cost = &publish_cost,                               \
        .variant = VARIANT(kind, NULL), .run = publish_run                                         \
    }

const struct command command_publish = PUBLISH_ENTRY(
    "PUBLISH", "channel", "the subscribers of a channel",
    " + m) in the subscribers of the channel and the patterns that anyone subscribes to", 0,
    SUBSCRIPTION_CHANNEL);
const struct command command_spublish =
    PUBLISH_ENTRY("SPUBLISH", "shardchannel", "those who subscribed to the channel by SSUBSCRIBE",
                  ") in the subscribers of the channel", COMMAND_SHARD, SUBSCRIPTION_SHARD);

/* ---- PUBSUB ---- */

struct listing {
    const struct call *call;
    const struct glob *glob; /* NULL: all */
    uint64_t count;
};

static void pubsub_list_channel(void *context, struct bytes name) {
    struct listing *listing = context;
    if (!reply_is_lost(listing->call->reply) &&
        (listing->glob == NULL || glob_takes(listing->glob, name))) {
        reply_bulk(listing->call->reply, name);
        listing->count++;
    }
}

static void channels_run(struct call *call) {
    struct glob glob;
    struct listing listing = {.call = call};
    if (!call_check_count(call, 3, "PUBSUB") ||
        (call->request->count == 3 && !call_prepare_glob(call, call_arg(call, 2), &glob))) {
        return;
    }
    if (call->request->count == 3) {
        listing.glob = &glob;
    }
    size_t mark = reply_array_begin(call->reply);
    subscription_each_topic(&call->server->subscriptions, pubsub_variant_of(call)->kind,
                            pubsub_list_channel, &listing);
    reply_array_end(call->reply, mark, listing.count);
}

static uint64_t pubsub_count_channels(const struct cost_view *view) {
    return subscription_topic_count(&view->call->server->subscriptions,
                                    pubsub_variant_of(view->call)->kind);
}
static const struct command_cost channels_cost =
    COST_ROW(COMMAND_BY_MEMORY, pubsub_count_channels, 50, 0, "channel that has a subscriber",
             "`PUBSUB NUMSUB` of the channels in question");

#define CHANNELS_ENTRY(word, what, own)                                                            \
    {                                                                                              \
        .name = (word), .syntax = "[pattern]", .reply = "[s]", .summary = (what),                  \
        .complexity = "O(n) in the channels", .flags = COMMAND_PUBSUB | COMMAND_LOADING,           \
        .arity = -2, .cost = &channels_cost, .variant = (own), .run = channels_run                 \
    }

static const struct command pubsub_channels = CHANNELS_ENTRY(
    "CHANNELS", "The channels that have a subscriber", VARIANT(SUBSCRIPTION_CHANNEL, NULL));
static const struct command pubsub_shardchannels =
    CHANNELS_ENTRY("SHARDCHANNELS", "The channels that have a subscriber by SSUBSCRIBE",
                   VARIANT(SUBSCRIPTION_SHARD, NULL));

static uint64_t pubsub_count_named(const struct cost_view *view) {
    return view->call->request->count - 2;
}
static const struct command_cost naming_cost =
    COST_ROW(COMMAND_BY_ARGUMENTS, pubsub_count_named, 90, 0, "channel named",
             "some thousand channels a request");

static void numsub_run(struct call *call) {
    reply_array(call->reply, (uint64_t)(call->request->count - 2) * 2);
    for (uint32_t i = 2; i < call->request->count; i++) {
        reply_bulk(call->reply, call_arg(call, i));
        reply_integer(call->reply, subscription_subscriber_count(&call->server->subscriptions,
                                                                 pubsub_variant_of(call)->kind,
                                                                 call_arg(call, i)));
    }
}

#define NUMSUB_ENTRY(word, arguments, what, own)                                                   \
    {                                                                                              \
        .name = (word), .syntax = (arguments), .reply = "[channel:s count:i ...]",                 \
        .summary = (what), .complexity = "O(n) in the channels named",                             \
        .flags = COMMAND_PUBSUB | COMMAND_LOADING, .cost = &naming_cost, .variant = (own),         \
        .run = numsub_run                                                                          \
    }

static const struct command pubsub_numsub =
    NUMSUB_ENTRY("NUMSUB", "[channel...]", "The number of subscribers of each channel",
                 VARIANT(SUBSCRIPTION_CHANNEL, NULL));
static const struct command pubsub_shardnumsub = NUMSUB_ENTRY(
    "SHARDNUMSUB", "[shardchannel...]", "The number of subscribers by SSUBSCRIBE of each channel",
    VARIANT(SUBSCRIPTION_SHARD, NULL));

static void numpat_run(struct call *call) {
    reply_integer(call->reply,
                  subscription_topic_count(&call->server->subscriptions, SUBSCRIPTION_PATTERN));
}

static const struct command pubsub_numpat = {
    .name = "NUMPAT",
    .reply = "i",
    .summary = "The number of distinct patterns that anyone subscribes to",
    .flags = COMMAND_PUBSUB | COMMAND_LOADING,
    .run = numpat_run,
};

const struct command command_pubsub = {
    .name = "PUBSUB",
    .summary = "What is subscribed to",
    .complexity = "As the subcommand says",
    .subcommands = COMMAND_LIST(&pubsub_channels, &call_help_command, &pubsub_numpat,
                                &pubsub_numsub, &pubsub_shardchannels, &pubsub_shardnumsub),
};
