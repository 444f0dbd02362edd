/* Ratings that follow from matches: Elo by FIDE's table, Glicko-2 after each match, and two models of Weng and Lin
 * (OpenSkill).
 *
 *     rating_rule     a system and its parameters          what a board declares
 *     rating_record   what is kept of a player             RATING_RECORD_BYTES when packed
 *     rating_match    teams in, changed records out        any number of teams, ranks, ties
 *
 * Everything here is an integer, and the same on every machine (codec/rating.h). Values and deviations have
 * rating_decimals(system) decimals: 6 for ELO and GLICKO2 (1500 is 1500000000), 9 for OPENSKILL (25 is 25000000000).
 * All rounding is to the nearest, halves away from 0. Which order the teams, and the players in a team, are given in
 * changes no bit.
 *
 * What is followed, and where sources differ:
 *
 * ELO. FIDE's Rating Regulations of 2024, 8.1.2 (the table) and 8.3: differences are whole numbers, and above GAP-MAX
 * count as GAP-MAX, except for who has GAP-FREE or more. K is K-NEW below NEW-GAMES games, else K-TOP once the player
 * had TOP, else K; K by age is not there. Of teams the means are compared, and each player's own K counts. Among n
 * teams each meets each other, with K / (n - 1). Ratings keep their decimals: FIDE rounds once a month.
 *
 * GLICKO2. Glickman's "Example of the Glicko-2 system" (2022). A match is a rating period with one game against each
 * other team. A team is the mean of its n players, with the deviation of that mean. A player is a part of it: what a
 * game tells, the sum of g * (s - E), counts 1/n, and 1/v counts 1/n^2. For a player who last played t periods ago, what
 * is above one period are periods without games (step 6), and the last one, or the fraction of it, is that of the match:
 * as liglicko2 does it, and for t = 1 the paper. Step 5 is Newton's method from the volatility before; it finds the root
 * itself, where the paper's stops at 1e-6. Differences that give less than e^-60 of a chance count as that. With
 * EVERY-HOURS, rating periods are the paper's: matches add to the sums over games, for ratings and deviations as the period
 * found them, and what follows is computed when it is over.
 *
 * OPENSKILL. Weng and Lin, "A Bayesian approximation method for online ranking", JMLR 12 (2011), algorithms 1
 * (Bradley-Terry full pair) and 4 (Plackett-Luce), with gamma = sigma_i / c, and with openskill.py 6.2's tau, kappa,
 * limit on sigma and weights. Teams that tie are not given the mean of their changes: openskill.py has lines for it,
 * which have no effect there, and neither the paper nor openskill.js has it. Weights are openskill.py's: those of a team
 * are stretched to 1 (the least) .. 2 (the most), all to 1 if they are equal, to 2 in a team of one; who gains, gains
 * weight times as much, and who loses, loses by the weight less. Chances below e^-300 count as that. */
#ifndef CODEC_RATING_H
#define CODEC_RATING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codec/check.h"

enum rating_system { RATING_ELO, RATING_GLICKO2, RATING_OPENSKILL, RATING_SYSTEMS };

enum {
    RATING_TEAMS_MAX = 128,
    RATING_PLAYERS_MAX = 1024,
    RATING_RECORD_BYTES = 39,
    RATING_VOLATILITY_DECIMALS = 9,
    RATING_WEIGHT_MAX = 1000000000,
    RATING_CHANCE_ONE = 1000000,
};
/* No value or deviation is beyond this: 10^6 of an OPENSKILL, 10^9 of the others, whose rules allow 10^6. */
#define RATING_LIMIT INT64_C(1000000000000000)
/* Of learned and gained; what was stored may be anything. */
#define RATING_SUM_MAX INT64_C(1000000000000000000)
static inline bool rating_is_sum(int64_t sum) {
    return sum >= -RATING_SUM_MAX && sum <= RATING_SUM_MAX;
}
/* 48 bits. */
#define RATING_MS_MAX ((INT64_C(1) << 48) - 1)

/* ---- rules ---- */

enum rating_parameter {
    /* of all systems */
    RATING_START,    /* a new player's value */
    RATING_MIN,      /* no match leaves a value below */
    RATING_MAX,      /* or above */
    RATING_MOVE_MAX, /* the most by which a match moves a value; 0: any */
    RATING_Z,        /* ranked is OFFSET + FACTOR * (value - Z * deviation) */
    RATING_FACTOR,
    RATING_OFFSET,
    /* GLICKO2 and OPENSKILL */
    RATING_START_DEV,
    RATING_DEV_MIN,
    RATING_DEV_MAX,
    RATING_TAU, /* GLICKO2: how fast volatilities change. OPENSKILL: what each match adds to deviations */
    /* ELO: whole numbers, but for the three values TOP, GAP-MAX, GAP-FREE */
    RATING_K_NEW,
    RATING_K,
    RATING_K_TOP, /* one K for all is the same number three times */
    RATING_NEW_GAMES,
    RATING_TOP,
    RATING_GAP_MAX, /* 0: differences count as they are */
    RATING_GAP_FREE,
    /* GLICKO2 */
    RATING_START_VOL,
    RATING_VOL_MIN,
    RATING_VOL_MAX,
    RATING_PERIOD_MS, /* of a rating period; 0: deviations do not grow by time */
    /* OPENSKILL */
    RATING_MODEL, /* enum rating_model */
    RATING_BETA,
    RATING_KAPPA,
    RATING_LIMIT_SIGMA, /* 1: no match makes a deviation larger */
    /* of all systems: what a board keeps of its matches */
    RATING_KEEP_MATCHES, /* so many; 0: none */
    RATING_KEEP_HOURS,   /* and not for longer; 0: any time */
    RATING_RESET, /* of all systems: at the end of a board's period, so much of the way to START */
    RATING_EVERY_HOURS, /* GLICKO2: of a rating period, from 1970 on; 0: each match is one */
    /* who is ranked */
    RATING_MAXDEV,   /* GLICKO2 and OPENSKILL: not above it; 0: any */
    RATING_MINGAMES, /* of all systems: not below it */
    RATING_PARAMETERS
};
enum rating_model { RATING_PLACKETT_LUCE, RATING_BRADLEY_TERRY, RATING_MODELS };

struct rating_rule {
    enum rating_system system;
    int64_t of[RATING_PARAMETERS]; /* in units of rating_parameter_decimals; of other systems: 0 */
};

/* "ELO", "GLICKO2", "OPENSKILL". */
const char *rating_system_name(enum rating_system system);
unsigned rating_decimals(enum rating_system system);

/* "START-DEV" */
const char *rating_parameter_name(enum rating_parameter parameter);
/* Has the system this parameter? */
bool rating_parameter_is_of(enum rating_parameter parameter, enum rating_system system);
unsigned rating_parameter_decimals(enum rating_parameter parameter, enum rating_system system);
/* The least and the most that a rule may say, each by itself. */
int64_t rating_parameter_least(enum rating_parameter parameter, enum rating_system system);
int64_t rating_parameter_most(enum rating_parameter parameter, enum rating_system system);

/* The defaults. */
void rating_rule_init(struct rating_rule *rule, enum rating_system system);
/* false: *wrong is the first parameter that is beyond its least or most, is no parameter of the system and not 0, or is
 * a START outside its FLOOR and CEILING. */
MUST_CHECK bool rating_rule_check(const struct rating_rule *rule, enum rating_parameter *wrong);

/* ---- records ---- */

struct rating_record {
    int64_t value;
    int64_t deviation;   /* after the last match; ELO: 0 */
    int64_t last_ms;     /* of the last match; 0: none yet */
    uint32_t volatility; /* GLICKO2, else 0 */
    uint32_t won;        /* alone on the first place. Counts stop at 2^32 - 1 */
    uint32_t drawn;      /* on the first place with others */
    uint32_t lost;       /* on another place */
    bool is_top;         /* ELO: has had TOP */
    /* EVERY-HOURS: of the rating period, which changes value, deviation and volatility when it is over. Not packed. */
    int64_t period_ms;       /* its beginning; 0: none yet */
    int64_t learned, gained; /* sums over its matches, in 10^-12 */
};
static inline uint64_t rating_games(const struct rating_record *record) {
    return (uint64_t)record->won + record->drawn + record->lost;
}

/* A new player's. */
struct rating_record rating_record_start(const struct rating_rule *rule);
/* Give a player a value and a deviation (negative: the one that is there), within the rule's limits. */
void rating_record_seed(const struct rating_rule *rule, struct rating_record *record, int64_t value,
                        int64_t deviation);

/* Take a match off a record, which was before and after it as these say. Where nothing has changed the record since, it is as
 * before. Else what the match added to the value and the volatility is subtracted, and from the deviation what the match
 * told, which is 1 / deviation^2 after less that before; counts are less by the match, and the time stays. */
void rating_record_take_back(const struct rating_rule *rule, const struct rating_record *before,
                             const struct rating_record *after, struct rating_record *record);

/* RESET: the value goes this share of the way to START, and the squared deviation, where it is less, to that of
 * START-DEV. */
void rating_record_reset(const struct rating_rule *rule, struct rating_record *record);
/* EVERY-HOURS: count what was played in the record's rating period, if that is over. false: it is not, or nothing was
 * played. Deviations grow by later periods when they are read (rating_now). */
bool rating_record_end_period(const struct rating_rule *rule, struct rating_record *record,
                              int64_t now_ms);
/* Likewise, before a match or a seed: the record becomes one of the running period. */
void rating_record_enter_period(const struct rating_rule *rule, struct rating_record *record,
                                int64_t now_ms);

/* One format. A record that unpacks may be given to every rule: matches take its numbers to the rule's limits first.
 * false: rating_pack writes no such bytes; *record is then left unchanged. */
void rating_pack(const struct rating_record *record, char bytes[RATING_RECORD_BYTES]);
MUST_CHECK bool rating_unpack(const char bytes[RATING_RECORD_BYTES], struct rating_record *record);

/* ---- matches ---- */

/* Borrowed for the call. */
struct rating_match {
    const uint32_t *sizes; /* of each team: its players */
    const uint32_t
        *ranks; /* of each team: less is better, equal is a draw. NULL: the teams are in order */
    const uint32_t *weights; /* of each player, in any unit; NULL: none */
    uint32_t teams;
    int64_t at_ms; /* before a player's last match: as if it were at its time */
};
enum rating_status {
    RATING_OK = 0,
    RATING_TEAMS_WRONG, /* below 2 teams, an empty one, or more than the MAX of teams or players */
    RATING_TIME_WRONG,  /* not 1 .. RATING_MS_MAX */
    RATING_WEIGHTS_WRONG, /* above RATING_WEIGHT_MAX, or given to ELO or GLICKO2 */
};
MUST_CHECK enum rating_status rating_match_check(const struct rating_rule *rule,
                                                 const struct rating_match *match);

/* Change the records of all players, team after team. Rule and match have passed their checks, so this cannot fail. */
void rating_match(const struct rating_rule *rule, const struct rating_match *match,
                  struct rating_record *records);

/* chances[team]: that it wins, draws counting as half, in units of 1 / RATING_CHANCE_ONE. Among more than two teams:
 * PLACKETT_LUCE's chance of the first place; else the mean of a team's chances against each other one, in proportion.
 * *quality: (1 - sum of squared chances) * n / (n - 1), which is RATING_CHANCE_ONE for equal chances, and 0 where one
 * team is sure to win. Deviations are those of at_ms. Ranks and weights are not looked at. */
void rating_predict(const struct rating_rule *rule, const struct rating_match *match,
                    const struct rating_record *records, uint32_t *chances, uint32_t *quality);

/* ---- reading ---- */

/* The deviation at a moment: of GLICKO2 it has grown since the last match. */
int64_t rating_now(const struct rating_rule *rule, const struct rating_record *record,
                   int64_t at_ms);
/* The number that ranks, in units of 10^-decimals (at most DECIMAL_SCALE_MAX). It follows from what is stored: time does
 * not change it. Rounded once; at most INT64_MAX, at least -INT64_MAX. */
int64_t rating_ranks(const struct rating_rule *rule, const struct rating_record *record,
                     unsigned decimals);
/* No record that a match or seed of this rule leaves is ranked below or above these. */
int64_t rating_ranks_least(const struct rating_rule *rule, unsigned decimals);
int64_t rating_ranks_most(const struct rating_rule *rule, unsigned decimals);

/* ---- real numbers ----
 *
 * Those whose bits are the same on every machine: exp as one fixed polynomial, and what IEEE 754 rounds to the
 * nearest by itself, which is + - * / and the square root. libm's exp differs between versions, and between CPUs with
 * and without a fused multiply-add. The Makefile's FLAGS (-ffp-contract=off) keep compilers from fusing.
 *
 * Whoever keeps a result keeps an integer: rating_round. */

#define RATING_EXP_MAX 700.0

/* e^x, off by less than one unit of its last place. x beyond -RATING_EXP_MAX .. RATING_EXP_MAX counts as these. */
double rating_exp(double x);

/* x >= 0. */
double rating_sqrt(double x);

/* The nearest integer, halves away from 0. |x| is below 2^62. */
int64_t rating_round(double x);

#endif
