/* Every command has a shape, and a reply was seen for each alternative that it names. That no reply has another shape
 * is checked by the harness, in all tests. */
#include <unistd.h>

#include "server/replication/replication.h"
#include "tests/support/loop_server.h"
#include "tests/support/settings_file.h"
#include "tests/support/shape_check.h"

static const char *const requests[] = {
    /* boards */
    "LB.CREATE board FIELD score 20 FIELD level 10 ASC TIME 30 S TAG country 8 CAP 100",
    "LB.ALTER board CAP 50",
    "LB.ADD board TAG country DE 10 1 ann 20 2 bob",
    "LB.ADD board WITHRANK WITHREPEAT ONCE a 30 3 cid",
    "LB.ADD board WITHRANK 40 3 cid",
    "HSET h:ann name Ann city Rome",
    "LB.GET board 2 ann nobody PCT WITHKEY TAGS DATA h:* SINCE board",
    "LB.GET board 2 ann bob DATA h:* FIELDS 2 name age",
    "LB.RANGE board 0 -1",
    "LB.AROUND board MEMBER ann 3",
    "LB.ABOVE board 100",
    "LB.CUTS board 2",
    "LB.CREATE ladder RATING ELO",
    "LB.ALTER ladder RATING ELO KEEP-MATCHES 9",
    "LB.MATCH ladder ONCE m TEAM 1 ann TEAM 1 bob",
    "LB.CREATE held HOLD ALL OVER 5",
    "LB.ADD held WITHHELD 9 ann",
    "LB.HELD held",
    "LB.GET held 2 ann nobody PCT WITHHELD",
    "LB.APPROVE held ann",
    "LB.REJECT held bob 9",
    "LB.UNMATCH ladder m",
    "LB.MATCH ladder TEAM 1 cheater TEAM 1 bob",
    "LB.BAN cheater",
    "LB.REFUND ladder cheater SINCE 0",
    "LB.PREDICT ladder TEAM 1 ann TEAM 1 bob",
    "LB.RATE ladder ann 1600",
    "LB.RATING ladder ann nobody",
    "LB.GET ladder 1 ann RATING",
    "LB.COUNT board",
    "LB.COUNT board BY country",
    "LB.QUANTILE board 0.5",
    "LB.HIST board 15",
    "LB.INFO board",
    "LB.LIST",
    "LB.SUBMIT 1 board WITHREPEAT ONCE b 50 1 dan",
    "LB.TAG board ann country FR",
    "LB.TAGS board ann nobody",
    "LB.WHERE ann",
    "LB.ROLL board old",
    "LB.SETTLE old",
    "LB.BAN ann EX 100",
    "LB.BANS",
    "LB.UNBAN ann",
    "LB.REVOKED ann",
    "LB.REVOKE ann",
    "LB.REVOKED ann",
    "LB.ALTER board TICKETS YES",
    "LB.TICKET board ann",
    "LB.ALTER board TICKETS NO",
    "LB.FORGET bob",
    "LB.MOVE cid dan",
    "LB.LEAGUE CREATE league FIELD score 20 TIME 40 MS PERIOD DAY ROOM 10 TIERS 3 UP 1 DOWN 1",
    "LB.LEAGUE ADD league 10 ann",
    "LB.LEAGUE ADD league WITHREPEAT ONCE c 10 bob",
    "LB.LEAGUE GET league ann",
    "LB.LEAGUE INFO league",
    "LB.LEAGUE SET league 2 ann",
    "LB.LEAGUE REMOVE league ann",
    "LB.LEAGUE HELP",
    /* sorted sets */
    "ZADD z 1 a 2 b 3 c 4 d 5 e",
    "ZADD z INCR 1 a",
    "ZADD z NX INCR 1 a",
    "ZINCRBY z 2 a",
    "ZADD z2 1 a",
    "ZCARD z",
    "ZCOUNT z 0 5",
    "ZDIFF 2 z z2",
    "ZDIFF 2 z z2 WITHSCORES",
    "ZDIFFSTORE d 2 z z2",
    "ZINTER 2 z z2",
    "ZINTER 2 z z2 WITHSCORES",
    "ZINTERCARD 2 z z2",
    "ZINTERSTORE d 2 z z2",
    "ZUNION 2 z z2",
    "ZUNION 2 z z2 WITHSCORES",
    "ZUNIONSTORE d 2 z z2",
    "ZLEXCOUNT z - +",
    "ZRANGEBYLEX z - +",
    "ZREVRANGEBYLEX z + -",
    "ZREMRANGEBYLEX z - +",
    "ZMSCORE z a nobody",
    "ZSCORE z a",
    "ZSCORE z nobody",
    "ZRANK z a",
    "ZRANK z a WITHSCORE",
    "ZREVRANK z nobody WITHSCORE",
    "ZREVRANK z a WITHSCORE",
    "ZREVRANK z a",
    "ZRANDMEMBER z",
    "ZRANDMEMBER z 2",
    "ZRANDMEMBER z 2 WITHSCORES",
    "ZRANGE z 0 -1",
    "ZRANGE z 0 -1 WITHSCORES",
    "ZREVRANGE z 0 -1",
    "ZREVRANGE z 0 -1 WITHSCORES",
    "ZRANGEBYSCORE z 0 5",
    "ZRANGEBYSCORE z 0 5 WITHSCORES",
    "ZREVRANGEBYSCORE z 5 0",
    "ZREVRANGEBYSCORE z 5 0 WITHSCORES",
    "ZRANGESTORE d z 0 -1",
    "ZSCAN z 0",
    "ZMOVE d z3 MIN",
    "ZMOVE nowhere z3 MIN",
    "BZMOVE d z3 MAX 1",
    "ZMOVEMEMBER d z3 MEMBERS 1 c",
    "ZPOPMIN z3",
    "ZPOPMIN d 1",
    "ZPOPMAX z3",
    "ZPOPMAX d 1",
    "ZADD z3 1 a 2 b 3 c 4 d 5 e 6 f",
    "ZPOPMIN z3 1",
    "ZPOPMAX z3 1",
    "BZPOPMIN z3 1",
    "BZPOPMAX z3 1",
    "ZMPOP 1 z3 MIN",
    "BZMPOP 1 1 z3 MIN",
    "ZREM z a",
    "ZREMRANGEBYRANK z 0 0",
    "ZREMRANGEBYSCORE z 3 3",
    /* hashes */
    "HSET h f v g w",
    "HMSET h f v",
    "HSETNX h k 1",
    "HINCRBY h k 1",
    "HINCRBYFLOAT h k 1.5",
    "HGET h f",
    "HGETALL h",
    "HMGET h f nothing",
    "HEXISTS h f",
    "HKEYS h",
    "HVALS h",
    "HLEN h",
    "HSTRLEN h f",
    "HSCAN h 0",
    "HRANDFIELD h",
    "HRANDFIELD h 2",
    "HRANDFIELD h 2 WITHVALUES",
    "HDEL h f",
    /* keys */
    "COPY h h2",
    "DUMP h",
    "EXISTS h",
    "EXPIRE h 100",
    "PEXPIRE h 100000",
    "EXPIREAT h 1900000000",
    "PEXPIREAT h 1900000000000",
    "EXPIRETIME h",
    "PEXPIRETIME h",
    "TTL h",
    "PTTL h",
    "PERSIST h",
    "KEYS *",
    "RANDOMKEY",
    "SCAN 0",
    "TYPE h",
    "TOUCH h",
    "OBJECT ENCODING h",
    "OBJECT REFCOUNT h",
    "OBJECT FREQ h",
    "OBJECT IDLETIME h",
    "OBJECT FREQ nothing",
    "OBJECT HELP",
    "RENAME h2 h3",
    "RENAMENX h3 h4",
    "DEL h4",
    "UNLINK h",
    "WAIT 0 0",
    /* transactions */
    "WATCH z",
    "UNWATCH",
    "MULTI",
    "ZCARD z",
    "EXEC",
    "MULTI",
    "DISCARD",
    /* channels */
    "PUBLISH c m",
    "SPUBLISH c m",
    "PUBSUB CHANNELS",
    "PUBSUB SHARDCHANNELS",
    "PUBSUB NUMSUB c",
    "PUBSUB SHARDNUMSUB c",
    "PUBSUB NUMPAT",
    "PUBSUB HELP",
    /* connections */
    "AUTH default nothing",
    "ECHO text",
    "PING",
    "PING text",
    "SELECT 0",
    "READONLY",
    "READWRITE",
    "CLIENT INFO",
    "CLIENT LIST",
    "CLIENT ID",
    "CLIENT GETNAME",
    "CLIENT SETNAME n",
    "CLIENT SETINFO LIB-NAME l",
    "CLIENT KILL ID 999",
    "CLIENT KILL 127.0.0.1:50002",
    "CLIENT REPLY ON",
    "CLIENT PAUSE 0",
    "CLIENT UNPAUSE",
    "CLIENT UNBLOCK 999",
    "CLIENT NO-EVICT ON",
    "CLIENT NO-TOUCH ON",
    "CLIENT TRACKING ON OPTIN",
    "CLIENT CACHING YES",
    "CLIENT GETREDIR",
    "CLIENT TRACKINGINFO",
    "CLIENT TRACKING OFF",
    "CLIENT NUMBERS NATIVE",
    "CLIENT HELP",
    /* the server */
    "ACL SETUSER ann on >secret ~*",
    "ACL SETUSER ann token>game",
    "ACL SETUSER ann token>a token>b",
    "ACL GETUSER ann",
    "ACL GETUSER nobody",
    "ACL LIST",
    "ACL USERS",
    "ACL WHOAMI",
    "ACL CAT",
    "ACL DRYRUN default ping",
    "ACL DRYRUN ann ping",
    "ACL GENPASS",
    "AUTH ann wrong",
    "ACL LOG",
    "ACL LOG RESET",
    "ACL DELUSER ann",
    "ACL HELP",
    "COMMAND",
    "COMMAND COUNT",
    "COMMAND DOCS",
    "COMMAND GETKEYS zcard z",
    "COMMAND INFO zadd nothing",
    "COMMAND LIST",
    "COMMAND HELP",
    "CONFIG GET *",
    "CONFIG SET maxmemory 0",
    "CONFIG RESETSTAT",
    "CONFIG HELP",
    "DBSIZE",
    "INFO",
    "TIME",
    "LASTSAVE",
    "LATENCY LATEST",
    "LATENCY HISTORY e",
    "LATENCY RESET",
    "LATENCY HISTOGRAM",
    "LATENCY HELP",
    "SLOWLOG GET",
    "SLOWLOG LEN",
    "SLOWLOG RESET",
    "SLOWLOG HELP",
    "MEMORY USAGE z",
    "MEMORY STATS",
    "MEMORY HELP",
    "MODULE LIST",
    "MODULE HELP",
    "ROLE",
    "FLUSHDB",
    "FLUSHALL",
    "SUBSCRIBE c",
    "PSUBSCRIBE c*",
    "SSUBSCRIBE s",
    "PING",
    "UNSUBSCRIBE",
    "PUNSUBSCRIBE",
    "SUNSUBSCRIBE",
    "MONITOR",
    "RESET",
    "QUIT",
};

static void run_all(const char *first) {
    struct harness *h = harness_create("slowlog-log-slower-than 0\n");
    struct session *s = harness_connect(h);
    (void)harness_connect(h);
    harness_run(h, s, first);
    for (size_t i = 0; i < COUNT_OF(requests); i++) {
        harness_run(h, s, requests[i]);
    }
    struct session *replica = harness_connect(h);
    harness_run(h, replica, "REPLCONF listening-port 7001");
    replication_add_replica(&h->server, replica->replica, REPLICA_ONLINE);
    harness_run(h, s, "FAILOVER TIMEOUT 1000");
    harness_destroy(h);
}

/* What writes files, and what is sent as bytes. */
static void run_files(void) {
    char directory[DIRECTORY_PATH_MAX], path[DIRECTORY_PATH_MAX + 32], error[SETTING_ERROR_MAX];
    directory_make(directory);
    snprintf(path, sizeof path, "aclfile %s\n", directory_join(directory, "users.acl"));
    file_write(directory_join(directory, "users.acl"), "", 0);
    struct harness *h = harness_create(path);
    struct session *s = harness_connect(h);
    harness_run(h, s, "ACL SAVE");
    harness_run(h, s, "ACL LOAD");
    harness_run(h, s, "HSET h f v");
    harness_run(h, s, "DUMP h");
    char dump[256];
    size_t size = h->reply.size - 2; /* without the line's end, */
    assert_true(size < sizeof dump);
    memcpy(dump, h->reply.at, size);
    size_t head = strcspn(dump, "\n") + 1; /* and the bulk's size */
    const struct bytes restore[] = {
        BYTES("RESTORE"), BYTES("h2"), BYTES("0"), {dump + head, size - head}};
    harness_run_args(h, s, restore, COUNT_OF(restore));
    snprintf(path, sizeof path, "%s", directory_join(directory, "leaderboard.conf"));
    file_write(path, "port 7\n", 7);
    settings_deinit(&h->server.settings);
    assert_true(settings_init(&h->server.settings) &&
                settings_load_file(&h->server.settings, path, error) &&
                settings_finish(&h->server.settings, error));
    harness_run(h, s, "CONFIG REWRITE");
    harness_destroy(h);
    directory_remove(directory);
}

/* What needs a disk, a loop or other servers; each is sent by a client of its own. */
static const char *const others[] = {
    "SHUTDOWN ABORT",
    "BGSAVE",
    "BGREWRITEAOF",
    "SAVE",
    "LB.SNAPSHOT",
    "LB.SYNC ? 0",
    "PSYNC ? -1",
    "SYNC",
    "REPLCONF listening-port 7001",
    "REPLICAOF 127.0.0.1 1",
    "SLAVEOF 127.0.0.1 1",
    "ROLE",
};

/* The bytes of the first value among these; 0: it has not come yet. */
static size_t size_of_first(struct bytes got) {
    const char *end = got.size > 0 ? memchr(got.at, '\n', got.size) : NULL;
    size_t size = end != NULL ? (size_t)(end - got.at) + 1 : 0;
    if (size > 0 && got.at[0] == '$') {
        size += strtoul(got.at + 1, NULL, 10) + 2;
    }
    bool is_array = size > 0 && got.at[0] == '*'; /* a small one comes at once */
    return is_array ? got.size : size <= got.size ? size : 0;
}

/* false: with an error. */
static bool ask(struct loop_server *f, const char *line) {
    static char got[LOOP_REPLY_MAX];
    struct bytes words[8];
    struct request request = {.args = words};
    struct bytes rest = bytes_from_text(line);
    struct loop_wait wait = {0};
    struct bytes reply = {.at = got};
    size_t size = 0;
    while (rest.size > 0) {
        words[request.count++] = bytes_take_word(&rest);
    }
    int client = loop_connect(f);
    loop_send(client, line);
    loop_send(client, "\r\n");
    while (reply.size == 0 && loop_turn_and_wait(f, &wait)) {
        ssize_t part = read(client, got + size, sizeof got - size);
        size += part > 0 ? (size_t)part : 0;
        bool is_rdb = size > 5 && memcmp(got, "$EOF:", 5) == 0; /* its end is said there */
        reply.size = is_rdb ? 0 : size_of_first((struct bytes){got, size});
        reply = is_rdb ? BYTES("$3\r\nEOF\r\n") : reply;
    }
    assert_true(reply.size > 0);
    assert_true(shape_check(reply, command_find_request(&request), 2, &request));
    loop_close(f, client);
    return reply.at[0] != '-';
}

static void run_others(void) {
    ENDED_BY(loop_end) struct loop_server f;
    loop_begin_kept(&f, "shutdown-drain-timeout 3600\n");
    loop_replicate(&f);
    (void)loop_connect(&f); /* it is not over while anybody is there */
    struct loop_wait wait = {0};
    int waiting = loop_connect(&f);
    loop_send(waiting, "SHUTDOWN NOSAVE\r\n");
    loop_turn_some(&f);
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        while (!ask(&f, others[i]) && loop_turn_and_wait(&f, &wait)) {} /* one saves already */
    }
}

TEST(every_alternative_of_every_reply_is_seen) {
    unsigned missing = 0;
    run_all("HELLO 2");
    run_all("HELLO 3");
    run_files();
    run_others();
    for (uint32_t i = 0; i < command_count(); i++) {
        const struct command *command = command_by_index(i);
        unsigned nth = 0;
        for (const char *at = command->reply; at != NULL; nth++) {
            struct shape shape = shape_read(at);
            if (!shape_check_has_seen(i, nth)) {
                print_error("%s has never replied %.*s\n", command_full_name(i),
                            (int)(shape.end - at), at);
                missing++;
            }
            at = *shape.end == '|' ? shape.end + 1 : NULL;
        }
    }
    for (unsigned i = 0; shape_name(i) != NULL; i++) {
        struct shape_member member;
        struct shape shape = shape_read(shape_find(bytes_from_text(shape_name(i))));
        for (const char *at = shape.inner; shape_next(&at, &member);) {
            bool has_more = *member.type.end == '|';
            for (const char *part = member.at; has_more;) {
                struct shape each = shape_read(part);
                if (!shape_check_has_seen_part(part)) {
                    print_error("%s has never been seen with %s\n", shape_name(i), part);
                    missing++;
                }
                has_more = *each.end == '|';
                part = each.end + 1;
            }
        }
    }
    assert_int_equal(missing, 0);
}

TEST(a_reply_of_another_shape_does_not_fit) {
    static const struct {
        const char *shape, *words;
        unsigned version;
        const char *fits, *differs;
    } samples[] = {
        {"i", "", 2, ":5\r\n", "$1\r\n5\r\n"},
        {"i?", "", 2, "$-1\r\n", "+5\r\n"},
        {"i", "", 3, ":5\r\n", "_\r\n"},
        {"b", "", 3, "#t\r\n", ":2\r\n"},
        {"n", "", 2, "$3\r\n1.5\r\n", "$1\r\nx\r\n"},
        {"n", "", 3, ",1.5\r\n", ":1\r\n"},
        {"<OK>", "", 2, "+OK\r\n", "+QUEUED\r\n"},
        {"<asc|desc>", "", 2, "$4\r\ndesc\r\n", "$2\r\nde\r\n"},
        {"[i]", "", 2, "*2\r\n:1\r\n:2\r\n", "*2\r\n:1\r\n+2\r\n"},
        {"[i]", "", 3, "~1\r\n:1\r\n", "%1\r\n:1\r\n:2\r\n"},
        {"[a:i b:s]", "", 2, "*2\r\n:1\r\n+b\r\n", "*3\r\n:1\r\n+b\r\n:1\r\n"},
        {"[a:i b:s]", "", 2, "*2\r\n:1\r\n+b\r\n", "*1\r\n:1\r\n"},
        {"[a:s b:n ...]", "", 2, "*4\r\n+a\r\n$1\r\n1\r\n+b\r\n$1\r\n2\r\n",
         "*3\r\n+a\r\n$1\r\n1\r\n+b\r\n"},
        {"[[a:s b:i]...]", "", 2, "*2\r\n+a\r\n:1\r\n", "*1\r\n*2\r\n+a\r\n:1\r\n"},
        {"[[a:s b:i]...]", "", 3, "*1\r\n*2\r\n+a\r\n:1\r\n", "*2\r\n+a\r\n:1\r\n"},
        {"[a:s b:i... c:s]", "", 2, "*4\r\n+a\r\n:1\r\n:2\r\n+c\r\n", "*2\r\n+a\r\n:1\r\n"},
        {"[a:i PCT=b:s]", "x pct", 2, "*2\r\n:1\r\n+b\r\n", "*2\r\n:1\r\n:2\r\n"},
        {"[a:i PCT=b:s]", "x", 2, "*1\r\n:1\r\n", "*2\r\n:1\r\n+b\r\n"},
        {"(a:i b?:s)", "", 2, "*2\r\n+a\r\n:1\r\n", "*2\r\n+b\r\n+c\r\n"},
        {"(a:i b?:s)", "", 3, "%1\r\n+a\r\n:1\r\n", "*2\r\n+a\r\n:1\r\n"},
        {"(a:i)", "", 3, "%1\r\n+a\r\n:1\r\n", "%2\r\n+a\r\n:1\r\n+c\r\n:1\r\n"},
        {"{i}", "", 3, "%1\r\n+x\r\n:1\r\n", "%1\r\n+x\r\n+y\r\n"},
        {"i|BY=[s]", "x by", 2, "*1\r\n+a\r\n", "*1\r\n:1\r\n"},
        {"i|BY=[s]", "x", 2, ":1\r\n", "*1\r\n+a\r\n"},
        {"[@Cut]", "", 2, "*1\r\n*2\r\n:1\r\n$1\r\n7\r\n", "*1\r\n*2\r\n:1\r\n:7\r\n"},
    };
    for (size_t i = 0; i < COUNT_OF(samples); i++) {
        struct bytes words[8];
        struct request request = {.args = words};
        for (struct bytes rest = bytes_from_text(samples[i].words); rest.size > 0;) {
            words[request.count++] = bytes_take_word(&rest);
        }
        bool fits = shape_fits(bytes_from_text(samples[i].fits), samples[i].shape,
                               samples[i].version, &request);
        bool differs = !shape_fits(bytes_from_text(samples[i].differs), samples[i].shape,
                                   samples[i].version, &request);
        if (!fits || !differs) {
            fail_msg("sample %zu, %s: %d %d", i, samples[i].shape, fits, differs);
        }
    }
}
