/* What players may do, and what they may not: whatever they send, nothing changes but the own member's entries and the
 * own hash, nothing is made, and nothing is read that their user may not read. */
#include "tests/support/harness.h"

#include "server/commands/table.h"
#include "server/dispatch/execute.h"
#include "server/sessions/once_ids.h"
#include "skiplist/keyspace/effect.h"
#include "skiplist/keyspace/hash.h"
#include "tests/support/grammar.h"
#include "tests/support/jwt_maker.h"

#define NOW (HARNESS_START_US / 1000000)

#define KEYS                                                                                       \
    "player-key back hs256 " JWT_MAKER_SECRET " BOARDS b* x* w* l* r*\n"                           \
    "player-key web ed25519 " JWT_MAKER_PUBLIC " BOARDS b*\n"
#define USERS                                                                                      \
    "user player:back on ~b* ~{b* ~player:* +@all\n"                                               \
    "user player:web on ~* +@all\n"
#define WRONGPASS "-WRONGPASS invalid username-password pair or user is disabled.\r\n"

static char token[JWT_SIZE_MAX + 100];

static const char *make_token(enum jwt_algorithm algorithm, const char *player, int64_t expires_s) {
    token[jwt_maker_player(algorithm, player, expires_s, token)] = '\0';
    return token;
}

static void become(struct harness *h, struct session *session, enum jwt_algorithm algorithm,
                   const char *player) {
    const char *reply =
        harness_run_format(h, session, "AUTH %s", make_token(algorithm, player, NOW + 1000));
    assert_string_equal(reply, "+OK\r\n");
}

static struct session *log_in(struct harness *h, enum jwt_algorithm algorithm, const char *player) {
    struct session *session = harness_connect(h);
    become(h, session, algorithm, player);
    return session;
}

static void expect_denied(struct harness *h, struct session *session, const char *line) {
    test_row("%s", line);
    assert_memory_equal(harness_run(h, session, line), "-NOPERM", 7);
}

static void make_boards(struct harness *h, struct session *s) {
    static const char *const lines[] = {
        "LB.CREATE b0 FIELD score 32 TIME 31 S TAG clan 8",
        "LB.CREATE b1 FIELD score 32 TIME 31 S KEEP BEST",
        "LB.CREATE b2 FIELD agree 22 FIELD comment 22 TIME 20 M START 2025-12-15T00:00:00Z",
        "LB.CREATE x0 FIELD score 32 TIME 31 S",
        "LB.ADD b0 5 bob",
        "LB.ADD b1 5 bob",
        "LB.ADD b2 5 5 bob",
        "LB.ADD x0 5 hidden",
        "HSET player:bob name Bob",
        "HSET x:ann name hidden"};
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        test_row("%s", lines[i]);
        assert_int_not_equal(harness_run(h, s, lines[i])[0], '-');
    }
}

/* ---- the own member ---- */

HARNESS_TEST(every_command_that_writes_takes_the_own_member_alone, KEYS USERS) {
    static const char *const own[] = {
        "LB.ADD b0 7 ann",         "LB.ADD b0 TAG clan wolves ONCE 1 WITHRANK 8 ann",
        "LB.ADD b0 INCR 1 ann",    "LB.ADD b0 HSET player:* 1 name Ann 99 ann",
        "ZADD b0 5 ann",           "ZADD b0 INCR 5 ann",
        "ZINCRBY b0 5 ann",        "LB.TAG b0 ann clan ravens",
        "LB.SUBMIT 2 b0 b1 5 ann", "ZREM b0 ann",
    };
    static const char *const denied[] = {
        "LB.ADD b0 7 bob",
        "LB.ADD b0 7 ann 8 bob",
        "LB.ADD b0 7 bob 8 ann",
        "LB.ADD b0 INCR 1 Ann",
        "LB.ADD b0 1 ann\\x00",
        "LB.ADD b0 AT 1767225600000 7 ann",
        "LB.ADD b0 PACKED 1000000000000 ann",
        "LB.ADD b0 PACKED 1 bob",
        "LB.ADD b0 HSET player:b* 1 name x 9 ann",
        "LB.ADD b0 HSET * 1 name x 9 ann",
        "LB.ADD b0 HSET y:* 1 name x 9 ann",
        "LB.ADD b9 7 ann",
        "LB.ADD x0 7 ann",
        "ZADD b0 5 bob",
        "ZADD b0 5 ann 6 bob",
        "ZADD b0 XX 5 bob",
        "ZADD b9 5 ann",
        "ZINCRBY b0 5 bob",
        "ZINCRBY b9 5 ann",
        "ZREM b0 bob",
        "ZREM b0 ann bob",
        "ZREM b0 bob ann",
        "LB.TAG b0 bob clan x",
        "LB.SUBMIT 1 b0 5 bob",
        "LB.SUBMIT 2 b0 b9 5 ann",
        "LB.SUBMIT 2 b0 x0 5 ann",
        "LB.SUBMIT 1 b0 AT 1767225600000 5 ann",
        "LB.ADD b0 KEEPTIME 900 ann",
        "LB.ADD b0 BEST KEEPTIME 900 ann",
        "LB.SUBMIT 1 b0 KEEPTIME 900 ann",
        "DEL b0",
        "HSET player:ann name x",
        "HDEL player:ann name",
        "ZREMRANGEBYRANK b0 0 -1",
        "ZPOPMAX b0",
        "LB.CREATE b9 FIELD score 32",
        "LB.ALTER b0 CAP 1",
        "LB.ROLL b0 b8",
        "LB.FORGET ann",
        "LB.BAN bob",
        "LB.MOVE bob ann",
        "FLUSHALL",
        "EXPIRE b0 1",
        "RENAME b0 b1",
        "ZRANGESTORE b1 b0 0 -1",
        "CONFIG SET maxmemory 1",
        "ACL SETUSER default on nopass",
        "SHUTDOWN NOSAVE",
        "REPLICAOF NO ONE",
        "LB.REVOKE bob",
    };
    make_boards(h, s);
    struct session *ann = log_in(h, JWT_HS256, "ann");
    for (size_t i = 0; i < COUNT_OF(own); i++) {
        test_row("%s", own[i]);
        assert_int_not_equal(harness_run(h, ann, own[i])[0], '-');
    }
    harness_expect(h, s, "HGET player:ann name", "$3\r\nAnn\r\n");
    for (size_t i = 0; i < COUNT_OF(denied); i++) {
        expect_denied(h, ann, denied[i]);
    }
    harness_expect(h, s, "ZSCORE b0 bob", "$1\r\n5\r\n");
    /* Nor does a player begin a rating anew. */
    harness_expect(h, s, "LB.CREATE b3 RATING ELO", "+OK\r\n");
    harness_expect_part(h, s, "LB.MATCH b3 TEAM 1 bob TEAM 1 ann", "1480");
    expect_denied(h, ann, "ZREM b3 ann");
    expect_denied(h, ann, "LB.RATE b3 ann 1500");
    harness_expect_part(h, s, "LB.RATING b3 ann", "1480");
    /* Reading is not bound. */
    (void)harness_run(h, s, "ACL SETUSER player:back ~*"); /* LB.WHERE is about all boards */
    (void)harness_run(h, s, "CONFIG SET player-key \"back hs256 " JWT_MAKER_SECRET "\"");
    harness_expect_part(h, ann, "LB.WHERE bob", "b0");
    harness_expect(h, ann, "ZSCORE b0 bob", "$1\r\n5\r\n");
}

HARNESS_TEST(players_play_in_leagues_that_there_are, KEYS USERS) {
    harness_expect(h, s,
                   "LB.LEAGUE CREATE bl FIELD points 22 PERIOD DAY ROOM 3 TIERS 4 UP 1 DOWN 1",
                   "+OK\r\n");
    struct session *ann = log_in(h, JWT_HS256, "ann");
    assert_int_equal(harness_run(h, ann, "LB.LEAGUE ADD bl 30 ann")[0], '*');
    assert_int_equal(harness_run(h, ann, "LB.LEAGUE ADD bl INCR ONCE 1 30 ann")[0], '*');
    static const char *const denied[] = {
        "LB.LEAGUE ADD bl 30 bob",    "LB.LEAGUE ADD bl AT 1767225600000 30 ann",
        "LB.LEAGUE SET bl 2 ann",     "LB.LEAGUE REMOVE bl ann",
        "LB.LEAGUE ADD bl 30 hidden", "LB.LEAGUE CREATE b9 PERIOD DAY ROOM 3 TIERS 4 UP 1 DOWN 1"};
    for (size_t i = 0; i < COUNT_OF(denied); i++) {
        expect_denied(h, ann, denied[i]);
    }
}

HARNESS_TEST(boards_of_the_key_bind_reading_too, KEYS USERS) {
    make_boards(h, s);
    struct session *ann = log_in(h, JWT_ED25519, "ann"); /* whose user has ~* */
    static const char *const denied[] = {
        "ZRANGE x0 0 -1", "ZUNION 2 b0 x0", "LB.RANGE x0 0 9", "LB.GET 1 x0 hidden", "DUMP x0",
        "TYPE x0",        "EXISTS b0 x0",   "OBJECT FREQ x0",  "LB.INFO x0",         "TTL x0"};
    for (size_t i = 0; i < COUNT_OF(denied); i++) {
        expect_denied(h, ann, denied[i]);
    }
    harness_expect(h, ann, "ZCARD b0", ":1\r\n");
    harness_expect(h, ann, "HGET player:bob name", "$3\r\nBob\r\n"); /* hashes are its user's */
}

HARNESS_TEST(a_zero_byte_or_a_quote_in_the_name_is_part_of_it, KEYS USERS) {
    make_boards(h, s);
    static const char *const names[][2] = {{"a\\u0000b", "a\\x00b"}, {"a\\\"b", "a\\\"b"}};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct session *player = log_in(h, JWT_HS256, names[i][0]);
        const char *reply = harness_run_format(h, player, "ZADD b0 5 \"%s\"", names[i][1]);
        assert_string_equal(reply, ":1\r\n");
        expect_denied(h, player, "ZADD b0 5 a");
        expect_denied(h, player, "ZADD b0 5 \"a\\x00c\"");
        expect_denied(h, player, "ZADD b0 5 \"a\\x00\"");
    }
}

/* ---- nobody else is a player ---- */

HARNESS_TEST(users_of_players_are_nobodys_by_a_password,
             KEYS "user player:back on nopass ~* +@all\nuser player:web on >secret ~* +@all\n"
                  "user player: on >secret ~* +@all\n") {
    static const char *const lines[] = {"AUTH player:back x", "AUTH player:back \"\"",
                                        "AUTH player:web secret", "HELLO 3 AUTH player:web secret",
                                        "AUTH player secret"};
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        harness_expect(h, s, lines[i], WRONGPASS);
    }
    harness_expect(h, s, "AUTH player: secret", "+OK\r\n"); /* no kid is empty: a user as any */
    harness_expect(h, s, "AUTH default x", "+OK\r\n");
    struct acl_user *user = acl_users_find(&h->server.acl.users, BYTES("player:web"));
    assert_non_null(user);
    struct session *client = harness_connect(h);
    server_take_certificate(&h->server, client, BYTES("player:web"));
    assert_ptr_not_equal(client->user, user);
    harness_expect(h, client, "ACL WHOAMI", "$7\r\ndefault\r\n");
}

HARNESS_TEST(tokens_log_in_in_every_form_and_their_user_is_the_kids, KEYS USERS) {
    static const char *const forms[] = {"AUTH %s", "AUTH player %s", "AUTH player:back %s",
                                        "AUTH player:web %s"};
    for (size_t i = 0; i < COUNT_OF(forms); i++) {
        char line[1024];
        snprintf(line, sizeof line, "%.*s%s", (int)strcspn(forms[i], "%"), forms[i],
                 make_token(JWT_HS256, "ann", NOW + 10));
        harness_expect(h, s, line, "+OK\r\n");
        harness_expect(h, s, "ACL WHOAMI", "$11\r\nplayer:back\r\n"); /* whatever was named */
        harness_expect(h, s, "RESET", "+RESET\r\n");
        assert_null(s->player);
        harness_expect(h, s, "ACL WHOAMI", "$7\r\ndefault\r\n");
    }
    assert_memory_equal(harness_run_format(h, s, "HELLO 2 AUTH player %s SETNAME x", token), "*",
                        1);
    harness_expect(h, s, "ACL WHOAMI", "$11\r\nplayer:back\r\n");
    /* Another user's name has a password. */
    assert_string_equal(harness_run_format(h, s, "AUTH ann %s", token), WRONGPASS);
    assert_non_null(s->player); /* who has failed stays who it was */
}

HARNESS_TEST(a_token_is_refused_and_the_session_stays_as_it_was, KEYS USERS) {
    struct session *ann = log_in(h, JWT_HS256, "ann");
    static const char prefix[] = "-WRONGPASS the player's token was refused: ";
    const struct {
        const char *token, *why;
    } rows[] = {{make_token(JWT_HS256, "bob", NOW - 60), "it has expired"}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const char *reply = harness_run_format(h, ann, "AUTH %s", rows[i].token);
        assert_memory_equal(reply, prefix, sizeof prefix - 1);
        assert_non_null(strstr(reply, rows[i].why));
        assert_string_equal(ann->player->claims.player, "ann");
    }
    harness_run(h, s, "ACL SETUSER player:back off");
    assert_non_null(strstr(harness_run_format(h, s, "AUTH %s", make_token(JWT_HS256, "b", NOW + 9)),
                           "no user player:KID"));
    harness_run(h, s, "ACL DELUSER player:back");
    assert_non_null(strstr(harness_run_format(h, s, "AUTH %s", make_token(JWT_HS256, "b", NOW + 9)),
                           "no user player:KID"));
}

/* ---- what ends ---- */

HARNESS_TEST(a_token_that_is_over_ends_the_rights_also_of_what_was_queued, KEYS USERS) {
    make_boards(h, s);
    struct session *ann = log_in(h, JWT_HS256, "ann");
    struct session *other = log_in(h, JWT_HS256, "ann");
    harness_expect(h, ann, "ZADD b0 5 ann", ":1\r\n");
    h->wall_us += (1000 + JWT_SKEW_S - 1) * INT64_C(1000000);
    harness_expect(h, ann, "ZADD b0 6 ann", ":0\r\n");
    harness_expect(h, other, "MULTI", "+OK\r\n");
    harness_expect(h, other, "ZADD b0 100 ann", "+QUEUED\r\n");
    h->wall_us += 1000000;
    assert_memory_equal(harness_run(h, ann, "ZADD b0 7 ann"), "-NOAUTH", 7);
    assert_memory_equal(harness_run(h, ann, "ZSCORE b0 ann"), "-NOAUTH", 7);
    assert_non_null(strstr(harness_run(h, other, "EXEC"), "-EXECABORT"));
    harness_expect(h, s, "ZSCORE b0 ann", "$1\r\n6\r\n");
    /* The clock that was set back gives it back: it is what the token says. A new one is taken at any time. */
    assert_string_equal(
        harness_run_format(h, ann, "AUTH %s", make_token(JWT_HS256, "ann", NOW + 5000)), "+OK\r\n");
    harness_expect(h, ann, "ZADD b0 8 ann", ":0\r\n");
    harness_expect(h, ann, "RESET", "+RESET\r\n");
}

HARNESS_TEST(a_key_that_is_gone_or_another_ends_its_sessions_and_no_others, KEYS USERS) {
    make_boards(h, s);
    struct session *ann = log_in(h, JWT_HS256, "ann");
    struct session *zoe = log_in(h, JWT_ED25519, "zoe");
    struct session *same = log_in(h, JWT_HS256, "ann");
    static const char *const changes[] = {
        "CONFIG SET player-key \"back hs256 0123456789abcdef0123456789abcdeX\\nweb "
        "ed25519 " JWT_MAKER_PUBLIC "\"",
        "CONFIG SET player-key \"back hs256 " JWT_MAKER_SECRET
        " AUD game\\nweb ed25519 " JWT_MAKER_PUBLIC "\"",
        "CONFIG SET player-key \"back hs256 " JWT_MAKER_SECRET
        " ISS me\\nweb ed25519 " JWT_MAKER_PUBLIC "\"",
        "CONFIG SET player-key \"web ed25519 " JWT_MAKER_PUBLIC "\""};
    for (size_t i = 0; i < COUNT_OF(changes); i++) {
        test_row("%s", changes[i]);
        harness_expect(h, s, changes[i], "+OK\r\n");
        assert_memory_equal(harness_run(h, ann, "ZADD b0 7 ann"), "-NOAUTH", 7);
        assert_memory_equal(harness_run(h, ann, "ZCARD b0"), "-NOAUTH", 7);
        harness_expect(h, zoe, "ZADD b0 GT 1 zoe", i == 0 ? ":1\r\n" : ":0\r\n");
    }
    /* The same key again, with other boards: those hold at once. */
    harness_expect(h, s, "CONFIG SET player-key \"back hs256 " JWT_MAKER_SECRET " BOARDS b1\"",
                   "+OK\r\n");
    harness_expect(h, same, "ZADD b1 7 ann", ":1\r\n");
    expect_denied(h, same, "ZADD b0 7 ann");
    harness_expect(h, s, "CONFIG SET player-key \"\"", "+OK\r\n");
    assert_memory_equal(harness_run(h, same, "ZCARD b1"), "-NOAUTH", 7);
    assert_memory_equal(harness_run(h, zoe, "ZCARD b1"), "-NOAUTH", 7);
    /* Without keys a token is a password as any. */
    assert_string_equal(
        harness_run_format(h, s, "AUTH player:back %s", make_token(JWT_HS256, "a", NOW + 9)),
        WRONGPASS);
}

HARNESS_TEST(a_user_that_goes_off_or_away_ends_its_players, KEYS USERS) {
    make_boards(h, s);
    struct session *ann = log_in(h, JWT_HS256, "ann");
    harness_run(h, s, "ACL SETUSER player:back -zadd");
    expect_denied(h, ann, "ZADD b0 5 ann");
    harness_run(h, s, "ACL SETUSER player:back +zadd");
    harness_expect(h, ann, "ZADD b0 5 ann", ":1\r\n");
    harness_run(h, s, "ACL DELUSER player:back");
    assert_true(ann->is_killed);
}

HARNESS_TEST(a_token_within_exec_is_refused, KEYS USERS) {
    make_boards(h, s);
    harness_expect(h, s, "MULTI", "+OK\r\n");
    assert_string_equal(harness_run_format(h, s, "AUTH %s", make_token(JWT_HS256, "ann", NOW + 9)),
                        "+QUEUED\r\n");
    harness_expect(h, s, "ACL WHOAMI", "+QUEUED\r\n");
    const char *reply = harness_run(h, s, "EXEC");
    assert_non_null(strstr(reply, "outside of MULTI"));
    assert_non_null(strstr(reply, "default"));
    /* What a player has queued runs by the rights of who runs it. */
    struct session *ann = log_in(h, JWT_HS256, "ann");
    harness_expect(h, ann, "MULTI", "+OK\r\n");
    harness_expect(h, ann, "ZADD b0 5 bob", "+QUEUED\r\n");
    harness_expect(h, ann, "ZADD b0 6 ann", "+QUEUED\r\n");
    assert_memory_equal(harness_run(h, ann, "DEL b0"), "-NOPERM", 7);
    assert_memory_equal(harness_run(h, ann, "EXEC"), "-EXECABORT", 10);
    harness_expect(h, ann, "MULTI", "+OK\r\n");
    harness_expect(h, ann, "ZADD b0 5 bob", "+QUEUED\r\n");
    harness_expect(h, ann, "ZADD b0 6 ann", "+QUEUED\r\n");
    assert_memory_equal(harness_run(h, ann, "EXEC"), "*2\r\n-NOPERM", 11);
    harness_expect(h, s, "ZSCORE b0 bob", "$1\r\n5\r\n");
}

/* ---- passwords ---- */

HARNESS_TEST(a_players_login_forgives_no_wrong_password,
             KEYS USERS "user eve on >right\nuser (player) on >right\n") {
    static const char *const names[] = {"eve", "(player)", "default"};
    struct auth_guard_address address = auth_guard_address(s->address);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        uint64_t failures = h->server.acl.guard.failure_count;
        for (int k = 0; k < 9; k++) {
            (void)harness_run_format(h, s, "AUTH %s wrong",
                                     names[i][0] == 'd' ? "nobody" : names[i]);
            become(h, s, JWT_HS256, "ann");
        }
        assert_int_equal(h->server.acl.guard.failure_count, failures + 9);
        test_row("%s", names[i]);
        assert_true(auth_guard_delay_ms(&h->server.acl.guard, &h->server.settings, address,
                                        bytes_from_text(names[i]),
                                        h->server.clock.monotonic_ms) > 0);
    }
}

HARNESS_TEST(wrong_signatures_count_as_guesses_and_old_tokens_do_not, KEYS USERS) {
    (void)harness_run_format(h, s, "AUTH %s", make_token(JWT_HS256, "ann", NOW - 100));
    assert_int_equal(h->server.acl.guard.failure_count, 0);
    size_t size = strlen(make_token(JWT_HS256, "ann", NOW + 100));
    token[size - 3] = token[size - 3] == 'x' ? 'y' : 'x';
    (void)harness_run_format(h, s, "AUTH %s", token);
    assert_int_equal(h->server.acl.guard.failure_count, 1);
    (void)harness_run(h, s, "AUTH eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0.");
    assert_int_equal(h->server.acl.guard.failure_count, 2);
}

/* ---- ids of results ---- */

HARNESS_TEST(ids_of_players_are_their_own, KEYS USERS) {
    make_boards(h, s);
    struct session *ann = log_in(h, JWT_HS256, "ann");
    struct session *zoe = log_in(h, JWT_HS256, "zoe");
    struct session *again = log_in(h, JWT_ED25519, "ann");
    harness_expect(h, ann, "LB.ADD b0 INCR ONCE 1 5 ann", ":1\r\n");
    harness_expect(h, zoe, "LB.ADD b0 INCR ONCE 1 5 zoe", ":1\r\n");
    harness_expect(h, s, "LB.ADD b0 INCR ONCE 1 5 bob", ":1\r\n");
    harness_expect(h, ann, "LB.ADD b0 INCR ONCE 1 5 ann", ":0\r\n");
    harness_expect(h, again, "LB.ADD b0 INCR ONCE 1 5 ann", ":0\r\n"); /* the same player */
    harness_expect(h, s, "LB.ADD b0 INCR ONCE 1 5 ann",
                   ":0\r\n"); /* another's id is not the player's */
    harness_expect(h, s, "ZSCORE b0 ann", "$1\r\n5\r\n");
}

/* Names and ids of which the one goes over into the other. */
HARNESS_TEST(no_players_id_is_anothers_by_its_letters, KEYS USERS) {
    make_boards(h, s);
    for (int size = 33; size < 60; size++) {
        /* ann's id "x" + a size + the rest; the player "ann" + a size + "x" and the rest as id. */
        char rest[64], whole[80];
        memset(rest, 'r', sizeof rest);
        rest[size - 2] = '\0';
        snprintf(whole, sizeof whole, "x%c%s", size - 2, rest);
        if (size - 2 == '"' || size - 2 == '\'' || size == '"' || size == '\\') {
            continue;
        }
        struct session *ann = log_in(h, JWT_HS256, "ann");
        struct session *other = log_in(h, JWT_HS256, formatted("ann%cx", size));
        (void)harness_run_format(h, ann, "LB.ADD b0 INCR ONCE \"%s\" 1 ann", whole);
        const char *reply =
            harness_run_format(h, other, "LB.ADD b0 INCR ONCE \"%s\" 1 \"ann%cx\"", rest, size);
        assert_string_equal(reply, ":1\r\n");
        harness_disconnect(h, ann);
        harness_disconnect(h, other);
    }
}

HARNESS_TEST(a_player_takes_no_users_share_of_ids,
             KEYS USERS "user boss on nopass ~* +@all\nonce-max 8\n") {
    make_boards(h, s);
    struct session *player = log_in(h, JWT_HS256, "boss");
    harness_expect(h, s, "AUTH boss x", "+OK\r\n");
    assert_int_not_equal(once_ids_owner(player), once_ids_owner(s));
    assert_int_equal(once_ids_owner(player), once_ids_owner(log_in(h, JWT_HS256, "boss")));
}

/* ---- settings ---- */

HARNESS_TEST(keys_are_shown_to_nobody, KEYS USERS) {
    harness_expect(h, s, "CONFIG GET player-key",
                   "*2\r\n$10\r\nplayer-key\r\n$10\r\n(redacted)\r\n");
    assert_non_null(
        strstr(harness_run(h, s, "CONFIG SET player-key \"a hs256 short\""), "32 to 256"));
    harness_expect(h, s, "CONFIG SET player-key \"\"", "+OK\r\n");
    harness_expect(h, s, "CONFIG GET player-key", "*2\r\n$10\r\nplayer-key\r\n$0\r\n\r\n");
    static const char *const places[] = {"CONFIG GET *", "SLOWLOG GET", "ACL LOG",
                                         "INFO everything", "CLIENT LIST"};
    harness_expect(h, s, "CONFIG SET slowlog-log-slower-than 0", "+OK\r\n");
    harness_expect(h, s, "CONFIG SET player-key \"back hs256 " JWT_MAKER_SECRET "\"", "+OK\r\n");
    struct session *ann = log_in(h, JWT_HS256, "ann");
    (void)harness_run_format(h, ann, "AUTH %sx", token);
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        test_row("%s", places[i]);
        const char *reply = harness_run(h, s, places[i]);
        assert_null(strstr(reply, JWT_MAKER_SECRET));
        assert_null(strstr(reply, token));
    }
}

HARNESS_TEST(a_bad_line_leaves_all_keys_as_they_were, KEYS USERS) {
    static const char *const bad[] = {"c hs256 " JWT_MAKER_SECRET "\\nc hs256 " JWT_MAKER_SECRET,
                                      "c hs256 " JWT_MAKER_SECRET "\\nd hs256 short", "c",
                                      "c hs256 " JWT_MAKER_SECRET " FOO"};
    struct session *ann = log_in(h, JWT_HS256, "ann");
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        test_row("%s", bad[i]);
        const char *reply =
            harness_run_format(h, s, "CONFIG SET timeout 7 player-key \"%s\"", bad[i]);
        assert_int_equal(reply[0], '-');
        assert_null(strstr(reply, JWT_MAKER_SECRET));
        assert_int_equal(h->server.settings.player_key_count, 2);
        assert_int_equal(h->server.settings.timeout_s, 0);
        harness_expect(h, ann, "ACL WHOAMI", "$11\r\nplayer:back\r\n");
    }
    char many[4096] = "";
    for (int i = 0; i < JWT_KEYS_MAX + 1; i++) {
        assert_int_equal(strlen(many) > sizeof many - 100, 0);
        sprintf(many + strlen(many), "%sk%d hs256 " JWT_MAKER_SECRET, i > 0 ? "\\n" : "", i);
    }
    assert_non_null(
        strstr(harness_run_format(h, s, "CONFIG SET player-key \"%s\"", many), "at most 16"));
    *strrchr(many, '\\') = '\0';
    assert_string_equal(harness_run_format(h, s, "CONFIG SET player-key \"%s\"", many), "+OK\r\n");
    assert_int_equal(h->server.settings.player_key_count, JWT_KEYS_MAX);
}

/* ---- whatever they send ---- */

#define OWN "m3"

struct watch {
    bool is_on;
    uint64_t own_count, hash_count;
    char last[1024]; /* what was sent */
};

/* The only effects that a player's commands have. */
static void watch_effect(void *context, const struct effect *effect) {
    struct watch *watch = context;
    bool is_board = effect->key != NULL && effect->key->kind == REGISTRY_BOARD;
    bool is_own = false;
    if (!watch->is_on || effect->database == REGISTRY_ONCE) {
        return;
    }
    if (is_board && effect->name.size == 2 && effect->name.at[0] == 'b' && effect->database == 0) {
        bool has_member = effect->kind == EFFECT_PUT || effect->kind == EFFECT_TAKE ||
                          effect->kind == EFFECT_TAGS;
        is_own = has_member && bytes_is(effect->member, OWN);
        watch->own_count += is_own;
    } else if (!is_board && bytes_equal(effect->name, BYTES("player:" OWN))) {
        is_own = effect->kind == EFFECT_PUT || effect->kind == EFFECT_CREATE;
        watch->hash_count += is_own;
    }
    if (!is_own) {
        fail_msg("effect %d on %.*s (db %u) of %.*s by: %s", effect->kind, (int)effect->name.size,
                 effect->name.at, effect->database, (int)effect->member.size, effect->member.at,
                 watch->last);
    }
}

static const struct grammar_values values[] = {
    {"key", GRAMMAR_WORDS("b0", "b0", "b0", "b1", "b1", "b2", "b3", "b3", "x0", "player:" OWN,
                          "player:m1", "h1", "b$20")},
    {"source", GRAMMAR_WORDS("b0", "x0", "player:" OWN)},
    {"destination", GRAMMAR_WORDS("b$20", "player:" OWN)},
    {"newkey", GRAMMAR_WORDS("b$20", "player:" OWN)},
    {"archive", GRAMMAR_WORDS("b$20")},
    {"member", GRAMMAR_WORDS(OWN, OWN, OWN, "m$8", "M3", "m3 ", "")},
    {"packed_member", GRAMMAR_WORDS(OWN, OWN, OWN, "m$8")},
    {"from", GRAMMAR_WORDS(OWN, "m$8")},
    {"to", GRAMMAR_WORDS(OWN, "m$8")},
    {"HSET pattern", GRAMMAR_WORDS("player:*", "player:*", "player:*", "player:*", "*", "b*", "x*",
                                   "player:m*", "player:%*", "h*")},
    {"pattern", GRAMMAR_WORDS("*", "x*", "b*")},
    {"id", GRAMMAR_WORDS("$30")},
    {"name", GRAMMAR_WORDS("clan", "x")},
    {"tag", GRAMMAR_WORDS("clan", "clan", "x")},
    {"destination-db", GRAMMAR_WORDS("$3")},
    {NULL, NULL},
};
static const char *const usual[] = {"HSET", "TAG", "ONCE", "INCR", "WITHRANK", NULL};
static const char *const own_commands[] = {"LB.ADD",    "LB.ADD",        "LB.ADD",
                                           "LB.SUBMIT", "LB.LEAGUE ADD", "LB.TAG",
                                           "ZADD",      "ZINCRBY",       "ZREM"};
/* They end the session or its user, or wait. */
static const char *const never[] = {
    "AUTH",     "HELLO",       "RESET",        "QUIT",         "MULTI", "EXEC", "DISCARD",
    "client|*", "SUBSCRIBE*",  "PSUBSCRIBE*",  "SSUBSCRIBE*",  "WAIT*", "BZ*",  "SELECT",
    "BLMPOP",   "UNSUBSCRIBE", "PUNSUBSCRIBE", "SUNSUBSCRIBE", "HELP",  NULL};

static const struct command *draw_command(struct random *random) {
    if (random_below(random, 2) == 0) {
        return grammar_find(own_commands[random_below(random, COUNT_OF(own_commands))]);
    }
    for (;;) {
        uint32_t index = (uint32_t)random_below(random, command_count());
        const struct command *command = command_by_index(index);
        if (command->run != NULL && !grammar_is_among(never, command->name) &&
            !grammar_is_among(never, command_full_name(index))) {
            return command;
        }
    }
}

static void check_secrets(const struct harness *h, const struct watch *watch) {
    for (size_t i = 0; i + 6 <= h->reply.size; i++) {
        if (memcmp(h->reply.at + i, "hidden", 6) == 0) {
            fail_msg("%s shows: %.*s", watch->last, (int)h->reply.size, h->reply.at);
        }
    }
}

static void send_random(struct harness *h, struct session *session, struct random *random,
                        struct grammar *grammar, struct watch *watch) {
    struct bytes words[GRAMMAR_WORDS_MAX];
    size_t size = 0;
    const struct command *command = draw_command(random);
    grammar_draw(grammar, command);
    for (uint32_t i = 0; i < grammar->count; i++) {
        words[i] = (struct bytes){.at = grammar->words[i], .size = grammar->sizes[i]};
        if (size + 40 < sizeof watch->last) {
            size += (size_t)snprintf(watch->last + size, sizeof watch->last - size, "%.30s ",
                                     grammar->words[i]);
        }
    }
    (void)harness_run_args(h, session, words, grammar->count);
    check_secrets(h, watch);
}

HARNESS_TEST(whatever_a_player_sends_changes_the_own_entries_alone,
             "player-key back hs256 " JWT_MAKER_SECRET " BOARDS b*\n"
             "user player:back on ~b* ~player:* +@all\n") {
    struct random random = random_begin(__func__);
    struct grammar grammar = {
        .random = &random, .values = values, .focus = {usual}, .damage_one_in = 20};
    static const char *const lines[] = {"LB.CREATE b3 FIELD score 32 TIME 31 S",
                                        "HSET player:m1 name hidden0",
                                        "HSET h1 name hidden",
                                        "LB.ADD secret 5 hidden",
                                        "HDEL player:m1 name",
                                        "HSET player:m1 a b"};
    make_boards(h, s);
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        assert_int_not_equal(harness_run(h, s, lines[i])[0], '-');
    }
    for (int i = 0; i < 8; i++) {
        (void)harness_run_format(h, s, "LB.ADD b0 TAG clan c%d %d m%d", i % 3, i * 3, i);
        (void)harness_run_format(h, s, "LB.SUBMIT 2 b1 b3 %d m%d", i * 3, i);
        (void)harness_run_format(h, s, "LB.ADD b2 %d %d m%d", i * 3, i, i);
    }
    struct session *player = log_in(h, JWT_HS256, OWN);
    struct watch watch = {.is_on = false};
    struct effect_listener listener = {.receive = watch_effect, .context = &watch};
    effect_listener_add(h->server.registry, &listener);
    uint32_t rounds = test_rounds(40000, 10000);
    /* A hash is written seldom: until one was. */
    for (uint32_t i = 0; i < rounds || (watch.hash_count == 0 && i < 50 * rounds); i++) {
        watch.is_on = true;
        bool is_multi = random_below(&random, 8) == 0;
        if (is_multi) {
            (void)harness_run(h, player, "MULTI");
        }
        for (uint64_t k = 1 + (is_multi ? random_below(&random, 4) : 0); k > 0; k--) {
            send_random(h, player, &random, &grammar, &watch);
        }
        if (is_multi) {
            (void)harness_run(h, player, "EXEC");
            check_secrets(h, &watch);
        }
        assert_non_null(player->player);
        assert_false(player->is_killed);
        watch.is_on = false;
    }
    effect_listener_remove(h->server.registry, &listener);
    assert_true(watch.own_count > rounds / 100);
    assert_true(watch.hash_count > 0);
}
