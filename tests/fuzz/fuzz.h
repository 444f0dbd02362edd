/* What fuzz targets share. */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "codec/check.h"
#include "skiplist/keyspace/registry.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Of a registry that only files or effects fill: they say how their boards behave. */
static inline struct registry *fuzz_create_registry(registry_options_for *options_for) {
    struct registry *registry = registry_create(1, options_for, NULL);
    CHECK(registry != NULL);
    return registry;
}

static inline const struct board_options *fuzz_no_options(void *context, struct bytes key,
                                                          uint32_t choice) {
    (void)context;
    (void)key;
    (void)choice;
    CHECK(false);
    return NULL;
}

static inline void fuzz_check_valid(const struct registry *registry) {
    const char *reason = "";
    if (!registry_validate(registry, &reason)) {
        fprintf(stderr, "%s\n", reason);
        abort();
    }
}

#endif
