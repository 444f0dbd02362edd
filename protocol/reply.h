/* Replies in RESP2 or RESP3, written directly into a client's output buffer.
 *
 * Every function writes one complete value, with one exception: an array, map, set or push writes only
 * its header, and the caller then writes that many values (pairs for a map). In RESP2 a map is
 * an array of twice the length, a set an array, a double a bulk string, a boolean an integer, null
 * a nil bulk, a verbatim string a bulk. Simple strings and errors are sanitised: CR, LF and NUL
 * become spaces, so that an echoed argument cannot break the framing.
 *
 * No function fails; without room the buffer becomes broken (buffer.h). Small values reserve a few
 * bytes more than they write, so a buffer may break just below its limit. */
#ifndef PROTOCOL_REPLY_H
#define PROTOCOL_REPLY_H

#include "codec/buffer.h"
#include "codec/decimal.h"

/* Numbers that may exceed 2^53 are bulk strings, whatever the version: CLIENT NUMBERS STRINGS. */
enum { REPLY_STRINGS = 0 };

struct reply {
    struct buffer *out;
    uint8_t version;       /* 2 or 3 */
    uint8_t numbers;       /* REPLY_STRINGS, or as the version has them: then equal to it */
    bool is_silent;        /* CLIENT REPLY OFF: nothing is written */
    uint64_t error_count;  /* errors replied so far, including silent ones */
    char error_prefix[32]; /* first word of the last error: "ERR", "WRONGTYPE" (for errorstats) */
};

/* Will the output be discarded? Writers of long replies stop then. */
static inline bool reply_is_lost(const struct reply *reply) {
    return reply->is_silent || reply->out->is_broken;
}

void reply_init(struct reply *reply, struct buffer *out, uint8_t version);

void reply_ok(struct reply *reply);
void reply_simple(struct reply *reply, const char *text);
/* text begins with the prefix: "ERR syntax error". */
void reply_error(struct reply *reply, const char *text);
/* Add text to the error that was replied when the output had this size: whom it is about. */
void reply_error_extend(struct reply *reply, size_t size_before, const char *text);
__attribute__((format(printf, 2, 3))) void reply_error_format(struct reply *reply,
                                                              const char *format, ...);
void reply_integer(struct reply *reply, int64_t value);
/* An integer that may exceed 2^53. */
void reply_wide_integer(struct reply *reply, int64_t value);
void reply_bulk(struct reply *reply, struct bytes text);
void reply_bulk_text(struct reply *reply, const char *text);
/* An entry of a map: its name and its value. */
static inline void reply_named_text(struct reply *reply, const char *name, const char *text) {
    reply_bulk_text(reply, name);
    reply_bulk_text(reply, text);
}
static inline void reply_named_integer(struct reply *reply, const char *name, int64_t number) {
    reply_bulk_text(reply, name);
    reply_integer(reply, number);
}
__attribute__((format(printf, 2, 3))) void reply_bulk_format(struct reply *reply,
                                                             const char *format, ...);
/* RESP3 "txt:" verbatim; a bulk in RESP2 (INFO, CLIENT LIST, LATENCY DOCTOR). */
void reply_verbatim(struct reply *reply, struct bytes text);
/* A verbatim string whose text the caller appends to reply->out; room for the header is kept, as in
 * reply_array_begin. Write nothing else between the two calls, and nothing at all if
 * reply_is_lost. */
size_t reply_verbatim_begin(struct reply *reply);
void reply_verbatim_end(struct reply *reply, size_t mark);
/* Nil bulk ("$-1", RESP3 "_"), nil array ("*-1", RESP3 "_"). */
void reply_null(struct reply *reply);
void reply_null_array(struct reply *reply);
void reply_boolean(struct reply *reply, bool value); /* RESP2: integer 1 or 0 */
/* A score: exact decimal text; RESP3 double (","), RESP2 and REPLY_STRINGS bulk. */
void reply_decimal(struct reply *reply, struct decimal value, unsigned scale);
/* A score that is already text. */
void reply_decimal_text(struct reply *reply, struct bytes text);
/* A number that is not a score, with at most 17 digits as Redis prints doubles. */
void reply_double(struct reply *reply, double value);
void reply_array(struct reply *reply, uint64_t count);
void reply_map(struct reply *reply, uint64_t pair_count);
void reply_set(struct reply *reply, uint64_t count);
/* The header of a RESP3 push; an array in RESP2. */
void reply_push(struct reply *reply, uint64_t count);

/* Append a copy of out->at[begin .. begin + size - 1], which must be complete values. */
void reply_repeat(struct reply *reply, size_t begin, size_t size);

/* An array whose length is known only at the end; room for the header is kept.
 *
 *     size_t mark = reply_array_begin(reply);  ...values...  reply_array_end(reply, mark, count);
 *
 * Can be nested. Nothing may be dropped from the buffer in between. The end moves the values up to
 * the header, so use reply_array if the length is known. */
size_t reply_array_begin(struct reply *reply);
void reply_array_end(struct reply *reply, size_t mark, uint64_t count);
void reply_map_end(struct reply *reply, size_t mark, uint64_t pair_count);

#endif
