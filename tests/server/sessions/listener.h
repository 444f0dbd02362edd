/* A server with a client of it and one that has subscribed to channels. */
#ifndef TESTS_SERVER_CLIENTS_LISTENER_H
#define TESTS_SERVER_CLIENTS_LISTENER_H

#include "tests/support/harness.h"

static inline struct harness *listener_begin(const char *settings, const char *channels,
                                             struct session **s, struct session **listener) {
    struct harness *h = harness_create(settings);
    *s = harness_connect(h);
    *listener = harness_connect(h);
    harness_run_format(h, *listener, "SUBSCRIBE %s", channels);
    return h;
}

/* A test with all three. */
#define LISTENER_TEST(name, settings, channels)                                                    \
    static void name##_in(struct harness *h, struct session *s, struct session *listener);         \
    TEST(name) {                                                                                   \
        struct session *s, *listener;                                                              \
        struct harness *h = listener_begin(settings, channels, &s, &listener);                     \
        name##_in(h, s, listener);                                                                 \
        harness_destroy(h);                                                                        \
    }                                                                                              \
    static void name##_in(__attribute__((unused)) struct harness *h,                               \
                          __attribute__((unused)) struct session *s,                               \
                          __attribute__((unused)) struct session *listener)

#endif
