/* The table of all settings: one row says all there is to say about one, and drives parsing,
 * printing and the pages.
 *
 * Order: by section; CONFIG GET, leaderboard.conf and docs/settings.md follow it. */
#include "server/settings/setting_private.h"

#include <sys/un.h>

#include "server/system/log.h"

static const struct setting_section network = {
    "Network",
    "Where the server listens, and who may connect.",
};
static const struct setting_section limits = {
    "Limits",
    "What clients may use. Sizes take units: 1k is 1000 bytes, 1kb is 1024 bytes, and so on with "
    "1m 1mb 1g 1gb, in upper or lower case.",
};
static const struct setting_section general = {
    "General",
    "How the server runs, and what it logs.",
};
static const struct setting_section durability = {
    "Durability",
    "What is kept on disk, and when: docs/durability.md explains how to choose.",
};
static const struct setting_section boards = {
    "Boards",
    "Which layout a new board gets: how the 64 bits that rank a member are divided into fields.",
};

static const char *const loglevels[] = {
    [LOG_DEBUG] = "debug",
    [LOG_VERBOSE] = "verbose",
    [LOG_NOTICE] = "notice",
    [LOG_WARNING] = "warning",
    NULL,
};
static const char *const appendfsyncs[] = {
    [SETTING_APPENDFSYNC_EVERYSEC] = "everysec",
    [SETTING_APPENDFSYNC_ALWAYS] = "always",
    [SETTING_APPENDFSYNC_NO] = "no",
    NULL,
};
enum {
    MEBIBYTE = 1024 * 1024,
    UNIXSOCKET_SIZE_MAX = sizeof(((struct sockaddr_un *)0)->sun_path) - 1,
    FILE_NAME_SIZE_MAX = 255, /* Linux's NAME_MAX */
};

/* Where a field is. Comparing pointers to different types is a warning: the field has this type. */
#define FIELD(type, field)                                                                         \
    (offsetof(struct settings, field) + 0 * sizeof(&((struct settings *)0)->field == (type *)0))
#define INTEGER(field, minimum, maximum, unit)                                                     \
    { SETTING_TYPE_INTEGER, unit, FIELD(int64_t, field), minimum, maximum, NULL }
#define OCTAL(field, maximum)                                                                      \
    { SETTING_TYPE_OCTAL, "0.." #maximum ", octal", FIELD(int64_t, field), 0, 0##maximum, NULL }
#define SIZE(field, minimum, text)                                                                 \
    { SETTING_TYPE_SIZE, text, FIELD(uint64_t, field), minimum, INT64_MAX, NULL }
#define SIZE_OR_PERCENT(field)                                                                     \
    { SETTING_TYPE_SIZE_OR_PERCENT, "size | N%", FIELD(int64_t, field), 0, INT64_MAX, NULL }
#define BOOLEAN(field)                                                                             \
    { SETTING_TYPE_BOOLEAN, "yes|no", FIELD(bool, field), 0, 0, NULL }
#define CHOICE(field, choices)                                                                     \
    { SETTING_TYPE_CHOICE, NULL, FIELD(int, field), 0, 0, choices }
#define ONLY(value, why)                                                                           \
    {                                                                                              \
        SETTING_TYPE_ONLY, value, 0, 0, 0, (const char *const[]) {                                 \
            value, why                                                                             \
        }                                                                                          \
    }
#define TEXT(type, field, minimum, maximum, syntax)                                                \
    { SETTING_TYPE_##type, syntax, FIELD(char *, field), minimum, maximum, NULL }
#define WORDS(type, syntax)                                                                        \
    { SETTING_TYPE_##type, syntax, 0, 0, 0, NULL }

/* name, section, flags, kind, default, example, summary */
const struct setting setting_table[] = {
    {"bind", &network, SETTING_FIXED, WORDS(BIND, "address [address ...]"), "127.0.0.1 -::1", NULL,
     "The addresses to listen on, 16 at most. Only this machine can reach 127.0.0.1 and ::1. To "
     "serve other machines, name the address of one of your own network cards; * is every IPv4 "
     "address, ::* every IPv6 address. A host's name stands for its first address.\n"
     "A '-' in front of an address makes it optional: it is no error if this machine does not "
     "have it.\n"
     "Anyone who can reach an open port can read and change every board: set requirepass before "
     "you open one."},
    {"port", &network, SETTING_FIXED, INTEGER(port, 0, 65535, ""), "6379", NULL,
     "The TCP port to listen on. The default is also the default of Redis clients. 0 opens no TCP "
     "port; unixsocket must be set then."},
    {"unixsocket", &network, SETTING_FIXED,
     TEXT(STRING, unixsocket, 0, UNIXSOCKET_SIZE_MAX, "path"), "\"\"",
     "/run/leaderboard/leaderboard.sock",
     "Also listen on a Unix socket at this path (at most 107 bytes). \"\" means none."},
    {"unixsocketperm", &network, SETTING_FIXED, OCTAL(unixsocketperm, 777), "0", "700",
     "The permissions of the Unix socket, as chmod takes them: 700 lets the server's own user in, "
     "770 its group too. 0 uses the umask."},
    {"tcp-backlog", &network, SETTING_FIXED, INTEGER(tcp_backlog, 1, 65535, ""), "511", NULL,
     "How many connections may wait to be accepted. Linux limits it to net.core.somaxconn; raise "
     "both if many clients connect at the same moment."},
    {"timeout", &network, 0, INTEGER(timeout_s, 0, INT32_MAX, "seconds"), "0", NULL,
     "Close a client that has sent nothing for this many seconds. 0 never does."},
    {"tcp-keepalive", &network, 0, INTEGER(tcp_keepalive_s, 0, INT32_MAX, "seconds"), "300", NULL,
     "After this many seconds without traffic the system sends TCP keep-alive probes, so that "
     "dead connections are detected and routers do not drop idle ones. 0 sends none. A new value "
     "applies to clients that connect afterwards."},
    {"protected-mode", &network, 0, BOOLEAN(protected_mode), "yes", NULL,
     "While this is on and no password is set, clients from other machines are refused, whatever "
     "bind says. Set requirepass rather than turn this off."},
    {"requirepass", &network, 0, TEXT(STRING, requirepass, 0, SETTING_STRING_MAX, "password"),
     "\"\"", "\"a long random text\"",
     "The password that clients must give with AUTH or HELLO before anything else. A client can "
     "try many passwords per second, so choose a long random one: openssl rand -base64 32 prints "
     "one. \"\" requires none. If this file contains a password, make it readable only by the "
     "server's user."},
    {"auth-timeout", &network, 0, INTEGER(auth_timeout_s, 0, INT32_MAX, "seconds"), "60", NULL,
     "While requirepass is set: how long a client may stay connected without authenticating. "
     "Until then it may hold at most 20 KB, input and replies together. 0 closes none."},
    {"maxclients", &limits, 0, INTEGER(maxclients, 1, UINT32_MAX, ""), "10000", NULL,
     "How many clients may be connected at a time; others get an error and are closed. Every "
     "client takes one file descriptor. At start the server raises its descriptor limit as far as "
     "the system allows; if that is not enough it lowers maxclients and logs the new value. "
     "CONFIG SET refuses more clients than there are descriptors for."},
    {"io-threads", &limits, SETTING_FIXED, INTEGER(io_threads, 1, 64, ""), "1", NULL,
     "How many threads read requests and write replies. With 1, the thread that has the boards "
     "also "
     "does that. With 2 or more, that thread has no sockets, and so many others do: a server with "
     "io-threads 2 uses up to three processors. Worth it where the log or top shows the server at "
     "a "
     "whole processor and clients do not pipeline."},
    {"maxmemory", &limits, 0, SIZE(maxmemory, 0, "size"), "0", "8gb",
     "Once the server uses more memory than this, commands that may need more are rejected with "
     "an error that begins with OOM. Reads and removals still work. 0 means no limit but the "
     "system's memory."},
    {"maxmemory-clients", &limits, 0, SIZE_OR_PERCENT(maxmemory_clients), "25%", "1gb",
     "The most memory that all clients together may use: unfinished input, queued transactions, "
     "watched keys, and unread replies. Above it the largest clients are closed, one after "
     "another, until the rest fits; CLIENT NO-EVICT ON exempts a client. A percentage is relative "
     "to maxmemory, or to the machine's memory if maxmemory is 0. The clients' memory also counts "
     "towards maxmemory. Less than 128kb counts as 128kb; 0 means no limit."},
    {"maxmemory-policy", &limits, 0,
     ONLY("noeviction", "a member or a board is never dropped to make room"), "noeviction", NULL,
     "What happens above maxmemory: noeviction is the only value, as no member and no board is "
     "ever evicted. The setting exists because clients query it."},
    {"proto-max-bulk-len", &limits, 0, SIZE(proto_max_bulk_len, MEBIBYTE, "size, 1mb at least"),
     "64mb", NULL, "The longest single argument that a request may announce."},
    {"client-query-buffer-limit", &limits, 0,
     SIZE(client_query_buffer_limit, MEBIBYTE, "size, 1mb at least"), "256mb", NULL,
     "The most unfinished input that is buffered for one client. A client that sends a longer "
     "request is closed."},
    {"client-output-buffer-limit", &limits, 0,
     WORDS(OUTPUT_LIMIT, "normal hard-size soft-size soft-seconds"), "normal 256mb 64mb 60", NULL,
     "The most unread replies that are buffered for a client. It is closed at once above the hard "
     "size, and after soft-seconds without a break above the soft size. A size of 0 means no "
     "limit. All clients are of class normal."},
    {"busy-command-limit", &limits, 0, INTEGER(busy_command_limit_ms, 0, INT32_MAX, "milliseconds"),
     "0", "250",
     "A command that would block all other clients for longer than this is rejected before it "
     "begins, with an error that names both times, and changes nothing. The time is estimated "
     "from the sizes of what the command touches; for EXEC, of all queued commands. 0 rejects "
     "none, as in Redis.\n"
     "docs/long-commands.md lists what each command costs, and what to use instead."},
    {"daemonize", &general, SETTING_FIXED, BOOLEAN(daemonize), "no", NULL,
     "Run in the background. Leave it at no under systemd, Docker and the like, which need the "
     "server in the foreground. With yes, also set logfile."},
    {"pidfile", &general, SETTING_FIXED, TEXT(STRING, pidfile, 0, SETTING_STRING_MAX, "path"),
     "\"\"", "/run/leaderboard/leaderboard.pid",
     "Write the server's process ID to this file, and remove it on exit. \"\" writes none."},
    {"logfile", &general, SETTING_FIXED, TEXT(STRING, logfile, 0, SETTING_STRING_MAX, "path"),
     "\"\"", "/var/log/leaderboard/leaderboard.log",
     "The file that the log is appended to; \"\" is the standard output. SIGHUP reopens it, so "
     "that logrotate can move it away."},
    {"loglevel", &general, 0, CHOICE(loglevel, loglevels), "notice", NULL,
     "How much is logged. warning: what needs attention. notice: also what an operator wants to "
     "know. verbose and debug: for finding faults."},
    {"databases", &general, SETTING_FIXED, ONLY("16", "the number of databases is fixed"), "16",
     NULL,
     "The number of databases, selected by SELECT 0 to 15. It is fixed; the setting exists "
     "because clients query it."},
    {"slowlog-log-slower-than", &general, 0,
     INTEGER(slowlog_log_slower_than_us, -1, INT64_MAX, "microseconds"), "10000", NULL,
     "Commands that run for at least this many microseconds are kept for SLOWLOG. The time is "
     "that of the command alone, without waiting and sending. 0 logs every command, -1 none."},
    {"slowlog-max-len", &general, 0, INTEGER(slowlog_max_len, 0, 1000000, ""), "128", NULL,
     "How many commands SLOWLOG keeps, the newest ones."},
    {"latency-monitor-threshold", &general, 0,
     INTEGER(latency_monitor_threshold_ms, 0, INT64_MAX, "milliseconds"), "0", NULL,
     "Events that take at least this many milliseconds are kept for LATENCY. 0 keeps none."},
    {"latency-tracking", &general, 0, BOOLEAN(latency_tracking), "yes", NULL,
     "Keep a histogram of every command's running times, for LATENCY HISTOGRAM."},
    {"dir", &durability, SETTING_FIXED, TEXT(DIRECTORY, dir, 1, SETTING_STRING_MAX, "path"), "./",
     "/var/lib/leaderboard",
     "The directory under which the server keeps its files. It must exist. A path that does not "
     "begin with / is relative to where the server is started; CONFIG GET shows the absolute "
     "path."},
    {"appenddirname", &durability, SETTING_FIXED,
     TEXT(FILE_NAME, appenddirname, 1, FILE_NAME_SIZE_MAX, "name"), "appendonlydir", NULL,
     "The name of the directory inside dir that holds the snapshot, the journal and the manifest "
     "that names them. The server creates it. Only one server can use it at a time: a second one "
     "refuses to start."},
    {"appendonly", &durability, 0, BOOLEAN(appendonly), "no", NULL,
     "Write every change to a journal on disk, so that a crash loses nothing or next to nothing; "
     "appendfsync decides which. With no, a crash loses all changes since the last snapshot. "
     "docs/durability.md helps to choose. The files are loaded at start with either value. "
     "Setting yes on a running server writes a snapshot first; the journal's guarantees hold once "
     "that is done."},
    {"appendfsync", &durability, 0, CHOICE(appendfsync, appendfsyncs), "everysec", NULL,
     "When the journal is synced to disk. everysec: once a second; a power cut loses about a "
     "second of changes, a crash of the server alone no answered write. always: before a change "
     "is answered or read by anyone; no answered write is lost, and clients wait for the disk, "
     "sharing each fsync. no: when the system decides, which may take half a minute."},
    {"auto-aof-rewrite-percentage", &durability, 0,
     INTEGER(auto_aof_rewrite_percentage, 0, INT32_MAX, ""), "100", NULL,
     "Write a new snapshot and start a new journal when the files have grown by this many percent "
     "since the last one: 100 means twice as large. 0 never does."},
    {"auto-aof-rewrite-min-size", &durability, 0, SIZE(auto_aof_rewrite_min_size, 0, "size"),
     "64mb", NULL, "The automatic rewrite waits until the files are at least this large."},
    {"save", &durability, 0, WORDS(SAVE, "seconds changes [seconds changes ...] | \"\""),
     "3600 1 300 100 60 10000", NULL,
     "With appendonly no: write a snapshot when, for any of the pairs, that many seconds have "
     "passed since the last one and that many changes were made (a command that changes a board "
     "counts as one); and on an orderly shutdown. \"\" disables these snapshots, also on "
     "shutdown; BGSAVE and SAVE still work. Several lines in a file add up; the first one "
     "replaces the default. With appendonly yes the journal holds every change, and its growth "
     "decides when a snapshot is due.\n"
     "    save 3600 1 300 100 60 10000"},
    {"stop-writes-on-bgsave-error", &durability, 0, BOOLEAN(stop_writes_on_bgsave_error), "yes",
     NULL,
     "After a snapshot of a save line has failed, reject changes with an error that begins with "
     "MISCONF until one succeeds, so that the failure is noticed. Reads still work. If the "
     "journal cannot be written, changes are rejected in any case."},
    {"layout", &boards, SETTING_FIXED | SETTING_REPEATS,
     WORDS(LAYOUT, "NAME FIELD name bits [ASC|DESC] [SIGNED] [SCALE d] [FIELD ...] "
                   "[TIME bits US|MS|S|M|H|D [START t|END t] [LATEST]]"),
     NULL, "laps FIELD lap_ms 32 ASC TIME 32 S",
     "Define a layout. A layout divides a member's 64 bits between its score and the time at "
     "which it reached it; docs/layouts.md explains the words and helps to choose widths. Up to "
     "255 lines, each with a new name.\n"
     "One layout, default, is built in, for whole scores from -4294967296 to 4294967295 and times "
     "in seconds until 2088:\n"
     "    FIELD score 33 SIGNED TIME 31 S\n"
     "Some others. Lap times in milliseconds, where less is better; money with two decimals; "
     "scores of one week, with times to the millisecond:\n"
     "    layout laps   FIELD lap_ms 32 ASC TIME 32 S\n"
     "    layout money  FIELD balance 40 SCALE 2 TIME 24 M\n"
     "    layout week47 FIELD score 34 TIME 30 MS START 2026-11-16T00:00:00Z"},
    {"board", &boards, SETTING_FIXED | SETTING_REPEATS, WORDS(BOARD, "GLOB NAME " SETTING_OPTIONS),
     NULL, "race:* laps",
     "New boards whose key matches the pattern get the named layout and the options after it. Up "
     "to 1024 lines; the first match wins, so put narrow patterns first. The layout may be "
     "defined above or below. A board keeps the layout and the options that it was created with.\n"
     "CAP n keeps the best n members: on a full board, a newcomer ranked below the last is "
     "dropped. KEEP BEST keeps a member's best result: a write that is not strictly better "
     "changes nothing, unless it is an increment. Both apply to every command, also of clients "
     "that do not know these options.\n"
     "PERIOD starts a board over with every day, week (on Monday) or month of the time zone that "
     "is TZ ahead of UTC: at the end of the period the board becomes an archive named after the "
     "date on which the period began, such as top:eu@2026-11-16, and START of the board's times "
     "moves to the next period. ARCHIVE n keeps an archive for n periods; without it archives are "
     "kept forever.\n"
     "    board top:*  default CAP 1000\n"
     "    board race:* laps    CAP 100 KEEP BEST\n"
     "    board week:* default PERIOD WEEK TZ +08:00 ARCHIVE 8\n"
     "In a pattern, * matches any run of characters, ? one character, [abc] and [a-z] one of "
     "these, [^a] any other one, and \\ makes the next character literal. A pattern has at most "
     "1024 bytes."},
    {"default-layout", &boards, 0, TEXT(DEFAULT_LAYOUT, default_layout_name, 0, 0, "NAME"),
     "default", NULL, "The layout of new boards that match no board line."},

    {.name = NULL},
};
_Static_assert(sizeof setting_table / sizeof setting_table[0] <= SETTINGS_MAX + 1,
               "more settings than SETTINGS_MAX");
