/* Rules of users: what is printed makes the same user, and rights are what a naive reading of the
 * rules says. */
#include "tests/support/test.h"

#include "codec/memory.h"
#include "server/acl/acl_check.h"
#include "server/acl/acl_rules.h"
#include "server/commands/table.h"
#include "server/dispatch/category.h"
#include "server/dispatch/execute.h"
#include "tests/support/random.h"

FIXTURE(init) {
    execute_init(command_table);
    return 0;
}

static struct acl_user *make_user(void) {
    struct acl_user *user = acl_user_create(BYTES("u"), false);
    assert_non_null(user);
    return user;
}

static enum acl_status apply(struct acl_user *user, const char *rule) {
    return acl_rules_apply(user, bytes_from_text(rule), false);
}

static char *print(const struct acl_user *user) {
    struct buffer out;
    buffer_init(&out, 0);
    acl_rules_print(user, &out);
    buffer_append(&out, "", 1);
    assert_false(out.is_broken);
    char *copy = strdup(out.at);
    buffer_deinit(&out);
    return copy;
}

static void assert_prints(struct acl_user *user, const char *expected) {
    OWNED char *text = print(user);
    assert_string_equal(text, expected);
}

static const struct acl_users nobody;

/* Cut at the blanks, as in a file. */
static struct acl_user *parse(char *text) {
    struct acl_user *user = make_user();
    struct bytes words[4096];
    uint32_t count = 0;
    struct buffer joined;
    struct bytes failed;
    char *save = NULL;
    for (char *word = strtok_r(text, " ", &save); word != NULL; word = strtok_r(NULL, " ", &save)) {
        assert_true(count < 4096);
        words[count++] = bytes_from_text(word);
    }
    buffer_init(&joined, 0);
    enum acl_status status =
        acl_rules_apply_all(user, &nobody, words, count, false, &joined, &failed);
    if (status != ACL_OK) {
        fail_msg("'%.*s': %s", (int)failed.size, failed.at, acl_rules_status_text(status));
    }
    buffer_deinit(&joined);
    return user;
}

static const char *pick(struct random *random, const char *const *list, size_t count) {
    return list[random_below(random, count)];
}
#define PICK(random, list) pick((random), (list), sizeof(list) / sizeof(list)[0])

#define HASH_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define HASH_B "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void random_rule(struct random *random, char *out, size_t size) {
    static const char *const rules[] = {"on",
                                        "off",
                                        "nopass",
                                        "resetpass",
                                        "allkeys",
                                        "resetkeys",
                                        "allchannels",
                                        "resetchannels",
                                        "+@all",
                                        "-@all",
                                        "clearselectors",
                                        "sanitize-payload",
                                        "~a*",
                                        "~b?",
                                        "%R~*",
                                        "%W~*",
                                        "%RW~c",
                                        "&x",
                                        "&y*",
                                        ">one",
                                        ">two",
                                        "<one",
                                        "+zadd|a",
                                        "+zadd|b",
                                        "+select|0",
                                        "+client|tracking",
                                        "+get",
                                        "-set",
                                        "+xinfo|stream",
                                        "+config|get",
                                        "-config|set",
                                        "+config",
                                        "-acl",
                                        "+lb.add",
                                        "()",
                                        "(~a +zadd)",
                                        "(+@read %R~z -zscore &q)",
                                        "(+select|1)",
                                        "token#" HASH_A,
                                        "token#" HASH_A ":a",
                                        "token#" HASH_B ":b-1",
                                        "token<a",
                                        "token<" HASH_B,
                                        "resettokens"};
    static const char *const categories[] = {"read",        "write",  "slow",
                                             "fast",        "admin",  "dangerous",
                                             "leaderboard", "string", "connection"};
    if (random_below(random, 3) == 0) {
        snprintf(out, size, "%c@%s", random_below(random, 2) ? '+' : '-', PICK(random, categories));
    } else if (random_below(random, 2) == 0) {
        uint32_t index = (uint32_t)random_below(random, command_count());
        snprintf(out, size, "%c%s", random_below(random, 2) ? '+' : '-', command_full_name(index));
    } else {
        snprintf(out, size, "%s", PICK(random, rules));
    }
}

static bool equal_lists(const struct acl_list *a, const struct acl_list *b) {
    bool is_equal = a->count == b->count;
    for (uint32_t i = 0; is_equal && i < a->count; i++) {
        is_equal = acl_list_find(b, a->at[i].text, a->at[i].value) != NULL;
    }
    return is_equal;
}

static bool equal_selectors(const struct acl_selector *a, const struct acl_selector *b) {
    /* Bits behind the last command follow +@all alone. */
    return a->has_all_keys == b->has_all_keys && a->has_all_channels == b->has_all_channels &&
           memcmp(a->commands, b->commands, sizeof a->commands) == 0 &&
           equal_lists(&a->rules, &b->rules) && equal_lists(&a->first_args, &b->first_args) &&
           equal_lists(&a->keys.list, &b->keys.list) &&
           equal_lists(&a->channels.list, &b->channels.list);
}

TEST(what_is_printed_makes_the_same_user) {
    struct random random = random_begin("rules");
    for (int round = 0; round < 2000; round++) {
        struct acl_user *user = make_user();
        uint64_t count = random_below(&random, 20);
        for (uint64_t i = 0; i < count; i++) {
            char rule[128];
            random_rule(&random, rule, sizeof rule);
            struct acl_user *draft = acl_user_copy(user);
            assert_non_null(draft);
            bool is_fine = apply(draft, rule) == ACL_OK;
            acl_user_destroy(is_fine ? user : draft);
            user = is_fine ? draft : user;
        }
        assert_true(acl_user_finish(user));
        char *text = print(user);
        char *again = strdup(text);
        struct acl_user *other = parse(again);
        assert_prints(other, text);
        assert_int_equal(user->selector_count, other->selector_count);
        assert_int_equal(user->has_no_password, other->has_no_password);
        assert_true(equal_lists(&user->passwords, &other->passwords));
        assert_true(equal_lists(&user->tokens, &other->tokens));
        for (uint32_t i = 0; i < user->selector_count; i++) {
            if (!equal_selectors(user->selectors[i], other->selectors[i])) {
                fail_msg("%s", text);
            }
        }
        free(text);
        free(again);
        acl_user_destroy(user);
        acl_user_destroy(other);
    }
}

/* One rule after another over a plain array of commands, by name. */
static void naive_apply(bool *allowed, const char *rule) {
    bool is_allowed = rule[0] == '+';
    for (uint32_t i = 0; i < command_count(); i++) {
        const char *name = command_full_name(i);
        size_t size = strlen(rule + 1);
        bool is_named = strcmp(name, rule + 1) == 0 ||
                        (strncmp(name, rule + 1, size) == 0 && name[size] == '|');
        bool is_in = false;
        if (rule[1] == '@') {
            uint32_t category = category_find(bytes_from_text(rule + 2));
            is_in = category == CATEGORIES || (category_mask(i) >> category & 1) != 0;
            size_t container_size = strcspn(name, "|");
            const char *container = formatted("%.*s", (int)container_size, name);
            uint32_t parent = command_find_full_name(bytes_from_text(container));
            /* A container's categories are its subcommands', too. */
            is_in |= name[container_size] == '|' && (category_mask(parent) >> category & 1) != 0;
        }
        allowed[i] = is_named || is_in ? is_allowed : allowed[i];
    }
}

TEST(commands_are_those_that_the_rules_leave) {
    struct random random = random_begin("commands");
    static bool allowed[ACL_COMMANDS_MAX];
    for (int round = 0; round < 1000; round++) {
        struct acl_user *user = make_user();
        memset(allowed, 0, sizeof allowed);
        for (int i = 0; i < 12; i++) {
            char rule[128];
            random_rule(&random, rule, sizeof rule);
            if ((rule[0] != '+' && rule[0] != '-') || strstr(rule, "|") != NULL) {
                continue;
            }
            if (apply(user, rule) == ACL_OK) {
                if (strcmp(rule + 1, "@all") == 0) {
                    memset(allowed, rule[0] == '+', sizeof allowed);
                } else {
                    naive_apply(allowed, rule);
                }
            }
        }
        for (uint32_t i = 0; i < command_count(); i++) {
            assert_int_equal(acl_selector_has_bit(user->selectors[0], i), allowed[i]);
        }
        acl_user_destroy(user);
    }
}

TEST(a_rule_replaces_earlier_ones_about_the_same) {
    struct acl_user *user = make_user();
    assert_int_equal(apply(user, "+zadd"), ACL_OK);
    assert_int_equal(apply(user, "+CONFIG|GET"), ACL_OK);
    assert_int_equal(apply(user, "-ZADD"), ACL_OK);
    assert_int_equal(apply(user, "+select|A"), ACL_OK);
    assert_int_equal(apply(user, "-config"), ACL_OK);
    assert_int_equal(apply(user, "+@Read"), ACL_OK);
    assert_prints(user, "off resetchannels -@all -zadd +select|A -config +@read");
    assert_int_equal(apply(user, "allcommands"), ACL_OK);
    assert_prints(user, "off resetchannels +@all");
    acl_user_destroy(user);
}

TEST(tokens_are_kept_by_digest_and_label_and_removed_by_either) {
    static const struct {
        const char *rule;
        enum acl_status status;
        const char *left; /* NULL: as before */
    } steps[] = {
        {"token#" HASH_A ":game", ACL_OK, "token#" HASH_A ":game "},
        {"token#" HASH_B ":game", ACL_LABEL_TAKEN, NULL},
        {"TOKEN#" HASH_B, ACL_OK, "token#" HASH_A ":game token#" HASH_B " "},
        {"token#" HASH_A ":other", ACL_OK, "token#" HASH_B " token#" HASH_A ":other "},
        {"token#" HASH_A ":other", ACL_OK, NULL},
        {"nopass", ACL_OK, "nopass token#" HASH_B " token#" HASH_A ":other "},
        {"resetpass", ACL_OK, "token#" HASH_B " token#" HASH_A ":other "},
        {"token<game", ACL_NO_SUCH_TOKEN, NULL},
        {"token<", ACL_NO_SUCH_TOKEN, NULL},
        {"token<" HASH_B, ACL_OK, "token#" HASH_A ":other "},
        {"token<other", ACL_OK, ""},
        {"token<" HASH_A, ACL_NO_SUCH_TOKEN, NULL},
        {"token>", ACL_TOKEN_NOT_MADE, NULL},
        {"token>game", ACL_TOKEN_NOT_MADE, NULL},
        {"token", ACL_SYNTAX, NULL},
        {"token!" HASH_A, ACL_SYNTAX, NULL},
        {"token#", ACL_BAD_TOKEN, NULL},
        {"token#" HASH_A ":", ACL_BAD_TOKEN, NULL},
        {"token#" HASH_A "game", ACL_BAD_TOKEN, NULL},
        {"token#" HASH_A ":a b", ACL_BAD_TOKEN, NULL},
        {"token#" HASH_A ":a:b", ACL_BAD_TOKEN, NULL},
        {"token#" HASH_A ":7", ACL_BAD_TOKEN, NULL},
        {"token#" HASH_A ":" HASH_B, ACL_BAD_TOKEN, NULL},
        {"token#" HASH_A ":x" HASH_B, ACL_BAD_TOKEN, NULL},
        {"token#A" HASH_B, ACL_BAD_TOKEN, NULL},
        {"(token#" HASH_A ")", ACL_SYNTAX, NULL},
        {"token#" HASH_A, ACL_OK, "token#" HASH_A " "},
        {"resettokens", ACL_OK, ""},
        {"token#" HASH_A, ACL_OK, "token#" HASH_A " "},
        {"reset", ACL_OK, "sanitize-payload "},
    };
    struct acl_user *user = make_user();
    const char *left = "";
    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        struct acl_user *draft = acl_user_copy(user);
        assert_non_null(draft);
        assert_int_equal(apply(draft, steps[i].rule), steps[i].status);
        left = steps[i].left != NULL ? steps[i].left : left;
        acl_user_destroy(steps[i].status == ACL_OK ? user : draft);
        user = steps[i].status == ACL_OK ? draft : user;
        assert_prints(user, formatted("off %sresetchannels -@all", left));
    }
    for (int i = 0; i < ACL_TOKENS_MAX; i++) {
        assert_int_equal(apply(user, formatted("token#%064x:t%d", (unsigned)i, i)), ACL_OK);
    }
    assert_int_equal(apply(user, "token#" HASH_A), ACL_TOO_MANY);
    acl_user_destroy(user);
}

TEST(limits_hold) {
    struct acl_user *user = make_user();
    char rule[2048];
    memset(rule, 'x', sizeof rule);
    rule[0] = '~';
    rule[1026] = '\0';
    assert_int_equal(apply(user, rule), ACL_TEXT_TOO_LONG);
    for (int i = 0; i < ACL_SELECTORS_MAX - 1; i++) {
        assert_int_equal(apply(user, "(~a)"), ACL_OK);
    }
    assert_int_equal(apply(user, "(~a)"), ACL_TOO_MANY);
    acl_user_destroy(user);
    static char texts[ACL_SLOW_PATTERNS_MAX + 1][16];
    struct bytes rules[ACL_SLOW_PATTERNS_MAX + 1];
    for (int i = 0; i <= ACL_SLOW_PATTERNS_MAX; i++) {
        snprintf(texts[i], sizeof texts[i], "~%d*x", i);
        rules[i] = bytes_from_text(texts[i]);
    }
    for (uint32_t over = 0; over < 2; over++) {
        struct buffer joined;
        struct bytes failed;
        user = make_user();
        buffer_init(&joined, 0);
        assert_int_equal(acl_rules_apply_all(user, &nobody, rules, ACL_SLOW_PATTERNS_MAX + over,
                                             false, &joined, &failed),
                         over ? ACL_TOO_MANY : ACL_OK);
        buffer_deinit(&joined);
        acl_user_destroy(user);
    }
}

TEST_MAIN(init, NULL)
