/* Any bytes as a rule, a match and records: what the rule allows stays within its limits, and no number is NaN.
 *
 *     system, teams, players a team, flags   a byte each
 *     parameters                             8 bytes each; taken to what a rule may say
 *     records                                RATING_RECORD_BYTES each; as many as there are, then new players
 *     ranks, weights                         the bytes before the end */
#include "codec/bytes.h"
#include "codec/rating.h"
#include "tests/fuzz/fuzz.h"

enum { HEAD = 4, PARAMETERS_SIZE = RATING_PARAMETERS * 8 };

static int64_t between(int64_t number, int64_t least, int64_t most) {
    uint64_t range = (uint64_t)most - (uint64_t)least;
    return range == UINT64_MAX ? number : least + (int64_t)((uint64_t)number % (range + 1));
}

static void read_rule(const char *at, struct rating_rule *rule) {
    static const enum rating_parameter limits[][3] = {
        {RATING_MIN, RATING_START, RATING_MAX},
        {RATING_DEV_MIN, RATING_START_DEV, RATING_DEV_MAX},
        {RATING_VOL_MIN, RATING_START_VOL, RATING_VOL_MAX},
    };
    enum rating_parameter wrong;
    for (enum rating_parameter i = 0; i < RATING_PARAMETERS; i++) {
        int64_t number = (int64_t)bytes_get_u64(at + (size_t)i * 8);
        /* 0: the default. */
        if (rating_parameter_is_of(i, rule->system) && number != 0) {
            rule->of[i] = between(number, rating_parameter_least(i, rule->system),
                                  rating_parameter_most(i, rule->system));
        }
    }
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        int64_t *of[] = {&rule->of[limits[i][0]], &rule->of[limits[i][1]], &rule->of[limits[i][2]]};
        if (*of[0] > *of[2]) {
            int64_t swapped = *of[0];
            *of[0] = *of[2];
            *of[2] = swapped;
        }
        *of[1] = *of[1] < *of[0] ? *of[0] : *of[1] > *of[2] ? *of[2] : *of[1];
    }
    CHECK(rating_rule_check(rule, &wrong));
}

static void check_record(const struct rating_rule *rule, const struct rating_record *record,
                         unsigned decimals) {
    char bytes[RATING_RECORD_BYTES];
    char again[RATING_RECORD_BYTES];
    struct rating_record read;
    CHECK(record->value >= rule->of[RATING_MIN]);
    CHECK(record->value <= rule->of[RATING_MAX]);
    CHECK(record->deviation >= rule->of[RATING_DEV_MIN]);
    CHECK(record->deviation <= rule->of[RATING_DEV_MAX]);
    CHECK(record->volatility >= rule->of[RATING_VOL_MIN]);
    CHECK(record->volatility <= rule->of[RATING_VOL_MAX]);
    int64_t now = rating_now(rule, record, RATING_MS_MAX);
    CHECK(now >= record->deviation);
    CHECK(now <= rule->of[RATING_DEV_MAX]);
    int64_t ranked = rating_ranks(rule, record, decimals);
    CHECK(ranked >= rating_ranks_least(rule, decimals));
    CHECK(ranked <= rating_ranks_most(rule, decimals));
    rating_pack(record, bytes);
    CHECK(rating_unpack(bytes, &read));
    rating_pack(&read, again);
    CHECK(memcmp(bytes, again, sizeof bytes) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct rating_record records[RATING_PLAYERS_MAX];
    static uint32_t sizes[RATING_TEAMS_MAX];
    static uint32_t ranks[RATING_TEAMS_MAX];
    static uint32_t weights[RATING_PLAYERS_MAX];
    uint32_t chances[RATING_TEAMS_MAX];
    uint32_t quality;
    struct rating_rule rule;
    const char *at = (const char *)data;
    if (size < HEAD + PARAMETERS_SIZE) {
        return 0;
    }
    rating_rule_init(&rule, (enum rating_system)(data[0] % RATING_SYSTEMS));
    read_rule(at + HEAD, &rule);
    uint32_t players = 0;
    bool is_ranked = (data[3] & 1) != 0;
    bool is_weighted = (data[3] & 2) != 0;
    struct rating_match match = {
        .sizes = sizes,
        .ranks = is_ranked ? ranks : NULL,
        .weights = is_weighted ? weights : NULL,
        .teams = data[1] % (RATING_TEAMS_MAX + 2),
        .at_ms = between((int64_t)bytes_get_u64(at + size - 8), 0, RATING_MS_MAX + 1),
    };
    for (uint32_t i = 0; i < match.teams && i < RATING_TEAMS_MAX; i++) {
        sizes[i] = data[2] % (RATING_PLAYERS_MAX / RATING_TEAMS_MAX + 1);
        ranks[i] = data[size - 1 - i];
        players += sizes[i];
    }
    for (uint32_t i = 0; i < players; i++) {
        size_t from = HEAD + PARAMETERS_SIZE + (size_t)i * RATING_RECORD_BYTES;
        weights[i] = data[size - 1 - i % size] * UINT32_C(4000000);
        if (from + RATING_RECORD_BYTES > size || !rating_unpack(at + from, &records[i])) {
            records[i] = rating_record_start(&rule);
        }
    }
    if (match.teams > RATING_TEAMS_MAX || rating_match_check(&rule, &match) != RATING_OK) {
        return 0;
    }
    rating_predict(&rule, &match, records, chances, &quality);
    CHECK(quality <= RATING_CHANCE_ONE);
    for (uint32_t i = 0; i < match.teams; i++) {
        CHECK(chances[i] <= RATING_CHANCE_ONE);
    }
    rating_match(&rule, &match, records);
    for (uint32_t i = 0; i < players; i++) {
        check_record(&rule, &records[i], data[3] % 19);
    }
    return 0;
}
