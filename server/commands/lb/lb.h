/* Shared by the native commands (LB.): layouts and values of fields, tags, and what is held. */
#ifndef SERVER_COMMAND_LB_H
#define SERVER_COMMAND_LB_H

#include "server/acl/acl.h"
#include "server/commands/zset/zset.h"
#include "skiplist/keyspace/board_options.h"

/* The key that has exactly the members with better fields above it: board_count_above of it is the
 * competition rank. */
static inline uint64_t lb_best_key(const struct layout *layout, uint64_t key) {
    return key | layout->time.mask;
}

/* The layout of a board or, if NULL, the one that a new board of this name would get. */
const struct layout *lb_layout(const struct call *call, const struct board *board,
                               struct bytes name);

/* The names that the archives of a board have, the newest first: of the LB_ARCHIVES_MAX periods before the running
 * one. More than ARCHIVE n may be there: SETTLE YES keeps them, or an expiry of theirs. */
enum { LB_ARCHIVES_MAX = 16 };
struct lb_archives {
    const struct board_options *options;
    char *text; /* room for REGISTRY_NAME_MAX bytes */
    size_t name_size;
    int64_t time_ms; /* in the period that was last */
    uint32_t left;
    size_t period_size; /* of the name without a number */
    uint32_t number;
};
/* name: of the board, at most REGISTRY_KEY_MAX bytes. Without a PERIOD there are none. */
struct lb_archives lb_archives_begin(struct bytes name, const struct board_options *options,
                                     char *text);
/* The next name, in text. false: there is none. */
MUST_CHECK bool lb_archives_next(struct lb_archives *archives, struct bytes *archive);
/* Where another key has this name, the archive has it with a number behind it: the next of some that are tried. */
MUST_CHECK bool lb_archives_next_number(struct lb_archives *archives, struct bytes *archive);
/* Has this board, of such a name, the options of an archive of a board with these options? */
bool lb_is_archive(const struct board_options *board, const struct board_options *options);

/* A layout and tags in a syntax; more: what a field may have besides. */
#define LB_LAYOUT_SYNTAX(more)                                                                     \
    "layout=[LAYOUT name | fields=((FIELD name bits:integer order=[ASC | DESC] [SIGNED] "          \
    "[SCALE scale:integer] [DOUBLE]" more                                                          \
    ")... [TIME bits:integer unit=<US | MS | S | M | H | D> "                                      \
    "window=[START start | END end] [LATEST]])] tags=[TAG name bits:integer]... "

/* The options of a new board of this name before its options, and *next moves past the layout's words.
 * A layout given here replaces all options from the settings. Without one, layout and options come from
 * the settings. false: the error was replied. */
MUST_CHECK bool lb_create_read_begin(const struct call *call, struct bytes name, uint32_t *next,
                                     struct board_options *options);

/* The seconds of EX, more than 0, as a time: unix milliseconds. false: the error was replied. */
MUST_CHECK bool lb_parse_expiry(const struct call *call, struct bytes text, int64_t *time_ms);

/* The command takes at most so many of what they are called. false: the error was replied. */
MUST_CHECK bool lb_check_count(const struct call *call, uint32_t count, uint32_t max,
                               const char *called);

/* Parse a field's value: one that the field can hold, or (for increments and limits) any decimal of
 * its SCALE. false: the error was replied; it names the field. */
MUST_CHECK bool lb_parse_value(const struct call *call, const struct layout_field *field,
                               struct bytes text, uint64_t *ordinal);
/* The ordinal that a member without results gets by this value now. */
MUST_CHECK bool lb_parse_score(const struct call *call, const struct layout_field *field,
                               struct bytes text, uint64_t *ordinal);
MUST_CHECK bool lb_parse_decimal(const struct call *call, const struct layout_field *field,
                                 struct bytes text, struct decimal *value);

/* A packed key as WITHKEY shows it. *is_equal: it has a = in front. layout NULL: there is no board, and any integer
 * may be one. false: the error was replied. */
MUST_CHECK bool lb_parse_packed_key(const struct call *call, const struct layout *layout,
                                    struct bytes text, uint64_t *key, bool *is_equal);

/* The members with a score between the limits at args[index] and behind it, in either order. If board is
 * NULL, only the texts are checked, and the span is empty. false: the error was replied. */
MUST_CHECK bool lb_span_of_scores(const struct call *call, const struct board *board,
                                  uint32_t index, struct zset_span *span);

/* ---- tags: lb_tag.c ---- */

/* Names and values as clients write them (codec/tag.h), and the element that TAGS appends to a record.
 *
 *     {country DE class mage}     a map (RESP2: name, value, name, value ...) of those tags of which the
 *                                 member has a value, in the order of the layout */

/* The index of the tag with this name. false: the error was replied; it says which tags there are. */
MUST_CHECK bool lb_tag_values_find(const struct call *call, const struct tag_set *tags,
                                   struct bytes name, unsigned *tag);
/* Put a tag's value, which is to be written, into *values, in place of an earlier one of the same
 * tag. false: the error was replied. */
MUST_CHECK bool lb_tag_values_read(const struct call *call, const struct tag_set *tags,
                                   struct bytes name, struct bytes value,
                                   struct tag_values *values);
/* Will there be room for these values on the board, whatever member gets them? Frees what removed
 * members have left, if that decides. false: the error was replied. */
MUST_CHECK bool lb_tag_values_check_room(const struct call *call, struct board *board,
                                         const struct tag_values *values);

/* A tag's value; empty: none. */
static inline struct bytes lb_tag_values_value(const struct tag_values *values, unsigned tag) {
    return (values->mask >> tag & 1) != 0 ? values->at[tag] : (struct bytes){.size = 0};
}

/* The element of a record where there is room for so many bytes; returns its end. version: as in struct reply. */
size_t lb_tag_values_room(const struct tag_set *tags);
char *lb_tag_values_put(char *out, const struct tag_set *tags, const struct tag_values *values,
                        uint8_t version);

/* ---- what is held: lb_held.c ---- */

/* May the user ask for what a board holds (LB.HELD)? A player sees of it no more than what it has sent. */
bool lb_held_may_list(const struct call *call, struct bytes board);

/* The list of what LB.GET with WITHHELD replies besides records: what is held of the player who asks, the newest first, if
 * it is among these members; else it is empty. */
void lb_held_put_own(const struct call *call, struct bytes board, const struct bytes *members,
                     uint32_t count);

/* Approves after the time of AUTO (server/sessions/job.h). */
extern const struct board_work hold_job;

#endif
