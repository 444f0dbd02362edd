/* Sums over players and over games are sums of integers, or are taken in an order that follows from the teams' own
 * numbers: so no result depends on the order in which teams and players are given. Values and deviations are
 * calculated in the units in which they are kept, and a value changes by a rounded number: what it was loses no digit. */
#include "codec/rating.h"

#include <float.h>
#include <string.h>

#include "codec/bytes.h"
#include "codec/decimal.h"

/* ---- real numbers: rating_exp ----
 *
 * e^x = 2^k * e^r with x = k * ln(2) + r, |r| <= ln(2) / 2, and e^r = 1 + r + r^2/2! + ... + r^13/13!: what is left out
 * is below 2^-57. The terms are summed in pairs, and pairs of pairs, which a CPU does side by side. */

#ifdef __FAST_MATH__
#error "-ffast-math changes results from one compiler to the next"
#endif
_Static_assert(FLT_EVAL_METHOD == 0, "doubles are calculated as doubles");
_Static_assert(DBL_MANT_DIG == 53, "a double is IEEE 754's binary64");

#define BY_LN2 1.4426950408889634 /* 1 / ln(2) */
/* ln(2) in two parts. The first has 42 bits, so that k times it is exact. */
#define LN2_HIGH 0x1.62e42fefa38p-1
#define LN2_LOW  0x1.ef35793c7673p-45
/* Adding this leaves no bits behind the point. */
#define WHOLE       0x1.8p52
#define ROUND_LIMIT 4611686018427387904.0 /* 2^62 */

enum { EXPONENT_BIAS = 1023, EXPONENT_SHIFT = 52 };

double rating_exp(double x) {
    x = x > RATING_EXP_MAX ? RATING_EXP_MAX : x < -RATING_EXP_MAX ? -RATING_EXP_MAX : x;
    double k = (x * BY_LN2 + WHOLE) - WHOLE;
    double r = (x - k * LN2_HIGH) - k * LN2_LOW;
    double r2 = r * r;
    double r4 = r2 * r2;
    double r8 = r4 * r4;
    /* (e^r - 1 - r) / r^2 */
    double low = (1.0 / 2 + r * (1.0 / 6)) + r2 * (1.0 / 24 + r * (1.0 / 120));
    double middle = (1.0 / 720 + r * (1.0 / 5040)) + r2 * (1.0 / 40320 + r * (1.0 / 362880));
    double high =
        (1.0 / 3628800 + r * (1.0 / 39916800)) + r2 * (1.0 / 479001600 + r * (1.0 / 6227020800.0));
    double power = 1.0 + (r + r2 * (low + (r4 * middle + r8 * high)));
    uint64_t bits = (uint64_t)((int64_t)k + EXPONENT_BIAS) << EXPONENT_SHIFT;
    double scale;
    memcpy(&scale, &bits, sizeof scale);
    return power * scale;
}

double rating_sqrt(double x) {
    return __builtin_sqrt(x);
}

int64_t rating_round(double x) {
    CHECK(x > -ROUND_LIMIT);
    CHECK(x < ROUND_LIMIT);
    int64_t whole = (int64_t)x;
    double rest = x - (double)whole;
    return whole + (rest >= 0.5) - (rest <= -0.5);
}

/* ---- ratings ---- */

/* ---- rules ---- */

#define UNIT               INT64_C(1000000) /* of ELO and GLICKO2 */
#define NANO               INT64_C(1000000000)
#define FAR                (1000000 * UNIT)
#define MS_OF_100_YEARS    INT64_C(3155760000000)
#define HOURS_OF_100_YEARS 876600

enum {
    OF_ELO = 1 << RATING_ELO,
    OF_GLICKO2 = 1 << RATING_GLICKO2,
    OF_OPENSKILL = 1 << RATING_OPENSKILL,
    OF_BOTH = OF_GLICKO2 | OF_OPENSKILL, /* that have a deviation */
    OF_ALL = OF_ELO | OF_BOTH,
    AS_VALUE =
        100, /* decimals: those of a value; least and most are then of 6, but for RATING_LIMIT */
};

static const struct parameter {
    const char *name;
    int systems;
    unsigned decimals;
    int64_t least, most;
    int64_t defaults[RATING_SYSTEMS];
} parameters[RATING_PARAMETERS] = {
    [RATING_START] = {"START", OF_ALL, AS_VALUE, -FAR, FAR, {1500 * UNIT, 1500 * UNIT, 25 * NANO}},
    [RATING_MIN] = {"FLOOR", OF_ALL, AS_VALUE, -FAR, FAR, {0, 0, -1000 * NANO}},
    [RATING_MAX] =
        {"CEILING", OF_ALL, AS_VALUE, -FAR, FAR, {10000 * UNIT, 10000 * UNIT, 1000 * NANO}},
    [RATING_MOVE_MAX] = {"MOVE-MAX", OF_ALL, AS_VALUE, 0, 2 * FAR, {0, 0, 0}},
    [RATING_Z] = {"Z", OF_ALL, 3, 0, 1000000, {0, 0, 3000}},
    [RATING_FACTOR] = {"FACTOR", OF_ALL, 3, 1, 1000000, {1000, 1000, 1000}},
    [RATING_OFFSET] = {"OFFSET", OF_ALL, AS_VALUE, -FAR, FAR, {0, 0, 0}},
    [RATING_START_DEV] = {"START-DEV", OF_BOTH, AS_VALUE, 1, FAR, {0, 350 * UNIT, 8333333333}},
    [RATING_DEV_MIN] = {"DEV-MIN", OF_BOTH, AS_VALUE, 1, FAR, {0, 30 * UNIT, NANO / 1000}},
    [RATING_DEV_MAX] = {"DEV-MAX", OF_BOTH, AS_VALUE, 1, FAR, {0, 350 * UNIT, 1000 * NANO}},
    [RATING_TAU] = {"TAU", OF_BOTH, 9, 0, 1000 * NANO, {0, NANO / 2, 83333333}},
    [RATING_K_NEW] = {"K-NEW", OF_ELO, 0, 0, 10000, {40, 0, 0}},
    [RATING_K] = {"K", OF_ELO, 0, 0, 10000, {20, 0, 0}},
    [RATING_K_TOP] = {"K-TOP", OF_ELO, 0, 0, 10000, {10, 0, 0}},
    [RATING_NEW_GAMES] = {"NEW-GAMES", OF_ELO, 0, 0, UINT32_MAX, {30, 0, 0}},
    [RATING_TOP] = {"TOP", OF_ELO, AS_VALUE, -FAR, FAR, {2400 * UNIT, 0, 0}},
    [RATING_GAP_MAX] = {"GAP-MAX", OF_ELO, AS_VALUE, 0, FAR, {400 * UNIT, 0, 0}},
    [RATING_GAP_FREE] = {"GAP-FREE", OF_ELO, AS_VALUE, -FAR, FAR, {2650 * UNIT, 0, 0}},
    [RATING_START_VOL] = {"START-VOL", OF_GLICKO2, 9, NANO / 1000000, NANO, {0, NANO / 100 * 6, 0}},
    [RATING_VOL_MIN] = {"VOL-MIN", OF_GLICKO2, 9, NANO / 1000000, NANO, {0, NANO / 1000, 0}},
    [RATING_VOL_MAX] = {"VOL-MAX", OF_GLICKO2, 9, NANO / 1000000, NANO, {0, NANO / 10, 0}},
    [RATING_PERIOD_MS] =
        {"PERIOD-MS", OF_GLICKO2, 0, 0, MS_OF_100_YEARS, {0, INT64_C(112) * 3600 * 1000, 0}},
    [RATING_MODEL] = {"MODEL", OF_OPENSKILL, 0, 0, RATING_MODELS - 1, {0, 0, RATING_PLACKETT_LUCE}},
    [RATING_BETA] = {"BETA", OF_OPENSKILL, AS_VALUE, 1, FAR, {0, 0, 4166666667}},
    [RATING_KAPPA] = {"KAPPA", OF_OPENSKILL, 9, 0, NANO, {0, 0, NANO / 10000}},
    [RATING_LIMIT_SIGMA] = {"LIMIT-SIGMA", OF_OPENSKILL, 0, 0, 1, {0, 0, 0}},
    [RATING_KEEP_MATCHES] = {"KEEP-MATCHES", OF_ALL, 0, 0, 1000000, {0, 0, 0}},
    [RATING_KEEP_HOURS] = {"KEEP-HOURS", OF_ALL, 0, 0, HOURS_OF_100_YEARS, {0, 0, 0}},
    [RATING_RESET] = {"RESET", OF_ALL, 6, 0, UNIT, {0, 0, 0}},
    [RATING_EVERY_HOURS] = {"EVERY-HOURS", OF_GLICKO2, 0, 0, HOURS_OF_100_YEARS, {0, 0, 0}},
    [RATING_MAXDEV] = {"MAXDEV", OF_BOTH, AS_VALUE, 0, RATING_LIMIT, {0, 0, 0}},
    [RATING_MINGAMES] = {"MINGAMES", OF_ALL, 0, 0, UINT32_MAX, {0, 0, 0}},
};

const char *rating_system_name(enum rating_system system) {
    static const char *const names[] = {"ELO", "GLICKO2", "OPENSKILL"};
    return names[system];
}

unsigned rating_decimals(enum rating_system system) {
    return system == RATING_OPENSKILL ? 9 : 6;
}

const char *rating_parameter_name(enum rating_parameter parameter) {
    return parameters[parameter].name;
}

bool rating_parameter_is_of(enum rating_parameter parameter, enum rating_system system) {
    return (parameters[parameter].systems & 1 << system) != 0;
}

unsigned rating_parameter_decimals(enum rating_parameter parameter, enum rating_system system) {
    unsigned decimals = parameters[parameter].decimals;
    return decimals == AS_VALUE ? rating_decimals(system) : decimals;
}

static int64_t rating_in_units(enum rating_parameter parameter, enum rating_system system,
                               int64_t bound) {
    bool is_value = parameters[parameter].decimals == AS_VALUE;
    return is_value && system == RATING_OPENSKILL && bound < RATING_LIMIT ? bound * (NANO / UNIT)
                                                                          : bound;
}

int64_t rating_parameter_least(enum rating_parameter parameter, enum rating_system system) {
    return rating_in_units(parameter, system, parameters[parameter].least);
}

int64_t rating_parameter_most(enum rating_parameter parameter, enum rating_system system) {
    return rating_in_units(parameter, system, parameters[parameter].most);
}

void rating_rule_init(struct rating_rule *rule, enum rating_system system) {
    *rule = (struct rating_rule){.system = system};
    for (int i = 0; i < RATING_PARAMETERS; i++) {
        rule->of[i] = parameters[i].defaults[system];
    }
}

static bool rating_is_between(const struct rating_rule *rule, enum rating_parameter start,
                              enum rating_parameter least, enum rating_parameter most) {
    return rule->of[start] >= rule->of[least] && rule->of[start] <= rule->of[most];
}

bool rating_rule_check(const struct rating_rule *rule, enum rating_parameter *wrong) {
    enum rating_system system = rule->system;
    for (enum rating_parameter i = 0; i < RATING_PARAMETERS; i++) {
        bool is_known = rating_parameter_is_of(i, system);
        if (rule->of[i] < (is_known ? rating_parameter_least(i, system) : 0) ||
            rule->of[i] > (is_known ? rating_parameter_most(i, system) : 0)) {
            *wrong = i;
            return false;
        }
    }
    /* Where a system has not the three, they are 0. */
    if (!rating_is_between(rule, RATING_START, RATING_MIN, RATING_MAX)) {
        *wrong = RATING_START;
        return false;
    }
    if (!rating_is_between(rule, RATING_START_DEV, RATING_DEV_MIN, RATING_DEV_MAX)) {
        *wrong = RATING_START_DEV;
        return false;
    }
    if (!rating_is_between(rule, RATING_START_VOL, RATING_VOL_MIN, RATING_VOL_MAX)) {
        *wrong = RATING_START_VOL;
        return false;
    }
    return true;
}

/* ---- records ---- */

static int64_t rating_clamp(int64_t value, int64_t least, int64_t most) {
    return value < least ? least : value > most ? most : value;
}

/* What is kept may be another rule's: a board's rule was changed, or a dump was restored. */
static void rating_take_to_limits(const struct rating_rule *rule, struct rating_record *record) {
    record->value = rating_clamp(record->value, rule->of[RATING_MIN], rule->of[RATING_MAX]);
    record->deviation =
        rating_clamp(record->deviation, rule->of[RATING_DEV_MIN], rule->of[RATING_DEV_MAX]);
    record->volatility = (uint32_t)rating_clamp(record->volatility, rule->of[RATING_VOL_MIN],
                                                rule->of[RATING_VOL_MAX]);
    record->is_top =
        rule->system == RATING_ELO && (record->is_top || record->value >= rule->of[RATING_TOP]);
}

struct rating_record rating_record_start(const struct rating_rule *rule) {
    struct rating_record record = {
        .value = rule->of[RATING_START],
        .deviation = rule->of[RATING_START_DEV],
        .volatility = (uint32_t)rule->of[RATING_START_VOL],
    };
    rating_take_to_limits(rule, &record);
    return record;
}

void rating_record_seed(const struct rating_rule *rule, struct rating_record *record, int64_t value,
                        int64_t deviation) {
    record->value = value;
    record->deviation = deviation < 0 ? record->deviation : deviation;
    rating_take_to_limits(rule, record);
}

static uint32_t rating_count_less(uint32_t count, uint32_t before, uint32_t after) {
    return after > before && count > 0 ? count - 1 : count;
}

void rating_record_take_back(const struct rating_rule *rule, const struct rating_record *before,
                             const struct rating_record *after, struct rating_record *record) {
    bool is_as_left = record->value == after->value && record->deviation == after->deviation &&
                      record->volatility == after->volatility &&
                      record->last_ms == after->last_ms && record->period_ms == after->period_ms &&
                      record->learned == after->learned && record->gained == after->gained &&
                      rating_games(record) == rating_games(after);
    if (is_as_left) {
        *record = *before;
        return;
    }
    record->won = rating_count_less(record->won, before->won, after->won);
    record->drawn = rating_count_less(record->drawn, before->drawn, after->drawn);
    record->lost = rating_count_less(record->lost, before->lost, after->lost);
    record->learned = rating_clamp(record->learned - (after->learned - before->learned),
                                   -RATING_SUM_MAX, RATING_SUM_MAX);
    record->gained = rating_clamp(record->gained - (after->gained - before->gained),
                                  -RATING_SUM_MAX, RATING_SUM_MAX);
    record->value -= after->value - before->value;
    int64_t volatility = (int64_t)record->volatility + before->volatility - after->volatility;
    record->volatility = (uint32_t)(volatility > 0 ? volatility : 0);
    if (record->deviation > 0 && before->deviation > 0 && after->deviation > 0) {
        double known = 1 / ((double)record->deviation * (double)record->deviation) -
                       1 / ((double)after->deviation * (double)after->deviation) +
                       1 / ((double)before->deviation * (double)before->deviation);
        double most = (double)rule->of[RATING_DEV_MAX];
        double deviation = known > 0 ? 1 / rating_sqrt(known) : most;
        record->deviation = deviation < most ? rating_round(deviation) : rule->of[RATING_DEV_MAX];
    }
    rating_take_to_limits(rule, record);
}

/* value, deviation: 8 bytes each; volatility, won, drawn, lost: 4 each; last_ms: 6; is_top: 1. */
enum {
    AT_DEVIATION = 8,
    AT_VOLATILITY = 16,
    AT_COUNTS = 20,
    AT_LAST = 32,
    AT_TOP = 38,
};

void rating_pack(const struct rating_record *record, char bytes[RATING_RECORD_BYTES]) {
    bytes_put_u64(bytes, (uint64_t)record->value);
    bytes_put_u64(bytes + AT_DEVIATION, (uint64_t)record->deviation);
    bytes_put_u32(bytes + AT_VOLATILITY, record->volatility);
    bytes_put_u32(bytes + AT_COUNTS, record->won);
    bytes_put_u32(bytes + AT_COUNTS + 4, record->drawn);
    bytes_put_u32(bytes + AT_COUNTS + 8, record->lost);
    bytes_put_u48(bytes + AT_LAST, (uint64_t)record->last_ms);
    bytes[AT_TOP] = (char)record->is_top;
}

bool rating_unpack(const char bytes[RATING_RECORD_BYTES], struct rating_record *record) {
    struct rating_record read = {
        .value = (int64_t)bytes_get_u64(bytes),
        .deviation = (int64_t)bytes_get_u64(bytes + AT_DEVIATION),
        .volatility = bytes_get_u32(bytes + AT_VOLATILITY),
        .won = bytes_get_u32(bytes + AT_COUNTS),
        .drawn = bytes_get_u32(bytes + AT_COUNTS + 4),
        .lost = bytes_get_u32(bytes + AT_COUNTS + 8),
        .last_ms = (int64_t)bytes_get_u48(bytes + AT_LAST),
        .is_top = bytes[AT_TOP] == 1,
    };
    if (read.value < -RATING_LIMIT || read.value > RATING_LIMIT || read.deviation < 0 ||
        read.deviation > RATING_LIMIT || read.volatility > NANO || (uint8_t)bytes[AT_TOP] > 1) {
        return false;
    }
    *record = read;
    return true;
}

/* ---- what all systems share ---- */

/* To the nearest, halves away from 0; divisor > 0. */
static wide rating_divide(wide number, wide divisor) {
    CHECK(divisor > 0);
    wide half = number < 0 ? -(divisor / 2) : divisor / 2;
    return (number + half) / divisor;
}

static uint32_t rating_rank_of(const struct rating_match *match, uint32_t team) {
    return match->ranks != NULL ? match->ranks[team] : team;
}

/* Who is on the best place, and how many are. */
struct first {
    uint32_t rank, teams;
};

static struct first rating_find_first(const struct rating_match *match) {
    struct first first = {.rank = rating_rank_of(match, 0), .teams = 0};
    for (uint32_t i = 0; i < match->teams; i++) {
        uint32_t rank = rating_rank_of(match, i);
        if (rank < first.rank) {
            first = (struct first){.rank = rank};
        }
        first.teams += rank == first.rank;
    }
    return first;
}

void rating_record_reset(const struct rating_rule *rule, struct rating_record *record) {
    int64_t share = rule->of[RATING_RESET];
    double before = (double)record->deviation * (double)record->deviation;
    double start = (double)rule->of[RATING_START_DEV] * (double)rule->of[RATING_START_DEV];
    record->value +=
        (int64_t)rating_divide((wide)(rule->of[RATING_START] - record->value) * share, UNIT);
    if (start > before) {
        double part = (double)share / (double)UNIT;
        record->deviation = rating_round(rating_sqrt(before + part * (start - before)));
    }
    rating_take_to_limits(rule, record);
}

/* MOVE-MAX */
static int64_t rating_moved(const struct rating_rule *rule, int64_t value, int64_t change) {
    int64_t move_max = rule->of[RATING_MOVE_MAX];
    return value + (move_max > 0 ? rating_clamp(change, -move_max, move_max) : change);
}

/* What a match leaves of a record, but for deviation and volatility. */
static void rating_finish(const struct rating_rule *rule, const struct rating_match *match,
                          struct first first, uint32_t rank, int64_t change,
                          struct rating_record *record) {
    record->value = rating_moved(rule, record->value, change);
    rating_take_to_limits(rule, record);
    if (match->at_ms > record->last_ms) {
        record->last_ms = match->at_ms;
    }
    uint32_t *count = rank != first.rank ? &record->lost
                      : first.teams == 1 ? &record->won
                                         : &record->drawn;
    *count += *count < UINT32_MAX;
}

enum rating_status rating_match_check(const struct rating_rule *rule,
                                      const struct rating_match *match) {
    if (match->teams < 2 || match->teams > RATING_TEAMS_MAX) {
        return RATING_TEAMS_WRONG;
    }
    uint32_t players = 0;
    for (uint32_t i = 0; i < match->teams; i++) {
        if (match->sizes[i] == 0 || match->sizes[i] > RATING_PLAYERS_MAX - players) {
            return RATING_TEAMS_WRONG;
        }
        players += match->sizes[i];
    }
    if (match->at_ms < 1 || match->at_ms > RATING_MS_MAX) {
        return RATING_TIME_WRONG;
    }
    for (uint32_t i = 0; match->weights != NULL && i < players; i++) {
        if (rule->system != RATING_OPENSKILL || match->weights[i] > RATING_WEIGHT_MAX) {
            return RATING_WEIGHTS_WRONG;
        }
    }
    return RATING_OK;
}

/* A team as its numbers. */
struct side {
    int64_t sum;      /* of its players' values */
    wide squares;     /* of its players' squared deviations */
    double center;    /* GLICKO2: mean on Glicko-2's scale */
    double deviation; /* GLICKO2: of the mean, on that scale; OPENSKILL: of the sum */
    double gained;    /* what its players' values follow from */
    double learned;   /* what their deviations follow from */
    double power;     /* Plackett-Luce: in proportion to the best one's */
    double rest;      /* the same of all from here to the last */
    uint32_t rank, size, first_player, team;
};

/* GLICKO2's paper has this constant, 400 / ln(10) as four decimals. */
#define GLICKO_SCALE (173.7178 * (double)UNIT)

static double rating_squared(double x) {
    return x * x;
}

/* EVERY-HOURS. They are counted from 1970 on. */
static int64_t rating_period_length(const struct rating_rule *rule) {
    enum { MS_OF_HOUR = 3600000 };
    return rule->of[RATING_EVERY_HOURS] * MS_OF_HOUR;
}

static int64_t rating_period_start(const struct rating_rule *rule, int64_t at_ms) {
    return at_ms - at_ms % rating_period_length(rule);
}

/* Periods since the last match. */
static double rating_periods_since(const struct rating_rule *rule,
                                   const struct rating_record *record, int64_t at_ms) {
    int64_t period_ms = rule->of[RATING_PERIOD_MS];
    if (rule->of[RATING_EVERY_HOURS] > 0) {
        int64_t ms = rating_period_start(rule, at_ms) - record->period_ms;
        int64_t periods = record->period_ms > 0 && ms > 0 ? ms / rating_period_length(rule) : 0;
        return (double)periods;
    }
    bool is_later = period_ms > 0 && record->last_ms > 0 && at_ms > record->last_ms;
    return is_later ? (double)(at_ms - record->last_ms) / (double)period_ms : 0;
}

/* The deviation after periods without a match, on Glicko-2's scale. */
static double rating_grown(const struct rating_rule *rule, const struct rating_record *record,
                           double periods) {
    double deviation = (double)record->deviation / GLICKO_SCALE;
    if (periods > 0) {
        double most = (double)rule->of[RATING_DEV_MAX] / GLICKO_SCALE;
        deviation =
            rating_sqrt(rating_squared(deviation) +
                        periods * rating_squared((double)record->volatility / (double)NANO));
        deviation = deviation < most ? deviation : most;
    }
    return deviation;
}

static bool rating_comes_before(const struct side *a, const struct side *b) {
    if (a->rank != b->rank) {
        return a->rank < b->rank;
    }
    if (a->size != b->size) {
        return a->size < b->size;
    }
    if (a->sum != b->sum) {
        return a->sum > b->sum;
    }
    return a->squares < b->squares;
}

/* The teams by rank; those that tie by their numbers, so that sums do not depend on the order in which they came. */
static void rating_put_in_order(struct side *sides, uint32_t count) {
    for (uint32_t i = 1; i < count; i++) {
        struct side moved = sides[i];
        uint32_t at = i;
        for (; at > 0 && rating_comes_before(&moved, &sides[at - 1]); at--) {
            sides[at] = sides[at - 1];
        }
        sides[at] = moved;
    }
}

static void rating_count_sides(const struct rating_match *match, struct side *sides) {
    uint32_t player = 0;
    for (uint32_t i = 0; i < match->teams; i++) {
        sides[i] = (struct side){.rank = rating_rank_of(match, i),
                                 .size = match->sizes[i],
                                 .first_player = player,
                                 .team = i};
        player += match->sizes[i];
    }
}

/* The chances of one side against another, from the logarithm of their ratio. Both are exact where one is nearly 1. */
struct odds {
    double win, lose;
};

static struct odds rating_odds_of(double log_ratio, double log_max) {
    double size = log_ratio < 0 ? -log_ratio : log_ratio;
    double ratio = rating_exp(size < log_max ? -size : -log_max);
    double likely = 1 / (1 + ratio);
    double unlikely = ratio * likely;
    return log_ratio < 0 ? (struct odds){.win = unlikely, .lose = likely}
                         : (struct odds){.win = likely, .lose = unlikely};
}

/* The result, 1 or 0 or 1/2, less the chance to win. */
static double rating_surprise(struct odds odds, uint32_t rank, uint32_t other_rank) {
    return rank < other_rank   ? odds.lose
           : rank > other_rank ? -odds.win
                               : (odds.lose - odds.win) / 2;
}

/* ---- ELO ---- */

/* FIDE's table 8.1.2: the largest difference with a chance of 50, 51, ... 99 hundredths for the higher rated. */
static const int16_t elo_table[] = {
    3,   10,  17,  25,  32,  39,  46,  53,  61,  68,  76,  83,  91,  98,  106, 113, 121,
    129, 137, 145, 153, 162, 170, 179, 188, 197, 206, 215, 225, 235, 245, 256, 267, 278,
    290, 302, 315, 328, 344, 357, 374, 391, 411, 432, 456, 484, 517, 559, 619, 735,
};
enum { ELO_STEPS = sizeof elo_table / sizeof elo_table[0], ELO_EVEN = 50, ELO_SURE = 100 };

/* The chance of a side in hundredths, at this difference of its value and the other's. */
static int rating_elo_chance(int64_t difference) {
    int64_t size = difference < 0 ? -difference : difference;
    int steps = 0;
    while (steps < ELO_STEPS && size > elo_table[steps]) {
        steps++;
    }
    return difference < 0 ? ELO_EVEN - steps : ELO_EVEN + steps;
}

/* Of the means, rounded to a whole number. */
static int64_t rating_elo_difference(const struct side *side, const struct side *other) {
    wide difference = (wide)side->sum * other->size - (wide)other->sum * side->size;
    return (int64_t)rating_divide(difference, (wide)side->size * other->size * UNIT);
}

static void rating_elo_sum(const struct rating_record *records, struct side *side) {
    for (uint32_t i = 0; i < side->size; i++) {
        side->sum += records[side->first_player + i].value;
    }
}

static void rating_elo_match(const struct rating_rule *rule, const struct rating_match *match,
                             struct side *sides, struct rating_record *records) {
    struct first first = rating_find_first(match);
    int64_t gap_max = rule->of[RATING_GAP_MAX] / UNIT;
    for (uint32_t i = 0; i < match->teams; i++) {
        rating_elo_sum(records, &sides[i]);
    }
    for (uint32_t i = 0; i < match->teams; i++) {
        const struct side *side = &sides[i];
        bool is_free =
            gap_max == 0 || (wide)side->sum >= (wide)rule->of[RATING_GAP_FREE] * side->size;
        int64_t hundredths = 0;
        for (uint32_t q = 0; q < match->teams; q++) {
            const struct side *other = &sides[q];
            if (q != i) {
                int64_t difference = rating_elo_difference(side, other);
                hundredths += side->rank < other->rank   ? ELO_SURE
                              : side->rank > other->rank ? 0
                                                         : ELO_EVEN;
                hundredths -= rating_elo_chance(
                    is_free ? difference : rating_clamp(difference, -gap_max, gap_max));
            }
        }
        for (uint32_t j = 0; j < side->size; j++) {
            struct rating_record *record = &records[side->first_player + j];
            int64_t k = rating_games(record) < (uint64_t)rule->of[RATING_NEW_GAMES]
                            ? rule->of[RATING_K_NEW]
                        : record->is_top ? rule->of[RATING_K_TOP]
                                         : rule->of[RATING_K];
            wide change = rating_divide((wide)k * hundredths * (UNIT / ELO_SURE), match->teams - 1);
            rating_finish(rule, match, first, side->rank, (int64_t)change, record);
        }
    }
}

/* ---- GLICKO2 ---- */

#define GLICKO_LOG_MAX 60.0
#define THREE_BY_PI_2  0.30396355092701331 /* 3 / pi^2 */
/* Of a volatility it is e^25, which makes the least one more than the most. */
#define VOLATILITY_LOG_MAX 50.0
/* Behind a step of Newton's method of this size, the error is about its square. */
#define VOLATILITY_STEP 1e-5
enum { VOLATILITY_STEPS_MAX = 60 };

/* The volatility after a match, by the paper's step 5, on x = a + log_ratio: e^x = variance * e^log_ratio. The root is
 * between least and most: f's first part is above -1/2, and largest at e^x = D * S / (D + 2 * S).
 *
 * From 0 Newton's method goes towards the nearest root without passing it, as f falls and bends one way. Where a rule
 * is so wild that it does not, halving the interval makes an end. */
static double rating_glicko_volatility(double volatility, double tau, double delta, double spread) {
    double surplus = rating_squared(delta) - spread;
    double tau_squared = rating_squared(tau);
    double least = -tau_squared / 2;
    double most = 0;
    if (surplus > 0) {
        most = tau_squared * rating_squared(surplus / delta) / (8 * spread);
        most = most < VOLATILITY_LOG_MAX ? most : VOLATILITY_LOG_MAX;
    }
    double log_ratio = 0;
    double variance = rating_squared(volatility);
    for (int i = 0; i < VOLATILITY_STEPS_MAX; i++) {
        double power = i == 0 ? variance : variance * rating_exp(log_ratio);
        double by_sum = 1 / (spread + power);
        double part = power * rating_squared(by_sum) / 2;
        double f = part * (surplus - power) * tau_squared - log_ratio;
        double slope =
            part * by_sum * (surplus * (spread - power) - 2 * power * spread) * tau_squared - 1;
        if (f > 0) {
            least = log_ratio;
        } else {
            most = log_ratio;
        }
        double next = log_ratio - f / slope;
        if (!(slope < 0) || next < least || next > most) {
            next = (least + most) / 2;
        }
        double step = next - log_ratio;
        log_ratio = next;
        if (step < VOLATILITY_STEP && step > -VOLATILITY_STEP) {
            break;
        }
    }
    return volatility * rating_exp(log_ratio / 2);
}

/* How much a deviation takes from a game's weight: the paper's g. */
static double rating_glicko_weight(double variance) {
    return 1 / rating_sqrt(1 + THREE_BY_PI_2 * variance);
}

/* before_periods: of the time since each player's last match, that much is not counted. */
static void rating_glicko_sum(const struct rating_rule *rule, const struct rating_match *match,
                              const struct rating_record *records, double before_periods,
                              struct side *side) {
    for (uint32_t i = 0; i < side->size; i++) {
        const struct rating_record *record = &records[side->first_player + i];
        double periods = rating_periods_since(rule, record, match->at_ms) - before_periods;
        periods = before_periods > 0 && rule->of[RATING_EVERY_HOURS] > 0 ? 0 : periods;
        side->sum += record->value;
        /* Whole units: their sum has no order. */
        int64_t deviation = rating_round(rating_grown(rule, record, periods) * GLICKO_SCALE);
        side->squares += (wide)deviation * deviation;
    }
    side->center = (double)side->sum / side->size / GLICKO_SCALE;
    side->deviation = rating_sqrt((double)side->squares) / side->size / GLICKO_SCALE;
}

/* Steps 3 to 7, of what games told of a deviation that grows by so many periods. Returns the change of the value. */
static int64_t rating_glicko_update(const struct rating_rule *rule, struct rating_record *record,
                                    double deviation, double periods, double learned,
                                    double gained) {
    double v = 1 / learned;
    double variance = rating_squared(deviation);
    double volatility = rating_glicko_volatility((double)record->volatility / (double)NANO,
                                                 (double)rule->of[RATING_TAU] / (double)NANO,
                                                 v * gained, variance + v);
    double volatility_min = (double)rule->of[RATING_VOL_MIN] / (double)NANO;
    double volatility_max = (double)rule->of[RATING_VOL_MAX] / (double)NANO;
    volatility = volatility < volatility_min   ? volatility_min
                 : volatility > volatility_max ? volatility_max
                                               : volatility;
    variance += periods * rating_squared(volatility);
    variance = 1 / (1 / variance + learned);
    record->deviation = rating_round(rating_sqrt(variance) * GLICKO_SCALE);
    record->volatility = (uint32_t)rating_round(volatility * (double)NANO);
    /* From any value to any other, at most: sums of a period may tell more. */
    const double most = 2 * (double)RATING_LIMIT;
    double change = variance * gained * GLICKO_SCALE;
    change = change < most ? change : most;
    return rating_round(change > -most ? change : -most);
}

/* Of rating periods' sums. */
#define SUM_UNIT 1e12

static void rating_glicko_player(const struct rating_rule *rule, const struct rating_match *match,
                                 struct first first, const struct side *side,
                                 struct rating_record *record) {
    int64_t change = 0;
    if (rule->of[RATING_EVERY_HOURS] > 0) {
        /* However sure it was, the period has had a game. */
        int64_t learned = rating_round(side->learned * SUM_UNIT);
        record->learned = rating_clamp(record->learned + (learned > 0 ? learned : 1),
                                       -RATING_SUM_MAX, RATING_SUM_MAX);
        record->gained = rating_clamp(record->gained + rating_round(side->gained * SUM_UNIT),
                                      -RATING_SUM_MAX, RATING_SUM_MAX);
    } else {
        double periods = rating_periods_since(rule, record, match->at_ms);
        change = rating_glicko_update(rule, record, rating_grown(rule, record, periods - 1),
                                      periods < 1 ? periods : 1, side->learned, side->gained);
    }
    rating_finish(rule, match, first, side->rank, change, record);
}

bool rating_record_end_period(const struct rating_rule *rule, struct rating_record *record,
                              int64_t now_ms) {
    int64_t start_ms = rating_period_start(rule, now_ms);
    if (record->period_ms >= start_ms || record->learned <= 0) {
        return false;
    }
    rating_take_to_limits(rule, record);
    int64_t change =
        rating_glicko_update(rule, record, (double)record->deviation / GLICKO_SCALE, 1,
                             (double)record->learned / SUM_UNIT, (double)record->gained / SUM_UNIT);
    record->value = rating_moved(rule, record->value, change);
    record->period_ms += rating_period_length(rule);
    record->learned = 0;
    record->gained = 0;
    rating_take_to_limits(rule, record);
    return true;
}

void rating_record_enter_period(const struct rating_rule *rule, struct rating_record *record,
                                int64_t now_ms) {
    int64_t start_ms = rating_period_start(rule, now_ms);
    if (record->period_ms < start_ms) {
        record->deviation = rating_now(rule, record, now_ms);
        record->period_ms = start_ms;
        record->learned = 0;
        record->gained = 0;
    }
}

static void rating_glicko_match(const struct rating_rule *rule, const struct rating_match *match,
                                struct side *sides, struct rating_record *records) {
    struct first first = rating_find_first(match);
    for (uint32_t i = 0; i < match->teams; i++) {
        rating_glicko_sum(rule, match, records, 1, &sides[i]);
    }
    rating_put_in_order(sides, match->teams);
    for (uint32_t i = 0; i < match->teams; i++) {
        struct side *side = &sides[i];
        for (uint32_t q = 0; q < match->teams; q++) {
            const struct side *other = &sides[q];
            if (q != i) {
                double weight = rating_glicko_weight(rating_squared(other->deviation));
                struct odds odds =
                    rating_odds_of(weight * (side->center - other->center), GLICKO_LOG_MAX);
                side->learned += rating_squared(weight) * odds.win * odds.lose;
                side->gained += weight * rating_surprise(odds, side->rank, other->rank);
            }
        }
        side->gained /= side->size;
        side->learned /= (double)side->size * side->size;
        for (uint32_t j = 0; j < side->size; j++) {
            rating_glicko_player(rule, match, first, side, &records[side->first_player + j]);
        }
    }
}

/* ---- OPENSKILL ---- */

#define SKILL_LOG_MAX 300.0

static wide rating_square(int64_t number) {
    return (wide)number * number;
}

/* tau_squared: what each player's squared deviation has more. */
static void rating_skill_sum(const struct rating_record *records, wide tau_squared,
                             struct side *side) {
    for (uint32_t i = 0; i < side->size; i++) {
        const struct rating_record *record = &records[side->first_player + i];
        side->sum += record->value;
        side->squares += rating_square(record->deviation) + tau_squared;
    }
    side->deviation = rating_sqrt((double)side->squares);
}

/* The root of all teams' variances and of beta for each. */
static double rating_skill_unit(const struct rating_rule *rule, const struct side *sides,
                                uint32_t teams) {
    wide variance = teams * rating_square(rule->of[RATING_BETA]);
    for (uint32_t i = 0; i < teams; i++) {
        variance += sides[i].squares;
    }
    return rating_sqrt((double)variance);
}

/* e^(sum / unit) in proportion to the best one's. */
static double rating_skill_power(int64_t sum, int64_t best, double unit) {
    double log = (double)(sum - best) / unit;
    return rating_exp(log > -SKILL_LOG_MAX ? log : -SKILL_LOG_MAX);
}

/* Weng and Lin's algorithm 4. S of a rank is the sum of powers of it and all that are worse: from the last to the
 * first. What a team gets is a sum over the ranks up to its own, of 1/S and 1/S^2: from the first to the last. */
static void rating_skill_plackett_luce(const struct rating_rule *rule, struct side *sides,
                                       uint32_t teams) {
    double unit = rating_skill_unit(rule, sides, teams);
    int64_t best = sides[0].sum;
    for (uint32_t i = 1; i < teams; i++) {
        best = sides[i].sum > best ? sides[i].sum : best;
    }
    double rest = 0;
    for (uint32_t i = teams; i-- > 0;) {
        sides[i].power = rating_skill_power(sides[i].sum, best, unit);
        rest += sides[i].power;
        sides[i].rest = rest;
    }
    double by_rest = 0;
    double by_rest_squared = 0;
    for (uint32_t i = 0; i < teams;) {
        uint32_t end = i + 1;
        while (end < teams && sides[end].rank == sides[i].rank) {
            end++;
        }
        double share = 1.0 / (end - i);
        double reciprocal = 1 / sides[i].rest;
        by_rest += reciprocal;
        by_rest_squared += rating_squared(reciprocal);
        for (; i < end; i++) {
            double part = sides[i].deviation / unit;
            sides[i].gained = (share - sides[i].power * by_rest) * (double)sides[i].squares / unit;
            sides[i].learned =
                (sides[i].power * by_rest - rating_squared(sides[i].power) * by_rest_squared) *
                rating_squared(part) * part;
        }
    }
}

/* The chances of two teams alone. */
static struct odds rating_skill_odds(const struct rating_rule *rule, const struct side *side,
                                     const struct side *other, double *unit) {
    *unit = rating_sqrt(
        (double)(side->squares + other->squares + 2 * rating_square(rule->of[RATING_BETA])));
    return rating_odds_of((double)(side->sum - other->sum) / *unit, SKILL_LOG_MAX);
}

/* Weng and Lin's algorithm 1. */
static void rating_skill_bradley_terry(const struct rating_rule *rule, struct side *sides,
                                       uint32_t teams) {
    for (uint32_t i = 0; i < teams; i++) {
        struct side *side = &sides[i];
        for (uint32_t q = i + 1; q < teams; q++) {
            struct side *other = &sides[q];
            double unit;
            struct odds odds = rating_skill_odds(rule, side, other, &unit);
            double gained = rating_surprise(odds, side->rank, other->rank);
            double both = odds.win * odds.lose;
            double part = side->deviation / unit;
            side->gained += gained * (double)side->squares / unit;
            side->learned += both * rating_squared(part) * part;
            part = other->deviation / unit;
            other->gained -= gained * (double)other->squares / unit;
            other->learned += both * rating_squared(part) * part;
        }
    }
}

struct weights {
    const uint32_t *of; /* the team's; NULL: all are 1 */
    double least, range;
    bool is_alone;
};

static struct weights rating_find_weights(const struct rating_match *match,
                                          const struct side *side) {
    if (match->weights == NULL) {
        return (struct weights){.of = NULL};
    }
    const uint32_t *of = match->weights + side->first_player;
    uint32_t least = of[0];
    uint32_t most = of[0];
    for (uint32_t i = 1; i < side->size; i++) {
        least = of[i] < least ? of[i] : least;
        most = of[i] > most ? of[i] : most;
    }
    return (struct weights){
        .of = of, .least = least, .range = most - least, .is_alone = side->size == 1};
}

static void rating_skill_match(const struct rating_rule *rule, const struct rating_match *match,
                               struct side *sides, struct rating_record *records) {
    struct first first = rating_find_first(match);
    wide tau_squared = rating_square(rule->of[RATING_TAU]);
    double kappa = (double)rule->of[RATING_KAPPA] / (double)NANO;
    for (uint32_t i = 0; i < match->teams; i++) {
        rating_skill_sum(records, tau_squared, &sides[i]);
    }
    rating_put_in_order(sides, match->teams);
    if (rule->of[RATING_MODEL] == RATING_PLACKETT_LUCE) {
        rating_skill_plackett_luce(rule, sides, match->teams);
    } else {
        rating_skill_bradley_terry(rule, sides, match->teams);
    }
    for (uint32_t i = 0; i < match->teams; i++) {
        const struct side *side = &sides[i];
        struct weights weights = rating_find_weights(match, side);
        double by_squares = 1 / (double)side->squares;
        for (uint32_t j = 0; j < side->size; j++) {
            struct rating_record *record = &records[side->first_player + j];
            double variance = (double)(rating_square(record->deviation) + tau_squared);
            double weight = weights.of == NULL ? 1
                            : weights.is_alone ? 2
                            : weights.range == 0.0
                                ? 1
                                : 1 + (weights.of[j] - weights.least) / weights.range;
            double share = variance * by_squares * (side->gained >= 0 ? weight : 1 / weight);
            double left = 1 - share * side->learned;
            int64_t deviation = rating_round(rating_sqrt(variance * (left > kappa ? left : kappa)));
            bool is_limited = rule->of[RATING_LIMIT_SIGMA] == 1 && deviation > record->deviation;
            record->deviation = is_limited ? record->deviation : deviation;
            rating_finish(rule, match, first, side->rank, rating_round(share * side->gained),
                          record);
        }
    }
}

/* ---- matches ---- */

void rating_match(const struct rating_rule *rule, const struct rating_match *match,
                  struct rating_record *records) {
    struct side sides[RATING_TEAMS_MAX];
    CHECK(match->teams >= 2);
    rating_count_sides(match, sides);
    uint32_t players = sides[match->teams - 1].first_player + sides[match->teams - 1].size;
    for (uint32_t i = 0; i < players; i++) {
        rating_take_to_limits(rule, &records[i]);
    }
    if (rule->system == RATING_ELO) {
        rating_elo_match(rule, match, sides, records);
    } else if (rule->system == RATING_GLICKO2) {
        rating_glicko_match(rule, match, sides, records);
    } else {
        rating_skill_match(rule, match, sides, records);
    }
}

/* A side's mean chance against each other one, in proportion. */
static void rating_predict_by_pairs(const struct rating_rule *rule, const struct side *sides,
                                    uint32_t teams, double *chances) {
    for (uint32_t i = 0; i < teams; i++) {
        for (uint32_t q = i + 1; q < teams; q++) {
            const struct side *side = &sides[i];
            const struct side *other = &sides[q];
            struct odds odds;
            double unit;
            if (rule->system == RATING_ELO) {
                odds.win = rating_elo_chance(rating_elo_difference(side, other)) / (double)ELO_SURE;
                odds.lose = 1 - odds.win;
            } else if (rule->system == RATING_GLICKO2) {
                unit = rating_glicko_weight(rating_squared(side->deviation) +
                                            rating_squared(other->deviation));
                odds = rating_odds_of(unit * (side->center - other->center), GLICKO_LOG_MAX);
            } else {
                odds = rating_skill_odds(rule, side, other, &unit);
            }
            chances[i] += odds.win;
            chances[q] += odds.lose;
        }
        chances[i] /= teams * (teams - 1) / 2.0;
    }
}

void rating_predict(const struct rating_rule *rule, const struct rating_match *match,
                    const struct rating_record *records, uint32_t *chances, uint32_t *quality) {
    struct side sides[RATING_TEAMS_MAX];
    double exact[RATING_TEAMS_MAX] = {0};
    CHECK(match->teams >= 2);
    rating_count_sides(match, sides);
    for (uint32_t i = 0; i < match->teams; i++) {
        sides[i].rank = 0;
        if (rule->system == RATING_ELO) {
            rating_elo_sum(records, &sides[i]);
        } else if (rule->system == RATING_GLICKO2) {
            rating_glicko_sum(rule, match, records, 0, &sides[i]);
        } else {
            rating_skill_sum(records, 0, &sides[i]);
        }
    }
    rating_put_in_order(sides, match->teams);
    if (rule->system == RATING_OPENSKILL && rule->of[RATING_MODEL] == RATING_PLACKETT_LUCE) {
        double unit = rating_skill_unit(rule, sides, match->teams);
        int64_t best = sides[0].sum;
        double sum = 0;
        for (uint32_t i = 1; i < match->teams; i++) {
            best = sides[i].sum > best ? sides[i].sum : best;
        }
        for (uint32_t i = 0; i < match->teams; i++) {
            exact[i] = rating_skill_power(sides[i].sum, best, unit);
            sum += exact[i];
        }
        for (uint32_t i = 0; i < match->teams; i++) {
            exact[i] /= sum;
        }
    } else {
        rating_predict_by_pairs(rule, sides, match->teams, exact);
    }
    double squares = 0;
    for (uint32_t i = 0; i < match->teams; i++) {
        squares += rating_squared(exact[i]);
        chances[sides[i].team] = (uint32_t)rating_round(exact[i] * RATING_CHANCE_ONE);
    }
    double even = (1 - squares) * match->teams / (match->teams - 1);
    *quality = (uint32_t)rating_clamp(rating_round(even * RATING_CHANCE_ONE), 0, RATING_CHANCE_ONE);
}

/* ---- reading ---- */

int64_t rating_now(const struct rating_rule *rule, const struct rating_record *record,
                   int64_t at_ms) {
    double periods = rating_periods_since(rule, record, at_ms);
    return periods > 0 ? rating_round(rating_grown(rule, record, periods) * GLICKO_SCALE)
                       : record->deviation;
}

static int64_t rating_number(const struct rating_rule *rule, int64_t value, int64_t deviation,
                             unsigned decimals) {
    enum { THOUSANDTHS = 1000 };
    unsigned own_decimals = rating_decimals(rule->system);
    wide number = rule->of[RATING_FACTOR] *
                      ((wide)value * THOUSANDTHS - (wide)rule->of[RATING_Z] * deviation) +
                  (wide)rule->of[RATING_OFFSET] * THOUSANDTHS * THOUSANDTHS;
    wide divisor = THOUSANDTHS * THOUSANDTHS;
    for (unsigned i = decimals; i < own_decimals; i++) {
        divisor *= 10;
    }
    for (unsigned i = own_decimals; i < decimals; i++) {
        number *= 10;
    }
    number = rating_divide(number, divisor);
    return number > INT64_MAX ? INT64_MAX : number < -INT64_MAX ? -INT64_MAX : (int64_t)number;
}

int64_t rating_ranks(const struct rating_rule *rule, const struct rating_record *record,
                     unsigned decimals) {
    struct rating_record taken = *record;
    rating_take_to_limits(rule, &taken);
    return rating_number(rule, taken.value, taken.deviation, decimals);
}

int64_t rating_ranks_least(const struct rating_rule *rule, unsigned decimals) {
    return rating_number(rule, rule->of[RATING_MIN], rule->of[RATING_DEV_MAX], decimals);
}

int64_t rating_ranks_most(const struct rating_rule *rule, unsigned decimals) {
    return rating_number(rule, rule->of[RATING_MAX], rule->of[RATING_DEV_MIN], decimals);
}
