/* The form in which a board keeps a member's name. Names of a few widespread kinds are packed, two digits to a
 * byte. Every name has exactly one form, so two names are equal if and only if their codes and stored
 * bytes are.
 *
 *     code          the name                                   stored bytes
 *     0 .. 127      any other of code bytes                    the name
 *     128 + n - 1   2n lower-case hexadecimal digits           n <= 32: two digits each, the first in the
 *                                                              high half
 *     160 + n - 1   2n - 1 decimal digits                      n <= 10: the same, and 15 in the last half
 *     160 + 15      a UUID in lower case                       16: its digits
 *     192 + n - 1   a prefix (name.c) and one of these three   n: which of both in a byte, then as above
 *     255           a name of 128 bytes or more                the name, somewhere else */
#ifndef CODEC_NAME_H
#define CODEC_NAME_H

#include "codec/bytes.h"

enum {
    NAME_TEXT_MAX = 127, /* largest name that is stored as it is, in its place */
    NAME_LONG = 255,
    NAME_FORM_MAX = 32, /* most stored bytes of a packed name */
    NAME_SIZE_MAX = 72, /* above that of any packed name's text */
    NAME_OVERRUN = 16,  /* bytes that name_write may write behind its text */
    NAME_TEXT_ROOM = NAME_SIZE_MAX + NAME_OVERRUN,
};

/* A name as it is stored, or as it is sought; borrowed. */
struct name {
    const char *at;
    uint32_t size; /* of what is stored; a long name's whole text */
    uint8_t code;
};

/* A name's form without its text. */
struct packed_name {
    char packed[NAME_FORM_MAX + 3]; /* the stored bytes of a packed name */
    uint8_t code;
};

static inline bool name_is_packed(uint8_t code) {
    return code > NAME_TEXT_MAX && code != NAME_LONG;
}

/* Stored bytes of a name with this code, which is not NAME_LONG. */
static inline uint32_t name_stored_size(uint8_t code) {
    return code > NAME_TEXT_MAX ? (code & 31U) + 1 : code;
}

static inline uint8_t name_text_code(size_t size) {
    return size <= NAME_TEXT_MAX ? (uint8_t)size : (uint8_t)NAME_LONG;
}

/* A text of any size that is not packed, whatever its form would be. */
static inline struct name name_unpacked(struct bytes text) {
    return (struct name){text.at, (uint32_t)text.size, name_text_code(text.size)};
}

/* The name's form; what is stored is in form, or the text itself. */
void name_pack(struct bytes text, struct packed_name *form);

/* The name of this text and form; borrowed from both. */
static inline struct name name_from(struct bytes text, const struct packed_name *form) {
    bool is_packed = name_is_packed(form->code);
    return (struct name){
        .at = is_packed ? form->packed : text.at,
        .size = is_packed ? name_stored_size(form->code) : (uint32_t)text.size,
        .code = form->code,
    };
}

/* Write a packed name's text; its size. Writes up to NAME_OVERRUN bytes more. */
size_t name_write(struct name name, char *to);
/* Its size, without writing it. */
size_t name_packed_size(struct name name);

/* The name's text: in room if it is packed, else where it is stored. */
static inline struct bytes name_text(struct name name, char room[NAME_TEXT_ROOM]) {
    if (!name_is_packed(name.code)) {
        return (struct bytes){.at = name.at, .size = name.size};
    }
    return (struct bytes){.at = room, .size = name_write(name, room)};
}

/* Size of the name's text. */
static inline size_t name_size(struct name name) {
    return name_is_packed(name.code) ? name_packed_size(name) : name.size;
}

/* Is this its text? */
static inline bool name_is(struct name name, struct bytes text) {
    char room[NAME_TEXT_ROOM];
    return name_size(name) == text.size && bytes_equal(name_text(name, room), text);
}

/* The stored bytes: equal ones with equal codes are of equal names. */
static inline struct bytes name_stored(struct name name) {
    return (struct bytes){.at = name.at, .size = name.size};
}

static inline bool name_equal(struct name a, struct name b) {
    return a.code == b.code && bytes_equal(name_stored(a), name_stored(b));
}

#endif
