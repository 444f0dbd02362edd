/* Users: patterns as a sorted index beside trying each with a glob, and the table of users beside a
 * plain list. */
#include "tests/support/test.h"

#include "codec/glob.h"
#include "codec/memory.h"
#include "server/acl/acl.h"
#include "tests/support/random.h"

static struct bytes text_of(const char *text) {
    return bytes_from_text(text);
}

static struct acl_user *make_user(const char *name) {
    struct acl_user *user = acl_user_create(text_of(name), false);
    assert_non_null(user);
    return user;
}

static void random_text(struct random *random, const char *letters, size_t size_max, char *out) {
    size_t size = random_below(random, size_max + 1);
    for (size_t i = 0; i < size; i++) {
        out[i] = letters[random_below(random, strlen(letters))];
    }
    out[size] = '\0';
}

static bool naive_takes(const struct acl_list *list, struct bytes name, unsigned access) {
    for (uint32_t i = 0; i < list->count; i++) {
        if ((list->at[i].value & access) == access && glob_matches(list->at[i].text, name)) {
            return true;
        }
    }
    return false;
}

TEST(patterns_take_what_their_globs_match) {
    struct random random = random_begin("patterns");
    uint64_t taken = 0;
    for (int round = 0; round < 3000; round++) {
        struct acl_user *user = make_user("u");
        struct acl_patterns *keys = &user->selectors[0]->keys;
        uint64_t count = random_below(&random, 12);
        char text[16];
        for (uint64_t i = 0; i < count; i++) {
            random_text(&random, random_below(&random, 3) ? "aab*" : "ab*?[]\\^", 5, text);
            if (acl_list_find(&keys->list, text_of(text), ACL_LIST_ANY) == NULL) {
                assert_true(acl_list_add(&keys->list, text_of(text),
                                         1 + (uint32_t)random_below(&random, 3)));
            }
        }
        assert_true(acl_user_finish(user));
        for (int i = 0; i < 30; i++) {
            unsigned access = (unsigned)random_below(&random, 4);
            random_text(&random, "aab", 5, text);
            bool is_taken = acl_patterns_take(keys, text_of(text), access);
            assert_int_equal(is_taken, naive_takes(&keys->list, text_of(text), access));
            taken += is_taken;
        }
        acl_user_destroy(user);
    }
    assert_true(taken > 10000);
}

/* What is covered is taken with every end. */
TEST(what_a_pattern_covers_it_takes_whatever_follows) {
    struct random random = random_begin("covers");
    uint64_t covered = 0;
    for (int round = 0; round < 3000; round++) {
        struct acl_user *user = make_user("u");
        struct acl_patterns *keys = &user->selectors[0]->keys;
        char text[16], whole[32];
        for (int i = 0; i < 3; i++) {
            random_text(&random, "aab*?", 4, text);
            if (acl_list_find(&keys->list, text_of(text), ACL_LIST_ANY) == NULL) {
                assert_true(acl_list_add(&keys->list, text_of(text), ACL_ALL));
            }
        }
        assert_true(acl_user_finish(user));
        random_text(&random, "ab", 4, text);
        bool is_covered = acl_patterns_cover(keys, text_of(text), ACL_READ);
        covered += is_covered;
        for (int i = 0; is_covered && i < 20; i++) {
            size_t size = strlen(text);
            memcpy(whole, text, size);
            random_text(&random, "abc*", 6, whole + size);
            assert_true(acl_patterns_take(keys, text_of(whole), ACL_READ));
        }
        acl_user_destroy(user);
    }
    assert_true(covered > 100);
}

TEST(ten_thousand_patterns_are_a_few_steps_for_a_key) {
    struct acl_user *user = make_user("u");
    struct acl_patterns *keys = &user->selectors[0]->keys;
    for (int i = 0; i < 10000; i++) {
        assert_true(acl_list_add(&keys->list, text_of(formatted("tenant:%d:*", i)), ACL_ALL));
    }
    assert_true(acl_user_finish(user));
    /* A million look-ups: hours, if each tried every pattern. */
    for (int i = 0; i < 1000000; i++) {
        assert_int_equal(
            acl_patterns_take(keys, text_of(formatted("tenant:%d:top", i % 20000)), ACL_READ),
            i % 20000 < 10000);
    }
    acl_user_destroy(user);
}

TEST(the_table_is_a_sorted_list_of_users) {
    struct random random = random_begin("users");
    ENDED_BY(acl_users_deinit) struct acl_users users;
    bool is_there[50] = {false};
    assert_true(acl_users_init(&users, NULL));
    for (int i = 0; i < 5000; i++) {
        unsigned number = (unsigned)random_below(&random, 50);
        const char *name = formatted("%x", number * 7919);
        struct acl_user *found = acl_users_find(&users, text_of(name));
        assert_int_equal(found != NULL, is_there[number]);
        if (random_below(&random, 2) == 0) {
            struct acl_user *draft = make_user(name);
            draft->is_on = random_below(&random, 2) == 0;
            bool is_on = draft->is_on;
            assert_true(acl_user_finish(draft));
            assert_true(acl_users_reserve(&users));
            struct acl_user *user = acl_users_replace(&users, draft);
            assert_true(found == NULL || found == user);
            assert_int_equal(user->is_on, is_on);
            is_there[number] = true;
        } else if (found != NULL) {
            acl_users_remove(&users, found);
            is_there[number] = false;
        }
        ASSERT_VALID(acl_users_validate, &users);
    }
}

/* Users "0" to "19" with some of 60 tokens each, beside a plain array of whose each token is. */
enum { TWIN_USERS = 20, TWIN_TOKENS = 60 };

static int owner_of(const int *owners, const bool *is_on, int token) {
    return owners[token] >= 0 && is_on[owners[token]] ? owners[token] : -1;
}

static void random_user_with_tokens(struct random *random, struct acl_users *users, int *owners,
                                    bool *is_on) {
    int number = (int)random_below(random, TWIN_USERS);
    struct acl_user *draft = make_user(formatted("%d", number));
    is_on[number] = draft->is_on = random_below(random, 4) > 0;
    bool is_foreign = false;
    int wanted[TWIN_TOKENS];
    memcpy(wanted, owners, sizeof wanted);
    for (int i = 0; i < TWIN_TOKENS; i++) {
        char digest[DIGEST_TEXT_SIZE];
        wanted[i] = wanted[i] == number ? -1 : wanted[i];
        if (random_below(random, 10) > 0 || (owners[i] >= 0 && random_below(random, 4) > 0)) {
            continue;
        }
        digest_print(text_of(formatted("token %d", i)), digest);
        assert_true(
            acl_list_add(&draft->tokens, (struct bytes){.at = digest, .size = sizeof digest}, 0));
        is_foreign |= wanted[i] >= 0;
        wanted[i] = number;
    }
    assert_true(acl_user_finish(draft));
    assert_true(acl_users_reserve(users));
    assert_int_equal(acl_users_have_token_of(users, draft), is_foreign);
    if (is_foreign) {
        struct acl_user *user = acl_users_find(users, draft->name);
        is_on[number] = user != NULL && user->is_on;
        acl_user_destroy(draft);
        return;
    }
    memcpy(owners, wanted, sizeof wanted);
    (void)acl_users_replace(users, draft);
}

TEST(a_token_leads_to_its_user) {
    struct random random = random_begin("tokens");
    struct acl_users users[2];
    int owners[2][TWIN_TOKENS];
    bool is_on[2][TWIN_USERS] = {{false}};
    memset(owners, -1, sizeof owners);
    assert_true(acl_users_init(&users[0], NULL));
    assert_true(acl_users_init(&users[1], NULL));
    for (int step = 0; step < 5000; step++) {
        int side = (int)random_below(&random, 2);
        struct acl_user *user = acl_users_find(
            &users[side], text_of(formatted("%d", (int)random_below(&random, TWIN_USERS))));
        if (user != NULL && random_below(&random, 6) == 0) {
            int number = atoi(user->name.at);
            for (int i = 0; i < TWIN_TOKENS; i++) {
                owners[side][i] = owners[side][i] == number ? -1 : owners[side][i];
            }
            acl_users_remove(&users[side], user);
        } else if (random_below(&random, 50) == 0) {
            int before[TWIN_TOKENS];
            bool was_on[TWIN_USERS];
            acl_users_exchange(&users[0], &users[1]);
            memcpy(before, owners[0], sizeof before);
            memcpy(owners[0], owners[1], sizeof before);
            memcpy(owners[1], before, sizeof before);
            memcpy(was_on, is_on[0], sizeof was_on);
            memcpy(is_on[0], is_on[1], sizeof was_on);
            memcpy(is_on[1], was_on, sizeof was_on);
        } else {
            random_user_with_tokens(&random, &users[side], owners[side], is_on[side]);
        }
        for (side = 0; side < 2; side++) {
            int token = (int)random_below(&random, TWIN_TOKENS);
            int owner = owner_of(owners[side], is_on[side], token);
            const struct acl_user *found =
                acl_users_find_token(&users[side], text_of(formatted("token %d", token)));
            assert_ptr_equal(
                found,
                owner < 0 ? NULL : acl_users_find(&users[side], text_of(formatted("%d", owner))));
            ASSERT_VALID(acl_users_validate, &users[side]);
        }
    }
    acl_users_deinit(&users[0]);
    acl_users_deinit(&users[1]);
}

TEST(a_token_is_found_among_many_in_a_few_steps) {
    enum { USERS = 2000, EACH = 50 };
    ENDED_BY(acl_users_deinit) struct acl_users users;
    assert_true(acl_users_init(&users, NULL));
    for (int i = 0; i < USERS; i++) {
        struct acl_user *draft = make_user(formatted("%d", i));
        draft->is_on = true;
        for (int k = 0; k < EACH; k++) {
            char digest[DIGEST_TEXT_SIZE];
            digest_print(text_of(formatted("token %d %d", i, k)), digest);
            assert_true(acl_list_add(&draft->tokens,
                                     (struct bytes){.at = digest, .size = sizeof digest}, 0));
        }
        assert_true(acl_users_reserve(&users));
        (void)acl_users_replace(&users, draft);
    }
    /* An hour, if each tried every token. */
    for (int i = 0; i < 100000; i++) {
        const struct acl_user *user = acl_users_find_token(
            &users, text_of(formatted("token %d %d", i % (2 * USERS), i % EACH)));
        assert_int_equal(user != NULL, i % (2 * USERS) < USERS);
    }
}

TEST(what_is_no_token_is_nobodys) {
    static char longest[ACL_PASSWORD_MAX + 1];
    char digest[DIGEST_TEXT_SIZE];
    ENDED_BY(acl_users_deinit) struct acl_users users;
    memset(longest, 'x', sizeof longest);
    assert_true(acl_users_init(&users, NULL));
    assert_null(acl_users_find_token(&users, BYTES("")));
    struct acl_user *draft = make_user("u");
    draft->is_on = true;
    digest_print(BYTES("token"), digest);
    assert_true(
        acl_list_add(&draft->tokens, (struct bytes){.at = digest, .size = sizeof digest}, 0));
    assert_true(acl_users_reserve(&users));
    (void)acl_users_replace(&users, draft);
    assert_non_null(acl_users_find_token(&users, BYTES("token")));
    const struct bytes wrong[] = {BYTES(""),
                                  BYTES("token\0"),
                                  BYTES("Token"),
                                  BYTES("toke"),
                                  {.at = digest, .size = sizeof digest},
                                  {.at = longest, .size = sizeof longest},
                                  {.at = longest, .size = sizeof longest - 1}};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        assert_null(acl_users_find_token(&users, wrong[i]));
        assert_false(acl_user_takes_password(users.at[1], wrong[i]));
    }
    assert_false(acl_user_takes_password(users.at[1], BYTES("token")));
}

TEST(exchanged_tables_keep_the_addresses_of_users_in_both) {
    struct acl_users users, fresh;
    assert_true(acl_users_init(&users, NULL));
    assert_true(acl_users_init(&fresh, "secret"));
    struct acl_user *before[2], *now[2];
    static const char *const first[] = {"ann", "bob"}, *const second[] = {"bob", "cat"};
    for (int i = 0; i < 2; i++) {
        assert_true(acl_users_reserve(&users));
        before[i] = acl_users_replace(&users, make_user(first[i]));
        assert_true(acl_users_reserve(&fresh));
        now[i] = acl_users_replace(&fresh, make_user(second[i]));
    }
    now[0]->is_on = true;
    struct acl_user *default_user = users.default_user;
    acl_users_exchange(&users, &fresh);
    assert_ptr_equal(users.default_user, default_user);
    assert_false(default_user->has_no_password);
    assert_ptr_equal(acl_users_find(&users, BYTES("bob")), before[1]);
    assert_true(before[1]->is_on);
    assert_ptr_equal(acl_users_find(&users, BYTES("cat")), now[1]);
    assert_null(acl_users_find(&users, BYTES("ann")));
    assert_ptr_equal(acl_users_find(&fresh, BYTES("ann")), before[0]);
    assert_int_equal(fresh.count, 3);
    acl_users_deinit(&users);
    acl_users_deinit(&fresh);
}

TEST(a_copy_or_nothing_when_memory_runs_out) {
    struct acl_user *user = make_user("u");
    assert_true(acl_user_set_password(user, "secret"));
    assert_true(acl_list_add(&user->selectors[0]->keys.list, BYTES("a*"), ACL_ALL));
    assert_true(acl_list_add(&user->selectors[0]->rules, BYTES("+@read"), 0));
    assert_true(acl_list_add(&user->tokens, user->passwords.at[0].text, 0));
    assert_non_null(acl_user_add_selector(user, true));
    uint64_t live = memory_live_count();
    bool is_made = false;
    for (uint64_t nth = 1; !is_made; nth++) {
        memory_fail_at(nth);
        struct acl_user *copy = acl_user_copy(user);
        is_made = copy != NULL && acl_user_finish(copy);
        memory_fail_at(0);
        acl_user_destroy(copy);
        assert_int_equal(memory_live_count(), live);
        assert_true(nth < 100);
    }
    acl_user_destroy(user);
}

TEST(passwords_are_kept_as_digests) {
    struct acl_user *user = make_user("u");
    assert_false(acl_user_takes_password(user, BYTES("")));
    assert_true(acl_user_set_password(user, "abc"));
    assert_memory_equal(user->passwords.at[0].text.at,
                        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", 64);
    assert_true(acl_user_takes_password(user, BYTES("abc")));
    assert_false(acl_user_takes_password(user, BYTES("abd")));
    assert_true(acl_user_set_password(user, NULL));
    assert_true(acl_user_takes_password(user, BYTES("whatever")));
    acl_user_destroy(user);
}
