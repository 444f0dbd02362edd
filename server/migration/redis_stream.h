/* What a Redis sends, as bytes: its RDB file, then its commands. Applied in bounded steps.
 *
 *            RDB is right            no save is going on
 *     LOADS -------------> LOADED ----------------------> FOLLOWS
 *        |                                                   |
 *        +--------------------> STOPPED <--------------------+      error says why
 *
 * LOADS fills another registry (server/rdb/rdb.h) beside the keys, which stay as they are: its form, its checksum, whether the boards take
 * every member and every score, whether a key or a member is there twice, and what is kept beside the keys
 * (server/rdb/rdb_board.h), all that is known before anything changes. Then the two are exchanged (redis_stream_exchange). A
 * new copy (redis_stream_restart) begins with LOADS again, whatever was.
 *
 * After a restart of the server (redis_stream_resume) it FOLLOWS at once.
 *
 * The commands of a MULTI are applied together, in one tick, as soon as its EXEC is there. */
#ifndef SERVER_REDIS_STREAM_H
#define SERVER_REDIS_STREAM_H

#include "protocol/resp.h"
#include "server/rdb/rdb.h"
#include "server/sessions/server.h"

/* ---- the position ----
 *
 * How far a Redis has been followed, and which keys it is asked for, as they are not at that offset. It is in the keys
 * themselves: a hash in a database of the server's own.
 *
 *     position        id, offset, database, host and port
 *     <database>key   a field for each key that the source is asked for
 *
 * It changes together with what was applied, in the same group, so after any restart it says what the boards are,
 * and the following goes on from there. Who changes the boards otherwise removes it. */

struct redis_position {
    char id[REPLICATION_ID_SIZE + 1]; /* of the source's history */
    uint64_t offset;                  /* applied */
    uint64_t database;                /* that its commands are in */
    char host[REPLICATION_HOST_MAX + 1];
    uint16_t port;
};

/* false: there is none, or none that is valid. */
MUST_CHECK bool redis_stream_read_position(struct registry *registry,
                                           struct redis_position *position);
/* false: no memory; the one that was there is gone, as it would be wrong. */
MUST_CHECK bool redis_stream_write_position(struct registry *registry,
                                            const struct redis_position *position);
/* With the keys that are asked for. */
void redis_stream_remove_position(struct registry *registry);

/* ---- keys that the source is asked for ---- */

struct redis_asked {
    struct redis_asked *next;
    enum { REDIS_ASKED_WAITS, REDIS_ASKED_SENT, REDIS_ASKED_ANSWERED } state;
    bool wants_value; /* false: its type first, as most likely it is none of ours */
    bool
        is_void; /* SENT: its database was emptied or swapped meanwhile, and it is asked for again */
    uint32_t database;
    uint64_t since; /* the offset before the first command that was not applied */
    uint64_t until; /* ANSWERED: what is here is the source's at this offset */
    uint32_t name_size;
    char name[];
};
static inline struct bytes redis_stream_asked_name(const struct redis_asked *asked) {
    return (struct bytes){.at = asked->name, .size = asked->name_size};
}

struct redis_asked_keys {
    struct registry *registry;        /* borrowed */
    struct redis_asked *first, *last; /* oldest first */
    uint32_t count;
    uint64_t total;      /* of all times */
    struct buffer field; /* private */
};
void redis_stream_init_asked(struct redis_asked_keys *keys, struct registry *registry);
/* None any more; the fields stay. */
void redis_stream_forget_asked(struct redis_asked_keys *keys);
/* Those of the fields, from before a restart, at this offset; none was there. false: no memory. */
MUST_CHECK bool redis_stream_resume_asked(struct redis_asked_keys *keys, uint64_t since);
bool redis_stream_is_asked(struct redis_asked_keys *keys, uint32_t database, struct bytes name);
/* One that is asked for already stays as it is. false: no memory. */
MUST_CHECK bool redis_stream_ask(struct redis_asked_keys *keys, uint32_t database,
                                 struct bytes name, bool wants_value, uint64_t since);
/* All keys of a database change: what an answer of later has put there already changes, too. REGISTRY_DATABASES: all. */
void redis_stream_ask_again(struct redis_asked_keys *keys, uint64_t database);
/* Two databases are swapped: what is not known in the one is not known in the other one, either. false: no memory. */
MUST_CHECK bool redis_stream_swap_asked(struct redis_asked_keys *keys, uint32_t a, uint32_t b,
                                        uint64_t since);
/* Those whose answer the stream has reached are as any other key from now on. Returns the offset where the next ones are;
 * UINT64_MAX: there are none. */
uint64_t redis_stream_end_asked(struct redis_asked_keys *keys, uint64_t offset);

/* ---- applying a command (redis_apply.c) ----
 *
 * Applies the commands of a Redis's replication stream to the registry, so that the keys have the same members and the
 * same scores, whatever the boards' own options would make of the command. Where the Redis has the module,
 * changes of its boards come as LB.APPLY, and the boards stay equal to the last bit. Those of its bans
 * and of durable jobs that it has not finished come as LB.APPLYSTATE.
 *
 *     apply.now_us = ...                           before the commands of a tick
 *     redis_apply_prepare(&apply, &request)        are the keys of this command known?
 *     redis_apply_run(&apply, &request)            SELECT, ZADD, HSET, DEL ...
 *
 * - A write that names what it puts or removes (ZADD, ZINCRBY, ZREM, HSET, DEL, RENAME, PEXPIREAT ...) is applied as it
 *   comes: so equal scores stay in order of arrival. Scores are added and compared as doubles.
 * - Of every other write only the keys are of interest: which ones, the source says (COMMAND INFO, and COMMAND
 *   GETKEYSANDFLAGS where that is not enough). Those that may hold a sorted set or a hash are asked for (redis_ask.h).
 *   From then on, until the answer is reached in the stream, commands do nothing to them: the answer has it all.
 * - Where a `board` line says that doubles are packed (server/rdb/rdb_value.h), a key has the same members and what the
 *   doubles say. What is added to a score with a fraction that is not kept here is asked for.
 * - Nothing expires, rolls over, is frozen or closed meanwhile: the source says what goes. CAP keeps the best;
 *   LIMIT and what a layout cannot hold are errors.
 * - Keys of other types do not exist here: commands for them are counted and passed over.
 *
 * Invariant: a key that is not asked for is as it is at the source behind the last command that was applied.
 *
 * An error is for good: what came after it would not be what the source has. Of the command itself nothing is
 * done then, except where memory is missing in its middle. */

enum {
    REDIS_APPLY_ERROR_MAX = 480, /* less than REPLICATION_ERROR_MAX */
    REDIS_APPLY_SKIPPED_MAX = 48,
    REDIS_APPLY_NAME_MAX = 24,
    REDIS_APPLY_WORD_MAX = 63,     /* a longer name is taken for the one with the same beginning */
    REDIS_APPLY_LEARNED_MAX = 256, /* then they are learned anew */
#ifdef SERVER_TINY
    REDIS_APPLY_ASKED_MAX = 8,
#else
    REDIS_APPLY_ASKED_MAX =
        65536, /* keys; with so many, nothing more is applied until they are answered */
#endif
};

/* The time of all look-ups: before everything, so that nothing expires or rolls over. */
#define REDIS_APPLY_LONG_AGO (INT64_MIN / 2)

/* A command that was passed over. */
struct redis_skipped {
    char name[REDIS_APPLY_NAME_MAX + 1]; /* lower case; "other" when the table is full */
    uint64_t count;
};

/* What the source has said of a command. */
struct redis_learned {
    char name[REDIS_APPLY_WORD_MAX + 1]; /* upper case */
    /* Keys that it can make: those of sorted sets and hashes; of other types; it did not say. */
    enum redis_makes { REDIS_MAKES_OURS, REDIS_MAKES_OTHERS, REDIS_MAKES_ANY } makes;
    bool needs_keys;           /* of each command anew: GETKEYSANDFLAGS */
    int64_t first, last, step; /* else its keys, last as COMMAND says it; first 0: it has none */
};

struct redis_apply {
    struct server *server;     /* borrowed */
    struct registry *registry; /* the server's */
    int64_t now_us;            /* the time of what is written */
    int64_t run_at_us;         /* of the last command */
    uint64_t offset;           /* of the source, before the command that is applied */
    uint64_t database;         /* of the source; may be one that is not here */
    uint64_t applied_count, skipped_count;
    struct rdb_rounded rounded; /* of commands; that of values is in load */
    struct redis_skipped skipped[REDIS_APPLY_SKIPPED_MAX];
    uint32_t skipped_used;
    char error[REDIS_APPLY_ERROR_MAX];
    struct redis_asked_keys asked;
    /* What the source has to say before the next command can be applied; whoever asks it answers with
     * redis_apply_learn or redis_apply_learn_keys. */
    enum { REDIS_QUESTION_NONE, REDIS_QUESTION_COMMAND, REDIS_QUESTION_KEYS } question;
    struct buffer question_words; /* on the wire */
    char question_name[REDIS_APPLY_WORD_MAX + 1];
    bool has_key_flags;   /* set by whoever asks: the source knows GETKEYSANDFLAGS */
    struct rdb_load load; /* of values that come as a whole */
    /* Private. */
    struct session session; /* for handlers; in no list */
    struct buffer replies;
    struct effect_decoder *decoder; /* of LB.APPLY and its kin; NULL: none yet */
    struct redis_learned learned[REDIS_APPLY_LEARNED_MAX];
    uint32_t learned_count;
    bool has_keys; /* of the next command: a size of four bytes and a name, one behind the other */
    struct buffer keys;
    /* Of a command that is applied before others that came before it: keys of which it makes another type, in the same
     * form, if one of those has made a board or a hash there. */
    bool is_ahead;
    struct buffer made_others;
    /* Of a value and the board that is here: first what leaves it, then what comes. */
    struct {
        bool has_removed;
        uint32_t rank;
    } merge;
    /* A board that a change has given another name: what is there now expires as that would have. */
    struct buffer rolled_name; /* empty: there is none */
    int64_t rolled_expire_at_ms;
};

/* *apply is large, and holds no memory yet. seed: random, secret. */
void redis_apply_init(struct redis_apply *apply, struct server *server, uint64_t seed);
void redis_apply_deinit(struct redis_apply *apply);
/* A new stream: database 0, no counts, no keys that are asked for. */
void redis_apply_reset(struct redis_apply *apply);
/* The same, but it goes on: keys that were asked for before a restart are asked for again. false: no memory. */
MUST_CHECK bool redis_apply_resume(struct redis_apply *apply, uint64_t offset, uint64_t database);

/* Can it be applied? false: there is a question first, after whose answer the command is given again. */
MUST_CHECK bool redis_apply_prepare(struct redis_apply *apply, const struct request *request);
/* Does it only ask for keys? Then it may be applied as soon as it comes, also in a transaction. */
bool redis_apply_only_asks(const struct request *request);
/* false: error says why. MULTI, EXEC, PING and REPLCONF are not for here. */
MUST_CHECK bool redis_apply_run(struct redis_apply *apply, const struct request *request);
/* The same of one that only asks, in a transaction of which others are not applied yet. The keys that
 * redis_apply_next_other gives are for redis_apply_take_other, behind those. */
MUST_CHECK bool redis_apply_run_ahead(struct redis_apply *apply, const struct request *request);
/* *at: 0 for the first one. false: there is none left. */
bool redis_apply_next_other(const struct redis_apply *apply, size_t *at, struct bytes *name);
/* The source has a key of another type there. false: error. */
MUST_CHECK bool redis_apply_take_other(struct redis_apply *apply, struct bytes name);

/* ---- answers ---- */

/* *learned is copied, with the name of the command that was asked about. */
void redis_apply_learn(struct redis_apply *apply, const struct redis_learned *learned);
/* Begin, then each key, then true: these are the keys that the command writes. */
void redis_apply_learn_key(struct redis_apply *apply, struct bytes name);
void redis_apply_learn_keys(struct redis_apply *apply);
/* The asked key is not there, or holds another type: nothing has its name here any more. */
void redis_apply_take_nothing(struct redis_apply *apply, const struct redis_asked *asked);
/* Its value is fed to apply->load: what is on a board already stays as it is. */
void redis_apply_begin_value(struct redis_apply *apply, const struct redis_asked *asked,
                             unsigned version);
/* The value is in place. REGISTRY_NO_EXPIRY: it has none. false: error. */
MUST_CHECK bool redis_apply_end_value(struct redis_apply *apply, const struct redis_asked *asked,
                                      int64_t expire_at_ms, bool is_about);
/* Up to here everything is as it is at the source. */
static inline uint64_t redis_apply_exact_offset(const struct redis_apply *apply, uint64_t offset) {
    return apply->asked.first != NULL ? apply->asked.first->since : offset;
}

__attribute__((format(printf, 2, 3))) bool redis_apply_fail(struct redis_apply *apply,
                                                            const char *format, ...);
/* What came was written at this time: server time is at least that. */
void redis_apply_raise_time(struct redis_apply *apply, int64_t time_us);

/* ---- the stream (redis_stream.c) ---- */

enum redis_stream_state {
    REDIS_STREAM_WAITS, /* for a copy to begin */
    REDIS_STREAM_LOADS,
    REDIS_STREAM_LOADED, /* it waits until it can be exchanged */
    REDIS_STREAM_FOLLOWS,
    REDIS_STREAM_STOPPED,
    REDIS_STREAM_STATES,
};
const char *redis_stream_state_name(enum redis_stream_state state);

struct redis_stream {
    struct redis_apply apply;
    enum redis_stream_state state;
    uint64_t offset;                /* of the source: everything up to it is applied */
    struct rdb_load load;           /* what it counts is of the last copy */
    char error[RDB_LOAD_ERROR_MAX]; /* of a copy, or of what is applied */
    uint64_t limit; /* no command behind this offset is begun; UINT64_MAX: there is none */
    uint64_t
        answered; /* here the first key that was answered is as at the source; UINT64_MAX: none was */
    bool is_held; /* by limit, or by a question: the last call has done nothing more */
    /* Private. */
    bool has_load;
    uint64_t seed;
    bool is_hungry;       /* what it has is read as far as it goes */
    uint64_t unconfirmed; /* bytes of a transaction that is not whole */
    /* Filled by LOADS; behind the exchange, what was here before. NULL: none. */
    struct registry *beside;
    struct resp_parser parser;
    struct resp_arena arena;
    struct buffer pending; /* the beginning of a request that is not whole */
    bool is_in_multi;
    uint64_t multi_database; /* that is selected behind what has come of it */
    uint64_t multi_size;
    struct redis_queued {
        struct redis_queued *next;
        struct request request; /* args and their bytes are in one piece of memory with it */
        bool is_other;          /* only the name of a key that is of another type then */
    } * multi_first, *multi_last;
};

void redis_stream_init(struct redis_stream *stream, struct server *server, uint64_t seed);
void redis_stream_deinit(struct redis_stream *stream);
/* A new copy begins, of the source's offset; nothing is beside the keys. */
void redis_stream_restart(struct redis_stream *stream, uint64_t offset);
/* No copy: the boards are those of the source at this offset, and its commands follow, in this database. false: no
 * memory. */
MUST_CHECK bool redis_stream_resume(struct redis_stream *stream, uint64_t offset,
                                    uint64_t database);
/* Take bytes, for about budget_ns; what it does in one go is not interrupted. Returns how many were taken: 0 where
 * it has to go on with what it has, has ended, or is LOADED. */
MUST_CHECK size_t redis_stream_take(struct redis_stream *stream, struct bytes piece,
                                    uint64_t budget_ns, int64_t now_us);
/* Has it something to do without more bytes? */
static inline bool redis_stream_has_work(const struct redis_stream *stream) {
    return !stream->is_hungry && stream->state != REDIS_STREAM_WAITS &&
           stream->state != REDIS_STREAM_LOADED && stream->state != REDIS_STREAM_STOPPED;
}
/* From LOADED: what is loaded takes the place of the keys. false: not now, as a save is going on. */
MUST_CHECK bool redis_stream_exchange(struct redis_stream *stream);
/* What was asked for cannot be held: it is STOPPED. */
void redis_stream_fail(struct redis_stream *stream, const char *error);
/* The registry beside the keys, to be freed in steps: the caller's. NULL: none. */
struct registry *redis_stream_take_beside(struct redis_stream *stream);

#endif
