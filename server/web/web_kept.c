/* Answers that are kept: those who ask the same with the same rights get the same text, until it is outdated.
 *
 *     1st request ---> engine ---> text, and what it was read from (struct reads)
 *     2nd, meanwhile, waits for it -------> the text, unless it is outdated and the engine had begun before
 *     3rd, behind it: not outdated, its time not over -------> the text, and nobody is asked
 *
 * What outdates a text is seen by its flag alone, with one load; the time limit is for what no flag tells. Where a
 * text was outdated while it was made, those who came late ask once more, together: so a board that changes faster
 * than it is read costs as many answers as the engine gives, and nobody waits for more than two of them.
 *
 * They are bounded in number and bytes, and none is kept for longer than WEB_KEPT_MS. */
#include <stddef.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "codec/list.h"
#include "server/web/web_query.h"

struct web_kept {
    struct ask ask; /* first: to end its reads */
    struct web *web;
    struct reads reads;               /* the engine's, but for the flag */
    struct web_kept *next, *previous; /* of those that are there */
    struct web_kept *same_slot;
    uint64_t hash;
    char *target;
    struct web_identity identity;
    struct web_query *query;           /* that is answered for it; NULL: it is there */
    struct web_request *first;         /* who wait for that */
    const struct web_request *creator; /* of them the one whose query it is; NULL: gone */
    struct web_text text;
    int64_t until_ms; /* of web_kept_now */
    size_t size;      /* bytes that web_take_memory counts */
};

bool web_kept_is_same_identity(const struct web_identity *a, const struct web_identity *b) {
    return a->kind == b->kind && a->is_local == b->is_local && a->is_token == b->is_token &&
           a->is_by_header == b->is_by_header && a->is_exposed == b->is_exposed &&
           strcmp(a->user, b->user) == 0 && memcmp(a->digest, b->digest, sizeof a->digest) == 0;
}

/* By the engine's clock, and as it is now: not since the answer was received, nor at the beginning of the loop's turn. */
static int64_t web_kept_now(const struct web *web) {
    return clock_read_ms(&web->engine.server->clock);
}

/* ---- coming and going ---- */

static struct web_kept **web_kept_slot(struct web *web, uint64_t hash) {
    return &web->kept.slots[hash % WEB_KEPT_SLOTS];
}

static void web_kept_free(struct web_kept *kept) {
    buffer_deinit(&kept->text.body);
    buffer_deinit(&kept->text.packed);
    memory_free(kept->target);
    memory_free(kept);
}

static void web_kept_on_reads_ended(void *context, struct ask *ask) {
    (void)context;
    web_kept_free((struct web_kept *)ask);
}

/* On the engine's thread (http.h). */
static bool web_kept_end_reads(void *context, struct ask *ask) {
    const struct web_engine *engine = context;
    server_reads_end(engine->server, &((struct web_kept *)ask)->reads);
    return true;
}

/* It is found no more; the engine is told, which may still watch for it. */
static void web_kept_forget(struct web *web, struct web_kept *kept) {
    struct web_kept_answers *all = &web->kept;
    struct web_kept **at = web_kept_slot(web, kept->hash);
    while (*at != kept) {
        at = &(*at)->same_slot;
    }
    *at = kept->same_slot;
    if (all->last == kept) {
        all->last = kept->previous;
    }
    if (all->first == kept || kept->previous != NULL) {
        LIST_PART(all->first, kept);
    }
    all->count--;
    all->size -= kept->size;
    web_give_memory(web, kept->size);
    kept->ask = (struct ask){.answer = web_kept_end_reads, .done = web_kept_on_reads_ended};
    http_server_ask(web->http, &kept->ask);
}

/* The text is there, and right now: for those who ask from now on. */
static void web_kept_keep(struct web *web, struct web_kept *kept, const struct web_query *query) {
    struct web_kept_answers *all = &web->kept;
    size_t size =
        sizeof *kept + strlen(kept->target) + 2 * kept->text.body.size + query->reads_size;
    if (kept->text.body.size > WEB_KEPT_TEXT_MAX || !web_take_memory(web, size)) {
        web_kept_forget(web, kept);
        return;
    }
    kept->size = size;
    kept->until_ms = query->fresh_until_ms;
    all->size += size;
    kept->previous = all->last;
    LIST_APPEND(all->first, all->last, kept);
    while (all->size > WEB_KEPT_SIZE_MAX) {
        web_kept_forget(web, all->first);
    }
}

void web_kept_step(struct web *web) {
    int64_t now_ms = web_kept_now(web);
    while (web->kept.first != NULL && web->kept.first->until_ms <= now_ms) {
        web_kept_forget(web, web->kept.first);
    }
}

bool web_kept_drop(struct web *web, struct ask *ask) {
    if (ask->answer != web_kept_end_reads) {
        return false;
    }
    (void)web_kept_end_reads(&web->engine, ask);
    web_kept_free((struct web_kept *)ask);
    return true;
}

void web_kept_end(struct web *web) {
    for (unsigned i = 0; i < WEB_KEPT_SLOTS; i++) {
        struct web_kept *kept;
        while ((kept = web->kept.slots[i]) != NULL) {
            web->kept.slots[i] = kept->same_slot;
            server_reads_end(web->engine.server, &kept->reads);
            web_kept_free(kept);
        }
    }
}

/* ---- requests ---- */

static uint64_t web_kept_hash(const struct web *web, const struct web_identity *identity,
                              const char *target) {
    /* Players share a user. */
    struct bytes name = identity->is_player ? (struct bytes){.at = identity->digest,
                                                             .size = sizeof identity->digest}
                                            : bytes_from_text(identity->user);
    uint64_t who = XXH3_64bits_withSeed(name.at, name.size, web->rate_seed);
    return XXH3_64bits_withSeed(target, strlen(target), who ^ (uint64_t)identity->kind);
}

/* Those who ask again, together, are not late, and go on with the time that they have. */
static void web_kept_wait(struct web_kept *kept, struct web_request *request) {
    request->kept = kept;
    request->is_late = kept->query->was_asked && !request->is_again;
    LIST_JOIN(kept->first, request);
    if (!request->is_again) {
        http_exchange_wait(request->exchange, WEB_LIMIT_MS);
    }
}

bool web_kept_answer(struct web_request *request, const struct web_identity *identity) {
    struct web *web = request->web;
    const char *target = request->exchange->target;
    uint64_t hash = web_kept_hash(web, identity, target);
    struct web_kept *kept = *web_kept_slot(web, hash);
    while (kept != NULL && !(kept->hash == hash && strcmp(kept->target, target) == 0 &&
                             web_kept_is_same_identity(&kept->identity, identity))) {
        kept = kept->same_slot;
    }
    if (kept == NULL) {
        return false;
    }
    if (kept->query != NULL) {
        web_kept_wait(kept, request);
        return true;
    }
    if (server_reads_are_outdated(&kept->reads) || kept->until_ms <= web_kept_now(web)) {
        web_kept_forget(web, kept);
        return false;
    }
    web_answer_text(request, &kept->text);
    return true;
}

static void web_kept_is_answered(struct web_query *query) {
    struct web_kept *kept = query->owner;
    struct web *web = query->web;
    bool is_right = query->status == 200;
    bool is_current = is_right && query->fresh_ms > 0 && !server_reads_are_outdated(&kept->reads);
    bool is_for_one =
        !is_right || query->out.size > WEB_KEPT_TEXT_MAX; /* errors may name who asks */
    bool is_taken = false;
    const struct web_identity identity = kept->identity;
    struct web_request *waiting = kept->first;
    struct web_request *again = NULL;
    kept->query = NULL;
    kept->first = NULL;
    web_note_verdict(query);
    if (is_right) {
        kept->text = (struct web_text){.body = query->out, .is_public = query->user.is_public};
        buffer_init(&query->out, WEB_JSON_MAX);
    }
    while (waiting != NULL) {
        struct web_request *request = waiting;
        LIST_PART(waiting, request);
        request->kept = NULL;
        if (request->exchange->stage != HTTP_WAITS) {
            continue; /* it was told that the server is busy */
        }
        if (is_right && (is_current || !request->is_late) && !(is_for_one && is_taken)) {
            is_taken = true;
            web_answer_text(request, &kept->text);
        } else if (!is_right && request == kept->creator) {
            web_answer(request->exchange, query);
        } else {
            request->is_again = true;
            request->is_alone = is_for_one;
            LIST_JOIN(again, request);
        }
    }
    if (is_current) {
        web_kept_keep(web, kept, query);
    } else {
        web_kept_forget(web, kept);
    }
    web_query_leave(query);
    while (again != NULL) {
        struct web_request *request = again;
        LIST_PART(again, request);
        web_run_as(request, &identity);
    }
}

void web_kept_run(struct web_request *request, struct web_query *query) {
    struct web *web = request->web;
    const char *target = request->exchange->target;
    if (web->kept.count >= WEB_KEPT_MAX && web->kept.first != NULL) {
        web_kept_forget(web, web->kept.first);
    }
    struct web_kept *kept =
        web->kept.count < WEB_KEPT_MAX ? memory_allocate_zeroed(sizeof *kept) : NULL;
    char *copy = kept != NULL ? memory_allocate(strlen(target) + 1) : NULL;
    if (copy == NULL) {
        memory_free(kept);
        web_run(request, query);
        return;
    }
    if (!web_may_put(request)) {
        memory_free(kept);
        memory_free(copy);
        web_query_leave(query);
        return;
    }
    memcpy(copy, target, strlen(target) + 1);
    *kept = (struct web_kept){.web = web, .target = copy, .query = query, .creator = request};
    kept->identity = query->identity;
    kept->hash = web_kept_hash(web, &kept->identity, target);
    server_reads_init(&kept->reads);
    struct web_kept **slot = web_kept_slot(web, kept->hash);
    kept->same_slot = *slot;
    *slot = kept;
    web->kept.count++;
    query->reads = &kept->reads;
    query->owner = kept;
    query->done = web_kept_is_answered;
    web_kept_wait(kept, request);
    web_query_run(query);
}

void web_kept_leave(struct web_request *request) {
    struct web_kept *kept = request->kept;
    if (kept == NULL) {
        return;
    }
    request->kept = NULL;
    LIST_PART(kept->first, request);
    kept->creator = kept->creator == request ? NULL : kept->creator;
    if (kept->first == NULL && kept->query->state == WEB_QUERY_WAITS) {
        web_query_leave(kept->query); /* what the engine has is kept, though nobody waits for it */
        web_kept_forget(kept->web, kept);
    }
}
