/* Texts of names as boards store them, and texts of names that are packed there (codec/name.h). */
#ifndef TESTS_SUPPORT_STORED_TEXT_H
#define TESTS_SUPPORT_STORED_TEXT_H

#include <stdio.h>

#include "codec/name.h"

/* The name's text; a packed name's is valid for the next STORED_TEXTS - 1 calls. */
enum { STORED_TEXTS = 64 };
static inline struct bytes stored_text(struct name name) {
    static char rooms[STORED_TEXTS][NAME_TEXT_ROOM];
    static unsigned calls;
    return name_text(name, rooms[calls++ % STORED_TEXTS]);
}

/* A text of any size as a name that is not packed, whatever its form would be. */
static inline struct name stored_name(struct bytes text) {
    return (struct name){text.at, (uint32_t)text.size, name_text_code(text.size)};
}

/* The text with this number of one of the kinds that are packed: different numbers, different texts. */
enum { PACKED_KINDS = 10 };
static inline struct bytes packed_kind_text(unsigned kind, uint32_t number,
                                            char text[NAME_TEXT_ROOM]) {
    static const char uuid_rest[] = "-e89b-12d3-a456-426614174000";
    static const struct {
        const char *prefix, *behind;
        int digits;
        bool is_hex;
    } kinds[PACKED_KINDS] = {
        {"", "", 1, false},         {"", "", 12, false},      {"user:", "", 1, false},
        {"player", "", 6, false},   {"", uuid_rest, 8, true}, {"p:", uuid_rest, 8, true},
        {"", "", 24, true},         {"", "", 64, true},       {"0x", "", 40, true},
        {"account:", "", 40, true},
    };
    int size = snprintf(text, NAME_TEXT_ROOM, kinds[kind].is_hex ? "%s%0*x%s" : "%s%0*u%s",
                        kinds[kind].prefix, kinds[kind].digits, number, kinds[kind].behind);
    return (struct bytes){.at = text, .size = (size_t)size};
}

#endif
