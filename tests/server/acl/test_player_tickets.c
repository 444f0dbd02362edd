/* TICKETS: results of players that come with a ticket, and all that is none. */
#include "codec/memory.h"
#include "server/sessions/session.h"
#include "tests/support/harness.h"
#include "tests/support/jwt_maker.h"

#define NOW (HARNESS_START_US / 1000000)
#define KEYS                                                                                       \
    "player-key back hs256 " JWT_MAKER_SECRET "\n"                                                 \
    "player-key web ed25519 " JWT_MAKER_PUBLIC " BOARDS b* {b*\n"
#define PLAYERS                                                                                    \
    KEYS "user player:back on ~* -@all +lb.ticket +lb.add +lb.submit +lb.league +zadd +zincrby "   \
         "+lb.get +multi +exec\n"
enum { SECOND_US = 1000000, TICKET_SIZE = JWT_SIZE_MAX + 100 };

#define USED                                                                                       \
    "-TICKET the ticket was refused: it was used, or was made before a result that counted: each " \
    "run needs a ticket of its own\r\n"

static struct session *player(struct harness *h, const char *name) {
    char token[TICKET_SIZE];
    struct session *session = harness_connect(h);
    token[jwt_maker_player(JWT_HS256, name, NOW + 1000000, token)] = '\0';
    assert_string_equal(harness_run_format(h, session, "AUTH %s", token), "+OK\r\n");
    return session;
}

/* A ticket of the server's. */
static void get(struct harness *h, struct session *s, const char *line, char ticket[TICKET_SIZE]) {
    const char *reply = harness_run(h, s, line);
    assert_int_equal(reply[0], '$');
    const char *begin = strchr(reply, '\n') + 1;
    size_t size = strcspn(begin, "\r");
    memcpy(ticket, begin, size);
    ticket[size] = '\0';
}

/* One that a studio has signed. */
static const char *sign(enum jwt_algorithm algorithm, const char *claims) {
    static char ticket[TICKET_SIZE];
    const char *header = algorithm == JWT_HS256
                             ? "{\"alg\":\"HS256\",\"typ\":\"ticket+jwt\",\"kid\":\"back\"}"
                             : "{\"alg\":\"EdDSA\",\"typ\":\"ticket+jwt\",\"kid\":\"web\"}";
    ticket[jwt_maker_make(algorithm, header, claims, ticket)] = '\0';
    return ticket;
}

static const char *sign_usual(enum jwt_algorithm algorithm, const char *player, const char *board,
                              int64_t start_s) {
    return sign(algorithm, formatted("{\"sub\":\"%s\",\"boards\":\"%s\",\"iat\":%lld,\"exp\":%lld}",
                                     player, board, (long long)start_s, (long long)start_s + 600));
}

static void begin(struct harness *h, struct session *s) {
    harness_expect(h, s, "LB.CREATE b FIELD score 32 SIGNED TICKETS YES", "+OK\r\n");
    harness_expect(h, s, "LB.CREATE c FIELD score 32 TICKETS YES", "+OK\r\n");
    harness_expect(h, s, "LB.CREATE free FIELD score 32", "+OK\r\n");
}

/* ---- the usual way ---- */

HARNESS_TEST(a_result_of_a_player_comes_with_a_ticket_which_counts_once, PLAYERS) {
    char ticket[TICKET_SIZE];
    struct session *ann = player(h, "ann");
    begin(h, s);
    harness_expect(
        h, ann, "LB.ADD b 5 ann",
        "-TICKET board 'b' takes a player's result with a ticket: get one when the run "
        "begins (LB.TICKET, over HTTP POST .../tickets), and send it with the result\r\n");
    harness_expect(h, ann, "ZADD b 5 ann",
                   "-TICKET board 'b' takes players' results with a ticket, by LB.ADD, LB.SUBMIT "
                   "and LB.LEAGUE ADD: not by 'zadd'\r\n");
    harness_expect_prefix(h, ann, "ZINCRBY b 5 ann", "-TICKET board 'b' takes");
    harness_expect_prefix(h, ann, "LB.SUBMIT 2 free b 5 ann", "-TICKET board 'b' takes");
    get(h, ann, "LB.TICKET b ann", ticket);
    harness_expect(h, ann, formatted("LB.ADD b TICKET %s 5 ann", ticket), ":1\r\n");
    harness_expect(h, ann, formatted("LB.ADD b TICKET %s 6 ann", ticket), USED);
    harness_expect(h, ann, "LB.ADD free 5 ann", ":1\r\n");
    harness_expect(h, ann, formatted("LB.ADD free TICKET %s 6 ann", ticket), ":1\r\n");
    harness_expect(h, s, "ZSCORE b ann", "$1\r\n5\r\n");
}

HARNESS_TEST(others_need_none_and_one_that_they_send_is_looked_at, PLAYERS) {
    char ticket[TICKET_SIZE];
    begin(h, s);
    harness_expect(h, s, "LB.ADD b 5 ann 6 bob", ":2\r\n");
    harness_expect(h, s, "ZADD b 7 ann", ":0\r\n");
    get(h, s, "LB.TICKET b ann FOR 60", ticket);
    harness_expect(h, s, formatted("LB.ADD b TICKET %s 8 bob", ticket),
                   "-TICKET the ticket was refused: it is of 'ann', not of 'bob'\r\n");
    harness_expect(h, s, formatted("LB.ADD b TICKET %s 8 ann 8 bob", ticket),
                   "-ERR a board with TICKETS takes one result at a time\r\n");
    harness_expect(h, s, formatted("LB.ADD b TICKET %s 8 ann", ticket), ":1\r\n");
    harness_expect(h, s, formatted("LB.ADD b TICKET %s 8 ann", ticket), USED);
}

HARNESS_TEST(a_result_ends_all_tickets_of_before, PLAYERS) {
    char first[TICKET_SIZE], second[TICKET_SIZE], third[TICKET_SIZE];
    struct session *ann = player(h, "ann");
    begin(h, s);
    get(h, ann, "LB.TICKET b ann", first);
    harness_pass_seconds(h, 1);
    get(h, ann, "LB.TICKET b ann", second);
    harness_pass_seconds(h, 1);
    harness_expect(h, ann, formatted("LB.ADD b TICKET %s 5 ann", first), ":1\r\n");
    harness_expect(h, ann, formatted("LB.ADD b TICKET %s 6 ann", second), USED);
    /* One of the same millisecond as a result is of the run after it. */
    get(h, ann, "LB.TICKET b ann", third);
    harness_expect(h, ann, formatted("LB.ADD b TICKET %s 6 ann", third), ":1\r\n");
    harness_expect(h, ann, formatted("LB.ADD b TICKET %s 6 ann", third), USED);
}

/* ---- what is refused ---- */

HARNESS_TEST(what_is_refused_uses_nothing_up, PLAYERS) {
    char ticket[TICKET_SIZE];
    struct session *ann = player(h, "ann");
    begin(h, s);
    harness_expect(h, s, "LB.ALTER b LIMITS PLAYERS MAX 100 MINTIME 30 S", "+OK\r\n");
    get(h, ann, "LB.TICKET b ann", ticket);
    harness_expect(h, ann, formatted("LB.ADD b TICKET %s 50 ann", ticket),
                   "-TOOSOON MINTIME 30 S: wait 30 s\r\n");
    harness_pass_seconds(h, 29);
    harness_expect(h, ann, formatted("LB.ADD b TICKET %s 50 ann", ticket),
                   "-TOOSOON MINTIME 30 S: wait 1 s\r\n");
    harness_pass_seconds(h, 1);
    harness_expect(h, ann, formatted("LB.ADD b TICKET %s 101 ann", ticket),
                   "-LIMIT MAX 100: 101 is above\r\n");
    harness_expect_prefix(h, ann, formatted("LB.ADD b TICKET %s 1 2 ann", ticket), "-ERR");
    harness_expect(h, ann, formatted("LB.ADD b TICKET %s 99 ann", ticket), ":1\r\n");
    harness_expect(h, s, "LB.ADD b 200 ann", ":1\r\n");
}

HARNESS_TEST(mintime_needs_tickets, PLAYERS) {
    harness_expect(
        h, s, "LB.CREATE b FIELD score 32 LIMITS ALL MINTIME 30 S",
        "-ERR LIMITS ... MINTIME needs TICKETS YES: a ticket says when the run began\r\n");
    harness_expect(h, s, "LB.CREATE b FIELD score 32 LIMITS ALL MINTIME 30 S TICKETS YES",
                   "+OK\r\n");
    harness_expect_part(h, s, "LB.INFO b", "ALL MINTIME 30 S");
    harness_expect_prefix(h, s, "LB.ALTER b TICKETS NO", "-ERR LIMITS ... MINTIME needs");
    harness_expect(h, s, "LB.ALTER b TICKETS NO LIMITS NONE", "+OK\r\n");
    harness_expect(h, s, "LB.TICKET b ann",
                   "-ERR board 'b' takes no tickets: LB.ALTER ... TICKETS YES\r\n");
}

HARNESS_TEST(forged_foreign_and_late_tickets_are_refused, PLAYERS) {
    char ticket[TICKET_SIZE];
    struct session *ann = player(h, "ann");
    struct session *bob = player(h, "bob");
    begin(h, s);
    static const char *const nothing[] = {"x", "ey.ey.ey", "''", "e30.e30."};
    for (size_t i = 0; i < COUNT_OF(nothing); i++) {
        harness_expect_prefix(h, ann, formatted("LB.ADD b TICKET %s 5 ann", nothing[i]),
                              "-TICKET the ticket was refused: no player-key has its kid");
    }
    get(h, ann, "LB.TICKET b ann FOR 60", ticket);
    harness_expect(h, bob, formatted("LB.ADD b TICKET %s 5 bob", ticket),
                   "-TICKET the ticket was refused: it is of 'ann', not of 'bob'\r\n");
    harness_expect(h, ann, formatted("LB.ADD c TICKET %s 5 ann", ticket),
                   "-TICKET the ticket was refused: it is not for board 'c'\r\n");
    /* Each character of it. */
    size_t size = strlen(ticket);
    for (size_t i = 0; i < size; i++) {
        char kept = ticket[i];
        ticket[i] = kept == 'A' ? 'B' : 'A';
        harness_expect_prefix(h, ann, formatted("LB.ADD b TICKET %s 5 ann", ticket), "-TICKET");
        ticket[i] = kept;
    }
    harness_pass_seconds(h, 60);
    harness_expect(h, ann, formatted("LB.ADD b TICKET %s 5 ann", ticket),
                   "-TICKET the ticket was refused: it has expired\r\n");
    harness_expect(h, ann, "ZCARD b",
                   "-NOPERM this user has no permissions to run the 'zcard' command\r\n");
    harness_expect(h, s, "ZCARD b", ":0\r\n");
}

HARNESS_TEST(a_login_is_no_ticket_and_a_ticket_no_login, PLAYERS) {
    char ticket[TICKET_SIZE], login[TICKET_SIZE];
    struct session *ann = player(h, "ann");
    begin(h, s);
    get(h, ann, "LB.TICKET b ann", ticket);
    login[jwt_maker_player(JWT_HS256, "ann", NOW + 1000, login)] = '\0';
    harness_expect(h, ann, formatted("LB.ADD b TICKET %s 5 ann", login),
                   "-TICKET the ticket was refused: its typ is that of another kind of token: "
                   "tickets have ticket+jwt\r\n");
    struct session *other = harness_connect(h);
    harness_expect_prefix(h, other, formatted("AUTH %s", ticket), "-WRONGPASS");
    harness_expect_prefix(h, other, formatted("AUTH %s", sign_usual(JWT_HS256, "ann", "b", NOW)),
                          "-WRONGPASS");
}

/* ---- tickets that others sign ---- */

HARNESS_TEST(a_studio_signs_tickets_with_its_key, PLAYERS) {
    struct session *ann = player(h, "ann");
    begin(h, s);
    harness_expect(h, ann,
                   formatted("LB.ADD b TICKET %s 5 ann", sign_usual(JWT_HS256, "ann", "b", NOW)),
                   ":1\r\n");
    harness_expect(h, ann,
                   formatted("LB.ADD b TICKET %s 6 ann", sign_usual(JWT_HS256, "ann", "b", NOW)),
                   USED);
    harness_pass_seconds(h, 5);
    harness_expect(
        h, ann, formatted("LB.ADD b TICKET %s 6 ann", sign_usual(JWT_HS256, "ann", "b", NOW + 5)),
        ":1\r\n");
    harness_expect(
        h, ann, formatted("LB.ADD b TICKET %s 7 ann", sign_usual(JWT_HS256, "ann", "b", NOW + 4)),
        USED);
    harness_expect(
        h, ann, formatted("LB.ADD b TICKET %s 7 ann", sign_usual(JWT_ED25519, "ann", "b", NOW + 4)),
        USED);
    harness_expect(
        h, ann, formatted("LB.ADD c TICKET %s 7 ann", sign_usual(JWT_ED25519, "ann", "c", NOW + 4)),
        "-TICKET the ticket was refused: its player-key is not for this board (BOARDS)\r\n");
    static const char *const wrong[][2] = {
        {"{\"sub\":\"ann\",\"boards\":\"b\",\"exp\":%lld}", "it does not say when the run began"},
        {"{\"sub\":\"ann\",\"boards\":\"b\",\"iat\":%lld}", "it has no end (exp)"},
        {"{\"sub\":\"ann\",\"iat\":1767225605,\"exp\":%lld}", "it names no board"},
        {"{\"sub\":\"ann\",\"boards\":\"\",\"iat\":1767225605,\"exp\":%lld}", "it names no board"},
        {"{\"sub\":\"ann\",\"boards\":[],\"iat\":1767225605,\"exp\":%lld}", "it is no token"},
        {"{\"sub\":\"ann\",\"boards\":5,\"iat\":1767225605,\"exp\":%lld}", "it is no token"},
        {"{\"boards\":\"b\",\"iat\":1767225605,\"exp\":%lld}", "it names no player"},
        {"{\"sub\":\"ann\",\"boards\":\"b\",\"iat\":1767139000,\"exp\":%lld}",
         "it is for more than"},
        {"{\"sub\":\"ann\",\"boards\":\"b\",\"iat\":1767225700,\"exp\":%lld}",
         "it does not hold yet"},
        {"{\"sub\":\"ann\",\"boards\":\"b\",\"iat\":1767225605,\"db\":1,\"exp\":%lld}",
         "it is of another database"},
        {"{\"sub\":\"ann\",\"boards\":\"b\",\"boards\":\"c\",\"iat\":1767225605,\"exp\":%lld}",
         "it is no token"},
        {"{\"sub\":\"ann\",\"aud\":\"x\",\"boards\":\"b\",\"iat\":1767225605,\"exp\":%lld}",
         "its audience is not the key's"},
    };
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        char claims[256];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(claims, sizeof claims, wrong[i][0], (long long)NOW + 100);
#pragma GCC diagnostic pop
        harness_expect_prefix(h, ann,
                              formatted("LB.ADD b TICKET %s 9 ann", sign(JWT_HS256, claims)),
                              formatted("-TICKET the ticket was refused: %s", wrong[i][1]));
    }
    /* Milliseconds count, so that runs may be short. */
    for (int i = 1; i < 4; i++) {
        harness_expect(
            h, ann,
            formatted("LB.ADD b TICKET %s 1%d ann",
                      sign(JWT_HS256, formatted("{\"sub\":\"ann\",\"boards\":[\"x\",\"b\"],\"iat\":"
                                                "1767225605.00%d,\"exp\":1767225700}",
                                                i)),
                      i),
            ":1\r\n");
    }
}

/* Nobody has looked at it, or what was found is known no more: the server stops, or other tickets took its place. */
HARNESS_TEST(a_signature_that_no_thread_has_looked_at_is_looked_at, PLAYERS) {
    char first[TICKET_SIZE], second[TICKET_SIZE];
    struct session *ann = player(h, "ann");
    begin(h, s);
    harness_expect(h, s, "LB.CREATE b2 FIELD score 32 TICKETS YES", "+OK\r\n");
    h->server.acl.has_verifier = true;
    strcpy(first, sign_usual(JWT_ED25519, "ann", "b", NOW));
    strcpy(second, sign_usual(JWT_ED25519, "ann", "b2", NOW));
    first[strlen(first) - 9] ^= 1;
    for (int i = 0; i < 2; i++) {
        harness_expect(h, ann, formatted("LB.ADD b TICKET %s 5 ann", first),
                       "-TICKET the ticket was refused: its signature is wrong\r\n");
    }
    first[strlen(first) - 9] ^= 1;
    memset(h->server.acl.player_keys.signatures, 0, sizeof h->server.acl.player_keys.signatures);
    char line[3 * TICKET_SIZE];
    snprintf(line, sizeof line, "LB.SUBMIT 2 b b2 TICKET %s TICKET %s 7 ann", first, second);
    harness_expect_prefix(h, ann, line, "*2\r\n");
    harness_expect_prefix(h, ann, line, "-TICKET the ticket was refused: it was used");
}

/* They can be made ahead, but a result ends all whose run can have begun before it. */
HARNESS_TEST(a_result_ends_signed_tickets_of_other_runs, PLAYERS) {
    char own[TICKET_SIZE];
    struct session *ann = player(h, "ann");
    begin(h, s);
    harness_expect(h, s, "LB.ALTER b LIMITS PLAYERS MINTIME 10 M", "+OK\r\n");
    harness_pass_seconds(h, 610);
    harness_expect(
        h, ann, formatted("LB.ADD b TICKET %s 1 ann", sign_usual(JWT_HS256, "ann", "b", NOW + 5)),
        ":1\r\n");
    for (int i = 0; i < 2; i++) {
        enum jwt_algorithm algorithm = i == 0 ? JWT_HS256 : JWT_ED25519;
        harness_expect(
            h, ann,
            formatted("LB.ADD b TICKET %s 2 ann", sign_usual(algorithm, "ann", "b", NOW + 550)),
            USED);
        harness_expect(
            h, ann,
            formatted("LB.ADD b TICKET %s 2 ann", sign_usual(algorithm, "ann", "b", NOW + 551)),
            "-TOOSOON MINTIME 10 M: wait 541 s\r\n");
    }
    get(h, ann, "LB.TICKET b ann", own);
    harness_pass_seconds(h, 600);
    harness_expect(h, ann, formatted("LB.ADD b TICKET %s 3 ann", own), ":1\r\n");
    harness_expect(
        h, ann, formatted("LB.ADD b TICKET %s 4 ann", sign_usual(JWT_HS256, "ann", "b", NOW + 660)),
        USED);
}

HARNESS_TEST(a_ticket_holds_longer_than_mintime, PLAYERS) {
    static const struct {
        const char *limit, *seconds;
        int64_t usual_s, least_s;
    } rows[] = {{"30 S", "30", 3630, 30},
                {"1 H", "3600", 7200, 3600},
                {"23 H", "82800", 86400, 82800},
                {"1439 M", "86340", 86400, 86340}};
    char ticket[TICKET_SIZE];
    struct session *ann = player(h, "ann");
    begin(h, s);
    h->wall_us += SECOND_US / 2;
    harness_expect(h, s,
                   "LB.LEAGUE CREATE l FIELD score 32 PERIOD WEEK ROOM 10 TIERS 3 UP 2 DOWN 2",
                   "+OK\r\n");
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        for (int is_league = 0; is_league < 2; is_league++) {
            const char *board = is_league != 0 ? "l" : "b";
            test_row("%s %s", board, rows[i].limit);
            harness_expect(h, s,
                           formatted("LB.ALTER %s TICKETS YES LIMITS PLAYERS MINTIME %s",
                                     is_league != 0 ? "{l}:rooms" : "b", rows[i].limit),
                           "+OK\r\n");
            harness_expect_prefix(h, ann,
                                  formatted("LB.TICKET %s ann FOR %s", board, rows[i].seconds),
                                  "-ERR FOR must be more than the board's MINTIME");
        }
        get(h, ann, "LB.TICKET b ann", ticket);
        harness_pass_seconds(h, rows[i].usual_s);
        harness_expect(h, ann, formatted("LB.ADD b TICKET %s INCR 1 ann", ticket), ":1\r\n");
        get(h, ann, formatted("LB.TICKET b ann FOR %lld", (long long)rows[i].least_s + 1), ticket);
        harness_pass_seconds(h, rows[i].least_s + 1);
        harness_expect(h, ann, formatted("LB.ADD b TICKET %s INCR 1 ann", ticket), ":1\r\n");
        get(h, ann, "LB.TICKET b ann", ticket);
        harness_pass_seconds(h, rows[i].usual_s + 1);
        harness_expect(h, ann, formatted("LB.ADD b TICKET %s INCR 1 ann", ticket),
                       "-TICKET the ticket was refused: it has expired\r\n");
    }
    harness_expect_prefix(h, s, "LB.ALTER b LIMITS PLAYERS MINTIME 1 D",
                          "-ERR LIMITS ... MINTIME must be less than a day");
}

HARNESS_TEST(a_ticket_of_no_key_is_none_of_the_servers, PLAYERS) {
    char ticket[TICKET_SIZE];
    struct session *ann = player(h, "ann");
    begin(h, s);
    get(h, ann, "LB.TICKET b ann", ticket);
    /* Without a kid it would have to be of this server's key, whatever the settings have. */
    ticket[jwt_maker_make(
        JWT_HS256, "{\"alg\":\"HS256\",\"typ\":\"ticket+jwt\"}",
        "{\"sub\":\"ann\",\"boards\":\"b\",\"iat\":1767225600,\"exp\":1767225700}", ticket)] = '\0';
    harness_expect(h, ann, formatted("LB.ADD b TICKET %s 5 ann", ticket),
                   "-TICKET the ticket was refused: its signature is wrong\r\n");
    ticket[jwt_maker_make(
        JWT_HS256, "{\"alg\":\"none\",\"typ\":\"ticket+jwt\",\"kid\":\"back\"}",
        "{\"sub\":\"ann\",\"boards\":\"b\",\"iat\":1767225600,\"exp\":1767225700}", ticket)] = '\0';
    harness_expect(h, ann, formatted("LB.ADD b TICKET %s 5 ann", ticket),
                   "-TICKET the ticket was refused: its algorithm is not the key's\r\n");
    ticket[jwt_maker_make(
        JWT_HS256, "{\"alg\":\"HS256\",\"typ\":\"ticket+jwt\",\"kid\":\"web\"}",
        "{\"sub\":\"ann\",\"boards\":\"b\",\"iat\":1767225600,\"exp\":1767225700}", ticket)] = '\0';
    harness_expect(h, ann, formatted("LB.ADD b TICKET %s 5 ann", ticket),
                   "-TICKET the ticket was refused: its algorithm is not the key's\r\n");
}

/* ---- many boards, transactions, rooms ---- */

HARNESS_TEST(a_result_on_many_boards_has_a_ticket_for_each, PLAYERS) {
    char of_b[TICKET_SIZE], of_c[TICKET_SIZE];
    struct session *ann = player(h, "ann");
    begin(h, s);
    get(h, ann, "LB.TICKET b ann", of_b);
    get(h, ann, "LB.TICKET c ann", of_c);
    harness_expect(h, ann, formatted("LB.SUBMIT 3 b free c TICKET %s 5 ann", of_b),
                   "-TICKET the ticket was refused: it is not for board 'c' (board 'c')\r\n");
    harness_expect_prefix(
        h, ann, formatted("LB.SUBMIT 3 b free c TICKET %s TICKET %s 5 ann", of_c, of_b), "*3\r\n");
    harness_expect(h, ann, formatted("LB.ADD b TICKET %s 5 ann", of_b), USED);
    harness_expect(h, ann, formatted("LB.ADD c TICKET %s 5 ann", of_c), USED);
    harness_pass_seconds(h, 1);
    const char *both =
        sign(JWT_HS256, "{\"sub\":\"ann\",\"boards\":[\"b\",\"c\"],\"iat\":1767225601,"
                        "\"exp\":1767225700}");
    harness_expect_prefix(h, ann, formatted("LB.SUBMIT 2 c b TICKET %s 6 ann", both), "*2\r\n");
    harness_expect(h, ann, formatted("LB.ADD b TICKET %s 7 ann", both), USED);
}

HARNESS_TEST(a_transaction_uses_a_ticket_once, PLAYERS) {
    char ticket[TICKET_SIZE];
    struct session *ann = player(h, "ann");
    begin(h, s);
    get(h, ann, "LB.TICKET b ann", ticket);
    harness_expect(h, ann, "MULTI", "+OK\r\n");
    harness_expect(h, ann, formatted("LB.ADD b TICKET %s 5 ann", ticket), "+QUEUED\r\n");
    harness_expect(h, ann, formatted("LB.ADD b TICKET %s 6 ann", ticket), "+QUEUED\r\n");
    harness_expect(h, ann, "EXEC", "*2\r\n:1\r\n" USED);
}

HARNESS_TEST(a_result_that_comes_again_is_known_by_its_id, PLAYERS) {
    char ticket[TICKET_SIZE];
    struct session *ann = player(h, "ann");
    begin(h, s);
    get(h, ann, "LB.TICKET b ann", ticket);
    for (int i = 0; i < 3; i++) {
        harness_expect(h, ann, formatted("LB.ADD b TICKET %s ONCE 1 WITHREPEAT 5 ann", ticket),
                       i == 0 ? ":1\r\n" : ":-1\r\n");
    }
    harness_expect(h, ann, formatted("LB.ADD b TICKET %s ONCE 2 5 ann", ticket), USED);
}

HARNESS_TEST(a_board_with_a_window_asks_from_when_it_is_told_to, PLAYERS) {
    char ticket[TICKET_SIZE];
    struct session *ann = player(h, "ann");
    harness_expect(h, s, "LB.CREATE b FIELD score 32 PERIOD DAY ARCHIVE 5 WINDOW 3 SUM", "+OK\r\n");
    harness_expect(h, ann, "LB.ADD b 5 ann", ":1\r\n");
    harness_expect(h, s, "LB.ALTER b TICKETS YES", "+OK\r\n");
    harness_expect_prefix(h, ann, "LB.ADD b 6 ann", "-TICKET");
    harness_expect_prefix(h, ann, "ZADD b 6 ann", "-TICKET");
    get(h, ann, "LB.TICKET b ann", ticket);
    harness_expect(h, ann, formatted("LB.ADD b TICKET %s 6 ann", ticket), ":1\r\n");
    harness_expect(h, ann, formatted("LB.ADD b TICKET %s 7 ann", ticket), USED);
    harness_expect(h, s, "LB.ALTER b TICKETS NO", "+OK\r\n");
    harness_expect(h, ann, "LB.ADD b 7 ann", ":1\r\n");
}

HARNESS_TEST(rooms_of_leagues_take_tickets_of_the_league, PLAYERS) {
    char ticket[TICKET_SIZE];
    struct session *ann = player(h, "ann");
    harness_expect(h, s,
                   "LB.LEAGUE CREATE b FIELD score 32 PERIOD WEEK ROOM 10 TIERS 3 UP 2 DOWN 2",
                   "+OK\r\n");
    harness_expect(h, s, "LB.ALTER {b}:rooms TICKETS YES LIMITS PLAYERS MINTIME 10 S", "+OK\r\n");
    harness_expect_prefix(h, ann, "LB.LEAGUE ADD b 5 ann", "-TICKET board 'b' takes");
    get(h, ann, "LB.TICKET b ann", ticket);
    harness_expect(h, ann, formatted("LB.LEAGUE ADD b TICKET %s 5 ann", ticket),
                   "-TOOSOON MINTIME 10 S: wait 10 s\r\n");
    harness_pass_seconds(h, 10);
    harness_expect_prefix(h, ann, formatted("LB.LEAGUE ADD b TICKET %s 5 ann", ticket), "*4\r\n");
    harness_expect(h, ann, formatted("LB.LEAGUE ADD b TICKET %s 6 ann", ticket), USED);
    /* Not by the rooms' names, which would be a second run beside it. */
    harness_expect(h, s, "LB.CREATE c FIELD score 32", "+OK\r\n");
    harness_expect(h, s, "LB.ALTER {b}:rooms TICKETS NO LIMITS NONE", "+OK\r\n");
    harness_expect(h, s, "LB.ALTER {b}:1:1 TICKETS NO LIMITS NONE", "+OK\r\n");
    harness_expect(h, s, "LB.CREATE other:rooms FIELD score 32", "+OK\r\n");
    static const char *const rooms[] = {"{b}:1:1", "{b}:rooms"};
    for (size_t i = 0; i < COUNT_OF(rooms); i++) {
        static const char *const lines[] = {"LB.ADD", "ZADD", "ZINCRBY", "LB.SUBMIT 2 c"};
        for (size_t k = 0; k < COUNT_OF(lines); k++) {
            harness_expect(
                h, ann, formatted("%s %s 7 ann", lines[k], rooms[i]),
                formatted("-NOPERM players write in rooms by LB.LEAGUE ADD: not in '%s'%s\r\n",
                          rooms[i], k == 3 ? formatted(" (board '%s')", rooms[i]) : ""));
        }
        harness_expect(
            h, ann, formatted("LB.TICKET %s ann", rooms[i]),
            formatted("-NOPERM tickets for rooms are of their league: not of '%s'\r\n", rooms[i]));
    }
    harness_expect(h, ann, "LB.ADD other:rooms 7 ann", ":1\r\n");
    harness_expect(h, s, "LB.ADD {b}:1:1 8 ann", ":1\r\n");
}

/* ---- boards that change, members that go, clocks ---- */

HARNESS_TEST(a_used_ticket_stays_used_whatever_becomes_of_the_board, PLAYERS) {
    char ticket[TICKET_SIZE];
    struct session *ann = player(h, "ann");
    static const char *const lines[] = {"DEL b",
                                        "LB.CREATE b FIELD score 32 TICKETS YES",
                                        "RENAME b d",
                                        "COPY d b",
                                        "LB.ALTER b TICKETS NO",
                                        "LB.ALTER b TICKETS YES",
                                        "LB.FORGET ann",
                                        "ZREM b ann",
                                        "FLUSHALL",
                                        "LB.CREATE b FIELD score 32 PERIOD DAY TICKETS YES",

                                        "LB.BAN ann",
                                        "LB.UNBAN ann"};
    begin(h, s);
    get(h, ann, "LB.TICKET b ann", ticket);
    harness_expect(h, ann, formatted("LB.ADD b TICKET %s 5 ann", ticket), ":1\r\n");
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        test_row("%s", lines[i]);
        assert_int_not_equal(harness_run(h, s, lines[i])[0], '-');
        if (harness_run_integer(h, s, "EXISTS b") == 1 && strstr(lines[i], "NO") == NULL &&
            strstr(lines[i], "BAN") == NULL) {
            harness_expect(h, ann, formatted("LB.ADD b TICKET %s 6 ann", ticket), USED);
        }
    }
    /* One that is not used is of the name. */
    get(h, ann, "LB.TICKET b ann", ticket);
    harness_expect(h, s, "RENAME b e", "+OK\r\n");
    harness_expect(h, ann, formatted("LB.ADD e TICKET %s 6 ann", ticket),
                   "-TICKET the ticket was refused: it is not for board 'e'\r\n");
}

HARNESS_TEST(a_clock_that_is_set_back_makes_no_ticket_new, PLAYERS) {
    char ticket[TICKET_SIZE], next[TICKET_SIZE];
    struct session *ann = player(h, "ann");
    begin(h, s);
    for (int64_t back = 0; back <= 86400; back += 86400 / 4) {
        harness_set_clock(h, HARNESS_START_US + 3 * 86400 * (int64_t)SECOND_US);
        get(h, ann, "LB.TICKET b ann FOR 86400", ticket);
        harness_pass_seconds(h, back);
        harness_expect(h, ann, formatted("LB.ADD b TICKET %s INCR 5 ann", ticket),
                       back == 86400 ? "-TICKET the ticket was refused: it has expired\r\n"
                                     : ":1\r\n");
        harness_set_clock(h,
                          HARNESS_START_US + 3 * 86400 * (int64_t)SECOND_US + back * SECOND_US / 3);
        if (back < 86400) {
            harness_expect(h, ann, formatted("LB.ADD b TICKET %s 6 ann", ticket), USED);
        }
        /* And the next run counts. */
        get(h, ann, "LB.TICKET b ann", next);
        harness_expect(h, ann, formatted("LB.ADD b TICKET %s INCR 7 ann", next), ":1\r\n");
        harness_expect(h, ann, formatted("LB.ADD b TICKET %s INCR 7 ann", next), USED);
    }
}

HARNESS_TEST(what_is_kept_of_used_tickets_goes_when_none_can_count, PLAYERS) {
    char ticket[TICKET_SIZE];
    begin(h, s);
    for (int day = 0; day < 6; day++) {
        for (int i = 0; i < 50; i++) {
            get(h, s, formatted("LB.TICKET b m%d FOR 86400", i), ticket);
            harness_expect_prefix(h, s, formatted("LB.ADD b TICKET %s %d m%d", ticket, day, i),
                                  ":");
            harness_pass_seconds(h, 1);
            harness_expect(h, s, formatted("LB.ADD b TICKET %s %d m%d", ticket, day, i), USED);
        }
        harness_pass_seconds(h, 86400 - 100);
        assert_int_not_equal(harness_run(h, s, formatted("LB.ADD b TICKET %s 9 m49", ticket))[0],
                             ':');
        (void)registry_expiry_remove_due(h->server.registry, harness_now_us(h) / 1000, 100);
        assert_in_range(registry_count(h->server.registry, REGISTRY_TICKETS), 2, 4);
    }
}

/* However many one has spent. */
HARNESS_TEST(a_player_has_one_mark_on_a_board, PLAYERS) {
    enum { MANY = 100000, FEW = 2000 };
    int count = is_short_run() ? FEW : MANY;
    char ticket[TICKET_SIZE];
    size_t before = 0;
    begin(h, s);
    for (int i = 0; i < count; i++) {
        get(h, s, "LB.TICKET b ann", ticket);
        harness_expect_prefix(h, s, formatted("LB.ADD b TICKET %s INCR 1 ann", ticket), ":1");
        if (i == 100) {
            before = memory_used();
        }
        h->wall_us += 1000;
    }
    harness_expect(h, s, "ZSCORE b ann", formatted("$%d\r\n%d\r\n", count == MANY ? 6 : 4, count));
    assert_in_range(registry_count(h->server.registry, REGISTRY_TICKETS), 2, 3);
    assert_in_range(memory_used(), 0, before + 100000);
}

HARNESS_TEST(there_are_so_many_marks_of_used_tickets, PLAYERS) {
    enum { MARKS = 20 };
    char ticket[TICKET_SIZE], other[TICKET_SIZE];
    begin(h, s);
    harness_expect(h, s, formatted("CONFIG SET once-max %d", MARKS), "+OK\r\n");
    for (int i = 0; i < MARKS; i++) {
        if (i == MARKS / 2) {
            harness_pass_seconds(h, 90000); /* the next stretch */
        }
        get(h, s, formatted("LB.TICKET b m%d", i), ticket);
        harness_expect(h, s, formatted("LB.ADD b TICKET %s 1 m%d", ticket, i), ":1\r\n");
    }
    get(h, s, "LB.TICKET b new FOR 86400", other);
    for (int i = 0; i < 2; i++) {
        harness_expect_prefix(h, s, formatted("LB.ADD b TICKET %s 1 new", other),
                              "-TRYAGAIN there are 20 marks of used tickets (once-max), and");
        harness_expect(h, s, "ZSCORE b new", "$-1\r\n");
    }
    /* Who has one goes on, and a result without a ticket needs none. */
    get(h, s, formatted("LB.TICKET b m%d", MARKS - 1), ticket);
    harness_expect(h, s, formatted("LB.ADD b TICKET %s 2 m%d", ticket, MARKS - 1), ":1\r\n");
    harness_expect(h, s, formatted("LB.ADD b TICKET %s 3 m%d", ticket, MARKS - 1), USED);
    harness_expect(h, s, "LB.ADD b 3 new2", ":1\r\n");
    /* Those of two stretches ago go, and the ticket counts. */
    harness_pass_seconds(h, 80000);
    (void)registry_expiry_remove_due(h->server.registry, harness_now_us(h) / 1000, 100);
    harness_expect(h, s, formatted("LB.ADD b TICKET %s 1 new", other), ":1\r\n");
}

HARNESS_TEST(a_revoked_player_has_no_tickets_either, PLAYERS) {
    char ticket[TICKET_SIZE];
    begin(h, s);
    get(h, s, "LB.TICKET b ann", ticket);
    harness_pass_seconds(h, 1);
    harness_expect(h, s, "LB.REVOKE ann", "+OK\r\n");
    harness_expect(h, s, formatted("LB.ADD b TICKET %s 5 ann", ticket),
                   "-TICKET the ticket was refused: it was revoked\r\n");
    get(h, s, "LB.TICKET b ann", ticket);
    harness_expect(h, s, formatted("LB.ADD b TICKET %s 5 ann", ticket), ":1\r\n");
}

/* ---- LB.TICKET ---- */

HARNESS_TEST(who_gets_a_ticket_and_for_what, PLAYERS) {
    struct session *ann = player(h, "ann");
    begin(h, s);
    harness_expect(
        h, ann, "LB.TICKET b bob",
        "-NOPERM a player's token writes of its own member alone: 'bob' is not 'ann'\r\n");
    harness_expect(h, ann, "LB.TICKET none ann", "-ERR no such key\r\n");
    harness_expect(h, ann, "LB.TICKET free ann",
                   "-ERR board 'free' takes no tickets: LB.ALTER ... TICKETS YES\r\n");
    harness_expect_prefix(h, ann, "LB.TICKET b ann FOR 0", "-ERR FOR takes 1 to 86400 seconds");
    harness_expect_prefix(h, ann, "LB.TICKET b ann FOR 86401", "-ERR FOR takes 1 to 86400 seconds");
    harness_expect_prefix(h, ann, "LB.TICKET b ann FOR x", "-ERR");
    harness_expect(
        h, s, "LB.TICKET b \"a\\xff\"",
        "-ERR a ticket is for a member and a board whose names are UTF-8 without control "
        "characters\r\n");
    harness_expect_prefix(h, s, "LB.TICKET b \"quote\\\"d\"", "$");
}

/* ---- memory ---- */

HARNESS_TEST(without_memory_nothing_is_used_up, PLAYERS) {
    char ticket[TICKET_SIZE];
    struct session *ann = player(h, "ann");
    begin(h, s);
    uint64_t nth = 1;
    for (bool is_made = false; !is_made; nth++) {
        const char *reply = harness_run_failing(h, ann, "LB.TICKET b ann", nth);
        is_made = reply[0] == '$';
        assert_true(is_made || strncmp(reply, "-OOM", 4) == 0);
        assert_true(nth < 200);
    }
    get(h, ann, "LB.TICKET b ann", ticket);
    char line[TICKET_SIZE + 100];
    snprintf(line, sizeof line, "LB.ADD b TICKET %s 5 ann", ticket);
    bool is_added = false;
    for (nth = 1; !is_added; nth++) {
        const char *reply = harness_run_failing(h, ann, line, nth);
        is_added = strcmp(reply, ":1\r\n") == 0;
        if (!is_added) {
            assert_memory_equal(reply, "-OOM", 4);
            assert_int_equal(harness_run_integer(h, s, "ZCARD b"), 0);
        }
        assert_true(nth < 200);
    }
    assert_true(nth > 3);
    harness_expect(h, ann, line, USED);
}
