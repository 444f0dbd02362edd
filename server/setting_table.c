/* Every setting: what it is called, what it may be, and what it is for.
 *
 * Order: by section; CONFIG GET, leaderboard.conf and docs/settings.md follow it. A summary is
 * plain text: a line break begins a paragraph, a line that begins with blanks is an example. */
#include "server/setting_private.h"

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
            "A '-' in front of an address says that it is no error when this machine does not have "
            "it.\n"
            "Whoever reaches an open port can read and change every board: set requirepass before "
            "you open one.",
    },
    {
        .name = "port",
        .section = NETWORK,
        .value_syntax = "0..65535",
        .default_value = "6379",
        .flags = SETTING_FIXED,
        .id = SETTING_PORT,
        .summary = "The TCP port to listen on. It is the one that Redis clients connect to by "
                   "default. 0 opens no TCP port; unixsocket must be set then.",
    },
    {
        .name = "unixsocket",
        .section = NETWORK,
        .value_syntax = "path",
        .default_value = "\"\"",
        .example = "/run/leaderboard/leaderboard.sock",
        .flags = SETTING_FIXED,
        .id = SETTING_UNIXSOCKET,
        .summary = "Listen on a Unix socket at this path too (107 bytes at most). \"\" is none.",
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
                   "own user in, 770 its group too. 0 leaves them to the umask.",
    },
    {
        .name = "tcp-backlog",
        .section = NETWORK,
        .value_syntax = "1..65535",
        .default_value = "511",
        .flags = SETTING_FIXED,
        .id = SETTING_TCP_BACKLOG,
        .summary = "How many connections may wait to be accepted. Linux cuts it down to the value "
                   "of net.core.somaxconn; raise both if many clients connect within one moment.",
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
        .summary =
            "After this many seconds of silence the system asks a client's machine whether it is "
            "still there, so that connections to machines that have gone are noticed, and those "
            "that routers would forget are kept. 0 does not ask. A new value holds for clients "
            "that connect afterwards.",
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
        .summary = "The password that clients must give with AUTH or HELLO before anything else. "
                   "A client can try very many in a second, so take a long random one: openssl "
                   "rand -base64 32 prints one. \"\" asks for none. Keep this file readable to the "
                   "server's user alone when a password is in it.",
    },
    /* limits */
    {
        .name = "maxclients",
        .section = LIMITS,
        .value_syntax = "1..4294967295",
        .default_value = "10000",
        .id = SETTING_MAXCLIENTS,
        .summary = "How many clients may be connected at a time; further ones get an error and are "
                   "closed. Every client takes one file descriptor. At start the server raises its "
                   "limit of descriptors as far as the system lets it, and logs it when that is "
                   "not enough.",
    },
    {
        .name = "maxmemory",
        .section = LIMITS,
        .value_syntax = "size",
        .default_value = "0",
        .example = "8gb",
        .id = SETTING_MAXMEMORY,
        .summary = "Once the server holds more memory than this, commands that may need more are "
                   "answered with an error that begins with OOM. Reading and removing go on. 0 is "
                   "no limit: then the system's memory is the limit.",
    },
    {
        .name = "maxmemory-policy",
        .section = LIMITS,
        .value_syntax = "noeviction",
        .default_value = "noeviction",
        .id = SETTING_MAXMEMORY_POLICY,
        .summary = "What happens past maxmemory: noeviction is the only value, as no member and no "
                   "board is ever dropped to make room. It is here because clients ask for it.",
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
        .summary = "The most unfinished input that is held for one client. A client that sends a "
                   "longer request is closed.",
    },
    {
        .name = "client-output-buffer-limit",
        .section = LIMITS,
        .value_syntax = "normal hard-size soft-size soft-seconds",
        .default_value = "normal 256mb 64mb 60",
        .id = SETTING_CLIENT_OUTPUT_BUFFER_LIMIT,
        .summary = "The most replies that are held for a client that does not read them. It is "
                   "closed at once when more than the hard size waits, and when more than the soft "
                   "size has waited for so many seconds on end. A size of 0 is no limit. All "
                   "clients are of the class normal.",
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
                   "which want the server in the foreground. With yes, set logfile too.",
    },
    {
        .name = "pidfile",
        .section = GENERAL,
        .value_syntax = "path",
        .default_value = "\"\"",
        .example = "/run/leaderboard/leaderboard.pid",
        .flags = SETTING_FIXED,
        .id = SETTING_PIDFILE,
        .summary = "Write the server's process number to this file, and remove it at the end. \"\" "
                   "writes none.",
    },
    {
        .name = "logfile",
        .section = GENERAL,
        .value_syntax = "path",
        .default_value = "\"\"",
        .example = "/var/log/leaderboard/leaderboard.log",
        .flags = SETTING_FIXED,
        .id = SETTING_LOGFILE,
        .summary =
            "The file that the log is appended to; \"\" is the standard output. SIGHUP opens it "
            "anew, so that logrotate can move it away.",
    },
    {
        .name = "loglevel",
        .section = GENERAL,
        .value_syntax = "debug|verbose|notice|warning",
        .default_value = "notice",
        .id = SETTING_LOGLEVEL,
        .summary = "How much is logged. warning: what needs somebody's attention. notice: also "
                   "what an operator wants to know. verbose and debug: for finding faults.",
    },
    {
        .name = "databases",
        .section = GENERAL,
        .value_syntax = "16",
        .default_value = "16",
        .flags = SETTING_FIXED,
        .id = SETTING_DATABASES,
        .summary = "The number of databases, that SELECT chooses from by 0 to 15. It is fixed; the "
                   "setting is here because clients ask for it.",
    },
    {
        .name = "slowlog-log-slower-than",
        .section = GENERAL,
        .value_syntax = "-1..9223372036854775807 microseconds",
        .default_value = "10000",
        .id = SETTING_SLOWLOG_LOG_SLOWER_THAN,
        .summary = "Commands that run for at least this many microseconds are kept for SLOWLOG. "
                   "The time is that of the command alone, without waiting and sending. 0 keeps "
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
        .summary = "The directory under which the server keeps its files. It must be there. A path "
                   "that does not begin with / counts from where the server is started; CONFIG GET "
                   "shows the whole one.",
    },
    {
        .name = "appenddirname",
        .section = DURABILITY,
        .value_syntax = "name",
        .default_value = "appendonlydir",
        .flags = SETTING_FIXED,
        .id = SETTING_APPENDDIRNAME,
        .summary = "The name of the directory inside dir that holds the snapshot, the journal and "
                   "the manifest that names them. The server makes it. One server uses it at a "
                   "time: a second one refuses to start.",
    },
    {
        .name = "appendonly",
        .section = DURABILITY,
        .value_syntax = "yes|no",
        .default_value = "no",
        .id = SETTING_APPENDONLY,
        .summary = "Write every change to a journal on disk, so that a crash loses nothing or next "
                   "to nothing; appendfsync says which. With no, what has changed since the last "
                   "snapshot is lost in a crash. docs/durability.md helps to choose. What is on "
                   "disk is loaded at start with either. yes on a running server writes a snapshot "
                   "first; the journal counts from when that is done.",
    },
    {
        .name = "appendfsync",
        .section = DURABILITY,
        .value_syntax = "everysec|always|no",
        .default_value = "everysec",
        .id = SETTING_APPENDFSYNC,
        .summary = "When the journal is forced onto the disk. everysec: once a second; if the "
                   "machine loses power, about a second of changes is lost, and if only the server "
                   "crashes, none that was answered. always: before a change is answered, and "
                   "before anybody reads it; nothing that was answered is lost, and clients wait "
                   "for the disk, many of them for one and the same fsync. no: when the system "
                   "likes to, which may take half a minute.",
    },
    {
        .name = "auto-aof-rewrite-percentage",
        .section = DURABILITY,
        .value_syntax = "0..2147483647",
        .default_value = "100",
        .id = SETTING_AUTO_AOF_REWRITE_PERCENTAGE,
        .summary = "Write a new snapshot, which the journal then begins behind, when the files "
                   "have grown by this many percent since the last one: 100 is when they are twice "
                   "as large. 0 never does.",
    },
    {
        .name = "auto-aof-rewrite-min-size",
        .section = DURABILITY,
        .value_syntax = "size",
        .default_value = "64mb",
        .id = SETTING_AUTO_AOF_REWRITE_MIN_SIZE,
        .summary = "But not as long as the files are smaller than this.",
    },
    {
        .name = "save",
        .section = DURABILITY,
        .value_syntax = "seconds changes [seconds changes ...] | \"\"",
        .default_value = "3600 1 300 100 60 10000",
        .id = SETTING_SAVE,
        .summary = "With appendonly no: write a snapshot when so many seconds have passed since "
                   "the last one and so many changes have come, for any of the pairs (a command "
                   "that changes a board is one); and at the end, when the server is asked to "
                   "stop. \"\" writes none by itself, at the end neither; BGSAVE and SAVE still "
                   "do. May stand on several lines of a file, which add up; the first one takes "
                   "the place of the default. With appendonly yes the journal holds every change, "
                   "and its growth says when a snapshot is due.\n"
                   "    save 3600 1 300 100 60 10000",
    },
    {
        .name = "stop-writes-on-bgsave-error",
        .section = DURABILITY,
        .value_syntax = "yes|no",
        .default_value = "yes",
        .id = SETTING_STOP_WRITES_ON_BGSAVE_ERROR,
        .summary = "Refuse changes, with an error that begins with MISCONF, after a snapshot of a "
                   "save line has failed, until one succeeds: so that somebody notices that "
                   "nothing is kept any more. Reading goes on. A journal that cannot be written "
                   "refuses changes in any case.",
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
            "Give a name to a layout. A layout says how a member's 64 bits are shared between its "
            "score and the time at which it reached it; docs/layouts.md explains the words and "
            "helps to choose widths. May stand on up to 255 lines, each with a new name.\n"
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
            "New boards whose key matches the pattern get the layout of that name, and the options "
            "behind it. May stand on up to 1024 lines; the first that matches wins, so put the "
            "narrow patterns first. The layout may be defined above or below. A board keeps the "
            "layout and the options that it was made with for as long as it is there.\n"
            "CAP n keeps the best n members: a newcomer worse than a full board's last is not "
            "kept. KEEP BEST keeps a member's best result: a write that is not strictly better "
            "changes nothing, unless it is an increment. Both hold for every command, and for "
            "clients that know nothing of them.\n"
            "PERIOD lets a board begin anew with every day, week (on Monday) or month of the time "
            "zone that is TZ ahead of UTC: at the end of the period it becomes an archive, called "
            "by the date on which the period began, such as top:eu@2026-11-16, and START of its "
            "times moves to the next one. An archive is kept for n periods with ARCHIVE n, for "
            "ever "
            "without it.\n"
            "    board top:*  default CAP 1000\n"
            "    board race:* laps    CAP 100 KEEP BEST\n"
            "    board week:* default PERIOD WEEK TZ +08:00 ARCHIVE 8\n"
            "In a pattern, * is any run of characters, ? is one character, [abc] and [a-z] are "
            "one of these, [^a] is one but these, and \\ takes the next character as it is.",
    },
    {
        .name = "default-layout",
        .section = BOARDS,
        .value_syntax = "NAME",
        .default_value = "default",
        .id = SETTING_DEFAULT_LAYOUT,
        .summary = "The layout of new boards that no board line matches.",
    },
    {.name = NULL},
};
