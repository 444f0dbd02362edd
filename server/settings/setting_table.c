/* The table of all settings: one row says all there is to say about one, and drives parsing,
 * printing and the pages.
 *
 * Order: by section; CONFIG GET, leaderboard.conf and docs/reference/settings.md follow it. */
#include <sys/un.h>

#include "server/settings/setting_private.h"
#include "server/system/version.h"

static const struct setting_section network = {
    "Network",
    "Where the server listens, and who may connect.",
};
static const struct setting_section tls = {
    "TLS",
    "Encrypted connections: docs/operate/tls.md shows how to make certificates and to change them. "
    "CONFIG "
    "SET of any of these reads the files again; clients that are connected stay connected.",
};
static const struct setting_section users = {
    "Users",
    "Who may log in, and what each may do: docs/operate/secure.md explains the rules.",
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
static const struct setting_section monitoring = {
    "Monitoring",
    "Metrics and health over HTTP.",
};
static const struct setting_section page = {
    "The page",
    "What is on the boards, live, and how the server is, in a browser: docs/web.md.",
};
static const struct setting_section durability = {
    "Durability",
    "What is kept on disk, and when: docs/operate/durability.md explains how to choose.",
};
static const struct setting_section replication = {
    "Replication",
    "Copies of this server: docs/scale/replication.md explains how to run them.",
};
static const struct setting_section boards = {
    "Boards",
    "Which layout a new board gets: how the 64 bits that rank a member are divided into fields.",
};

enum {
    SYSLOG_IDENT_SIZE_MAX = 64,
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
/* The words in the order of the field's enum. */
#define CHOICE(field, ...)                                                                         \
    {                                                                                              \
        SETTING_TYPE_CHOICE, NULL, FIELD(int, field), 0, 0, (const char *const[]) {                \
            __VA_ARGS__, NULL                                                                      \
        }                                                                                          \
    }
#define ONLY(value, why)                                                                           \
    {                                                                                              \
        SETTING_TYPE_ONLY, value, 0, 0, 0, (const char *const[]) {                                 \
            value, why                                                                             \
        }                                                                                          \
    }
#define TEXT(type, field, minimum, maximum, syntax)                                                \
    { SETTING_TYPE_##type, syntax, FIELD(char *, field), minimum, maximum, NULL }
#define STRING(field, syntax) TEXT(STRING, field, 0, SETTING_STRING_MAX, syntax)
#define EVENTS(field)                                                                              \
    { SETTING_TYPE_EVENTS, "letters", FIELD(unsigned, field), 0, 0, NULL }
/* At least one word, or none. */
#define WORDS(type, syntax)                                                                        \
    { SETTING_TYPE_##type, syntax, 0, 1, 0, NULL }
#define WORDS_OR_NONE(type, syntax)                                                                \
    { SETTING_TYPE_##type, syntax, 0, 0, 0, NULL }
#define ADDRESSES(field, minimum, syntax, wrong)                                                   \
    {                                                                                              \
        SETTING_TYPE_ADDRESSES, syntax, FIELD(struct setting_addresses, field), minimum, 0,        \
            (const char *const[]) {                                                                \
            wrong                                                                                  \
        }                                                                                          \
    }

#define SUBNETS(field)                                                                             \
    { SETTING_TYPE_SUBNETS, "network ...", FIELD(struct setting_subnets, field), 0, 0, NULL }

/* name, section, flags, kind, default, example, summary */
const struct setting setting_table[] = {
    {"bind", &network, SETTING_FIXED,
     ADDRESSES(bind, 1, "address [address ...]",
               "is not an address: IPv4, IPv6, a host's name, * and ::* are allowed, with '-' in "
               "front if it may be missing"),
     "127.0.0.1 -::1", NULL,
     "The addresses to listen on, 16 at most. Only this machine can reach 127.0.0.1 and ::1. To "
     "serve other machines, name the address of one of your own network cards; * is every IPv4 "
     "address, ::* every IPv6 address. A host's name stands for its first address.\n"
     "A '-' in front of an address makes it optional: it is no error if this machine does not have "
     "it.\n"
     "Anyone who can reach an open port can read and change every board: set requirepass before "
     "you open one."},
    {"port", &network, SETTING_FIXED, INTEGER(port, 0, 65535, ""), "6379", NULL,
     "The TCP port to listen on. The default is also the default of Redis clients. 0 opens no TCP "
     "port without TLS; tls-port or unixsocket must be set then."},
    {"unixsocket", &network, SETTING_FIXED,
     TEXT(STRING, unixsocket, 0, UNIXSOCKET_SIZE_MAX, "path"), "\"\"",
     "/run/leaderboard/leaderboard.sock",
     "Also listen on a Unix socket at this path (at most 107 bytes). \"\" means none."},
    {"unixsocketperm", &network, SETTING_FIXED, OCTAL(unixsocketperm, 777), "0", "700",
     "The permissions of the Unix socket, as chmod takes them: 700 lets the server's own user in, "
     "770 its group too. 0 uses the umask."},
    {"proxy-protocol", &network, SETTING_FIXED,
     ADDRESSES(proxied, 0, "address|unixsocket ...", "is neither an address nor unixsocket"),
     "\"\"", "127.0.0.1",
     "Listeners behind a balancer: the words of bind whose connections begin with a header of the "
     "PROXY protocol, version 1 or 2, and unixsocket. The client that the header names counts as "
     "the client, in CLIENT LIST, in the log, and for protected-mode. A connection without a "
     "header is closed. \"\" means none. See docs/operate/behind-a-balancer.md."},
    {"proxy-protocol-from", &network, SETTING_FIXED, SUBNETS(proxies), "127.0.0.1 ::1",
     "10.0.0.0/24 fd00::/64",
     "The balancers, as addresses or networks: whoever else connects to a listener of "
     "proxy-protocol is refused, and logged, since a header can claim any address. On the unix "
     "socket its permissions decide."},
    {"tcp-backlog", &network, SETTING_FIXED, INTEGER(tcp_backlog, 1, 65535, ""), "511", NULL,
     "How many connections may wait to be accepted. Linux limits it to net.core.somaxconn; raise "
     "both if many clients connect at the same moment."},
    {"timeout", &network, 0, INTEGER(timeout_s, 0, INT32_MAX, "seconds"), "0", NULL,
     "Close a client that has sent nothing for this many seconds. 0 never does."},
    {"tcp-keepalive", &network, 0, INTEGER(tcp_keepalive_s, 0, INT32_MAX, "seconds"), "300", NULL,
     "After this many seconds without traffic the system sends TCP keep-alive probes, so that dead "
     "connections are detected and routers do not drop idle ones. 0 sends none. A new value "
     "applies to clients that connect afterwards."},
    {"protected-mode", &network, 0, BOOLEAN(protected_mode), "yes", NULL,
     "While this is on and no password is set, clients from other machines are refused, whatever "
     "bind says. Set requirepass rather than turn this off."},
    {"requirepass", &network, SETTING_SECRET, STRING(requirepass, "password"), "\"\"",
     "\"a long random text\"",
     "The password of the user named default, which clients must give with AUTH or HELLO before "
     "anything else, unless they log in as another user. A client can try many passwords per "
     "second, so choose a long random one: openssl rand -base64 32 prints one. \"\" requires none. "
     "If this file contains a password, make it readable only by the server's user."},
    {"auth-timeout", &network, 0, INTEGER(auth_timeout_s, 0, INT32_MAX, "seconds"), "60", NULL,
     "While requirepass is set: how long a client may stay connected without authenticating. Until "
     "then it may hold at most 20 KB, input and replies together. 0 closes none."},
    {"auth-delay", &network, 0, INTEGER(auth_delay_ms, 0, 60000, "milliseconds"), "100", NULL,
     "Against guessing: once an address has given auth-delay-after wrong passwords, its next AUTH "
     "or HELLO with a password waits this long before it is looked at, and twice as long after "
     "each further failure, up to auth-delay-max. Other addresses, and clients that are "
     "authenticated, wait for nothing. A right password ends it for failures of the same user, ten "
     "minutes without a failure for all. IPv6 addresses count by network (/64), all clients of "
     "Unix sockets as one address. 0 never delays."},
    {"auth-delay-max", &network, 0, INTEGER(auth_delay_max_ms, 0, 60000, "milliseconds"), "5000",
     NULL, "The longest auth-delay, however many passwords were wrong."},
    {"auth-delay-after", &network, 0, INTEGER(auth_delay_after, 1, 1000000, ""), "5", NULL,
     "How many wrong passwords an address may give before auth-delay begins."},

    {"tls-port", &tls, SETTING_FIXED, INTEGER(tls_port, 0, 65535, ""), "0", "6380",
     "The TCP port that takes clients with TLS, at the addresses of bind. 0 means none. To take no "
     "others, set port to 0."},
    {"tls-cert-file", &tls, 0, STRING(tls_cert_file, "path"), "\"\"", "/etc/leaderboard/server.crt",
     "The server's certificate, in PEM; certificates between it and the authority's follow in the "
     "same file. Give tls-cert-file and tls-key-file in one CONFIG SET to change both."},
    {"tls-key-file", &tls, 0, STRING(tls_key_file, "path"), "\"\"", "/etc/leaderboard/server.key",
     "The key that belongs to the certificate, in PEM. Only the server's user should be able to "
     "read it."},
    {"tls-key-file-pass", &tls, SETTING_SECRET, STRING(tls_key_file_pass, "password"), "\"\"",
     "secret", "The password of the key file, if it is encrypted."},
    {"tls-ca-cert-file", &tls, 0, STRING(tls_ca_cert_file, "path"), "\"\"",
     "/etc/leaderboard/ca.crt",
     "The certificates of the authorities whose clients are trusted, in PEM."},
    {"tls-ca-cert-dir", &tls, 0, STRING(tls_ca_cert_dir, "path"), "\"\"", "/etc/ssl/certs",
     "A directory with such certificates, a file each, named as openssl rehash names them."},
    {"tls-auth-clients", &tls, 0, CHOICE(tls_auth_clients, "no", "yes", "optional"), "yes", NULL,
     "Must clients show a certificate that one of the authorities has signed? no: none is asked "
     "for. optional: one that is shown must be right. With yes and optional, tls-ca-cert-file or "
     "tls-ca-cert-dir must be set."},
    {"tls-auth-clients-user", &tls, 0, CHOICE(tls_auth_clients_user, "off", "CN"), "off", NULL,
     "CN: a client whose certificate names a user of this server (the common name, CN) is that "
     "user, without a password. With off, and for all other names, it has to authenticate as any "
     "other client."},
    {"tls-protocols", &tls, 0, STRING(tls_protocols, "protocols"), "\"\"", "\"TLSv1.3\"",
     "Which versions clients may use, of TLSv1, TLSv1.1, TLSv1.2 and TLSv1.3, with blanks between "
     "them. \"\" is \"TLSv1.2 TLSv1.3\"."},
    {"tls-ciphers", &tls, 0, STRING(tls_ciphers, "ciphers"), "\"\"", "DEFAULT:!MEDIUM",
     "The ciphers of TLSv1.2 and older, as openssl ciphers takes them. \"\" is OpenSSL's choice."},
    {"tls-ciphersuites", &tls, 0, STRING(tls_ciphersuites, "ciphersuites"), "\"\"",
     "TLS_CHACHA20_POLY1305_SHA256",
     "The cipher suites of TLSv1.3, with colons between them. \"\" is OpenSSL's choice."},
    {"tls-prefer-server-ciphers", &tls, 0, BOOLEAN(tls_prefer_server_ciphers), "no", NULL,
     "Whose order of ciphers counts: yes: the server's; no: the client's."},
    {"tls-session-caching", &tls, 0, BOOLEAN(tls_session_caching), "yes", NULL,
     "May clients that connect again go on with their last session? That spares them and the "
     "server most of the handshake."},
    {"tls-session-cache-size", &tls, 0, INTEGER(tls_session_cache_size, 0, INT32_MAX, ""), "20480",
     NULL,
     "How many sessions of TLSv1.2 are kept; 0: any number. Those of TLSv1.3 are with the "
     "clients."},
    {"tls-session-cache-timeout", &tls, 0,
     INTEGER(tls_session_cache_timeout_s, 0, INT32_MAX, "seconds"), "300", NULL,
     "How long a session can be gone on with."},

    {"user", &users, SETTING_FIXED | SETTING_REPEATS | SETTING_IN_FILE,
     TEXT(USER, user_lines, 0, 0, "name [rule ...]"), NULL,
     "dashboard on >password %R~top:* +@read +@connection -@dangerous",
     "Define a user: a name, and rules as ACL SETUSER takes them. Up to 10000 lines, each with a "
     "new name; a line for the user named default replaces what requirepass says. Write a password "
     "as its SHA-256 in hexadecimal behind #, or as text behind >. CONFIG REWRITE writes the users "
     "that there are, with hashes. Either this file has `user` lines or there is an aclfile, not "
     "both.\n"
     "    user dashboard on #hash ~top:* -@all +@read +ping\n"
     "    user game on >password ~* &* +@all -@admin -@dangerous"},
    {"aclfile", &users, SETTING_FIXED, STRING(aclfile, "path"), "\"\"",
     "/etc/leaderboard/users.acl",
     "A file of users, one `user` line each, without comments. A relative path is one in dir. ACL "
     "LOAD reads it again, ACL SAVE writes it. \"\" means none."},
    {"player-key", &users, SETTING_REPEATS | SETTING_SECRET,
     WORDS(PLAYER_KEY, "KID hs256|ed25519 KEY [ISS issuer] [AUD audience] [BOARDS pattern ...]"),
     NULL, "web ed25519 MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE= AUD mygame",
     "A key by which players' tokens (JSON Web Tokens) are checked: docs/players-write.md. Whoever "
     "has such a token is the user player:KID, which must be there, and writes results of the "
     "member that the token names, and of no other. Up to 16 lines, each with its own KID; the "
     "token's "
     "header names it, and several make it possible to change keys without a pause.\n"
     "    hs256      a secret of 32 to 256 bytes, as text or as base64:...; who has it can make "
     "tokens\n"
     "    ed25519    the public key in base64, as in the middle line of a PEM file\n"
     "ISS and AUD: what the token must say of itself. BOARDS: on which boards it may be used; "
     "without it, where its user may."},
    {"acl-pubsub-default", &users, 0, CHOICE(acl_pubsub_default, "allchannels", "resetchannels"),
     "resetchannels", NULL,
     "Which channels a new user may use before its rules name any: none (resetchannels) or all."},
    {"acllog-max-len", &users, 0, INTEGER(acllog_max_len, 0, 1000000, ""), "128", NULL,
     "How many entries ACL LOG keeps: logins that failed, and requests that a user had no right "
     "to."},
    {"maxclients", &limits, 0, INTEGER(maxclients, 1, UINT32_MAX, ""), "10000", NULL,
     "How many clients may be connected at a time; others get an error and are closed. Every "
     "client takes one file descriptor. At start the server raises its descriptor limit as far as "
     "the system allows; if that is not enough it lowers maxclients and logs the new value. CONFIG "
     "SET refuses more clients than there are descriptors for."},
    {"io-threads", &limits, SETTING_FIXED, INTEGER(io_threads, 1, SETTING_IO_THREADS_MAX, ""), "1",
     NULL,
     "How many threads read requests and write replies. With 1, the thread that has the boards "
     "also does that. With 2 or more, that thread has no sockets, and so many others do: a server "
     "with io-threads 2 uses up to three processors. Worth it where the log or top shows the "
     "server at a whole processor and clients do not pipeline."},
    {"maxmemory", &limits, 0, SIZE(maxmemory, 0, "size"), "0", "8gb",
     "Once the server uses more memory than this, commands that may need more are rejected with an "
     "error that begins with OOM. Reads and removals still work. 0 means no limit but the system's "
     "memory."},
    {"maxmemory-clients", &limits, 0, SIZE_OR_PERCENT(maxmemory_clients), "25%", "1gb",
     "The most memory that all clients together may use: unfinished input, queued transactions, "
     "watched keys, and unread replies. Above it the largest clients are closed, one after "
     "another, until the rest fits; CLIENT NO-EVICT ON exempts a client. A percentage is relative "
     "to maxmemory, or to the machine's memory if maxmemory is 0. The clients' memory also counts "
     "towards maxmemory. Less than 128kb counts as 128kb; 0 means no limit."},
    {"tracking-table-max-keys", &limits, 0, INTEGER(tracking_table_max_keys, 0, INT64_MAX, ""),
     "1000000", NULL,
     "How many keys the server remembers for CLIENT TRACKING, and ten times as many pairs of a key "
     "and a client that has read it. Above it the readers of another key are told as if it had "
     "changed. What a client has read also counts towards maxmemory-clients. 0 means no limit of "
     "its own."},
    {"maxmemory-policy", &limits, 0,
     ONLY("noeviction", "a member or a board is never dropped to make room"), "noeviction", NULL,
     "What happens above maxmemory: noeviction is the only value, as no member and no board is "
     "ever evicted. The setting exists because clients query it."},
    {"proto-max-bulk-len", &limits, 0, SIZE(proto_max_bulk_len, MEBIBYTE, "size, 1mb at least"),
     "64mb", NULL, "The longest single argument that a request may announce."},
    {"client-query-buffer-limit", &limits, 0,
     SIZE(client_query_buffer_limit, MEBIBYTE, "size, 1mb at least"), "256mb", NULL,
     "The most unfinished input that is buffered for one client. A client that sends a longer "
     "request is closed. A replica buffers as much of one change of its master: it gets what is "
     "longer as a full copy."},
    {"client-output-buffer-limit", &limits, 0,
     WORDS(OUTPUT_LIMIT, "normal|replica|pubsub hard-size soft-size soft-seconds ..."),
     "normal 256mb 64mb 60 replica 256mb 64mb 60 pubsub 32mb 8mb 60", NULL,
     "The most unread replies that are buffered for a client. It is closed at once above the hard "
     "size, and after soft-seconds without a break above the soft size. A size of 0 means no "
     "limit. Clients with a subscription are of class pubsub, replicas of class replica (or "
     "slave), all others of class normal. A class that is not named keeps its limits. Of a replica "
     "the hard size bounds the groups that it has not read, though repl-backlog-size of them are "
     "always allowed, and the soft size bounds nothing: a full copy is sent as fast as it is "
     "read."},
    {"once-window", &limits, 0, INTEGER(once_window_s, 1, 2678400, "seconds"), "600", NULL,
     "How long the id of a result is known (LB.ADD ONCE, LB.SUBMIT ONCE): a command that comes "
     "again with it changes nothing. docs/reference/once.md says what that is for."},
    {"once-max", &limits, 0, INTEGER(once_max, 1, 1000000000, ""), "1000000", NULL,
     "The most ids of results that are known at a time. A user may have four times as many as are "
     "free, so one alone at most 80% of them. Beyond that, and while there are so many younger "
     "than once-window, a result with another id is refused with an error that begins with "
     "TRYAGAIN. An id takes about 34 bytes, over HTTP twice that; INFO shows them as once_ids and "
     "once_bytes. As many marks of used tickets are kept besides, one for each player and board; "
     "docs/reference/tickets.md."},
    {"busy-command-limit", &limits, 0, INTEGER(busy_command_limit_ms, 0, INT32_MAX, "milliseconds"),
     "500", "250",
     "A command that would block all other clients for longer than this is rejected before it "
     "begins, with an error that names both times, and changes nothing. The time is estimated from "
     "the sizes of what the command touches; for EXEC, of all queued commands. SAVE, FLUSHDB, "
     "FLUSHALL and SHUTDOWN are never rejected. 0 rejects none, as in Redis.\n"
     "docs/reference/long-commands.md lists what each command costs, and what to use instead."},
    {"daemonize", &general, SETTING_FIXED, BOOLEAN(daemonize), "no", NULL,
     "Run in the background. Leave it at no under systemd, Docker and the like, which need the "
     "server in the foreground. With yes, also set logfile."},
    {"pidfile", &general, SETTING_FIXED, STRING(pidfile, "path"), "\"\"",
     "/run/leaderboard/leaderboard.pid",
     "Write the server's process ID to this file, and remove it on exit. \"\" writes none."},
    {"logfile", &general, SETTING_FIXED, STRING(logfile, "path"), "\"\"",
     "/var/log/leaderboard/leaderboard.log",
     "The file that the log is appended to; \"\" is the standard output. SIGHUP reopens it, so "
     "that logrotate can move it away."},
    {"loglevel", &general, 0, CHOICE(loglevel, "debug", "verbose", "notice", "warning", "nothing"),
     "notice", NULL,
     "How much is logged. warning: what needs attention. notice: also what an operator wants to "
     "know. verbose and debug: for finding faults. nothing: not a line, but for crash reports. "
     "docs/operate/log.md says what the lines mean."},
    {"shutdown-drain-timeout", &general, 0,
     INTEGER(shutdown_drain_timeout_s, 0, INT32_MAX, "seconds"), "0", "10",
     "How long SHUTDOWN and SIGTERM wait for balancers to send clients elsewhere. In that time "
     "PING is an error for connections made since then, such as a balancer's checks, and all else "
     "works. It ends early if no other client is connected. Then, and with 0 at once, the server "
     "accepts nobody, answers what it has received, and ends. SHUTDOWN NOW and a second signal "
     "skip the wait, SHUTDOWN ABORT calls it off. See docs/operate/behind-a-balancer.md."},
    {"log-format", &general, SETTING_FIXED, CHOICE(log_format, "text", "json"), "text", NULL,
     "text: time, level, message and name=value fields. json: each line is an object with these as "
     "members, the time in UTC to the millisecond."},
    {"syslog-enabled", &general, SETTING_FIXED, BOOLEAN(syslog_enabled), "no", "yes",
     "Send each line to syslog, too. The server never waits for it: while the daemon does not take "
     "lines, they are only in logfile."},
    {"syslog-ident", &general, SETTING_FIXED,
     TEXT(STRING, syslog_ident, 1, SYSLOG_IDENT_SIZE_MAX, "name"), "leaderboard", NULL,
     "The program's name in syslog."},
    {"syslog-facility", &general, SETTING_FIXED,
     CHOICE(syslog_facility, "user", "local0", "local1", "local2", "local3", "local4", "local5",
            "local6", "local7"),
     "local0", NULL, "Where syslog files the lines."},
    {"crash-log-enabled", &general, 0, BOOLEAN(crash_log_enabled), "yes", NULL,
     "When a signal ends the server, log where it was, which command ran, and INFO: see "
     "docs/operate/log.md. With no, there is only one line. It dumps core in both cases, if the "
     "system "
     "allows it."},
    {"audit-log", &general, 0, BOOLEAN(audit_log), "yes", NULL,
     "Log who did what an operator may have to account for, a line each with level audit: FLUSHALL "
     "FLUSHDB SHUTDOWN, CONFIG SET and REWRITE, changes of users, LB.FORGET LB.MOVE LB.BAN "
     "LB.UNBAN LB.SNAPSHOT, wrong passwords, and that maxmemory was reached. Passwords, values of "
     "settings and members are not logged. Of many lines of a kind in ten seconds some are left "
     "out, and counted."},
    {"rename-command", &general, SETTING_FIXED | SETTING_REPEATS | SETTING_IN_FILE,
     WORDS(RENAME, "NAME NEW|\"\""), NULL, "FLUSHALL \"\"",
     "Give a command another name, at most 128 bytes, or with \"\" none, so that no client can run "
     "it. Up to 64 lines. A user with fewer rights is the better way to keep clients from "
     "commands."},
    {"databases", &general, SETTING_FIXED, ONLY("16", "the number of databases is fixed"), "16",
     NULL,
     "The number of databases, selected by SELECT 0 to 15. It is fixed; the setting exists because "
     "clients query it."},
    {"slowlog-log-slower-than", &general, 0,
     INTEGER(slowlog_log_slower_than_us, -1, INT64_MAX, "microseconds"), "10000", NULL,
     "Commands that run for at least this many microseconds are kept for SLOWLOG. The time is that "
     "of the command alone, without waiting and sending. 0 logs every command, -1 none."},
    {"slowlog-max-len", &general, 0, INTEGER(slowlog_max_len, 0, 1000000, ""), "128", NULL,
     "How many commands SLOWLOG keeps, the newest ones."},
    {"notify-keyspace-events", &general, 0, EVENTS(notify_keyspace_events), "\"\"", "KEA",
     "Publish changes of keys to channels, as Redis does. K publishes to __keyspace@0__:key, E to "
     "__keyevent@0__:event. g stands for events of any kind of key (del, expire, rename_to), z for "
     "those of boards (zadd, zrem), x for keys that expire, n for new keys, m for keys that a "
     "command that reads did not find, and A for all but n and m. Redis's other letters are "
     "accepted. Nothing is published without K or E."},
    {"notify-board-events", &general, 0, BOOLEAN(notify_board_events), "no", "yes",
     "Publish what happens to boards to channels of their own. __board@0__:daily gets \"rolled "
     "daily@2026-11-16\", with the archive's name, when daily rolls over, or \"rolled\" if there "
     "is no archive; settled, when LB.SETTLE has settled it; and opened and closed. Those who "
     "subscribe to __top@0__:10:daily, __toplist@, "
     "__topmembers@ or __overtaken@ are told of changes of the first members: "
     "docs/reference/push.md."},
    {"latency-monitor-threshold", &general, 0,
     INTEGER(latency_monitor_threshold_ms, 0, INT64_MAX, "milliseconds"), "0", NULL,
     "Events that take at least this many milliseconds are kept for LATENCY. 0 keeps none."},
    {"extended-redis-compatibility", &general, 0, BOOLEAN(extended_redis_compatibility), "no",
     "yes",
     "Say in HELLO to be redis " SERVER_HELLO_REDIS_VERSION
     ", as Valkey does by its setting of this "
     "name: the caches of redis-py and Jedis (CLIENT TRACKING) work with no other server."},
    {"latency-tracking", &general, 0, BOOLEAN(latency_tracking), "yes", NULL,
     "Keep a histogram of every command's running times, for LATENCY HISTOGRAM."},
    {"metrics-port", &monitoring, SETTING_FIXED, INTEGER(metrics_port, 0, 65535, ""), "0", "9121",
     "The TCP port that answers GET /metrics, /healthz and /readyz over HTTP. 0 opens none. "
     "docs/operate/monitor.md says how to use them."},
    {"metrics-bind", &monitoring, SETTING_FIXED,
     TEXT(STRING, metrics_bind, 1, FILE_NAME_SIZE_MAX, "address"), "127.0.0.1", NULL,
     "The address of the metrics-port: one, or * for every IPv4 address, ::* for every IPv6 "
     "address. While requirepass is set, /metrics wants it (HTTP Basic, user default); without "
     "one, and with protected-mode on, only this machine gets /metrics. /healthz and /readyz are "
     "answered to everybody who can reach the port."},
    {"metrics-tls-cert-file", &monitoring, SETTING_FIXED, STRING(metrics_tls_cert_file, "path"),
     "\"\"", "/etc/leaderboard/server.crt",
     "The certificate of the metrics-port, a PEM file with those that vouch for it behind it. With "
     "it the port speaks HTTPS, and nothing else; TLS 1.2 or 1.3. A new certificate takes a "
     "restart."},
    {"metrics-tls-key-file", &monitoring, SETTING_FIXED, STRING(metrics_tls_key_file, "path"),
     "\"\"", "/etc/leaderboard/server.key", "Its key, a PEM file without a password."},
    {"metrics-hosts", &monitoring, SETTING_FIXED, STRING(metrics_hosts, "\"name name ...\""),
     "\"\"", "\"boards.example.com\"",
     "Names with a dot under which the metrics-port is asked, for instance by Prometheus. "
     "Addresses and names without a dot need not be listed. Requests that name another host are "
     "refused, so that no page in a browser on this machine can read the metrics (DNS rebinding). "
     "* allows all."},
    {"web-port", &page, SETTING_FIXED, INTEGER(web_port, 0, 65535, ""), "0", "8080",
     "The TCP port of the page and of its JSON API. 0 opens none. Who may see what is a matter of "
     "users: see docs/web.md."},
    {"web-bind", &page, SETTING_FIXED, TEXT(STRING, web_bind, 1, FILE_NAME_SIZE_MAX, "address"),
     "127.0.0.1", NULL,
     "The address of the web-port: one, or * for every IPv4 address, ::* for every IPv6 address. "
     "Without a password (requirepass), and with protected-mode on, other machines see only what "
     "web-public names. Without TLS and with protected-mode on, passwords are taken from this "
     "machine alone."},
    {"web-public", &page, SETTING_FIXED, STRING(web_public, "\"pattern pattern ...\""), "\"\"",
     "\"daily week:* user:*\"",
     "Patterns of keys, in all databases, that anybody who reaches the web-port may see without a "
     "password: boards, and the hashes that web-data shows beside their members, of which only its "
     "fields are shown. * is all. What they may do is to read the page's boards, and nothing else; "
     "the server's figures are for users."},
    {"web-data", &page, SETTING_FIXED, STRING(web_data, "\"pattern field ...\""), "\"\"",
     "\"user:* name country\"",
     "What the page shows beside members: the pattern of their hashes, in which the * stands for "
     "the member, and the fields. The first field is shown as the member's name."},
    {"web-avatars", &page, SETTING_FIXED, STRING(web_avatars, "\"field [origin ...]\""), "\"\"",
     "\"avatar https://cdn.example.com\"",
     "The field of web-data that names a member's picture, which the page then shows: a path on "
     "the page's own host, as a proxy may serve it, or an address at one of the origins, which "
     "browsers then load it from. Pictures from elsewhere are not loaded."},
    {"web-hosts", &page, SETTING_FIXED, STRING(web_hosts, "\"name name ...\""), "\"\"",
     "\"boards.example.com\"",
     "Names with a dot under which browsers ask for the page. Addresses and names without a dot "
     "need not be listed. Requests that name another host are refused, so that no other page in a "
     "browser can read the boards (DNS rebinding). * allows all."},
    {"web-tls-cert-file", &page, SETTING_FIXED, STRING(web_tls_cert_file, "path"), "\"\"",
     "/etc/leaderboard/server.crt",
     "The certificate of the web-port, a PEM file with those that vouch for it behind it. With it "
     "the port speaks HTTPS, and nothing else; TLS 1.2 or 1.3. A new certificate takes a restart."},
    {"web-tls-key-file", &page, SETTING_FIXED, STRING(web_tls_key_file, "path"), "\"\"",
     "/etc/leaderboard/server.key", "Its key, a PEM file without a password."},
    {"web-max-connections", &page, SETTING_FIXED, INTEGER(web_max_connections, 16, 20000, ""),
     "1000", NULL,
     "How many browsers' connections the web-port holds, with 16 kB each; three quarters of them "
     "may be viewers that are told of changes."},
    {"web-max-connections-per-address", &page, SETTING_FIXED,
     INTEGER(web_max_connections_per_address, 0, 20000, ""), "100", NULL,
     "How many of them one address may have; an IPv6 network of 64 bits is one address. Further "
     "ones get 429. This machine, and what web-proxies names, may have any number: there each "
     "client that a proxy names has this limit. 0 means no limit."},
    {"web-proxies", &page, SETTING_FIXED, SUBNETS(web_proxies), "\"\"", "127.0.0.1 ::1",
     "Proxies in front of the web-port, as addresses or networks. The client of their requests is "
     "the last address in X-Forwarded-For that is not one of them: for limits, wrong "
     "passwords, protected-mode and logs. Nobody else's header is believed."},
    {"web-session-timeout", &page, SETTING_FIXED,
     INTEGER(web_session_timeout_s, 60, 31536000, "seconds"), "43200", NULL,
     "A login in the page ends after this many seconds without a request."},
    {"web-write", &page, SETTING_FIXED, BOOLEAN(web_write), "no", "yes",
     "Whether the JSON API of the web-port takes results, removals and tags, from users with the "
     "rights to the commands that these are: see docs/web.md."},
    {"web-write-rate", &page, SETTING_FIXED, INTEGER(web_write_rate, 0, 1000000000, "results"),
     "1000", NULL,
     "How many results a second one address may write by it for long, and twice as many at once; "
     "an "
     "IPv6 network of 64 bits is one address. Beyond that it gets 429. This machine has no limit, "
     "but "
     "each client that a proxy names has. 0 means no limit."},
    {"web-guests", &page, SETTING_FIXED, STRING(web_guests, "KID"), "\"\"", "web",
     "Give whoever asks for it (POST /api/v1/players) a new player with a random name, and a token "
     "of 30 days by this hs256 player-key: docs/players-write.md. \"\" means nobody."},
    {"web-guests-per-hour", &page, SETTING_FIXED,
     INTEGER(web_guests_per_hour, 1, 1000000, "players"), "20", NULL,
     "How many such players one address may make in an hour; an IPv6 network of 64 bits is one "
     "address. Beyond that it gets 429. This machine has no limit, but each client that a proxy "
     "names has."},
    {"web-allow-origin", &page, SETTING_FIXED, STRING(web_allow_origin, "\"origin origin ...\""),
     "\"\"", "\"https://game.example.com\"",
     "Origins whose pages may use the JSON API from browsers (CORS), as users of the ACL or as "
     "anybody; the page's cookie is not for them. * among them: pages of any other origin may "
     "read what a visitor without a login may."},
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
     "docs/operate/durability.md helps to choose. The files are loaded at start with either value. "
     "Setting "
     "yes on a running server writes a snapshot first; the journal's guarantees hold once that is "
     "done."},
    {"appendfsync", &durability, 0, CHOICE(appendfsync, "everysec", "always", "no"), "everysec",
     NULL,
     "When the journal is synced to disk. everysec: once a second; a power cut loses about a "
     "second of changes, a crash of the server alone no answered write. always: before a change is "
     "answered or read by anyone; no answered write is lost, and clients wait for the disk, "
     "sharing each fsync. no: when the system decides, which may take half a minute."},
    {"auto-aof-rewrite-percentage", &durability, 0,
     INTEGER(auto_aof_rewrite_percentage, 0, INT32_MAX, ""), "100", NULL,
     "Write a new snapshot and start a new journal when the files have grown by this many percent "
     "since the last one: 100 means twice as large. 0 never does."},
    {"auto-aof-rewrite-min-size", &durability, 0, SIZE(auto_aof_rewrite_min_size, 0, "size"),
     "64mb", NULL, "The automatic rewrite waits until the files are at least this large."},
    {"appendonly-keep-days", &durability, 0, INTEGER(appendonly_keep_days, 0, 36500, "days"), "0",
     "7",
     "Keep superseded snapshots and journals for this many days, in the directory kept beside the "
     "current ones, instead of removing them. From them leaderboard-server --restore --until makes "
     "a directory as it was at any second of these days: see docs/operate/backup.md. 0 keeps "
     "none."},
    {"appendonly-keep-size", &durability, 0, SIZE(appendonly_keep_size, 0, "size"), "10gb", NULL,
     "The most that kept files may take together: of more, the oldest are removed. 0 means no "
     "limit."},
    {"save", &durability, 0, WORDS_OR_NONE(SAVE, "seconds changes [seconds changes ...] | \"\""),
     "3600 1 300 100 60 10000", NULL,
     "With appendonly no: write a snapshot when, for any of the pairs, that many seconds have "
     "passed since the last one and that many changes were made (a command that changes a board "
     "counts as one); and on an orderly shutdown. \"\" disables these snapshots, also on shutdown; "
     "BGSAVE and SAVE still work. Several lines in a file add up; the first one replaces the "
     "default. With appendonly yes the journal holds every change, and its growth decides when a "
     "snapshot is due.\n"
     "    save 3600 1 300 100 60 10000"},
    {"stop-writes-on-bgsave-error", &durability, 0, BOOLEAN(stop_writes_on_bgsave_error), "yes",
     NULL,
     "After a snapshot of a save line has failed, reject changes with an error that begins with "
     "MISCONF until one succeeds, so that the failure is noticed. Reads still work. If the journal "
     "cannot be written, changes are rejected in any case."},
    {"replicaof", &replication, SETTING_FIXED, WORDS_OR_NONE(REPLICAOF, "host port | no one"),
     "\"\"", "10.0.0.1 6379",
     "Be a replica of the server at this address: copy its boards, and follow its changes. The "
     "command REPLICAOF changes it while running, and CONFIG REWRITE writes it. \"\" or no one: a "
     "master."},
    {"masterauth", &replication, SETTING_SECRET, STRING(masterauth, "password"), "\"\"",
     "\"a long random text\"",
     "The password that the replica gives to its master, if the master wants one. Set it on the "
     "master, too: after a failover it is a replica."},
    {"masteruser", &replication, 0, STRING(masteruser, "name"), "\"\"", "replica",
     "The user of masterauth. \"\" is the user named default. Another needs the rights +lb.sync "
     "+replconf +ping."},
    {"tls-replication", &replication, 0, BOOLEAN(tls_replication), "no", NULL,
     "Connect to the master with TLS, at its tls-port. The certificate of tls-cert-file is shown, "
     "and the master's must be signed by an authority of tls-ca-cert-file or tls-ca-cert-dir."},
    {"tls-replication-verify-name", &replication, 0, BOOLEAN(tls_replication_verify_name), "yes",
     NULL,
     "With tls-replication the master's certificate must name the host of replicaof, in its "
     "subjectAltName: a name as a DNS name, an address as an IP address. no: any certificate of "
     "the authority will do, as in Redis, also that of a client, whose owner could then answer in "
     "the master's place."},
    {"replica-read-only", &replication, 0, ONLY("yes", "a replica is an exact copy of its master"),
     "yes", NULL,
     "A replica refuses writes with an error that begins with READONLY. yes is the only value: a "
     "write of its own would end that it is an exact copy of its master. The setting exists "
     "because clients query it."},
    {"replica-serve-stale-data", &replication, 0, BOOLEAN(replica_serve_stale_data), "yes", NULL,
     "yes: a replica that has lost its master goes on to answer reads with what it has. no: it "
     "refuses them with an error that begins with MASTERDOWN."},
    {"replica-priority", &replication, 0, INTEGER(replica_priority, 0, INT32_MAX, ""), "100", NULL,
     "Sentinel promotes the replica with the lowest number first, and never one with 0."},
    {"replica-announced", &replication, 0, BOOLEAN(replica_announced), "yes", NULL,
     "no: Sentinel does not show this replica in SENTINEL REPLICAS. It can still promote it, "
     "unless replica-priority is 0."},
    {"replica-announce-ip", &replication, 0,
     TEXT(HOST, replica_announce_ip, 0, FILE_NAME_SIZE_MAX, "address"), "\"\"", "203.0.113.7",
     "The address that the master, Sentinel and clients are told for this replica. \"\": the one "
     "that its connection comes from. Set it behind NAT and in containers."},
    {"replica-announce-port", &replication, 0, INTEGER(replica_announce_port, 0, 65535, ""), "0",
     "6379", "The same for the port. 0: port, or tls-port with tls-replication."},
    {"repl-timeout", &replication, 0, INTEGER(repl_timeout_s, 1, INT32_MAX, "seconds"), "60", NULL,
     "A link on which nothing came for this long is lost, on both sides. It must be longer than "
     "repl-ping-replica-period."},
    {"repl-ping-replica-period", &replication, 0,
     INTEGER(repl_ping_replica_period_s, 1, INT32_MAX, "seconds"), "10", NULL,
     "How often a master sends its replicas something while nothing changes."},
    {"repl-backlog-size", &replication, 0, SIZE(repl_backlog_size, 1, "size, 1 at least"), "16mb",
     NULL,
     "How much of the latest changes a master keeps in memory, so that a replica that was away for "
     "a while needs no full copy. With appendonly yes what the journal on disk holds serves, too; "
     "without it replicas keep as much, for those who lag behind one that is promoted."},
    {"replica-spool-size", &replication, 0, SIZE(replica_spool_size, 0, "size"), "16gb", NULL,
     "While a Redis is followed: how much of what it has sent may wait in a file in dir until it "
     "is applied. When there is no room for more, nothing more is received, and the log says so. 0 "
     "is no limit. It counts from the next REPLICAOF on."},
    {"repl-backlog-ttl", &replication, 0, INTEGER(repl_backlog_ttl_s, 0, INT32_MAX, "seconds"),
     "3600", NULL,
     "A server without replicas frees that memory after this many seconds. 0 never does; a replica "
     "with appendonly no keeps it in any case."},
    {"min-replicas-to-write", &replication, 0, INTEGER(min_replicas_to_write, 0, INT32_MAX, ""),
     "0", "1",
     "Refuse writes, with an error that begins with NOREPLICAS, while fewer replicas than this are "
     "connected with a lag of at most min-replicas-max-lag. 0: never. It bounds what a failover "
     "can lose by time; it does not make writes wait."},
    {"min-replicas-max-lag", &replication, 0,
     INTEGER(min_replicas_max_lag_s, 0, INT32_MAX, "seconds"), "10", NULL,
     "The lag is the time since a replica last said how far it is, which it does each second. 0: "
     "min-replicas-to-write does not count."},
    {"sync-replicas", &replication, SETTING_FIXED,
     INTEGER(sync_replicas, 0, SETTING_NODES_MAX - 1, ""), "0", NULL,
     "Answer when so many replicas have the change, too, so that no failover loses a write that "
     "was answered: docs/scale/no-lost-write.md explains how. Answers to readers wait for what "
     "they show. "
     "0: do not wait. It needs replication-nodes and appendonly yes, and the same value on every "
     "server."},
    {"replication-nodes", &replication, SETTING_FIXED,
     INTEGER(replication_nodes, 0, SETTING_NODES_MAX, ""), "0", NULL,
     "With sync-replicas: how many servers there are, the master included. A promoted server opens "
     "when all but sync-replicas of them, itself included, have voted for its term. The same on "
     "every server."},
    {"sync-replicas-fsync", &replication, SETTING_FIXED, BOOLEAN(sync_replicas_fsync), "no", NULL,
     "yes: a replica has a change when it is on its disk, which needs appendfsync always. A server "
     "whose machine comes back from a crash then still counts. no: when it is written to its "
     "journal, which a crash of the process does not lose; a server whose machine was started anew "
     "counts again when a master has filled it."},
    {"sync-replicas-lease", &replication, SETTING_FIXED,
     INTEGER(sync_replicas_lease_ms, 0, 60000, "milliseconds"), "1000", NULL,
     "With sync-replicas: readers are answered only while sync-replicas replicas were heard within "
     "this time, and no other master opens meanwhile. So a master that was cut off and replaced "
     "shows nothing outdated. Choose it below Sentinel's down-after-milliseconds, where it delays "
     "no failover. 0: no lease; then such a master may answer readers with what it has."},
    {"layout", &boards, SETTING_REPEATS,
     WORDS(LAYOUT, "NAME FIELD name bits [ASC|DESC] [SIGNED] [SCALE d] [DOUBLE] [DECAY n "
                   "S|M|H|D] [FIELD ...] [TIME bits "
                   "US|MS|S|M|H|D [START t|END t] [LATEST]] [TAG name bits ...]"),
     NULL, "laps FIELD lap_ms 32 ASC TIME 32 S",
     "Define a layout. A layout divides a member's 64 bits between its score and the time at which "
     "it reached it; docs/reference/layouts.md explains the words and helps to choose widths. TAG "
     "gives the "
     "members properties beside that, such as a country: docs/reference/tags.md. Up to 255 "
     "lines, each with a new name. CONFIG SET layout takes all lines at once, as CONFIG GET "
     "replies them, separated by line ends; boards keep the layout that they have.\n"
     "Five layouts are built in. default is for whole scores from -4294967296 to 4294967295, with "
     "times in seconds until 2088; decimals for scores with up to 7 decimals, and int64 for any "
     "other whole number of 64 bits:\n"
     "    FIELD score 33 SIGNED TIME 31 S\n"
     "    FIELD score 64 SIGNED SCALE 7 DOUBLE\n"
     "    FIELD score 64 SIGNED\n"
     "Two are for schedules, queues and sliding windows, whose scores are unix times. Of equal "
     "times the first to come is the first to go: seconds, with up to 7 decimals, and "
     "milliseconds, with up to 4:\n"
     "    FIELD score 64 ASC SIGNED SCALE 7 DOUBLE\n"
     "    FIELD score 64 ASC SIGNED SCALE 4 DOUBLE\n"
     "A line may give the names of the last four to other layouts.\n"
     "Some others. Lap times in milliseconds, where less is better; money with two decimals; "
     "scores of one week, with times to the millisecond:\n"
     "    layout laps   FIELD lap_ms 32 ASC TIME 32 S\n"
     "    layout money  FIELD balance 40 SCALE 2 TIME 24 M\n"
     "    layout week47 FIELD score 34 TIME 30 MS START 2026-11-16T00:00:00Z"},
    {"board", &boards, SETTING_REPEATS, WORDS(BOARD, "GLOB NAME " SETTING_OPTIONS), NULL,
     "race:* laps",
     "New boards whose key matches the pattern get the named layout and the options after it. Up "
     "to 1024 lines; the first match wins, so put narrow patterns first. The layout may be defined "
     "above or below. A board keeps the layout and the options that it was created with. CONFIG "
     "SET board takes all lines at once, as CONFIG GET replies them.\n"
     "CAP n keeps the best n members: on a full board, a newcomer ranked below the last is "
     "dropped. KEEP BEST keeps a member's best result: a write that is not strictly better changes "
     "nothing, unless it is an increment. Both apply to every command, also of clients that do not "
     "know these options. LIMIT n refuses newcomers on a full board instead. FREEZE, OPENS and "
     "CLOSES refuse all writes: always, before a time, and from a time on.\n"
     "PERIOD starts a board over with every hour, day, week (on Monday, or ON another weekday), "
     "month or year, or with EVERY n of them, counted FROM a date, AT an hour of the day other "
     "than 0. TZ is how far the local clock is ahead of UTC, or a time zone's name: then periods "
     "follow summer time. At the end of the period the board becomes an archive named after the "
     "date on which the period began, such as top:eu@2026-11-16 (with .2 behind it if a key has "
     "that name), and START of the board's times moves to the next period. ARCHIVE n keeps an "
     "archive for n periods; without it archives are kept forever. They are frozen, unless "
     "ARCHIVED is WRITABLE.\n"
     "TAG name bits adds a tag to those of the layout, or gives one of them other bits.\n"
     "    board top:*  default CAP 1000\n"
     "    board race:* laps    CAP 100 KEEP BEST\n"
     "    board week:* default PERIOD WEEK TZ +08:00 ARCHIVE 8\n"
     "    board raid:* default PERIOD WEEK ON WED AT 5 TZ Europe/Berlin\n"
     "In a pattern, * matches any run of characters, ? one character, [abc] and [a-z] one of "
     "these, [^a] any other one, and \\ makes the next character literal. A pattern has at most "
     "1024 bytes."},
    {"default-layout", &boards, 0, TEXT(DEFAULT_LAYOUT, default_layouts, 1, 0, "NAME [NAME ...]"),
     "default decimals int64", NULL,
     "The layouts of new boards that match no board line: names of layout lines, or of built-in "
     "layouts. A board that is made by writing a score gets the first one that takes this score, "
     "and all others of the same command; a board that is made in another way gets the first."},

    {.name = NULL},
};
_Static_assert(sizeof setting_table / sizeof setting_table[0] <= SETTINGS_MAX + 1,
               "more settings than SETTINGS_MAX");

/* ---- settings of Redis that are ignored, or refused ---- */

const struct setting_redis setting_redis_table[] = {
    {"hash-max-listpack-entries hash-max-listpack-value hash-max-ziplist-entries "
     "hash-max-ziplist-value zset-max-listpack-entries zset-max-listpack-value "
     "zset-max-ziplist-entries zset-max-ziplist-value",
     NULL, "boards and hashes are kept in one form, whatever their size"},
    {"list-compress-depth list-max-listpack-size list-max-ziplist-size list-max-ziplist-entries "
     "list-max-ziplist-value set-max-intset-entries set-max-listpack-entries "
     "set-max-listpack-value hll-sparse-max-bytes stream-node-max-bytes stream-node-max-entries "
     "stream-idmp-duration stream-idmp-maxsize vset-force-single-threaded-execution",
     NULL, "there are no lists, sets, streams and other types"},
    {"hz dynamic-hz active-expire-effort activerehashing activedefrag active-defrag-cycle-max "
     "active-defrag-cycle-min active-defrag-cycle-us active-defrag-ignore-bytes "
     "active-defrag-max-scan-fields active-defrag-threshold-lower active-defrag-threshold-upper "
     "jemalloc-bg-thread lazyfree-lazy-expire lazyfree-lazy-server-del lazyfree-lazy-user-del "
     "lazyfree-lazy-user-flush replica-lazy-flush slave-lazy-flush",
     NULL, "expiry, growth and freeing go in small steps, with nothing to tune"},
    {"maxmemory-samples maxmemory-eviction-tenacity lfu-decay-time lfu-log-factor "
     "lazyfree-lazy-eviction replica-ignore-maxmemory slave-ignore-maxmemory",
     NULL, "nothing is ever evicted"},
    {"dbfilename rdbchecksum rdbcompression rdb-del-sync-files rdb-key-save-delay "
     "rdb-save-incremental-fsync rdb-version-check key-load-delay sanitize-dump-payload",
     NULL, "snapshots have names and a format of their own; dump.rdb is not read"},
    {"appendfilename aof-disable-auto-gc aof-rewrite-incremental-fsync aof-timestamp-enabled "
     "aof-use-rdb-preamble no-appendfsync-on-rewrite",
     NULL, "the journal has names and a format of its own, and is synced during snapshots, too"},
    {"aof-load-truncated", "yes", "what a crash left torn at a journal's end is cut off at start"},
    {"aof-load-corrupt-tail-max-size", "0",
     "a damaged journal is never loaded in part; leaderboard-server --check DIR --fix repairs it"},
    {"repl-diskless-load repl-diskless-sync repl-diskless-sync-delay "
     "repl-diskless-sync-max-replicas repl-diskless-sync-period repl-disable-tcp-nodelay "
     "repl-mptcp mptcp dual-channel-replication-enabled replica-full-sync-buffer-limit "
     "replica-ignore-disk-write-errors propagation-error-behavior",
     NULL, "replication has one way to copy boards"},
    {"cluster-enabled", "no", "this server is no cluster node (docs/scale/cluster.md)"},
    {"cluster-allow-pubsubshard-when-down cluster-allow-reads-when-down "
     "cluster-allow-replica-migration cluster-announce-bus-port cluster-announce-client-ipv4 "
     "cluster-announce-client-ipv6 cluster-announce-client-port cluster-announce-client-tls-port "
     "cluster-announce-hostname cluster-announce-human-nodename cluster-announce-ip "
     "cluster-announce-port cluster-announce-tls-port cluster-blacklist-ttl "
     "cluster-compatibility-sample-ratio cluster-config-file cluster-config-save-behavior "
     "cluster-databases cluster-link-sendbuf-limit cluster-manual-failover-timeout "
     "cluster-migration-barrier cluster-node-timeout cluster-port cluster-preferred-endpoint-type "
     "cluster-replica-no-failover cluster-replica-validity-factor cluster-require-full-coverage "
     "cluster-slave-no-failover cluster-slave-validity-factor "
     "cluster-slot-migration-handoff-max-lag-bytes cluster-slot-migration-log-max-len "
     "cluster-slot-migration-write-pause-timeout cluster-slot-stats-enabled "
     "slot-migration-max-failover-repl-bytes",
     NULL, "they only matter with cluster-enabled yes"},
    {"events-per-io-thread io-threads-do-reads lookahead max-new-connections-per-cycle "
     "max-new-tls-connections-per-cycle prefetch-batch-max-size tcp-keepalive-probes",
     NULL, "io-threads, maxclients and tcp-keepalive are all that is set of connections"},
    {"aof-rewrite-cpulist aof_rewrite_cpulist bgsave-cpulist bgsave_cpulist bio-cpulist "
     "bio_cpulist server-cpulist server_cpulist disable-thp oom-score-adj oom-score-adj-values "
     "supervised",
     NULL, "processors and memory are the service manager's; systemd is told of the start unasked"},
    {"always-show-logo availability-zone crash-memcheck-enabled "
     "hash-seed ignore-warnings locale-collate proc-title-template set-proc-title "
     "watchdog-period",
     NULL, "no logo, title, zone or sort order is set"},
    {"commandlog-large-reply-max-len commandlog-large-request-max-len "
     "commandlog-reply-larger-than commandlog-request-larger-than hide-user-data-from-log "
     "key-memory-histograms latency-tracking-info-percentiles log-timestamp-format",
     NULL,
     "the log has one format of times, and neither members nor values; SLOWLOG and LATENCY "
     "have no more settings"},
    {"busy-reply-threshold lua-replicate-commands lua-time-limit enable-debug-command "
     "enable-module-command enable-protected-configs gopher-enabled",
     NULL, "there are no scripts, modules and DEBUG, and what is fixed stays fixed"},
    {"shutdown-timeout", NULL, "shutdown-drain-timeout says how long the end may take"},
    {"shutdown-on-sigint shutdown-on-sigterm", "default",
     "signals end the server as SHUTDOWN without words does"},
    {"import-mode", "no", "keys expire during an import, too"},
    {"include", "", "other files are not read: put their lines into this one"},
    {"loadmodule", "", "modules of Redis cannot be loaded"},
    {"bind-source-addr", "", "the system chooses the address of links to a master"},
    {"unixsocketgroup", "",
     "the socket's group is that of the server's user: start it with the group that is to connect"},
    {"socket-mark-id", "0", "sockets carry no mark for firewalls and routes"},
    {"rdma-bind", "", "clients connect over TCP and Unix sockets"},
    {"rdma-port", "0", "clients connect over TCP and Unix sockets"},
    {"rdma-completion-vector rdma-rx-size", NULL, "they only matter with rdma-port"},
    {"tls-cluster", "no", "this server is no cluster node (docs/scale/cluster.md)"},
    {"tls-client-cert-file tls-client-key-file tls-client-key-file-pass", "",
     "links to a master show tls-cert-file, which must be good for clients, too"},
    {"tls-dh-params-file", "", "OpenSSL chooses the parameters of DHE"},
    {"tls-auto-reload-interval", "0", "certificates are read again at SIGHUP and CONFIG SET"},
    {NULL, NULL, NULL},
};

bool setting_table_redis_take(struct setting_redis_place *place, struct bytes *name) {
    while (place->rest.size == 0) {
        place->row = place->row == NULL ? setting_redis_table : place->row + 1;
        if (place->row->names == NULL) {
            return false;
        }
        place->rest = bytes_from_text(place->row->names);
    }
    *name = bytes_take_word(&place->rest);
    place->count++;
    return true;
}

bool setting_table_redis_find(struct bytes name, struct setting_redis_place *place) {
    struct bytes other;
    *place = (struct setting_redis_place){.row = NULL};
    while (setting_table_redis_take(place, &other)) {
        if (bytes_equal_ignoring_case(name, other)) {
            return true;
        }
    }
    return false;
}

bool setting_table_redis_ignore(struct settings *settings, const struct setting_redis_place *place,
                                const struct bytes *values, size_t count, char *reason) {
    const char *only = place->row->only;
    CHECK(place->count <= SETTING_REDIS_MAX);
    if (only != NULL && (count != 1 || !bytes_is(values[0], only))) {
        return setting_value_fail(reason, "%s%s%s", place->row->why,
                                  only[0] != '\0' ? ", so the only value is " : "", only);
    }
    settings->is_ignored[place->count - 1] = true;
    return true;
}

bool setting_table_redis_next_ignored(const struct settings *settings,
                                      struct setting_redis_place *place, struct bytes *name) {
    while (setting_table_redis_take(place, name)) {
        if (settings->is_ignored[place->count - 1]) {
            return true;
        }
    }
    return false;
}
