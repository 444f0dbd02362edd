/* How soon ranks are found: players of known strength play, and the rank correlation (Spearman's) of strength and what
 * a board ranks by is taken after so many matches of each. With codec/rating.h and the defaults of each system.
 *
 *     build/bench/ratings [worlds] > bench/results/<date>-ratings.json
 *     bench/plot.py bench/results/<date>-ratings.json > bench/results/<date>-ratings.svg
 *
 * Strengths are normal on Elo's scale. Who wins is drawn by Elo's formula, of teams by their mean strength, and in a race
 * place after place. Opponents are drawn from all. Every system sees the same matches of the same worlds. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "codec/rating.h"

enum {
    PLAYERS = 1000,
    WORLDS = 10,
    HOURS_BETWEEN = 8,
    TEAMS_MAX = 8,
    SIZE_MAX_HERE = 5,
    STRENGTH_SD = 300
};
/* A difference of 400 is ten to one: 400 / ln(10). */
#define STRENGTH_UNIT 173.71779276130073

static const struct {
    const char *title;
    uint32_t teams, size;
} kinds[] = {{"one against one", 2, 1}, {"five against five", 2, 5}, {"races of eight", 8, 1}};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static const struct {
    const char *name;
    enum rating_system system;
    enum rating_model model;
} systems[] = {
    {"Elo", RATING_ELO, RATING_PLACKETT_LUCE},
    {"Glicko-2", RATING_GLICKO2, RATING_PLACKETT_LUCE},
    {"OpenSkill, Plackett-Luce", RATING_OPENSKILL, RATING_PLACKETT_LUCE},
    {"OpenSkill, Bradley-Terry", RATING_OPENSKILL, RATING_BRADLEY_TERRY},
};
enum { SYSTEMS = sizeof systems / sizeof systems[0] };

static const uint32_t marks[] = {1, 2, 5, 10, 20, 50, 100, 200};
enum { MARKS = sizeof marks / sizeof marks[0] };

static uint64_t random_state;

/* splitmix64, as tests/support/random.h. */
static uint64_t random_next(void) {
    uint64_t z = random_state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static double random_part(void) {
    return (double)(random_next() >> 11) / (double)(UINT64_C(1) << 53);
}

/* A sum of twelve is nearly normal. */
static double random_normal(void) {
    double sum = -6;
    for (int i = 0; i < 12; i++) {
        sum += random_part();
    }
    return sum;
}

struct world {
    double strengths[PLAYERS];
    uint32_t order[PLAYERS];
    struct rating_record records[SYSTEMS][PLAYERS];
};

/* Draw the places, each from those who are left, in proportion to e^strength. */
static void draw_ranks(const double *strengths, uint32_t teams, uint32_t *ranks) {
    double powers[TEAMS_MAX];
    double sum = 0;
    for (uint32_t i = 0; i < teams; i++) {
        powers[i] = rating_exp(strengths[i] / STRENGTH_UNIT);
        sum += powers[i];
    }
    for (uint32_t place = 0; place < teams; place++) {
        double at = random_part() * sum;
        uint32_t drawn = teams;
        for (uint32_t i = 0; i < teams; i++) {
            if (powers[i] > 0) {
                drawn = i;
                at -= powers[i];
                if (at < 0) {
                    break;
                }
            }
        }
        ranks[drawn] = place;
        sum -= powers[drawn];
        powers[drawn] = 0;
    }
}

/* One match of each player, for all systems. */
static void play(struct world *world, const struct rating_rule *rules, uint32_t teams,
                 uint32_t size, int64_t at_ms) {
    uint32_t sizes[TEAMS_MAX];
    uint32_t ranks[TEAMS_MAX];
    struct rating_match match = {.sizes = sizes, .ranks = ranks, .teams = teams, .at_ms = at_ms};
    for (uint32_t i = 0; i < PLAYERS; i++) {
        uint32_t j = (uint32_t)(random_next() % (i + 1));
        world->order[i] = world->order[j];
        world->order[j] = i;
    }
    for (uint32_t first = 0; first + teams * size <= PLAYERS; first += teams * size) {
        const uint32_t *players = world->order + first;
        double strengths[TEAMS_MAX] = {0};
        for (uint32_t i = 0; i < teams * size; i++) {
            strengths[i / size] += world->strengths[players[i]] / size;
            sizes[i / size] = size;
        }
        draw_ranks(strengths, teams, ranks);
        for (int system = 0; system < SYSTEMS; system++) {
            struct rating_record records[TEAMS_MAX * SIZE_MAX_HERE];
            for (uint32_t i = 0; i < teams * size; i++) {
                records[i] = world->records[system][players[i]];
            }
            rating_match(&rules[system], &match, records);
            for (uint32_t i = 0; i < teams * size; i++) {
                world->records[system][players[i]] = records[i];
            }
        }
    }
}

struct ranked {
    double number;
    double rank;
    uint32_t player;
};

static int compare_numbers(const void *a, const void *b) {
    double left = ((const struct ranked *)a)->number;
    double right = ((const struct ranked *)b)->number;
    return (left > right) - (left < right);
}

static int compare_players(const void *a, const void *b) {
    uint32_t left = ((const struct ranked *)a)->player;
    uint32_t right = ((const struct ranked *)b)->player;
    return (left > right) - (left < right);
}

/* Each player's rank, less the middle one; equals share theirs. */
static void rank_all(struct ranked *all) {
    qsort(all, PLAYERS, sizeof all[0], compare_numbers);
    for (uint32_t i = 0; i < PLAYERS;) {
        uint32_t end = i + 1;
        while (end < PLAYERS && compare_numbers(&all[i], &all[end]) == 0) {
            end++;
        }
        double rank = (i + end - 1) / 2.0 - (PLAYERS - 1) / 2.0;
        for (; i < end; i++) {
            all[i].rank = rank;
        }
    }
    qsort(all, PLAYERS, sizeof all[0], compare_players);
}

static double correlation(const struct world *world, const struct rating_rule *rule, int system) {
    static struct ranked a[PLAYERS];
    static struct ranked b[PLAYERS];
    double products = 0;
    double squares_a = 0;
    double squares_b = 0;
    for (uint32_t i = 0; i < PLAYERS; i++) {
        const struct rating_record *record = &world->records[system][i];
        a[i] = (struct ranked){.number = world->strengths[i], .player = i};
        b[i] = (struct ranked){.number = (double)rating_ranks(rule, record, 6), .player = i};
    }
    rank_all(a);
    rank_all(b);
    for (uint32_t i = 0; i < PLAYERS; i++) {
        products += a[i].rank * b[i].rank;
        squares_a += a[i].rank * a[i].rank;
        squares_b += b[i].rank * b[i].rank;
    }
    return products / rating_sqrt(squares_a * squares_b);
}

int main(int count, char **arguments) {
    static struct world world;
    static double sums[SYSTEMS][KINDS][MARKS];
    struct rating_rule rules[SYSTEMS];
    uint32_t worlds = count > 1 ? (uint32_t)strtoul(arguments[1], NULL, 10) : WORLDS;
    for (int system = 0; system < SYSTEMS; system++) {
        rating_rule_init(&rules[system], systems[system].system);
        if (systems[system].system == RATING_OPENSKILL) {
            rules[system].of[RATING_MODEL] = systems[system].model;
        }
    }
    for (uint32_t number = 0; number < worlds * KINDS; number++) {
        uint32_t kind = number % KINDS;
        uint32_t mark = 0;
        random_state = number;
        for (uint32_t i = 0; i < PLAYERS; i++) {
            world.strengths[i] = random_normal() * STRENGTH_SD;
            for (int system = 0; system < SYSTEMS; system++) {
                world.records[system][i] = rating_record_start(&rules[system]);
            }
        }
        for (uint32_t games = 1; games <= marks[MARKS - 1]; games++) {
            play(&world, rules, kinds[kind].teams, kinds[kind].size,
                 (int64_t)games * HOURS_BETWEEN * 3600 * 1000);
            if (games == marks[mark]) {
                for (int system = 0; system < SYSTEMS; system++) {
                    sums[system][kind][mark] += correlation(&world, &rules[system], system);
                }
                mark++;
            }
        }
    }
    printf("{\n \"subtitle\": \"%d players, strengths with a deviation of %d, means of %" PRIu32
           " worlds; the defaults of each system\",\n \"ratings\": {",
           PLAYERS, STRENGTH_SD, worlds);
    for (int system = 0; system < SYSTEMS; system++) {
        printf("%s\n  \"%s\": {", system > 0 ? "," : "", systems[system].name);
        for (uint32_t kind = 0; kind < KINDS; kind++) {
            printf("%s\n   \"%s\": [", kind > 0 ? "," : "", kinds[kind].title);
            for (uint32_t mark = 0; mark < MARKS; mark++) {
                printf("%s[%" PRIu32 ", %.4f]", mark > 0 ? ", " : "", marks[mark],
                       sums[system][kind][mark] / worlds);
            }
            printf("]");
        }
        printf("\n  }");
    }
    printf("\n }\n}\n");
    return 0;
}
