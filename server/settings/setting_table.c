/* The table of all settings: names, allowed values and explanations.
 *
 * Order: by section; CONFIG GET, leaderboard.conf and docs/settings.md follow it. A summary is
 * plain text: a line break starts a paragraph, a line that starts with blanks is an example. */
#include "server/settings/setting_private.h"

#define NETWORK    "network"
#define LIMITS     "limits"
#define GENERAL    "general"
#define DURABILITY "durability"
#define BOARDS     "boards"

const struct setting setting_table[] = {
    /* network */
    {
        .name = "bind",
        .section = NETWORK,
        .value_syntax = "address [address ...]",
        .default_value = "127.0.0.1 -::1",
        .flags = SETTING_FIXED,
        .id = SETTING_BIND,
        .summary =
            "The addresses to listen on, 16 at most. Only this machine can reach 127.0.0.1 and "
            "::1. To serve other machines, name the address of one of your own network cards; * "
            "is every IPv4 address, ::* every IPv6 address. A host's name stands for its first "
            "address.\n"
            "A '-' in front of an address makes it optional: it is no error if this machine does "
            "not have it.\n"
            "Anyone who can reach an open port can read and change every board: set requirepass "
            "before you open one.",
    },
    {
        .name = "port",
        .section = NETWORK,
        .value_syntax = "0..65535",
        .default_value = "6379",
        .flags = SETTING_FIXED,
        .id = SETTING_PORT,
        .summary = "The TCP port to listen on. The default is also the default of Redis clients. 0 "
                   "opens no TCP port; unixsocket must be set then.",
    },
    {
        .name = "unixsocket",
        .section = NETWORK,
        .value_syntax = "path",
        .default_value = "\"\"",
        .example = "/run/leaderboard/leaderboard.sock",
        .flags = SETTING_FIXED,
        .id = SETTING_UNIXSOCKET,
        .summary =
            "Also listen on a Unix socket at this path (at most 107 bytes). \"\" means none.",
    },
    {
        .name = "unixsocketperm",
        .section = NETWORK,
        .value_syntax = "0..777, octal",
        .default_value = "0",
        .example = "700",
        .flags = SETTING_FIXED,
        .id = SETTING_UNIXSOCKETPERM,
        .summary = "The permissions of the Unix socket, as chmod takes them: 700 lets the server's "
                   "own user in, 770 its group too. 0 uses the umask.",
    },
    {
        .name = "tcp-backlog",
        .section = NETWORK,
        .value_syntax = "1..65535",
        .default_value = "511",
        .flags = SETTING_FIXED,
        .id = SETTING_TCP_BACKLOG,
        .summary = "How many connections may wait to be accepted. Linux limits it to "
                   "net.core.somaxconn; raise both if many clients connect at the same moment.",
    },
    {
        .name = "timeout",
        .section = NETWORK,
        .value_syntax = "0..2147483647 seconds",
        .default_value = "0",
        .id = SETTING_TIMEOUT,
        .summary = "Close a client that has sent nothing for this many seconds. 0 never does.",
    },
    {
        .name = "tcp-keepalive",
        .section = NETWORK,
        .value_syntax = "0..2147483647 seconds",
        .default_value = "300",
        .id = SETTING_TCP_KEEPALIVE,
        .summary = "After this many seconds without traffic the system sends TCP keep-alive "
                   "probes, so that dead connections are detected and routers do not drop idle "
                   "ones. 0 sends none. A new value applies to clients that connect afterwards.",
    },
    {
        .name = "protected-mode",
        .section = NETWORK,
        .value_syntax = "yes|no",
        .default_value = "yes",
        .id = SETTING_PROTECTED_MODE,
        .summary = "While this is on and no password is set, clients from other machines are "
                   "refused, whatever bind says. Set requirepass rather than turn this off.",
    },
    {
        .name = "requirepass",
        .section = NETWORK,
        .value_syntax = "password",
        .default_value = "\"\"",
        .example = "\"a long random text\"",
        .flags = SETTING_SECRET,
        .id = SETTING_REQUIREPASS,
        .summary =
            "The password that clients must give with AUTH or HELLO before anything else. "
            "A client can try many passwords per second, so choose a long random one: openssl "
            "rand -base64 32 prints one. \"\" requires none. If this file contains a password, "
            "make it readable only by the server's user.",
    },
    {
        .name = "auth-timeout",
        .section = NETWORK,
        .value_syntax = "0..2147483647 seconds",
        .default_value = "60",
        .id = SETTING_AUTH_TIMEOUT,
        .summary = "While requirepass is set: how long a client may stay connected without "
                   "authenticating. Until then it may hold at most 20 KB, input and replies "
                   "together. 0 closes none.",
    },
    /* limits */
    {
        .name = "maxclients",
        .section = LIMITS,
        .value_syntax = "1..4294967295",
        .default_value = "10000",
        .id = SETTING_MAXCLIENTS,
        .summary =
            "How many clients may be connected at a time; others get an error and are closed. "
            "Every client takes one file descriptor. At start the server raises its descriptor "
            "limit as far as the system allows; if that is not enough it lowers maxclients and "
            "logs the new value. CONFIG SET refuses more clients than there are descriptors for.",
    },
    {
        .name = "maxmemory",
        .section = LIMITS,
        .value_syntax = "size",
        .default_value = "0",
        .example = "8gb",
        .id = SETTING_MAXMEMORY,
        .summary = "Once the server uses more memory than this, commands that may need more are "
                   "rejected with an error that begins with OOM. Reads and removals still work. 0 "
                   "means no limit but the system's memory.",
    },
    {
        .name = "maxmemory-clients",
        .section = LIMITS,
        .value_syntax = "size | N%",
        .default_value = "25%",
        .example = "1gb",
        .id = SETTING_MAXMEMORY_CLIENTS,
        .summary = "The most memory that all clients together may use: unfinished input, queued "
                   "transactions, watched keys, and unread replies. Above it the largest clients "
                   "are closed, one after another, until the rest fits; CLIENT NO-EVICT ON exempts "
                   "a client. A percentage is relative to maxmemory, or to the machine's memory if "
                   "maxmemory is 0. The clients' memory also counts towards maxmemory. Less than "
                   "128kb counts as 128kb; 0 means no limit.",
    },
    {
        .name = "maxmemory-policy",
        .section = LIMITS,
        .value_syntax = "noeviction",
        .default_value = "noeviction",
        .id = SETTING_MAXMEMORY_POLICY,
        .summary = "What happens above maxmemory: noeviction is the only value, as no member and "
                   "no board is ever evicted. The setting exists because clients query it.",
    },
    {
        .name = "proto-max-bulk-len",
        .section = LIMITS,
        .value_syntax = "size, 1mb at least",
        .default_value = "64mb",
        .id = SETTING_PROTO_MAX_BULK_LEN,
        .summary = "The longest single argument that a request may announce.",
    },
    {
        .name = "client-query-buffer-limit",
        .section = LIMITS,
        .value_syntax = "size, 1mb at least",
        .default_value = "256mb",
        .id = SETTING_CLIENT_QUERY_BUFFER_LIMIT,
        .summary = "The most unfinished input that is buffered for one client. A client that sends "
                   "a longer request is closed.",
    },
    {
        .name = "client-output-buffer-limit",
        .section = LIMITS,
        .value_syntax = "normal hard-size soft-size soft-seconds",
        .default_value = "normal 256mb 64mb 60",
        .id = SETTING_CLIENT_OUTPUT_BUFFER_LIMIT,
        .summary = "The most unread replies that are buffered for a client. It is closed at once "
                   "above the hard size, and after soft-seconds without a break above the soft "
                   "size. A size of 0 means no limit. All clients are of class normal.",
    },
    {
        .name = "busy-command-limit",
        .section = LIMITS,
        .value_syntax = "0..2147483647 milliseconds",
        .default_value = "0",
        .example = "250",
        .id = SETTING_BUSY_COMMAND_LIMIT,
        .summary = "A command that would block all other clients for longer than this is rejected "
                   "before it begins, with an error that names both times, and changes nothing. "
                   "The time is estimated from the sizes of what the command touches; for EXEC, of "
                   "all queued commands. 0 rejects none, as in Redis.\n"
                   "docs/long-commands.md lists what each command costs, and what to use instead.",
    },
    /* general */
    {
        .name = "daemonize",
        .section = GENERAL,
        .value_syntax = "yes|no",
        .default_value = "no",
        .flags = SETTING_FIXED,
        .id = SETTING_DAEMONIZE,
        .summary = "Run in the background. Leave it at no under systemd, Docker and the like, "
                   "which need the server in the foreground. With yes, also set logfile.",
    },
    {
        .name = "pidfile",
        .section = GENERAL,
        .value_syntax = "path",
        .default_value = "\"\"",
        .example = "/run/leaderboard/leaderboard.pid",
        .flags = SETTING_FIXED,
        .id = SETTING_PIDFILE,
        .summary =
            "Write the server's process ID to this file, and remove it on exit. \"\" writes none.",
    },
    {
        .name = "logfile",
        .section = GENERAL,
        .value_syntax = "path",
        .default_value = "\"\"",
        .example = "/var/log/leaderboard/leaderboard.log",
        .flags = SETTING_FIXED,
        .id = SETTING_LOGFILE,
        .summary = "The file that the log is appended to; \"\" is the standard output. SIGHUP "
                   "reopens it, so that logrotate can move it away.",
    },
    {
        .name = "loglevel",
        .section = GENERAL,
        .value_syntax = "debug|verbose|notice|warning",
        .default_value = "notice",
        .id = SETTING_LOGLEVEL,
        .summary = "How much is logged. warning: what needs attention. notice: also what an "
                   "operator wants to know. verbose and debug: for finding faults.",
    },
    {
        .name = "databases",
        .section = GENERAL,
        .value_syntax = "16",
        .default_value = "16",
        .flags = SETTING_FIXED,
        .id = SETTING_DATABASES,
        .summary = "The number of databases, selected by SELECT 0 to 15. It is fixed; the setting "
                   "exists because clients query it.",
    },
    {
        .name = "slowlog-log-slower-than",
        .section = GENERAL,
        .value_syntax = "-1..9223372036854775807 microseconds",
        .default_value = "10000",
        .id = SETTING_SLOWLOG_LOG_SLOWER_THAN,
        .summary = "Commands that run for at least this many microseconds are kept for SLOWLOG. "
                   "The time is that of the command alone, without waiting and sending. 0 logs "
                   "every command, -1 none.",
    },
    {
        .name = "slowlog-max-len",
        .section = GENERAL,
        .value_syntax = "0..1000000",
        .default_value = "128",
        .id = SETTING_SLOWLOG_MAX_LEN,
        .summary = "How many commands SLOWLOG keeps, the newest ones.",
    },
    {
        .name = "latency-monitor-threshold",
        .section = GENERAL,
        .value_syntax = "0..9223372036854775807 milliseconds",
        .default_value = "0",
        .id = SETTING_LATENCY_MONITOR_THRESHOLD,
        .summary = "Events that take at least this many milliseconds are kept for LATENCY. 0 keeps "
                   "none.",
    },
    {
        .name = "latency-tracking",
        .section = GENERAL,
        .value_syntax = "yes|no",
        .default_value = "yes",
        .id = SETTING_LATENCY_TRACKING,
        .summary = "Keep a histogram of every command's running times, for LATENCY HISTOGRAM.",
    },
    /* durability */
    {
        .name = "dir",
        .section = DURABILITY,
        .value_syntax = "path",
        .default_value = "./",
        .example = "/var/lib/leaderboard",
        .flags = SETTING_FIXED,
        .id = SETTING_DIR,
        .summary = "The directory under which the server keeps its files. It must exist. A path "
                   "that does not begin with / is relative to where the server is started; CONFIG "
                   "GET shows the absolute path.",
    },
    {
        .name = "appenddirname",
        .section = DURABILITY,
        .value_syntax = "name",
        .default_value = "appendonlydir",
        .flags = SETTING_FIXED,
        .id = SETTING_APPENDDIRNAME,
        .summary = "The name of the directory inside dir that holds the snapshot, the journal and "
                   "the manifest that names them. The server creates it. Only one server can use "
                   "it at a time: a second one refuses to start.",
    },
    {
        .name = "appendonly",
        .section = DURABILITY,
        .value_syntax = "yes|no",
        .default_value = "no",
        .id = SETTING_APPENDONLY,
        .summary = "Write every change to a journal on disk, so that a crash loses nothing or next "
                   "to nothing; appendfsync decides which. With no, a crash loses all changes "
                   "since the last snapshot. docs/durability.md helps to choose. The files are "
                   "loaded at start with either value. Setting yes on a running server writes a "
                   "snapshot first; the journal's guarantees hold once that is done.",
    },
    {
        .name = "appendfsync",
        .section = DURABILITY,
        .value_syntax = "everysec|always|no",
        .default_value = "everysec",
        .id = SETTING_APPENDFSYNC,
        .summary = "When the journal is synced to disk. everysec: once a second; a power cut loses "
                   "about a second of changes, a crash of the server alone no answered write. "
                   "always: before a change is answered or read by anyone; no answered write is "
                   "lost, and clients wait for the disk, sharing each fsync. no: when the system "
                   "decides, which may take half a minute.",
    },
    {
        .name = "auto-aof-rewrite-percentage",
        .section = DURABILITY,
        .value_syntax = "0..2147483647",
        .default_value = "100",
        .id = SETTING_AUTO_AOF_REWRITE_PERCENTAGE,
        .summary = "Write a new snapshot and start a new journal when the files have grown by this "
                   "many percent since the last one: 100 means twice as large. 0 never does.",
    },
    {
        .name = "auto-aof-rewrite-min-size",
        .section = DURABILITY,
        .value_syntax = "size",
        .default_value = "64mb",
        .id = SETTING_AUTO_AOF_REWRITE_MIN_SIZE,
        .summary = "The automatic rewrite waits until the files are at least this large.",
    },
    {
        .name = "save",
        .section = DURABILITY,
        .value_syntax = "seconds changes [seconds changes ...] | \"\"",
        .default_value = "3600 1 300 100 60 10000",
        .id = SETTING_SAVE,
        .summary =
            "With appendonly no: write a snapshot when, for any of the pairs, that many seconds "
            "have passed since the last one and that many changes were made (a command that "
            "changes a board counts as one); and on an orderly shutdown. \"\" disables these "
            "snapshots, also on shutdown; BGSAVE and SAVE still work. Several lines in a file add "
            "up; the first one replaces the default. With appendonly yes the journal holds every "
            "change, and its growth decides when a snapshot is due.\n"
            "    save 3600 1 300 100 60 10000",
    },
    {
        .name = "stop-writes-on-bgsave-error",
        .section = DURABILITY,
        .value_syntax = "yes|no",
        .default_value = "yes",
        .id = SETTING_STOP_WRITES_ON_BGSAVE_ERROR,
        .summary =
            "After a snapshot of a save line has failed, reject changes with an error that begins "
            "with MISCONF until one succeeds, so that the failure is noticed. Reads still work. If "
            "the journal cannot be written, changes are rejected in any case.",
    },
    /* boards */
    {
        .name = "layout",
        .section = BOARDS,
        .value_syntax = "NAME FIELD name bits [ASC|DESC] [SIGNED] [SCALE d] [FIELD ...] "
                        "[TIME bits US|MS|S|M|H|D [START t|END t] [LATEST]]",
        .example = "laps FIELD lap_ms 32 ASC TIME 32 S",
        .flags = SETTING_FIXED | SETTING_REPEATS,
        .id = SETTING_LAYOUT,
        .summary =
            "Define a layout. A layout divides a member's 64 bits between its score and the time "
            "at which it reached it; docs/layouts.md explains the words and helps to choose "
            "widths. Up to 255 lines, each with a new name.\n"
            "One layout, default, is built in, for whole scores from -4294967296 to 4294967295 "
            "and times in seconds until 2088:\n"
            "    FIELD score 33 SIGNED TIME 31 S\n"
            "Some others. Lap times in milliseconds, where less is better; money with two "
            "decimals; scores of one week, with times to the millisecond:\n"
            "    layout laps   FIELD lap_ms 32 ASC TIME 32 S\n"
            "    layout money  FIELD balance 40 SCALE 2 TIME 24 M\n"
            "    layout week47 FIELD score 34 TIME 30 MS START 2026-11-16T00:00:00Z",
    },
    {
        .name = "board",
        .section = BOARDS,
        .value_syntax = "GLOB NAME " SETTING_OPTIONS,
        .example = "race:* laps",
        .flags = SETTING_FIXED | SETTING_REPEATS,
        .id = SETTING_BOARD,
        .summary =
            "New boards whose key matches the pattern get the named layout and the options after "
            "it. Up to 1024 lines; the first match wins, so put narrow patterns first. The layout "
            "may be defined above or below. A board keeps the layout and the options that it was "
            "created with.\n"
            "CAP n keeps the best n members: on a full board, a newcomer ranked below the last is "
            "dropped. KEEP BEST keeps a member's best result: a write that is not strictly better "
            "changes nothing, unless it is an increment. Both apply to every command, also of "
            "clients that do not know these options.\n"
            "PERIOD starts a board over with every day, week (on Monday) or month of the time zone "
            "that is TZ ahead of UTC: at the end of the period the board becomes an archive named "
            "after the date on which the period began, such as top:eu@2026-11-16, and START of the "
            "board's times moves to the next period. ARCHIVE n keeps an archive for n periods; "
            "without it archives are kept forever.\n"
            "    board top:*  default CAP 1000\n"
            "    board race:* laps    CAP 100 KEEP BEST\n"
            "    board week:* default PERIOD WEEK TZ +08:00 ARCHIVE 8\n"
            "In a pattern, * matches any run of characters, ? one character, [abc] and [a-z] one "
            "of these, [^a] any other one, and \\ makes the next character literal. A pattern has "
            "at most 1024 bytes.",
    },
    {
        .name = "default-layout",
        .section = BOARDS,
        .value_syntax = "NAME",
        .default_value = "default",
        .id = SETTING_DEFAULT_LAYOUT,
        .summary = "The layout of new boards that match no board line.",
    },
    {.name = NULL},
};
