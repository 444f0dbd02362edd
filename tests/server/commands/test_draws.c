/* Three features at a time, drawn from the table of commands: beside the module (LEADERBOARD_MODULE), which must answer
 * the same to every command. tests/server/loop/test_crossings.c draws them beside background work and faults. */
#include "server/commands/table.h"
#include "server/dispatch/execute.h"
#include "skiplist/keyspace/registry_walk.h"
#include "tests/support/grammar.h"
#include "tests/support/harness.h"

enum { ROUNDS = 400, ROUNDS_SHORT = 12, COMMANDS = 250, BOARDS_MADE = 20 };

static const char *const keys[] = {"b0",   "b0", "b1", "b2", "p0", "lg", "h:m1", "b0@2026-01-01T00",
                                   "old0", NULL};

/* What the module has not, or has by the clock or the rules of its host: docs/reference/module.md. It renames keys to
 * names of any size. */
static const char *const never[] = {"WINDOW",  "TICKET", "TICKETS", "EX",       "ARCHIVE", "AUTO",
                                    "COPY",    "",       "EXPIRE*", "PEXPIRE*", "SHADOW",  "FORGET",
                                    "PLAYERS", "ONCE",   "STALE",   NULL};
static const char *const others[] = {
    "ZMOVE*",      "BZ*",     "LB.TICKET", "LB.REVOKE*",  "RESTORE", "DUMP",   "SWAPDB", "MOVE",
    "LB.SNAPSHOT", "GEO*",    "SORT*",     "ZRANDMEMBER", "ZSCAN",   "H*",     "COPY",   "EXPIRE*",
    "PEXPIRE*",    "PERSIST", "RANDOMKEY", "OBJECT",      "TOUCH",   "MEMORY", NULL};

static const struct command *choose(struct random *random, const struct grammar *grammar) {
    for (;;) {
        const struct command *command =
            command_by_index((uint32_t)random_below(random, command_count()));
        bool is_wanted = grammar_has_focus(grammar, command) || random_below(random, 8) == 0;
        if (grammar_is_on_keys(command) && is_wanted && !grammar_is_among(others, command->name)) {
            return command;
        }
    }
}

static bool has_word(const struct grammar *grammar) {
    for (uint32_t i = 0; i < grammar->count; i++) {
        char word[32];
        snprintf(word, sizeof word, "%.*s", (int)(grammar->sizes[i] < 30 ? grammar->sizes[i] : 30),
                 grammar->words[i]);
        if (grammar_is_among(never, word) || grammar->sizes[i] > REGISTRY_KEY_MAX) {
            return true;
        }
    }
    return false;
}

static void run_drawn(struct harness *h, struct session *s, const struct grammar *grammar) {
    struct bytes args[GRAMMAR_WORDS_MAX];
    for (uint32_t i = 0; i < grammar->count; i++) {
        args[i] = (struct bytes){.at = grammar->words[i], .size = grammar->sizes[i]};
    }
    (void)harness_run_args(h, s, args, grammar->count);
}

struct names {
    char at[512][64];
    uint32_t count;
};

static void note_name(void *context, const struct registry_key *key) {
    struct names *names = context;
    struct bytes name = registry_name(key);
    if (names->count < COUNT_OF(names->at) && name.size < sizeof names->at[0]) {
        snprintf(names->at[names->count++], sizeof names->at[0], "%.*s", (int)name.size, name.at);
    }
}

/* A period ends there with the next command on its board, if no timer was before it. */
static void look_at_all(struct harness *h, struct session *s) {
    static struct names names;
    names.count = 0;
    registry_walk_each(h->server.registry, 0, 0, note_name, &names);
    for (uint32_t i = 0; i < names.count; i++) {
        struct bytes args[] = {BYTES("LB.INFO"), bytes_from_text(names.at[i])};
        (void)harness_run_args(h, s, args, 2);
    }
}

static void run_round(struct random *random) {
    struct harness *h =
        harness_create("layout money FIELD cents 30 SCALE 2 TIME 34 MS END 2026-07-01T00:00:00Z\n"
                       "layout pair FIELD likes 20 FIELD replies 13 TIME 31 S\n"
                       "board p* default PERIOD HOUR\n");
    struct session *s = harness_connect(h);
    struct grammar grammar = {.random = random, .keys = keys, .favourite = "b0", .never = never};
    for (int i = 0; i < GRAMMAR_FOCI; i++) {
        grammar.focus[i] = grammar_features[random_below(random, GRAMMAR_FEATURES)].words;
    }
    grammar.is_tame = true;
    for (int i = 0; i < BOARDS_MADE; i++) {
        grammar_draw(&grammar, grammar_find("LB.CREATE"));
        if (!has_word(&grammar))
            run_drawn(h, s, &grammar);
    }
    grammar.is_tame = false;
    harness_run(h, s,
                "LB.LEAGUE CREATE lg FIELD a 20 TIME 40 MS PERIOD HOUR ROOM 3 TIERS 3 UP 1 DOWN 1");
    for (int i = 0; i < COMMANDS; i++) {
        grammar_draw(&grammar, choose(random, &grammar));
        if (!has_word(&grammar)) {
            run_drawn(h, s, &grammar);
        }
        const int64_t hour_us = INT64_C(3600000000);
        int64_t before_us = h->wall_us;
        h->wall_us += (int64_t)random_below(random, 2000) *
                      (int64_t)(random_below(random, 8) == 0 ? 1000 : 1);
        if (random_below(random, 60) == 0 || before_us / hour_us != h->wall_us / hour_us) {
            h->wall_us += INT64_C(3000000000);
            look_at_all(h, s);
        }
    }
    harness_destroy(h);
}

TEST(the_module_answers_what_the_server_does_to_three_features_at_a_time) {
    struct random random = random_begin(__func__);
    execute_init(command_table);
    for (int i = 0; i < (int)test_rounds(ROUNDS, ROUNDS_SHORT); i++) {
        run_round(&random);
    }
}
