/* How much the page asks of the engine at a time, and how much memory all of it holds: see web_query.h. */
#include "codec/list.h"
#include "server/web/web_parts.h"

enum { EXPECTED_NS = 20000 }; /* until the answer says how long it took */

static void web_pace_refill(struct web *web) {
    enum { SECOND_MS = 1000, NS_PER_MS = 1000000, BURST_MS = 500 };
    static const int64_t shares[2] = {WEB_REQUEST_SHARE, WEB_VIEW_SHARE};
    int64_t now_ms = http_server_now(web->http);
    int64_t passed_ms = now_ms - web->budgets_at_ms;
    web->budgets_at_ms = now_ms;
    for (int i = 0; i < 2; i++) {
        int64_t most = (int64_t)BURST_MS * NS_PER_MS / shares[i];
        passed_ms = passed_ms < SECOND_MS ? passed_ms : SECOND_MS;
        web->budgets_ns[i] += passed_ms * NS_PER_MS / shares[i];
        web->budgets_ns[i] = web->budgets_ns[i] < most ? web->budgets_ns[i] : most;
    }
}

static void web_pace_ask(struct web *web, struct web_query *query) {
    web->budgets_ns[query->is_view] -= EXPECTED_NS;
    query->state = WEB_QUERY_ASKED;
    http_server_ask(web->http, &query->ask);
}

void web_note_answer(struct web *web, const struct web_query *query) {
    web->budgets_ns[query->is_view] += EXPECTED_NS - (int64_t)query->elapsed_ns;
    web->answered_ns += query->elapsed_ns;
}

/* It waits no more. */
static void web_pace_leave(struct web *web, struct web_query *query) {
    struct web_pending *pending = &web->pending[query->is_view];
    if (pending->last == query) {
        pending->last = query->previous;
    }
    LIST_PART(pending->first, query);
    web->pending_count--;
}

void web_put(struct web *web, struct web_query *query) {
    struct web_pending *pending = &web->pending[query->is_view];
    web_pace_refill(web);
    if (pending->first == NULL && web->budgets_ns[query->is_view] > 0) {
        web_pace_ask(web, query);
        return;
    }
    query->state = WEB_QUERY_WAITS;
    web->pending_count++;
    /* What is begun is finished first: so under load some are, and not none. */
    if (query->round > 0 || pending->first == NULL) {
        LIST_JOIN(pending->first, query);
        pending->last = pending->last != NULL ? pending->last : query;
    } else {
        query->previous = pending->last;
        LIST_APPEND(pending->first, pending->last, query);
    }
}

bool web_take_memory(struct web *web, size_t size) {
    if (web->memory_size + size > WEB_MEMORY_MAX) {
        return false;
    }
    web->memory_size += size;
    return true;
}

void web_give_memory(struct web *web, size_t size) {
    CHECK(web->memory_size >= size);
    web->memory_size -= size;
}

void web_take_back(struct web *web, struct web_query *query) {
    web_pace_leave(web, query);
    query->state = WEB_QUERY_NEW;
}

void web_pace_step(struct web *web) {
    web_pace_refill(web);
    for (int i = 0; i < 2; i++) {
        while (web->pending[i].first != NULL && web->budgets_ns[i] > 0) {
            struct web_query *query = web->pending[i].first;
            web_pace_leave(web, query);
            web_pace_ask(web, query);
        }
    }
}
