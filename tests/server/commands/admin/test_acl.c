/* ACL, and what the rights it gives mean for requests. */
#include "server/acl/acl.h"
#include "tests/support/harness.h"

static struct harness *h;
static struct session *admin, *client;

FIXTURE(set_up) {
    h = harness_create(NULL);
    admin = harness_connect(h);
    client = harness_connect(h);
    return 0;
}

FIXTURE(tear_down) {
    const char *reason = "";
    if (!acl_users_validate(&h->server.acl.users, &reason)) {
        print_error("%s\n", reason);
        return -1;
    }
    harness_destroy(h);
    return 0;
}

#define ACL_TEST(name) TEST_WITH(name, set_up, tear_down)
#define NO_KEYS                                                                                    \
    "-NOPERM this user has no permissions to access one of the keys used as arguments\r\n"
#define NO_COMMAND(name) "-NOPERM this user has no permissions to run the '" name "' command\r\n"

static void make(const char *rules) {
    harness_expect(h, admin, formatted("ACL SETUSER ann on nopass %s", rules), "+OK\r\n");
    harness_expect(h, client, "AUTH ann x", "+OK\r\n");
}

ACL_TEST(a_user_may_do_what_its_rules_say_and_a_change_binds_at_once) {
    make("~top:* +@all -flushall");
    harness_expect(h, client, "ZADD top:a 1 zoe", ":1\r\n");
    harness_expect(h, client, "ZADD other 1 zoe", NO_KEYS);
    harness_expect(h, client, "FLUSHALL", NO_COMMAND("flushall"));
    harness_expect(h, client, "ACL WHOAMI", "$3\r\nann\r\n");
    harness_expect(h, admin, "ACL SETUSER ann -zadd", "+OK\r\n");
    harness_expect(h, client, "ZADD top:a 1 zoe", NO_COMMAND("zadd"));
    harness_expect(h, admin, "ACL SETUSER ann allkeys +@all", "+OK\r\n");
    harness_expect(h, client, "ZADD other 1 zoe", ":1\r\n");
}

ACL_TEST(reading_and_writing_are_separate_rights) {
    make("%R~in:* %W~out:* +@all");
    harness_expect(h, admin, "ZADD in:a 1 zoe", ":1\r\n");
    harness_expect(h, client, "ZSCORE in:a zoe", "$1\r\n1\r\n");
    harness_expect(h, client, "ZADD in:a 2 zoe", NO_KEYS);
    harness_expect(h, client, "ZUNIONSTORE out:a 1 in:a", ":1\r\n");
    harness_expect(h, client, "ZSCORE out:a zoe", NO_KEYS);
    harness_expect(h, client, "EXISTS out:a", ":1\r\n");
}

ACL_TEST(native_commands_need_rights_on_all_that_their_patterns_name) {
    make("~eu:* ~profile:* +@all");
    harness_expect(h, admin, "ZADD eu:a 1 zoe", ":1\r\n");
    harness_expect(h, admin, "ZADD us:a 1 zoe", ":1\r\n");
    harness_expect(h, admin, "HSET profile:zoe name Zoe", ":1\r\n");
    harness_expect(h, client, "LB.WHERE zoe", NO_KEYS);
    harness_expect(h, client, "LB.WHERE zoe MATCH *", NO_KEYS);
    harness_expect(h, client, "LB.WHERE zoe MATCH [e]u:*", NO_KEYS);
    harness_expect_prefix(h, client, "LB.WHERE zoe MATCH eu:*", "*1\r\n");
    harness_expect_prefix(h, client, "LB.WHERE zoe MATCH eu:?", "*1\r\n");
    harness_expect(h, client, "LB.LIST", NO_KEYS);
    harness_expect_prefix(h, client, "LB.LIST MATCH eu:*", "*2\r\n");
    harness_expect(h, client, "LB.RANGE eu:a 0 0 DATA secret:*", NO_KEYS);
    harness_expect(h, client, "LB.RANGE eu:a 0 0 DATA *", NO_KEYS);
    harness_expect_prefix(h, client, "LB.RANGE eu:a 0 0 DATA profile:*", "*1\r\n");
    harness_expect(h, client, "LB.MOVE zoe kim", NO_KEYS);
    harness_expect(h, client, "LB.BAN zoe", NO_KEYS);
    harness_expect(h, client, "LB.UNBAN zoe", NO_KEYS);
    harness_expect(h, client, "LB.BANS", NO_KEYS);
    harness_expect(h, client, "LB.FORGET zoe", NO_KEYS);
    harness_expect(h, client, "LB.FORGET zoe MATCH eu:* DATA secret:*", NO_KEYS);
    harness_expect(h, client, "LB.FORGET zoe MATCH eu:* DATA profile:*", ":1\r\n");
    harness_expect(h, admin, "EXISTS eu:a us:a profile:zoe", ":1\r\n");
    harness_expect(h, admin, "ACL SETUSER ann resetkeys %R~*", "+OK\r\n");
    harness_expect_prefix(h, client, "LB.WHERE zoe", "*1\r\n");
    harness_expect(h, client, "LB.FORGET zoe", NO_KEYS);
}

ACL_TEST(the_board_of_since_is_a_key_that_is_read) {
    static const char *const reads[] = {"LB.RANGE eu:a 0 0", "LB.GET eu:a 1 zoe",
                                        "LB.AROUND eu:a MEMBER zoe 1"};
    make("%R~eu:* %W~us:* ~daily +@all");
    harness_expect(h, admin, "ZADD eu:a 1 zoe", ":1\r\n");
    harness_expect(h, admin, "LB.CREATE daily FIELD p 20 PERIOD DAY", "+OK\r\n");
    for (size_t i = 0; i < sizeof reads / sizeof reads[0]; i++) {
        harness_expect_prefix(h, client, formatted("%s SINCE eu:b", reads[i]), "*1\r\n");
        harness_expect_prefix(h, client, formatted("%s SINCE LAST", reads[i]), "*1\r\n");
        harness_expect(h, client, formatted("%s SINCE us:b", reads[i]), NO_KEYS);
        harness_expect(h, client, formatted("%s TAGS since other", reads[i]), NO_KEYS);
    }
    harness_expect(h, client, "LB.GET eu:a 1 SINCE SINCE other", NO_KEYS);
    harness_expect(h, client, "LB.GET eu:a 3 SINCE eu:b zoe SINCE other", NO_KEYS);
    harness_expect_prefix(h, client, "LB.GET eu:a 3 SINCE other zoe SINCE eu:b", "*3\r\n");
    harness_expect(h, client, "LB.RANGE daily 0 0 SINCE LAST", NO_KEYS);
    harness_expect(h, admin, "ACL SETUSER ann %R~daily*", "+OK\r\n");
    harness_expect(h, client, "LB.RANGE daily 0 0 SINCE LAST", "*0\r\n");
}

/* What LB.CREATE and LB.ALTER refuse, no other way to a board with a PERIOD gives. */
ACL_TEST(a_board_with_a_period_gets_a_name_only_where_its_archives_may_be_written) {
    static const char *const writes[] = {"LB.CREATE dst FIELD p 20 PERIOD DAY",
                                         "LB.ALTER plain PERIOD DAY",
                                         "COPY src dst",
                                         "COPY big dst",
                                         "RENAME src dst",
                                         "RENAMENX src dst",
                                         "RESTORE dst 0 $"};
    make("~src ~big ~dst ~plain +@all");
    harness_expect(h, admin, "LB.CREATE src FIELD p 20 PERIOD DAY", "+OK\r\n");
    harness_expect(h, admin, "ZADD src 1 zoe", ":1\r\n");
    harness_expect(h, admin, "LB.CREATE plain FIELD p 20", "+OK\r\n");
    harness_expect(h, admin, "LB.CREATE big FIELD p 20 PERIOD DAY", "+OK\r\n");
    for (int i = 0; i < 5000; i++) {
        harness_run_format(h, admin, "ZADD big 1 m%d", i);
    }
    const char *reply = harness_run(h, admin, "DUMP src");
    const char *payload = strchr(reply, '\n') + 1;
    size_t size = strtoul(reply + 1, NULL, 10);
    char dump[4096];
    assert_in_range(size, 1, sizeof dump);
    memcpy(dump, payload, size);
    struct bytes restore[] = {BYTES("RESTORE"), BYTES("dst"), BYTES("0"), {dump, size}};
    for (size_t i = 0; i < sizeof writes / sizeof writes[0]; i++) {
        bool is_restore = strstr(writes[i], "RESTORE") != NULL;
        test_row("%s", writes[i]);
        assert_string_equal(is_restore ? harness_run_args(h, client, restore, COUNT_OF(restore))
                                       : harness_run(h, client, writes[i]),
                            NO_KEYS);
        harness_expect(h, admin, "EXISTS dst src big plain", ":3\r\n");
    }
    /* Without a PERIOD there are no archives. */
    harness_expect(h, client, "COPY plain dst", ":1\r\n");
    harness_expect(h, client, "RENAME dst plain", "+OK\r\n");
    harness_expect(h, admin, "ACL SETUSER ann ~dst@*", "+OK\r\n");
    assert_string_equal(harness_run_args(h, client, restore, COUNT_OF(restore)), "+OK\r\n");
    harness_expect(h, client, "COPY src dst REPLACE", ":1\r\n");
    harness_expect(h, client, "RENAME src dst", "+OK\r\n");
}

/* As in Redis, rights are not put together from two selectors. */
ACL_TEST(a_key_that_a_command_makes_must_be_of_the_selector_that_has_its_board) {
    make("~top:* +@all (~run:* +@all) (~eu:* ~run:* +@all)");
    harness_expect(h, client, "LB.ADD top:a HSET run:* 1 f v 5 zoe", NO_KEYS);
    harness_expect(h, client, "LB.RANGE top:a 0 0 DATA run:*", NO_KEYS);
    harness_expect(h, admin, "EXISTS top:a run:zoe", ":0\r\n");
    harness_expect(h, client, "LB.ADD eu:a HSET run:* 1 f v 5 zoe", ":1\r\n");
    harness_expect_prefix(h, client, "LB.RANGE eu:a 0 0 DATA run:*", "*1\r\n");
    harness_expect(h, client, "LB.CREATE run:a FIELD p 20 PERIOD DAY", "+OK\r\n");
}

ACL_TEST(a_pattern_with_more_than_a_star_at_its_end_covers_only_itself) {
    make("~top:*:eu ~[p]* +@all");
    harness_expect(h, client, "LB.WHERE zoe MATCH top:*", NO_KEYS);
    harness_expect(h, client, "LB.WHERE zoe MATCH top:*:eu", "*0\r\n");
    harness_expect(h, client, "LB.RANGE top:x:eu 0 0 DATA top:*:eu", "*0\r\n");
    harness_expect(h, client, "LB.RANGE top:x:eu 0 0 DATA [p]*", NO_KEYS);
}

ACL_TEST(a_transaction_is_checked_when_it_is_queued_and_when_it_runs) {
    make("~a +@all");
    harness_expect(h, client, "MULTI", "+OK\r\n");
    harness_expect(h, client, "ZADD b 1 x", NO_KEYS);
    harness_expect(h, client, "EXEC",
                   "-EXECABORT Transaction discarded because of previous errors.\r\n");
    harness_expect(h, client, "MULTI", "+OK\r\n");
    harness_expect(h, client, "ZADD a 1 x", "+QUEUED\r\n");
    harness_expect(h, client, "ZCARD a", "+QUEUED\r\n");
    harness_expect(h, admin, "ACL SETUSER ann -zadd", "+OK\r\n");
    harness_expect(
        h, client, "EXEC",
        "*2\r\n-NOPERM ACLs rules changed between the moment the transaction was "
        "accumulated and the EXEC call. This command is no longer allowed for the "
        "following reason: no permission to execute the command or subcommand\r\n:0\r\n");
}

ACL_TEST(who_waits_is_served_only_with_rights) {
    make("~a +@all");
    harness_expect(h, client, "BZPOPMIN a 0", "");
    harness_expect(h, admin, "ACL SETUSER ann -bzpopmin", "+OK\r\n");
    harness_expect(h, admin, "ZADD a 1 x", ":1\r\n");
    assert_memory_equal(client->output.at, NO_COMMAND("bzpopmin"), 10);
    harness_expect(h, admin, "ZCARD a", ":1\r\n");
}

ACL_TEST(a_deleted_users_clients_are_closed) {
    make("+@all");
    harness_expect(h, admin, "ACL DELUSER ann nobody", ":1\r\n");
    assert_true(client->is_killed);
    struct session *other = harness_connect(h);
    harness_expect(h, admin, "ACL SETUSER bob on nopass +@all", "+OK\r\n");
    harness_expect(h, other, "AUTH bob x", "+OK\r\n");
    harness_expect(h, other, "ACL DELUSER bob", ":1\r\n");
    assert_true(other->is_close_after_reply);
    harness_expect(h, admin, "ACL DELUSER default",
                   "-ERR The 'default' user cannot be removed\r\n");
}

ACL_TEST(subscribers_without_the_right_are_closed) {
    make("&news +@all");
    harness_expect_prefix(h, client, "SUBSCRIBE news", "*3\r\n");
    harness_expect(h, admin, "ACL SETUSER ann &other", "+OK\r\n");
    assert_false(client->is_killed);
    harness_expect(h, admin, "ACL SETUSER ann resetchannels &other", "+OK\r\n");
    assert_true(client->is_killed);
}

ACL_TEST(monitors_without_the_right_are_closed) {
    make("+@all");
    harness_expect(h, client, "MONITOR", "+OK\r\n");
    harness_expect(h, admin, "ACL SETUSER ann -zadd", "+OK\r\n");
    assert_false(client->is_killed);
    harness_expect(h, admin, "ACL SETUSER ann -@admin", "+OK\r\n");
    assert_true(client->is_killed);
}

ACL_TEST(a_password_has_a_limit) {
    OWNED char *line = malloc(ACL_PASSWORD_MAX + 64);
    assert_non_null(line);
    for (size_t over = 0; over < 2; over++) {
        size_t size = (size_t)sprintf(line, "ACL SETUSER ann on >");
        memset(line + size, 'x', ACL_PASSWORD_MAX - 1 + over);
        line[size + ACL_PASSWORD_MAX - 1 + over] = '\0';
        harness_expect_prefix(h, admin, line, over ? "-ERR Error in ACL SETUSER" : "+OK");
    }
    size_t size = (size_t)sprintf(line, "AUTH ann ");
    memset(line + size, 'x', ACL_PASSWORD_MAX + 1);
    line[size + ACL_PASSWORD_MAX + 1] = '\0';
    harness_expect_prefix(h, client, line, "-WRONGPASS");
    line[size + ACL_PASSWORD_MAX - 1] = '\0';
    harness_expect(h, client, line, "+OK\r\n");
}

ACL_TEST(the_default_users_password_is_requirepass) {
    static const char noauth[] = "-NOAUTH Authentication required.\r\n";
    harness_expect(h, admin, "CONFIG SET requirepass one", "+OK\r\n");
    struct session *late = harness_connect(h);
    harness_expect(h, late, "PING", noauth);
    harness_expect(h, client, "PING", "+PONG\r\n");
    harness_expect(h, late, "AUTH one", "+OK\r\n");
    harness_expect(h, admin, "ACL SETUSER default resetpass >two", "+OK\r\n");
    harness_expect(h, late, "RESET", "+RESET\r\n");
    harness_expect(h, late, "PING", noauth);
    harness_expect_prefix(h, late, "AUTH one", "-WRONGPASS");
    harness_expect(h, late, "AUTH default two", "+OK\r\n");
    harness_expect(h, late, "RESET", "+RESET\r\n");
    harness_expect(h, admin, "ACL SETUSER default nopass", "+OK\r\n");
    harness_expect(h, late, "PING", "+PONG\r\n");
    harness_expect(h, admin, "ACL SETUSER default off", "+OK\r\n");
    harness_expect(h, late, "PING", noauth);
    harness_expect(h, admin, "PING", "+PONG\r\n");
}

ACL_TEST(an_error_changes_nothing) {
    make("~a +zadd");
    OWNED char *before = strdup(harness_run(h, admin, "ACL LIST"));
    static const char *const lines[] = {"ACL SETUSER ann +zrem ~b &c (+get) >pw +nosuch",
                                        "ACL SETUSER ann off (~a", "ACL SETUSER ann !12",
                                        "ACL SETUSER bob on +nosuch", "ACL SETUSER \"b b\" on"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        harness_expect_prefix(h, admin, lines[i], "-ERR ");
        assert_string_equal(harness_run(h, admin, "ACL LIST"), before);
    }
}

ACL_TEST(what_is_refused_is_in_the_log_and_repetitions_are_counted) {
    make("~a +@all -flushall");
    for (int i = 0; i < 3; i++) {
        harness_expect(h, client, "ZADD b 1 x", NO_KEYS);
    }
    harness_expect(h, client, "FLUSHALL", NO_COMMAND("flushall"));
    harness_expect_prefix(h, client, "AUTH ann2 secret", "-WRONGPASS");
    const char *log = harness_run(h, admin, "ACL LOG");
    assert_memory_equal(log, "*3\r\n", 4);
    assert_non_null(strstr(log, "count\r\n:3\r\n$6\r\nreason\r\n$3\r\nkey\r\n"));
    assert_non_null(strstr(log, "object\r\n$1\r\nb\r\n$8\r\nusername\r\n$3\r\nann\r\n"));
    assert_non_null(strstr(log, "reason\r\n$4\r\nauth\r\n"));
    assert_non_null(strstr(log, "username\r\n$4\r\nann2\r\n"));
    assert_non_null(strstr(log, " user=ann redir="));
    assert_null(strstr(log, "secret"));
    harness_expect(h, admin, "CONFIG SET acllog-max-len 1", "+OK\r\n");
    harness_expect(h, client, "FLUSHALL", NO_COMMAND("flushall"));
    harness_expect_prefix(h, admin, "ACL LOG", "*1\r\n");
    harness_expect(h, admin, "ACL LOG RESET", "+OK\r\n");
    harness_expect(h, admin, "ACL LOG", "*0\r\n");
}

ACL_TEST(entries_of_the_log_have_ids_and_times_and_info_counts_them) {
    make("~a &a +@all -flushall");
    int64_t begin_ms = h->wall_us / 1000;
    harness_expect(h, client, "ZADD b 1 x", NO_KEYS);
    h->wall_us += 1000000;
    harness_expect(h, client, "ZADD b 1 x", NO_KEYS);
    harness_expect(h, client, "FLUSHALL", NO_COMMAND("flushall"));
    harness_expect_prefix(h, client, "PUBLISH c x", "-NOPERM");
    harness_expect_prefix(h, client, "AUTH ann2 secret", "-WRONGPASS");
    const char *log = harness_run(h, admin, "ACL LOG");
    assert_non_null(
        strstr(log, formatted("$8\r\nentry-id\r\n:0\r\n$17\r\ntimestamp-created\r\n:%lld\r\n"
                              "$22\r\ntimestamp-last-updated\r\n:%lld\r\n",
                              (long long)begin_ms, (long long)(begin_ms + 1000))));
    assert_non_null(strstr(log, "entry-id\r\n:3\r\n"));
    harness_expect(h, admin, "ACL LOG RESET", "+OK\r\n");
    harness_expect(h, client, "FLUSHALL", NO_COMMAND("flushall"));
    assert_non_null(strstr(harness_run(h, admin, "ACL LOG"), "entry-id\r\n:4\r\n"));
    const char *info = harness_run(h, admin, "INFO stats");
    assert_non_null(strstr(info, "\nacl_access_denied_auth:1\r\nacl_access_denied_cmd:2\r\n"
                                 "acl_access_denied_key:2\r\nacl_access_denied_channel:1\r\n"));
}

ACL_TEST(a_user_without_dangerous_commands_has_no_restore) {
    make("~* +@all -@admin -@dangerous");
    harness_expect(h, client, "RESTORE b 0 x", NO_COMMAND("restore"));
    harness_expect(h, client, "ZADD b 1 x", ":1\r\n");
}

ACL_TEST(passwords_are_shown_nowhere) {
    harness_expect(h, admin, "CONFIG SET slowlog-log-slower-than 0", "+OK\r\n");
    struct session *monitor = harness_connect(h);
    harness_expect(h, monitor, "MONITOR", "+OK\r\n");
    harness_expect(h, admin, "ACL SETUSER ann on >hunter2 +@all ~* &*", "+OK\r\n");
    harness_expect(h, client, "AUTH ann hunter2", "+OK\r\n");
    harness_expect(h, client, "AUTH ann hunter2", "+OK\r\n");
    harness_expect(h, admin, "ACL DRYRUN ann AUTH ann hunter2", "+OK\r\n");
    harness_expect(h, admin, "CONFIG SET requirepass hunter2", "+OK\r\n");
    static const char *const lines[] = {"SLOWLOG GET 100", "ACL LIST",     "ACL GETUSER ann",
                                        "CLIENT LIST",     "CONFIG GET *", "ACL LOG"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        assert_null(strstr(harness_run(h, client, lines[i]), "hunter2"));
    }
    assert_true(monitor->output.size > 0);
    assert_null(memmem(monitor->output.at, monitor->output.size, "hunter2", 7));
}

/* "$68\r\nlbt_...\r\n" */
static bool is_token(const char *reply) {
    return strncmp(reply, "$68\r\nlbt_", 9) == 0 && strspn(reply + 9, "0123456789abcdef") == 64;
}

ACL_TEST(a_token_is_made_shown_once_and_no_password) {
    harness_expect(h, admin, "CONFIG SET slowlog-log-slower-than 0", "+OK\r\n");
    struct session *monitor = harness_connect(h);
    harness_expect(h, monitor, "MONITOR", "+OK\r\n");
    char *reply = strdup(harness_run(h, admin, "ACL SETUSER ann on +@all ~* &* token>game"));
    assert_true(is_token(reply));
    char token[ACL_TOKEN_SIZE + 1] = "", digest[DIGEST_TEXT_SIZE + 1] = "";
    memcpy(token, reply + 5, ACL_TOKEN_SIZE);
    free(reply);
    digest_print(bytes_from_text(token), digest);
    assert_non_null(acl_users_find_token(&h->server.acl.users, bytes_from_text(token)));
    harness_expect(h, client, formatted("AUTH ann %s", token),
                   "-WRONGPASS invalid username-password pair or user is disabled.\r\n");
    harness_expect(h, client, formatted("AUTH %s", token),
                   "-ERR AUTH <password> called without any password configured for the default "
                   "user. Are you sure your configuration is correct?\r\n");
    static const char *const lines[] = {"SLOWLOG GET 100", "ACL LIST",     "ACL GETUSER ann",
                                        "CLIENT LIST",     "CONFIG GET *", "ACL LOG"};
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        assert_null(strstr(harness_run(h, admin, lines[i]), token));
    }
    assert_null(memmem(monitor->output.at, monitor->output.size, "lbt_", 4));
    harness_expect_part(h, admin, "ACL LIST", formatted("user ann on token#%s:game ~*", digest));
    harness_expect_part(h, admin, "ACL GETUSER ann",
                        formatted("$6\r\ntokens\r\n*1\r\n$69\r\n%s:game\r\n", digest));
    harness_expect_prefix(h, admin, "ACL GETUSER ann", "*14\r\n");
    harness_expect_prefix(h, admin, "ACL GETUSER default", "*12\r\n");
    harness_expect(h, admin, "ACL SETUSER ann off", "+OK\r\n");
    assert_null(acl_users_find_token(&h->server.acl.users, bytes_from_text(token)));
    harness_expect(h, admin, "ACL SETUSER ann on token<game", "+OK\r\n");
    assert_null(acl_users_find_token(&h->server.acl.users, bytes_from_text(token)));
    /* The operator may bring one. */
    harness_expect(h, admin, formatted("ACL SETUSER ann token#%s", digest), "+OK\r\n");
    assert_non_null(acl_users_find_token(&h->server.acl.users, bytes_from_text(token)));
    harness_expect(h, admin, formatted("ACL SETUSER bob token#%s", digest),
                   formatted("-ERR Error in ACL SETUSER modifier 'token#%s': Another user has one "
                             "of these tokens\r\n",
                             digest));
    harness_expect(h, admin, "ACL DELUSER ann", ":1\r\n");
    assert_null(acl_users_find_token(&h->server.acl.users, bytes_from_text(token)));
    harness_expect(h, admin, formatted("ACL SETUSER bob token#%s", digest), "+OK\r\n");
}

ACL_TEST(several_tokens_are_an_array_and_none_is_made_by_rules_that_are_refused) {
    char tokens[2][ACL_TOKEN_SIZE];
    const char *reply = harness_run(h, admin, "ACL SETUSER ann token>a token> ~x token>b");
    assert_memory_equal(reply, "*3\r\n", 4);
    for (size_t i = 0; i < 3; i++) {
        assert_true(is_token(reply + 4 + i * 75));
    }
    memcpy(tokens, reply + 9, ACL_TOKEN_SIZE);
    memcpy(tokens + 1, reply + 9 + 75, ACL_TOKEN_SIZE);
    assert_memory_not_equal(tokens[0], tokens[1], ACL_TOKEN_SIZE);
    char *before = strdup(harness_run(h, admin, "ACL LIST"));
    static const char *const wrong[][2] = {
        {"token>a", "'token>a': The user has a token with this label"},
        {"token>c token>c", "'token>c': The user has a token with this label"},
        {"token>c token>7", "'token>7': A token is kept as"},
        {"token>a.b", "'token>a.b': A token is kept as"},
        {"token>c (~a token>d +get)", "': Syntax error"},
        {"token>c nosuch", "'nosuch': Syntax error"},
        {"token<c", "'token<c': The token you are trying to remove"},
    };
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        harness_expect_part(h, admin, formatted("ACL SETUSER ann %s", wrong[i][0]), wrong[i][1]);
        assert_string_equal(harness_run(h, admin, "ACL LIST"), before);
    }
    free(before);
    char line[2048] = "ACL SETUSER bob";
    for (size_t i = 0; i <= ACL_TOKENS_MAX; i++) {
        strcat(line, " token>");
    }
    harness_expect_part(h, admin, line, "Too many selectors, passwords, tokens");
    line[strlen(line) - 7] = '\0';
    harness_expect_prefix(h, admin, line, "*100\r\n$68\r\n");
}

ACL_TEST(clients_show_their_user_and_can_be_closed_by_it) {
    make("+@all");
    harness_expect_part(h, admin, "CLIENT LIST", " user=ann ");
    harness_expect(h, admin, "CLIENT KILL USER nobody", "-ERR No such user 'nobody'\r\n");
    harness_expect(h, admin, "CLIENT KILL USER ann", ":1\r\n");
    assert_true(client->is_killed);
}

ACL_TEST(categories_have_the_commands_of_leaderboards) {
    const char *reply = harness_run(h, admin, "ACL CAT leaderboard");
    assert_non_null(strstr(reply, "lb.add"));
    assert_null(strstr(reply, "zadd"));
    static const char *const dangerous[] = {"lb.approve", "lb.ban",    "lb.forget", "lb.held",
                                            "lb.move",    "lb.reject", "lb.unban"};
    for (size_t i = 0; i < sizeof dangerous / sizeof dangerous[0]; i++) {
        harness_expect_part(h, admin, "ACL CAT dangerous", dangerous[i]);
    }
    assert_null(strstr(harness_run(h, admin, "ACL CAT dangerous"), "lb.add"));
    harness_expect(h, admin, "ACL CAT string", "*0\r\n");
    assert_string_equal(harness_run(h, admin, "COMMAND LIST FILTERBY ACLCAT nosuch"), "*0\r\n");
    make("-@all +@leaderboard ~*");
    harness_expect(h, client, "LB.ADD a 1 zoe", ":1\r\n");
    harness_expect(h, client, "ZADD a 1 zoe", NO_COMMAND("zadd"));
}

ACL_TEST(what_changes_all_boards_is_kept_from_those_who_may_not_do_what_is_dangerous) {
    make("~* &* +@all -@admin -@dangerous");
    harness_expect(h, client, "LB.BAN zoe", NO_COMMAND("lb.ban"));
    harness_expect(h, client, "LB.UNBAN zoe", NO_COMMAND("lb.unban"));
    harness_expect(h, client, "LB.MOVE zoe kim", NO_COMMAND("lb.move"));
    harness_expect(h, client, "LB.FORGET zoe", NO_COMMAND("lb.forget"));
    harness_expect(h, client, "LB.ADD a 5 zoe", ":1\r\n");
    harness_expect_prefix(h, client, "LB.BANS", "*");
}

ACL_TEST(a_period_needs_the_right_to_write_the_boards_archives) {
    make("~day ~week* %R~month@* ~month +@all");
    harness_expect(h, client, "LB.CREATE day PERIOD DAY", NO_KEYS);
    harness_expect(h, client, "LB.CREATE month PERIOD MONTH", NO_KEYS);
    harness_expect(h, client, "LB.CREATE day", "+OK\r\n");
    harness_expect(h, client, "LB.ALTER day PERIOD DAY", NO_KEYS);
    harness_expect(h, client, "LB.ALTER day CAP 5", "+OK\r\n");
    harness_expect(h, client, "LB.CREATE week PERIOD WEEK", "+OK\r\n");
    harness_expect(h, client, "LB.ALTER week PERIOD DAY", "+OK\r\n");
    harness_expect(h, client, "LB.ROLL week other", NO_KEYS);
    harness_expect(h, admin, "ACL SETUSER ann ~day@*", "+OK\r\n");
    harness_expect(h, client, "LB.ALTER day PERIOD DAY", "+OK\r\n");
    /* Without a PERIOD of its own, it keeps what it has. */
    harness_expect(h, admin, "ACL SETUSER ann resetkeys ~day", "+OK\r\n");
    harness_expect(h, client, "LB.ALTER day CAP 6", "+OK\r\n");
    harness_expect(h, client, "LB.ALTER day PERIOD NONE", "+OK\r\n");
}

ACL_TEST(a_boards_channels_need_the_right_to_read_the_board) {
    static const char *const channels[] = {"__toplist@0__:3:other", "__board@0__:other",
                                           "__overtaken@0__:5:other:zoe"};
    make("%R~top:* %W~other (+@all &x) &* +@all");
    harness_expect(h, client, "SUBSCRIBE __toplist@0__:3:top:a",
                   "*3\r\n$9\r\nsubscribe\r\n$21\r\n__toplist@0__:3:top:a\r\n:1\r\n");
    for (size_t i = 0; i < sizeof channels / sizeof channels[0]; i++) {
        harness_expect(h, client, formatted("SUBSCRIBE news %s", channels[i]), NO_KEYS);
        harness_expect_prefix(h, admin, formatted("ACL DRYRUN ann SUBSCRIBE %s", channels[i]), "$");
    }
    harness_expect(h, admin, "ACL SETUSER ann resetkeys %R~other", "+OK\r\n");
    assert_true(client->is_killed);
}

ACL_TEST(memory_that_runs_out_leaves_users_as_they_were) {
    make("~a +zadd (+zrem ~b)");
    harness_expect_prefix(h, admin, "ACL SETUSER ann token>old", "$68\r\n");
    OWNED char *before = strdup(harness_run(h, admin, "ACL LIST"));
    bool is_made = false;
    for (uint64_t nth = 1; !is_made && nth < 200; nth++) {
        static const char line[] = "ACL SETUSER ann >pw token>new ~c &d +get (~q +zadd)";
        const char *reply = harness_run_failing(h, admin, line, nth);
        is_made = is_token(reply);
        assert_true(is_made || strstr(reply, "OOM") != NULL || reply[0] == '\0');
        if (!is_made) {
            assert_string_equal(harness_run(h, admin, "ACL LIST"), before);
        }
    }
    assert_true(is_made);
}
