/* One number for the results of many matches: equal on every compiler, optimization and CPU. */
#ifndef TESTS_CODEC_RATING_HASH_H
#define TESTS_CODEC_RATING_HASH_H

#include <stdint.h>
#include <stdlib.h>

#include "codec/rating.h"
#include "tests/support/random.h"

enum { HASH_POOL = 1000, HASH_TEAMS = 6, HASH_SIZE = 4 };

static inline uint64_t rating_hash(uint32_t matches) {
    static struct rating_record pool[RATING_SYSTEMS][HASH_POOL];
    struct random random = {.state = 1};
    struct rating_rule rules[RATING_SYSTEMS];
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (enum rating_system i = 0; i < RATING_SYSTEMS; i++) {
        rating_rule_init(&rules[i], i);
        for (int j = 0; j < HASH_POOL; j++) {
            pool[i][j] = rating_record_start(&rules[i]);
        }
    }
    for (uint32_t i = 0; i < matches; i++) {
        struct rating_rule *rule = &rules[random_below(&random, RATING_SYSTEMS)];
        struct rating_record *members = pool[rule->system];
        struct rating_record records[HASH_TEAMS * HASH_SIZE];
        uint32_t places[HASH_TEAMS * HASH_SIZE];
        uint32_t sizes[HASH_TEAMS];
        uint32_t ranks[HASH_TEAMS];
        uint32_t weights[HASH_TEAMS * HASH_SIZE];
        uint32_t players = 0;
        struct rating_match match = {
            .sizes = sizes, .ranks = ranks, .at_ms = 1000 + (int64_t)i * 60000};
        match.teams = 2 + (uint32_t)random_below(&random, 3) * (uint32_t)random_below(&random, 3);
        /* Different members: one of each stretch. */
        for (uint32_t t = 0; t < match.teams; t++) {
            sizes[t] = 1 + (uint32_t)random_below(&random, HASH_SIZE);
            for (uint32_t j = 0; j < sizes[t]; j++) {
                places[players] =
                    players * (HASH_POOL / (HASH_TEAMS * HASH_SIZE)) +
                    (uint32_t)random_below(&random, HASH_POOL / (HASH_TEAMS * HASH_SIZE));
                records[players] = members[places[players]];
                weights[players++] = (uint32_t)random_below(&random, 100);
            }
            /* The later ones are better, so that values spread. */
            ranks[t] =
                random_below(&random, 4) == 0 ? (uint32_t)random_below(&random, 3) : HASH_TEAMS - t;
        }
        if (rule->system == RATING_OPENSKILL) {
            rule->of[RATING_MODEL] = (int64_t)random_below(&random, RATING_MODELS);
            match.weights = random_below(&random, 2) == 0 ? weights : NULL;
        }
        if (rating_match_check(rule, &match) != RATING_OK) {
            abort();
        }
        rating_match(rule, &match, records);
        for (uint32_t j = 0; j < players; j++) {
            char bytes[RATING_RECORD_BYTES];
            members[places[j]] = records[j];
            rating_pack(&records[j], bytes);
            for (int k = 0; k < RATING_RECORD_BYTES; k++) {
                hash = (hash ^ (uint8_t)bytes[k]) * UINT64_C(0x100000001b3);
            }
        }
    }
    return hash;
}

#endif
