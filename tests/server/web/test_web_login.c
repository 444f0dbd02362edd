/* Logins of the page: the body of one, and the table of cookies. */
#include "tests/support/test.h"

#include "server/web/web_query.h"

static void check_login(const char *text, const char *user, const char *password) {
    struct http_login login = {.has_password = false};
    assert_true(web_login_read(text, &login));
    assert_true(login.has_password);
    assert_string_equal(login.user, user);
    assert_string_equal(login.password, password);
}

TEST(a_login_is_read) {
    check_login("{\"user\":\"ann\",\"password\":\"x\"}", "ann", "x");
    check_login(" { \"password\" : \"\" , \"user\" : \"a b\" }\n", "a b", "");
    check_login(
        "{\"user\":\"zo\xc3\xab\",\"password\":\"zo\\u00eb\\ud83d\\udc4b\\\"\\\\\\/\\n\\u0041\"}",
        "zo\xc3\xab", "zo\xc3\xab\xf0\x9f\x91\x8b\"\\/\nA");
}

TEST(what_is_no_login_is_refused) {
    static const char *const refused[] = {
        "",
        "{",
        "{}",
        "null",
        "[]",
        "\"user\"",
        "{\"user\":\"a\"}",
        "{\"password\":\"a\"}",
        "{\"user\":\"a\",\"password\":1}",
        "{\"user\":\"a\",\"password\":\"b\",\"more\":\"c\"}",
        "{\"user\":\"a\",\"password\":\"b\"",
        "{\"user\":\"a\",\"password\":\"b",
        "{\"user\":\"a\",\"password\":\"b\\",
        "{\"user\":\"a\",\"password\":\"b\\u",
        "{\"user\":\"a\",\"password\":\"b\\u00\"}",
        "{\"user\":\"a\",\"password\":\"b\\u0000\"}",
        "{\"user\":\"a\",\"password\":\"b\\ud83d\"}",
        "{\"user\":\"a\",\"password\":\"b\\udc4b\"}",
        "{\"user\":\"a\",\"password\":\"b\\ud83d\\u0041\"}",
        "{\"user\":\"a\",\"password\":\"b\\x\"}",
        "{\"user\":\"a\",\"password\":\"b\n\"}",
        "{\"user\":\"a\",\"password\":\"b\"} x",
        "{\"user\":\"a\" \"password\":\"b\"}",
        "{\"user\" \"a\",\"password\":\"b\"}",
        "{user:\"a\",password:\"b\"}",
    };
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        struct http_login login = {.has_password = false};
        assert_false(web_login_read(refused[i], &login));
    }
    char letters[HTTP_PASSWORD_MAX + 1];
    struct http_login login = {.has_password = false};
    memset(letters, 'x', sizeof letters);
    letters[HTTP_PASSWORD_MAX - 1] = '\0';
    assert_true(web_login_read(formatted("{\"user\":\"a\",\"password\":\"%s\"}", letters), &login));
    letters[HTTP_PASSWORD_MAX - 1] = 'x';
    letters[HTTP_PASSWORD_MAX] = '\0';
    assert_false(
        web_login_read(formatted("{\"user\":\"a\",\"password\":\"%s\"}", letters), &login));
}

static const char *digest(char letter) {
    static char text[DIGEST_TEXT_SIZE + 1];
    memset(text, letter, DIGEST_TEXT_SIZE);
    return text;
}

static struct bytes token_of(const char *token) {
    return (struct bytes){.at = token, .size = WEB_TOKEN_SIZE};
}

static void add_session(struct web_sessions *sessions, const char *user, const char *of,
                        bool is_token, int64_t now_ms, char *token) {
    struct web_identity identity = {.kind = WEB_USER, .is_token = is_token};
    snprintf(identity.user, sizeof identity.user, "%s", user);
    memcpy(identity.digest, of, sizeof identity.digest);
    web_login_add_session(sessions, &identity, now_ms, token);
}

TEST(a_cookie_names_its_login_until_it_is_idle_for_too_long) {
    struct web_sessions sessions = {.at = NULL};
    char ann[WEB_TOKEN_SIZE];
    char bob[WEB_TOKEN_SIZE];
    assert_true(web_login_init_sessions(&sessions, 1000));
    add_session(&sessions, "ann", digest('a'), false, 0, ann);
    add_session(&sessions, "bob", digest('b'), false, 0, bob);
    assert_memory_not_equal(ann, bob, sizeof ann);
    struct web_session *found = web_login_find_session(&sessions, token_of(ann), 999);
    assert_non_null(found);
    assert_string_equal(found->user, "ann");
    assert_memory_equal(found->digest, digest('a'), DIGEST_TEXT_SIZE);
    assert_null(web_login_find_session(&sessions, token_of(bob), 1000));
    assert_non_null(web_login_find_session(&sessions, token_of(ann), 1998));
    assert_null(web_login_find_session(&sessions, (struct bytes){.at = ann, .size = 5}, 1998));
    web_login_end_session(found);
    assert_null(web_login_find_session(&sessions, token_of(ann), 1999));
    web_login_deinit_sessions(&sessions);
}

TEST(logins_are_bounded_for_each_user_and_in_all) {
    struct web_sessions sessions = {.at = NULL};
    static char tokens[WEB_SESSIONS_MAX + 1][WEB_TOKEN_SIZE];
    char user[32];
    assert_true(web_login_init_sessions(&sessions, 1000000));
    for (int i = 0; i <= WEB_USER_SESSIONS_MAX; i++) {
        add_session(&sessions, "ann", digest('a'), false, i, tokens[i]);
    }
    assert_null(web_login_find_session(&sessions, token_of(tokens[0]), 100));
    assert_non_null(
        web_login_find_session(&sessions, token_of(tokens[WEB_USER_SESSIONS_MAX]), 100));
    for (int i = WEB_USER_SESSIONS_MAX; i <= WEB_SESSIONS_MAX; i++) {
        snprintf(user, sizeof user, "user%d", i);
        add_session(&sessions, user, digest('u'), false, 1000 + i, tokens[i]);
    }
    assert_null(
        web_login_find_session(&sessions, token_of(tokens[1]), 5000)); /* used longest ago */
    assert_non_null(web_login_find_session(&sessions, token_of(tokens[WEB_SESSIONS_MAX]), 5000));
    web_login_deinit_sessions(&sessions);
}
