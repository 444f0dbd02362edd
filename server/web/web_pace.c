/* How much the page asks of the engine at a time, and how much memory all of it holds: see web_query.h. */
#include <stdio.h>

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

void web_put_again(struct web *web, struct web_query *query) {
    struct web_pending *pending = &web->pending[query->is_view];
    query->state = WEB_QUERY_WAITS;
    web->pending_count++;
    query->previous = pending->last;
    LIST_APPEND(pending->first, pending->last, query);
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
    /* What is begun is finished first: so under load some are, and not none. */
    if (query->round > 0 || pending->first == NULL) {
        query->state = WEB_QUERY_WAITS;
        web->pending_count++;
        LIST_JOIN(pending->first, query);
        pending->last = pending->last != NULL ? pending->last : query;
    } else {
        web_put_again(web, query);
    }
}

/* ---- results of an address ---- */

/* In a millisecond as many thousandths come as results in a second. */
enum { RATE_UNITS = 1000, RATE_BURST_S = 2 };

static int64_t web_pace_refill_rate(const struct web *web, const struct web_rate *rate,
                                    int64_t now_ms) {
    /* In this time one result a second makes up for the longest request. */
    enum { PASSED_MAX_MS = (WEB_RESULTS_MAX + RATE_BURST_S) * 1000 };
    int64_t per_second = web->settings->web_write_rate;
    int64_t passed_ms = now_ms - rate->at_ms;
    int64_t most = RATE_BURST_S * RATE_UNITS * per_second;
    passed_ms = passed_ms < PASSED_MAX_MS ? passed_ms : PASSED_MAX_MS;
    int64_t left = rate->left + passed_ms * per_second;
    return left < most ? left : most;
}

/* Its place; one of those that has most left, where all are taken. */
static struct web_rate *web_pace_find_rate(struct web *web, struct auth_guard_address address,
                                           int64_t now_ms) {
    uint64_t mixed = (address.high ^ web->rate_seed) * UINT64_C(0x9e3779b97f4a7c15) ^ address.low;
    mixed = (mixed ^ mixed >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
    struct web_rate *ways =
        &web->rates[(mixed >> 32) % (WEB_RATES_MAX / WEB_RATE_WAYS) * WEB_RATE_WAYS];
    struct web_rate *fullest = &ways[0];
    int64_t most = INT64_MIN;
    for (unsigned i = 0; i < WEB_RATE_WAYS; i++) {
        if (ways[i].at_ms != 0 && ways[i].address.high == address.high &&
            ways[i].address.low == address.low) {
            return &ways[i];
        }
        int64_t left = ways[i].at_ms == 0 ? INT64_MAX : web_pace_refill_rate(web, &ways[i], now_ms);
        if (left > most) {
            fullest = &ways[i];
            most = left;
        }
    }
    *fullest = (struct web_rate){.address = address,
                                 .at_ms = now_ms,
                                 .left = RATE_BURST_S * RATE_UNITS * web->settings->web_write_rate};
    return fullest;
}

unsigned web_take_rate(struct web *web, const struct http_exchange *exchange, unsigned results) {
    char text[HTTP_ADDRESS_MAX];
    char address[HTTP_ADDRESS_MAX + 4];
    int64_t per_second = web->settings->web_write_rate;
    if (per_second == 0 || http_exchange_is_local(exchange)) {
        return 0;
    }
    (void)http_exchange_peer(exchange, text);
    snprintf(address, sizeof address, strchr(text, ':') != NULL ? "[%s]:0" : "%s:0", text);
    int64_t now_ms = http_server_now(web->http) + 1; /* 0: a free place */
    struct web_rate *rate = web_pace_find_rate(web, auth_guard_address(address), now_ms);
    rate->left = web_pace_refill_rate(web, rate, now_ms);
    rate->at_ms = now_ms;
    if (rate->left <= 0) {
        return (unsigned)(-rate->left / (RATE_UNITS * per_second) + 1);
    }
    rate->left -= (int64_t)RATE_UNITS *
                  results; /* below 0: a request is taken as a whole, and the next ones wait */
    return 0;
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
