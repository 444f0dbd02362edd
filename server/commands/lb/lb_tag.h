/* Tags in requests and replies of the native commands: names and values as clients write them
 * (codec/tag.h), and the element that TAGS appends to a record.
 *
 *     {country DE class mage}     a map (RESP2: name, value, name, value ...) of those tags of which the
 *                                 member has a value, in the order of the layout */
#ifndef SERVER_COMMAND_LB_TAG_H
#define SERVER_COMMAND_LB_TAG_H

#include "server/dispatch/call.h"
#include "skiplist/tags.h"

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

#endif
