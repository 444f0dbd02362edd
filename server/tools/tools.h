/* What leaderboard-server does besides serving:
 *
 *     --ping ADDRESS                is a server ready?
 *     --backup ADDRESS FILE         a copy of a running server's boards
 *     --restore FILE|DIR TARGET     a directory to start from, also as of an earlier second
 *     --export FILE|DIR OUT         CSV, JSON lines, or commands for Redis
 *     --import IN TARGET            a directory to start from
 *     --player-token FILE KID NAME  a token to try out
 *
 * These read and write files that may come from anybody, on one thread, with a registry of their own at most. */
#ifndef SERVER_TOOLS_H
#define SERVER_TOOLS_H

#include <hiredis/hiredis.h>
#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "codec/buffer.h"
#include "server/durability/store.h"
#include "server/settings/settings.h"
#include "skiplist/keyspace/registry.h"

/* Does the command line name one of these? Then it is done, and *status is the exit status. */
MUST_CHECK bool tools_run(int argc, char **argv, int *status);

/* For the others in this folder: print a line to stderr, behind the program's name. Returns false. */
__attribute__((format(printf, 1, 2))) bool tools_complain(const char *format, ...);
/* Sync the directory that the path is in. false: errno says why. */
MUST_CHECK bool tools_sync_parent(const char *path);
/* The machine's time: microseconds since 1970. */
int64_t tools_now_us(void);
/* Write a registry that no server serves into the store, which is claimed, as its base; returns when that is on disk.
 * false: the reason is in the log. */
MUST_CHECK bool tools_save(struct registry *registry, struct store *store, int64_t now_us);

/* ---- a tool's connection to a server: TCP, a unix socket, or TLS ----
 *
 * hiredis connects and reads replies: it is what Redis's own tools use, is in every distribution, and
 * takes what a server may send in any pieces. TLS is put between it and the socket here, because its
 * own TLS is not in every version that distributions have.
 *
 * Not with server/network/tls.h: that serves sockets that never block, on a loop, and its contexts know the server's
 * settings. A tool waits in each call, has one connection, and trusts the system's authorities. */

struct link_options {
    bool has_tls;
    const char *ca_file;           /* NULL: the system's authorities */
    const char *certificate, *key; /* the client's own; NULL: none */
    const char *user;              /* NULL: default */
    const char *password;          /* NULL: nobody logs in */
};

/* Zero-initialised: not connected. */
struct tools_link {
    redisContext *context;
    SSL_CTX *tls_context;
    SSL *tls;        /* NULL: none */
    char error[256]; /* "": none */
};

/* address: PORT, of this machine; HOST:PORT, [IPv6]:PORT, or the path of a unix socket, with a '/'. With TLS the
 * server's certificate must be of a trusted authority, and for that host; for any host if there is only a PORT.
 * limit_s: for connecting. false: link->error says why. */
MUST_CHECK bool tools_link_open(struct tools_link *link, const char *address,
                                const struct link_options *options, int limit_s);
void tools_link_close(struct tools_link *link);
/* How long a reply may take. */
void tools_link_set_limit(struct tools_link *link, int limit_s);

/* Send a command, in redisCommand's form. false: link->error says why. */
MUST_CHECK bool tools_link_send(struct tools_link *link, const char *format, ...);
/* Log in, if the options have a password. NULL: it is let in, or link->error says why there was no answer; else the
 * refusal, to be freed with freeReplyObject. */
MUST_CHECK redisReply *tools_link_log_in(struct tools_link *link,
                                         const struct link_options *options);
/* The next reply, to be freed with freeReplyObject. NULL: link->error says why there is none. */
MUST_CHECK redisReply *tools_link_reply(struct tools_link *link);

/* ---- --import dump.rdb [configuration file] [--setting value ...]: import.c ----
 *
 * Fills the data directory of these settings from a dump of Redis or Valkey (server/rdb/rdb.h), and
 * leaves a snapshot that a start with the same settings loads. The directory must not have files of a
 * server yet. An error leaves it as it was. With --format this is another import. */

/* The words as of main: argv[2] is the dump. What was done is printed. false: the error was printed. */
MUST_CHECK bool import_rdb(int argc, char **argv);

/* ---- --backup ADDRESS FILE: reads LB.SNAPSHOT from a running server into a file: backup.c ----
 *
 * The file is a base (server/durability/snapshot_file.h). It gets its name when it is whole: every
 * block's checksum and the end mark are verified, and it is synced. Until then it is FILE.part-<pid>. */

struct backup_options {
    struct link_options link;
    uint64_t rate; /* bytes a second; 0: no limit */
};

/* address: as tools_link_open takes it. What was done is printed. false: the
 * error was printed, and there is no file. */
MUST_CHECK bool backup_run(const char *address, const char *path,
                           const struct backup_options *options);

/* ---- --restore FILE|DIR TARGET: restore.c ----
 *
 * Makes a directory that a server starts from, of a backup, or of a server's directory and the files that it has kept
 * (appendonly-keep-days).
 *
 *     bases and journals found --> the youngest base that is not after --until, and the journals
 *                                  behind it, up to the last group that is not after it
 *
 * Files are copied as they are, and the last journal is cut between two ticks. Every checksum of the copies is
 * verified; nothing is loaded. Where a base is damaged, an earlier one and the journals may hold the same; otherwise a
 * damaged file fails the restore, also one that was not needed but could hold later changes. The manifest is written last:
 * a restore that breaks off leaves no directory that a server would start from. */

struct restore_options {
    int64_t until_us;     /* INT64_MAX: all that there is */
    const char *journals; /* another directory with kept files; NULL: none */
};

/* What was done is printed. false: the error was printed, and the target is as it was. */
MUST_CHECK bool restore_run(const char *source, const char *target,
                            const struct restore_options *options);

/* A target: a directory that does not exist, or is empty. *is_made: it was made. false: the error was
 * printed. */
MUST_CHECK bool restore_begin_target(const char *target, bool *is_made);

#define RESTORE_DIRECTORY "appendonlydir" /* inside the target */

/* ---- the text form of boards and hashes: record.c ----
 *
 * One line for each key, each member and each field.
 *
 *     CSV     database,key,kind,member,score,time,value,options,expires
 *             0,daily,board,,,,,FIELD score 33 SIGNED TIME 31 S,
 *             0,daily,member,ann,700,1763890000000000,,,
 *     JSONL   {"database":"0","key":"daily","kind":"member","member":"ann","score":"700", ...}
 *
 * A key's line comes before those of its members. Bytes that are no UTF-8, and control characters, are
 * written as \xff (the two digits of the byte), and a backslash as \\, in both forms; CSV then quotes as
 * RFC 4180 has it, JSONL as JSON does. No line end is inside a field, so a line is a record.
 *
 * The input may be damaged in any way: the reader says in which line, and never reads out of bounds. */

enum record_field {
    RECORD_DATABASE,
    RECORD_KEY,
    RECORD_KIND,
    RECORD_MEMBER, /* or a field of a hash */
    RECORD_SCORE,  /* exact decimals, one for each field of the layout, a blank between them */
    RECORD_TIME,   /* unix microseconds; empty: the layout has no time */
    RECORD_VALUE, /* of a field of a hash; a member's note; of a member: its tags, "country DE class mage", values
                     * with other than plain characters in double quotes (codec/bytes.h) */
    RECORD_RULES,   /* layout and options, see below */
    RECORD_EXPIRES, /* unix milliseconds; empty: never */
    RECORD_FIELDS
};
struct record {
    struct bytes at[RECORD_FIELDS];
};

enum record_format { RECORD_CSV, RECORD_JSONL };

/* ---- writing ---- */

/* CSV's first line. false: no memory. */
MUST_CHECK bool record_print_head(struct buffer *out, enum record_format format);
/* Append a line. false: no memory. */
MUST_CHECK bool record_print(struct buffer *out, enum record_format format,
                             const struct record *record);

/* ---- reading ---- */

enum record_status { RECORD_READ, RECORD_END, RECORD_BAD };
enum { RECORD_ERROR_MAX = 256 };

struct record_reader {
    FILE *in; /* borrowed */
    enum record_format format;
    bool has_head;
    uint64_t line_number;
    uint64_t offset;    /* of the line in the file */
    uint64_t end;       /* of the line */
    struct buffer line; /* without its end */
    struct buffer text; /* the record's fields, as bytes */
    char error[RECORD_ERROR_MAX];
};

void record_reader_init(struct record_reader *reader, FILE *in, enum record_format format);
void record_reader_deinit(struct record_reader *reader);
/* Read the next record, which is valid until the next call. RECORD_BAD: error says what is wrong. */
MUST_CHECK enum record_status record_read(struct record_reader *reader, struct record *record);
/* Make reader->error "line 7 at offset 312: <reason>"; returns RECORD_BAD. */
enum record_status record_refuse(struct record_reader *reader, const char *reason);

/* ---- layout and options ----
 *
 * As one text, from which they are read back exactly:
 *
 *     FIELD score 33 SIGNED TIME 31 S CAP 100 KEEP BEST CREATED
 *
 * The words are those of LB.CREATE, and those of rows that are states (skiplist/keyspace/board_options.h), in any
 * order behind the layout: CREATED, STARTED and ENDS with unix milliseconds, and so on. */

enum { RECORD_RULES_MAX = LAYOUT_TEXT_MAX + SETTING_RULES_TEXT_MAX, RECORD_RULES_ERROR_MAX = 1024 };

/* out: RECORD_RULES_MAX; returns the size. */
size_t record_print_options(const struct board_options *options, const struct board_state *state,
                            char *out);
/* false: error (RECORD_RULES_ERROR_MAX) says what is wrong. */
MUST_CHECK bool record_parse_options(struct bytes text, struct board_options *options,
                                     struct board_state *state, char *error);

/* ---- --export FILE|DIR OUT, and --import IN TARGET with --format: export.c, import.c ----
 *
 * Boards and hashes as text (record.c), and back; and as commands for Redis.
 *
 * An export is of a backup or a directory, not of a running server: so it is exact, holds nobody up, and
 * there is one way that sees every key. An import makes a directory to start from: commands could give
 * neither times of arrival nor the order of equals back. Both take as much memory as a server with these
 * boards.
 *
 * What is imported is equal to what was exported: layouts, options, exact scores, times, the order among
 * equals, hashes, expiries, databases, and what the server keeps for itself (bans, in databases from 16
 * on). */

/* Write all keys. false: the error was printed. */
MUST_CHECK bool export_records(const struct registry *registry, enum record_format format,
                               FILE *out);
/* Write them as commands in RESP, for redis-cli --pipe. What Redis cannot hold as it is is counted and
 * said on stderr. */
MUST_CHECK bool export_redis(const struct registry *registry, FILE *out);

/* Fill an empty registry. false: error (IMPORT_ERROR_MAX) says what is wrong, and in which line. */
enum { IMPORT_ERROR_MAX = 1024 };
MUST_CHECK bool import_records(struct registry *registry, enum record_format format, FILE *in,
                               char *error);
/* Write it into a target of --restore: a directory to start from. false: the error was printed. */
MUST_CHECK bool import_save(struct registry *registry, const char *target);

#endif
