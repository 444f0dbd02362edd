/* Users and their rights, beside Redis: the same rules on both servers, random ones among them, give
 * the same users, and every request is allowed or refused by both. */
#include "tests/support/test.h"

#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/process.h"
#include "tests/support/random.h"
#include "tests/support/wire.h"

enum {
    OURS,
    THEIRS,
    SIDES,
    STEPS_LONG = 100000,
    STEPS_SHORT = 2500, /* LEADERBOARD_TEST_SHORT: make test */
    USERS = 4,
    WORDS_MAX = 24,
    WORD_MAX = 160,
};

static struct process servers[SIDES];

FIXTURE(start_servers) {
    /* Wrong passwords are among the requests. */
    static const char *const no_delay[] = {"--auth-delay", "0", NULL};
    return process_start(&servers[OURS], &(struct process_options){.arguments = no_delay}) &&
                   process_start(&servers[THEIRS],
                                 &(struct process_options){.program = process_redis_program()})
               ? 0
               : -1;
}

FIXTURE(stop_servers) {
    int status = process_stop(&servers[OURS]);
    return process_stop(&servers[THEIRS]) | status;
}

/* ---- requests ---- */

struct words {
    char words[WORDS_MAX][WORD_MAX];
    size_t count;
};

__attribute__((format(printf, 2, 3))) static void add(struct words *words, const char *format,
                                                      ...) {
    va_list args;
    assert_true(words->count < WORDS_MAX);
    va_start(args, format);
    int size = vsnprintf(words->words[words->count++], WORD_MAX, format, args);
    va_end(args);
    assert_true(size >= 0 && size < WORD_MAX);
}

static void show(const struct words *words) {
    for (size_t i = 0; i < words->count; i++) {
        print_message("'%s' ", words->words[i]);
    }
    print_message("\n");
}

static void send_words(struct wire *wire, const struct words *words) {
    TEXT(request);
    const char *at[WORDS_MAX];
    size_t sizes[WORDS_MAX];
    for (size_t i = 0; i < words->count; i++) {
        at[i] = words->words[i];
        sizes[i] = strlen(words->words[i]);
    }
    text_command_words(&request, at, sizes, words->count);
    wire_send(wire, request.at, request.size);
}

/* The same to both; the replies are in replies. */
static void ask_both(struct wire wires[SIDES], const struct words *words,
                     const char *replies[SIDES]) {
    send_words(&wires[OURS], words);
    send_words(&wires[THEIRS], words);
    replies[OURS] = wire_reply(&wires[OURS]);
    replies[THEIRS] = wire_reply(&wires[THEIRS]);
}

static void assert_alike(struct wire wires[SIDES], const struct words *words) {
    const char *replies[SIDES];
    ask_both(wires, words, replies);
    if (strcmp(replies[OURS], replies[THEIRS]) != 0) {
        show(words);
        fail_msg("ours: %s\ntheirs: %s", replies[OURS], replies[THEIRS]);
    }
}

/* ---- random rules ---- */

static const char *const command_names[] = {
    "zadd",
    "zscore",
    "zrange",
    "zrem",
    "zunionstore",
    "zunion",
    "hset",
    "hget",
    "del",
    "exists",
    "rename",
    "copy",
    "publish",
    "subscribe",
    "psubscribe",
    "select",
    "ping",
    "keys",
    "flushall",
    "config",
    "config|get",
    "config|set",
    "client",
    "client|kill",
    "client|id",
    "acl",
    "acl|whoami",
    "acl|setuser",
    "multi",
    "exec",
    "auth",
    "bzpopmin",
    "zmpop",
    "object|encoding",
    "memory|usage",
    "watch",
    "info",
    "dbsize",
    "zrangestore",
    "zpopmin",
    "hdel",
    "expire",
    "scan",
    "echo",
    "echo|x",
    "command|getkeys",
    "slowlog|get",
    "ZADD",
    "Config|Get",
    /* not here */
    "get",
    "set",
    "sadd",
    "xinfo|stream",
    "cluster|info",
    "client|tracking",
    "eval",
    "debug",
    /* nowhere */
    "nosuch",
    "config|nosuch",
    "zadd|",
    "config|get|x",
    "",
    "zadd x",
};
static const char *const categories[] = {
    "all",  "read",      "write",    "keyspace",  "sortedset",  "hash",        "pubsub", "admin",
    "fast", "slow",      "blocking", "dangerous", "connection", "transaction", "string", "set",
    "list", "scripting", "geo",      "nosuch",    "Read",       "ALL",
};
static const char *const names[] = {"a", "ab", "abc", "b", "b:1", "b:2", "c", "", "x*", "*"};
static const char *const patterns[] = {"a",    "a*", "ab*", "b:*", "*",  "[ab]", "b:?", "*c",
                                       "a\\*", "ab", "abc", "",    "b*", "?",    "*b*", "[^a]*"};

#define PICK(random, list) ((list)[random_below((random), sizeof(list) / sizeof(list)[0])])

static void print_selector_rule(struct random *random, char *out) {
    switch (random_below(random, 12)) {
    case 0:
    case 1:
    case 2:
        snprintf(out, WORD_MAX, "%c%s", random_below(random, 2) ? '+' : '-',
                 PICK(random, command_names));
        return;
    case 3:
    case 4:
    case 5:
        snprintf(out, WORD_MAX, "%c@%s", random_below(random, 2) ? '+' : '-',
                 PICK(random, categories));
        return;
    case 6:
        snprintf(out, WORD_MAX, "~%s", PICK(random, patterns));
        return;
    case 7: {
        static const char *const rights[] = {"R", "W", "RW", "r", "wr", "", "RR", "X"};
        snprintf(out, WORD_MAX, "%%%s~%s", PICK(random, rights), PICK(random, patterns));
        return;
    }
    case 8:
        snprintf(out, WORD_MAX, "&%s", PICK(random, patterns));
        return;
    case 9:
        snprintf(out, WORD_MAX, "+%s|%s", random_below(random, 2) ? "select" : "zscore",
                 PICK(random, names));
        return;
    default: {
        static const char *const others[] = {
            "allkeys",     "resetkeys",  "allchannels", "resetchannels",
            "allcommands", "nocommands", "AllKeys",     "+@all",
            "~*",          "&*",         "resetkeys",   "resetchannels",
            "%R",          "%",          "~a b",        "?"};
        snprintf(out, WORD_MAX, "%s", PICK(random, others));
    }
    }
}

static void add_rule(struct random *random, struct words *words) {
    char rule[WORD_MAX];
    char hash[65];
    uint64_t kind = random_below(random, 16);
    if (kind < 10) {
        print_selector_rule(random, rule);
        add(words, "%s", rule);
    } else if (kind < 12) {
        char all[WORD_MAX] = "(";
        uint64_t count = random_below(random, 4);
        for (uint64_t i = 0; i < count; i++) {
            print_selector_rule(random, rule);
            if (strlen(all) + strlen(rule) + 3 < WORD_MAX) {
                strcat(strcat(all, i > 0 ? " " : ""), rule);
            }
        }
        bool is_closed = random_below(random, 30) > 0;
        add(words, "%s%s", all, is_closed ? ")" : "");
    } else if (kind == 12) {
        memset(hash, 'a' + (int)random_below(random, 3), 64);
        hash[64] = '\0';
        hash[5] = random_below(random, 10) == 0 ? 'X' : 'e';
        add(words, "%c%s", random_below(random, 3) ? '#' : '!', hash);
    } else if (kind == 13) {
        add(words, "%c%s", random_below(random, 5) ? '>' : '<', PICK(random, names));
    } else {
        static const char *const rules[] = {"on",
                                            "on",
                                            "off",
                                            "nopass",
                                            "resetpass",
                                            "reset",
                                            "clearselectors",
                                            "sanitize-payload",
                                            "skip-sanitize-payload",
                                            "On",
                                            "clearSelectors",
                                            ""};
        add(words, "%s", PICK(random, rules));
    }
}

/* ---- random requests ---- */

/* k: a key, c: a channel, p: a pattern, m: any word, n: 1 */
static const char *const requests[] = {
    "ZADD k 1 m",
    "ZSCORE k m",
    "ZRANGE k 0 -1",
    "ZREM k m",
    "ZUNIONSTORE k 2 k k",
    "ZUNION 2 k k",
    "ZUNION 9 k k",
    "ZUNION x k",
    "ZUNIONSTORE k x k",
    "HSET k f v",
    "HGET k f",
    "HLEN k",
    "DEL k k",
    "EXISTS k k k",
    "RENAME k k",
    "RENAMENX k k",
    "COPY k k",
    "PUBLISH c m",
    "SPUBLISH c m",
    "SUBSCRIBE c c",
    "PSUBSCRIBE p p",
    "SSUBSCRIBE c",
    "UNSUBSCRIBE c",
    "SELECT n",
    "SELECT m",
    "PING",
    "KEYS *",
    "FLUSHALL",
    "CONFIG GET port",
    "CONFIG SET m m",
    "CLIENT KILL m",
    "CLIENT ID",
    "ACL WHOAMI",
    "ACL SETUSER m",
    "MULTI",
    "EXEC",
    "AUTH m",
    "HELLO 3",
    "RESET",
    "QUIT",
    "BZPOPMIN k k 1",
    "BZMPOP 1 2 k k MIN",
    "ZMPOP 2 k k MAX",
    "OBJECT ENCODING k",
    "OBJECT FREQ k",
    "MEMORY USAGE k",
    "WATCH k k",
    "INFO",
    "DBSIZE",
    "ZRANGESTORE k k 0 -1",
    "ZPOPMIN k",
    "HDEL k f",
    "EXPIRE k 1",
    "TTL k",
    "TYPE k",
    "TOUCH k k",
    "SCAN 0",
    "ZINTERCARD 2 k k",
    "ZDIFFSTORE k 1 k",
    "HINCRBY k f 1",
    "HSETNX k f v",
    "ZINCRBY k 1 m",
    "PERSIST k",
    "UNLINK k k",
    "ECHO m",
    "ECHO x",
    "CONFIG",
    "CONFIG NOSUCH",
    "NOSUCH k",
    "ZADD k",
    "ZCARD k",
    "SLOWLOG GET",
    "COMMAND COUNT",
    "COMMAND GETKEYS ZADD k 1 m",
    "LATENCY RESET",
    "PUBSUB CHANNELS",
    "SAVE",
    "LASTSAVE",
    "ZREMRANGEBYRANK k 0 1",
    "HKEYS k",
    "HEXISTS k f",
    "HSTRLEN k f",
    "ZMSCORE k m",
};

static void add_request(struct random *random, struct words *words, const char *form) {
    while (*form != '\0') {
        size_t size = strcspn(form, " ");
        char letter = size == 1 ? *form : '\0';
        if (letter == 'k') {
            /* Keys have at least a byte here, and no pattern of Redis takes an empty one. */
            const char *name = PICK(random, names);
            add(words, "%s", *name != '\0' ? name : "e");
        } else if (letter == 'c' || letter == 'm') {
            add(words, "%s", PICK(random, names));
        } else if (letter == 'p') {
            add(words, "%s", PICK(random, patterns));
        } else if (letter == 'n') {
            add(words, "%d", (int)random_below(random, 3));
        } else {
            add(words, "%.*s", (int)size, form);
        }
        form += size + (form[size] == ' ');
    }
}

/* ---- users as text ---- */

/* Without the rules about commands: Redis writes them anew from its own table of commands, in an order
 * of its own. */
static void drop_commands(const char *text, char *out) {
    for (const char *at = text; *at != '\0';) {
        size_t size = strcspn(at, " ");
        bool is_opened = *at == '(' || *at == '[';
        if (at[is_opened] == '+' || at[is_opened] == '-') {
            size_t end = size;
            while (end > 0 && strchr(")]", at[end - 1]) != NULL) {
                end--;
            }
            out += sprintf(out, "%.*s", (int)is_opened, at);
            memcpy(out, at + end, size - end);
            out += size - end;
        } else {
            memcpy(out, at, size);
            out += size;
        }
        at += size;
        if (*at == ' ') {
            *out++ = *at++;
        }
    }
    *out = '\0';
}

static void squeeze(char *text) {
    char *to = text;
    for (const char *at = text; *at != '\0'; at++) {
        bool is_spare =
            *at == ' ' && (at[1] == ' ' || at[1] == ')' || at[1] == ']' || at[1] == '\0');
        if (!is_spare) {
            *to++ = *at;
        }
    }
    *to = '\0';
}

/* %RW~* is what Redis writes as ~*; see copy_user. */
static void shorten_stars(char *text) {
    for (char *at = strstr(text, "%RW~*"); at != NULL; at = strstr(at, "%RW~*")) {
        memmove(at, at + 3, strlen(at + 3) + 1);
    }
}

static void compare_users(struct wire wires[SIDES], const struct words *words) {
    static char texts[SIDES][1 << 20];
    const char *replies[SIDES];
    ask_both(wires, words, replies);
    for (int side = 0; side < SIDES; side++) {
        assert_true(strlen(replies[side]) * 2 < sizeof texts[side]);
        drop_commands(replies[side], texts[side]);
        squeeze(texts[side]);
        shorten_stars(texts[side]);
    }
    if (strcmp(texts[OURS], texts[THEIRS]) != 0) {
        show(words);
        fail_msg("ours: %s\ntheirs: %s", replies[OURS], replies[THEIRS]);
    }
}

/* What a server says of a user makes the same user on the other server: `copy` there. */
static bool copy_user(struct wire *from, struct wire *to, const char *name, bool is_ours) {
    char head[64];
    struct text request = {0};
    const char *words[4096];
    size_t sizes[4096];
    size_t count = 3;
    char *list = strdup(wire_ask(from, "ACL LIST"));
    snprintf(head, sizeof head, "user %s ", name);
    char *at = strstr(list, head);
    assert_non_null(at);
    char *end = strstr(at + 1, " user ");
    if (end == NULL) {
        end = at + strlen(at) - 1; /* the bracket */
    }
    *end = '\0';
    words[0] = "ACL";
    words[1] = "SETUSER";
    words[2] = "copy";
    words[count++] = "reset";
    char *save = NULL;
    for (char *word = strtok_r(at + strlen(head), " ", &save); word != NULL;
         word = strtok_r(NULL, " ", &save)) {
        assert_true(count < 4096);
        words[count++] = word;
    }
    for (size_t i = 0; i < count; i++) {
        sizes[i] = strlen(words[i]);
    }
    text_command_words(&request, words, sizes, count);
    wire_send(to, request.at, request.size);
    const char *reply = wire_reply(to);
    /* Redis writes ~* for a * that %R~* and %W~* made together, and reads it as all keys, behind which
     * it takes no patterns. Here it is %RW~*. */
    bool is_made = strcmp(reply, "OK") == 0;
    if (!is_made && (is_ours || strstr(reply, "Adding a pattern after") == NULL)) {
        fail_msg("%s: %s", at, reply);
    }
    text_free(&request);
    free(list);
    return is_made;
}

/* ---- the comparison ---- */

struct run {
    struct random random;
    struct wire admins[SIDES];
    struct wire clients[USERS][SIDES]; /* fd -1: none */
    bool is_open[USERS];               /* a user of this name was made */
    uint64_t allowed, denied, refused; /* of the permission checks; of the rules */
};

static void dry_run(struct run *run, const char *user, const char *theirs_user) {
    struct words words = {.count = 0};
    const char *replies[SIDES];
    add(&words, "ACL");
    add(&words, "DRYRUN");
    add(&words, "%s", user);
    add_request(&run->random, &words, PICK(&run->random, requests));
    send_words(&run->admins[OURS], &words);
    snprintf(words.words[2], WORD_MAX, "%s", theirs_user);
    send_words(&run->admins[THEIRS], &words);
    replies[OURS] = wire_reply(&run->admins[OURS]);
    replies[THEIRS] = wire_reply(&run->admins[THEIRS]);
    if (strcmp(replies[OURS], replies[THEIRS]) != 0) {
        show(&words);
        print_message("%s\n", wire_ask(&run->admins[OURS], "ACL LIST"));
        print_message("%s\n", wire_ask(&run->admins[THEIRS], "ACL LIST"));
        fail_msg("ours: %s\ntheirs: %s", replies[OURS], replies[THEIRS]);
    }
    run->allowed += strcmp(replies[OURS], "OK") == 0;
    run->denied += strncmp(replies[OURS], "This user", 9) == 0;
}

static void set_user(struct run *run, unsigned user) {
    struct words words = {.count = 0};
    const char *replies[SIDES];
    uint64_t count = 1 + random_below(&run->random, 6);
    add(&words, "ACL");
    add(&words, "SETUSER");
    add(&words, "u%u", user);
    for (uint64_t i = 0; i < count; i++) {
        add_rule(&run->random, &words);
    }
    ask_both(run->admins, &words, replies);
    if (strcmp(replies[OURS], replies[THEIRS]) != 0) {
        show(&words);
        fail_msg("ours: %s\ntheirs: %s", replies[OURS], replies[THEIRS]);
    }
    bool is_set = strcmp(replies[OURS], "OK") == 0;
    run->refused += !is_set;
    run->is_open[user] |= is_set;
}

static void close_clients(struct run *run, unsigned user) {
    wire_close(&run->clients[user][OURS]);
    wire_close(&run->clients[user][THEIRS]);
}

/* Those that are not the user's, because no password was right, stay. */
static bool is_alive(struct wire *wire) {
    (void)wire_push(wire, "PING\r\n", 6, 0);
    return wire_try_reply(wire) != NULL;
}

static void delete_user(struct run *run, unsigned user) {
    struct words words = {.count = 0};
    add(&words, "ACL");
    add(&words, "DELUSER");
    add(&words, "u%u", user);
    assert_alike(run->admins, &words);
    run->is_open[user] = false;
    if (run->clients[user][OURS].fd >= 0) {
        assert_int_equal(is_alive(&run->clients[user][OURS]),
                         is_alive(&run->clients[user][THEIRS]));
    }
    close_clients(run, user);
}

/* Requests of a client that is the user: both servers refuse the same. */
static void run_requests(struct run *run, unsigned user) {
    static const char *const real[] = {
        "ZADD k 1 m", "ZSCORE k m", "ZREM k m",    "HSET k f v", "HGET k f",      "DEL k k",
        "EXISTS k k", "RENAME k k", "PUBLISH c m", "SELECT n",   "PING",          "ACL WHOAMI",
        "AUTH m",     "ECHO m",     "MULTI",       "EXEC",       "DISCARD",       "TYPE k",
        "HLEN k",     "ZCARD k",    "WATCH k",     "AUTH u m",   "CLIENT GETNAME"};
    if (run->clients[user][OURS].fd < 0) {
        struct words words = {.count = 0};
        for (int side = 0; side < SIDES; side++) {
            run->clients[user][side] = wire_open(process_connect_unix(&servers[side]));
        }
        add(&words, "AUTH");
        add(&words, "u%u", user);
        add(&words, "%s", PICK(&run->random, names));
        assert_alike(run->clients[user], &words);
    }
    for (int i = 0; i < 3; i++) {
        struct words words = {.count = 0};
        const char *form = PICK(&run->random, real);
        if (strcmp(form, "AUTH u m") == 0) {
            add(&words, "AUTH");
            add(&words, "u%u", user); /* its clients are always its own, or the default user's */
            add(&words, "%s", PICK(&run->random, names));
        } else {
            add_request(&run->random, &words, form);
        }
        for (size_t j = 1; j < words.count; j++) {
            /* Names have at least a byte here. */
            if (words.words[j][0] == '\0') {
                words.words[j][0] = 'e';
                words.words[j][1] = '\0';
            }
        }
        assert_alike(run->clients[user], &words);
    }
}

static void check_copies(struct run *run, unsigned user) {
    char name[8];
    snprintf(name, sizeof name, "u%u", user);
    bool is_made = copy_user(&run->admins[OURS], &run->admins[THEIRS], name, true);
    for (int i = 0; is_made && i < 8; i++) {
        dry_run(run, name, "copy");
    }
    is_made = copy_user(&run->admins[THEIRS], &run->admins[OURS], name, false);
    for (int i = 0; is_made && i < 8; i++) {
        dry_run(run, "copy", name);
    }
    for (int side = 0; side < SIDES; side++) {
        (void)wire_ask(&run->admins[side], "ACL DELUSER copy");
    }
}

static void compare_text(struct run *run, unsigned user) {
    struct words list = {.count = 0};
    struct words get = {.count = 0};
    add(&list, "ACL");
    add(&list, "LIST");
    compare_users(run->admins, &list);
    add(&get, "ACL");
    add(&get, "GETUSER");
    add(&get, "u%u", user);
    compare_users(run->admins, &get);
}

static void step(struct run *run) {
    unsigned user = (unsigned)random_below(&run->random, USERS);
    const char *name = formatted("u%u", user);
    switch (random_below(&run->random, 10)) {
    case 0:
    case 1:
    case 2:
        set_user(run, user);
        break;
    case 3:
        compare_text(run, user);
        break;
    case 4:
        run_requests(run, user);
        break;
    case 5:
        if (random_below(&run->random, 10) == 0) {
            delete_user(run, user);
        } else if (run->is_open[user] && random_below(&run->random, 4) == 0) {
            check_copies(run, user);
        }
        break;
    default:
        dry_run(run, name, name);
    }
}

TEST(random_rules_permit_the_same_as_in_redis) {
    int steps = is_short_run() ? STEPS_SHORT : STEPS_LONG;
    static struct run run;
    run = (struct run){.random = random_begin("acl")};
    for (int side = 0; side < SIDES; side++) {
        run.admins[side] = wire_open(process_connect_unix(&servers[side]));
        for (int user = 0; user < USERS; user++) {
            run.clients[user][side].fd = -1;
        }
    }
    for (int i = 0; i < steps; i++) {
        step(&run);
    }
    print_message("%d steps: %llu allowed, %llu denied, %llu rules refused\n", steps,
                  (unsigned long long)run.allowed, (unsigned long long)run.denied,
                  (unsigned long long)run.refused);
    assert_true(run.allowed > (uint64_t)steps / 50);
    assert_true(run.denied > (uint64_t)steps / 50);
    for (unsigned user = 0; user < USERS; user++) {
        delete_user(&run, user);
    }
    wire_close(&run.admins[OURS]);
    wire_close(&run.admins[THEIRS]);
}

/* ---- files ---- */

static void write_file(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static char *read_file(const char *path) {
    static char text[65536];
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

TEST(user_lines_are_read_and_rewritten) {
    struct process server;
    struct process_options options = {
        .config = "# mine\nuser ann on >secret ~a* +@read\nuser bob on nopass ( ~b +zadd )\n"};
    assert_true(process_start(&server, &options));
    struct wire wire = wire_open(process_connect_unix(&server));
    wire_check(&wire, "ACL USERS", "[ann bob default]");
    wire_check(&wire, "CONFIG GET user", "[]");
    wire_check_prefix(&wire, "CONFIG SET user x", "-ERR Unknown option");
    wire_check(&wire, "CONFIG REWRITE", "OK");
    assert_non_null(strstr(read_file(server.config_path), "\nuser ann on >secret ~a* +@read\n"));
    wire_check(&wire, "ACL SETUSER ann -zcard", "OK");
    wire_check(&wire, "ACL SETUSER cat on nopass", "OK");
    wire_check(&wire, "ACL DELUSER bob", ":1");
    wire_check(&wire, "ACL SETUSER default -flushall", "OK");
    wire_check(&wire, "CONFIG REWRITE", "OK");
    char *text = read_file(server.config_path);
    assert_non_null(strstr(text,
                           "# mine\nuser ann on "
                           "#2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b "
                           "~a* resetchannels -@all +@read -zcard\n"));
    assert_non_null(strstr(text, "\nuser cat on nopass resetchannels -@all\n"));
    assert_non_null(strstr(text, "user default on nopass ~* &* +@all -flushall\n"));
    assert_null(strstr(text, "bob"));
    assert_null(strstr(text, "secret"));
    struct process_options again = {.config = strdup(text)};
    OWNED char *list = strdup(wire_ask(&wire, "ACL LIST"));
    wire_close(&wire);
    assert_int_equal(process_stop(&server), 0);
    assert_true(process_start(&server, &again));
    wire = wire_open(process_connect_unix(&server));
    assert_string_equal(wire_ask(&wire, "ACL LIST"), list);
    wire_check(&wire, "AUTH ann secret", "OK");
    wire_check_prefix(&wire, "ZCARD a", "-NOPERM");
    wire_close(&wire);
    assert_int_equal(process_stop(&server), 0);
    free((char *)(uintptr_t)again.config);
}

TEST(an_aclfile_is_loaded_all_or_nothing_and_saved) {
    struct process server;
    char path[] = "/tmp/leaderboard-users-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    write_file(path, "user ann on >one ~a* +@all\n\nuser default on nopass ~* &* +@all\n");
    const char *arguments[] = {"--aclfile", path, NULL};
    struct process_options options = {.arguments = arguments};
    assert_true(process_start(&server, &options));
    struct wire wire = wire_open(process_connect_unix(&server));
    struct wire ann = wire_open(process_connect_unix(&server));
    wire_check(&ann, "AUTH ann one", "OK");
    char *list = strdup(wire_ask(&wire, "ACL LIST"));
    write_file(
        path,
        "user bob on\n# comment\nuser bob off\nuser cat +nosuch\nuser dan (~a\nuser e ~a b\n");
    char *error = strdup(wire_ask(&wire, "ACL LOAD"));
    static const char *const told[] = {
        ":2 should start with user keyword followed by the username.",
        "WARNING: Duplicate user 'bob' found on line 3.",
        ":4: Error in applying operation '+nosuch': Unknown command or category name in ACL.",
        ":5: Unmatched parenthesis in selector definition.",
        ":6: Syntax error.",
        "no change to the previously active ACL rules was performed"};
    for (size_t i = 0; i < sizeof told / sizeof told[0]; i++) {
        if (strstr(error, told[i]) == NULL) {
            fail_msg("%s: %s", told[i], error);
        }
    }
    assert_string_equal(wire_ask(&wire, "ACL LIST"), list);
    free(error);
    free(list);
    write_file(path, "user ann on nopass ~b* +@all\nuser bob off\n");
    wire_check(&wire, "ACL LOAD", "OK");
    wire_check_prefix(&ann, "ZADD a 1 x", "-NOPERM");
    wire_check(&ann, "ZADD b 1 x", ":1");
    wire_check(&wire, "ACL SETUSER bob >two", "OK");
    wire_check(&wire, "ACL SAVE", "OK");
    assert_string_equal(
        read_file(path),
        "user ann on nopass ~b* resetchannels +@all\n"
        "user bob off #3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3 "
        "resetchannels -@all\nuser default on nopass ~* &* +@all\n");
    write_file(path, "user bob off\n");
    wire_check(&wire, "ACL LOAD", "OK");
    assert_true(wire_is_closed(&ann, WIRE_LIMIT_MS));
    wire_close(&ann);
    wire_close(&wire);
    assert_int_equal(process_stop(&server), 0);
    write_file(path, "user ann +nosuch\n");
    assert_true(process_start_is_refused(
        &options, (const char *const[]){"Unknown command or category name in ACL", NULL}));
    struct process_options both = {.config = "user ann on\n", .arguments = arguments};
    assert_true(process_start_is_refused(
        &both, (const char *const[]){"`user` lines and an aclfile", NULL}));
    unlink(path);
    assert_true(process_start_is_refused(&options,
                                         (const char *const[]){"No such file or directory", NULL}));
}

/* The working directory is not dir: relative to it, as in Redis. */
TEST(a_relative_aclfile_is_in_dir) {
    struct process server;
    char directory[] = "/tmp/leaderboard-users-XXXXXX";
    char data[64], path[96];
    assert_non_null(mkdtemp(directory));
    snprintf(data, sizeof data, "%s/data", directory);
    snprintf(path, sizeof path, "%s/users.acl", data);
    assert_int_equal(mkdir(data, 0700), 0);
    write_file(path, "user ann on >one ~a* +@all\nuser default on nopass ~* &* +@all\n");
    const char *arguments[] = {"--dir", data, "--aclfile", "users.acl", NULL};
    struct process_options options = {.arguments = arguments, .directory = directory};
    assert_true(process_start(&server, &options));
    struct wire wire = wire_open(process_connect_unix(&server));
    wire_check(&wire, "AUTH ann one", "OK");
    wire_check(&wire, "AUTH default x", "OK");
    wire_check(&wire, "ACL SETUSER bob off", "OK");
    wire_check(&wire, "ACL SAVE", "OK");
    assert_non_null(strstr(read_file(path), "user bob off"));
    wire_close(&wire);
    assert_int_equal(process_stop(&server), 0);
    assert_int_equal(system(formatted("rm -r '%s'", directory)), 0);
}

TEST(a_wrong_user_line_stops_the_start) {
    static const char *const configs[][2] = {
        {"user ann on +nosuch\n", "Error loading ACL rule '+nosuch' for the user named 'ann'"},
        {"user ann on\nuser ann off\n", "test.conf:2: user: Duplicate user found"},
        {"user ann (~a\n", "Unmatched parenthesis"},
    };
    for (size_t i = 0; i < sizeof configs / sizeof configs[0]; i++) {
        struct process_options options = {.config = configs[i][0]};
        assert_true(process_start_is_refused(&options, (const char *const[]){configs[i][1], NULL}));
    }
}

TEST_MAIN(start_servers, stop_servers)
