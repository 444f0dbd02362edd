/* The shapes of replies, in a small language: an entry's .reply (server/dispatch/command.h), and the answers of the
 * JSON API (server/web/), which are made of them.
 *
 *     i                      an integer; s text, b a boolean or 0 or 1, n a decimal (RESP3: a double),
 *                            d a time in unix milliseconds, e in seconds (JSON: ISO 8601), y base64, o anything
 *     #                      an exact number, as one or as its text
 *     <OK>  <asc|desc>       one of these texts
 *     [i]                    an array of any size (RESP3: of what needs no order, a set)
 *     [rank:i key:s]         an array of just these
 *     [member:s score:n ...] these, again and again
 *     [[member:s score:n]...]  the same, which RESP3 has as arrays in an array
 *     [fields:#... count:i]  any number of numbers, and an integer
 *     [PCT=percent:n]        there with the option PCT only
 *     (count:i cap:i?)       a map with these entries (RESP2: an array of names and values)
 *     (held?:i)              an entry that may be missing
 *     {s}                    a map from any texts to these
 *     @Record                a shape with a name
 *     i?                     or null
 *     i|BY=[@Count]          one or the other; the second one with the option BY only
 *     !                      an error, always
 *     cap:i?'largest'        a description
 *
 * An answer of the API chooses from a reply, in its own order and by its own names (server/web/web_openapi.c):
 *
 *     count                  as the reply's entry
 *     opens_at(opens)        that entry, by another name; a(b.c) one in a map in the map; a(.) the value itself
 *     lowest(lowest):s       likewise, as another type; of a map some entries: time():(unit bits)
 *     name~                  text, and its bytes as name_base64, if it is not UTF-8 */
#ifndef SERVER_SHAPE_H
#define SERVER_SHAPE_H

#include "codec/bytes.h"

enum shape_kind {
    SHAPE_UNSAID, /* of a member: as its source */
    SHAPE_INTEGER = 'i',
    SHAPE_TEXT = 's',
    SHAPE_BOOLEAN = 'b',
    SHAPE_DECIMAL = 'n',
    SHAPE_TIME = 'd',
    SHAPE_SECONDS = 'e',
    SHAPE_BASE64 = 'y',
    SHAPE_ANY = 'o',
    SHAPE_NUMBER = '#',
    SHAPE_CHOICE = '<',
    SHAPE_ARRAY = '[',
    SHAPE_TUPLE = 'T',
    SHAPE_MAP = '(',
    SHAPE_TABLE = '{',
    SHAPE_NAMED = '@',
    SHAPE_ERROR = '!',
};

/* A type, and what stands behind it. Slices are of the text that was read. */
struct shape {
    enum shape_kind kind;
    struct bytes option; /* only with it; at NULL: always */
    const char *inner;   /* behind an opening bracket */
    struct bytes name;   /* of SHAPE_NAMED */
    bool is_nullable, is_repeated;
    struct bytes description; /* at NULL: none */
    const char *end;          /* at a '|' another one follows */
};
/* The type that stands there. The text is a constant of this program: a malformed one is a bug. */
struct shape shape_read(const char *at);

/* An element of a tuple, or an entry of a map. */
struct shape_member {
    struct bytes option, name;
    struct bytes source;        /* at NULL: none is said */
    bool is_optional, is_bytes; /* is_bytes: name~ */
    struct shape type;          /* the first of its alternatives; of is_bytes a text */
    const char *at;             /* where the types begin */
};
/* Read the one at *at, which goes to the next. false: there is none left; *at is at the closing bracket, the end, or
 * the "..." behind all. */
MUST_CHECK bool shape_next(const char **at, struct shape_member *member);

/* The choices of <...>, one by one; *at begins as inner. false: that were all. */
MUST_CHECK bool shape_next_choice(const char **at, struct bytes *choice);

/* The shape that is meant, where it has a name. */
struct shape shape_resolve(struct shape shape);
/* What a path leads to in the value of this shape: "period.start". Null where anything on the way may be. */
struct shape shape_follow(struct shape shape, struct bytes path);

/* What is meant by @Name; it exists. */
const char *shape_find(struct bytes name);
/* All of them, in the order in which they were written; NULL: there are no more. */
const char *shape_name(unsigned index);

#endif
