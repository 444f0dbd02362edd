/* The form in which a board keeps a member's name. Names of a few widespread kinds are packed: they take
 * half of their text, or less. Every name has exactly one form, so two names are equal if and only if
 * their codes and stored bytes are.
 *
 *     code          the name                                        stored bytes
 *     0 .. 127      any other of code bytes                         the name
 *     128 + n - 1   2n lower-case hexadecimal digits, n <= 32       n: two digits each
 *     160 + n - 1   1 to 19 decimal digits                          n <= 8: their number, below
 *     160 + 15      a UUID in lower case                            16
 *     192 + n - 1   a prefix and one of these three                 n: number of the prefix (128 more if
 *                                                                   hexadecimal digits follow), the rest
 *     255           a name of 128 bytes or more                     the name, somewhere else
 *
 * Digits keep their leading zeros: all strings of digits, the shorter first, are numbered from 0
 * ("0" is 0, "9" is 9, "00" is 10, "000" is 110), and that number is stored in as few bytes as it takes,
 * lowest first. */
#ifndef CODEC_NAME_H
#define CODEC_NAME_H

#include "codec/bytes.h"

enum {
    NAME_TEXT_MAX = 127, /* largest name that is stored as it is, in its place */
    NAME_LONG = 255,
    NAME_FORM_MAX = 32, /* most stored bytes of a packed name */
    NAME_TEXT_ROOM = 96,     /* for any packed name's text */
};

/* A name as it is stored, or as it is sought; borrowed. */
struct name {
    const char *at;
    uint32_t size; /* of what is stored; a long name's whole text */
    uint8_t code;
};

/* A name's form without its text. */
struct packed_name {
    char packed[NAME_FORM_MAX + 8]; /* the stored bytes of a packed name */
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

/* Write a packed name's text to room; where it begins there, and its size. */
struct bytes name_unpack(struct name name, char room[NAME_TEXT_ROOM]);

/* The name's text: in room if it is packed, else where it is stored. */
static inline struct bytes name_text(struct name name, char room[NAME_TEXT_ROOM]) {
    return name_is_packed(name.code) ? name_unpack(name, room)
                                     : (struct bytes){.at = name.at, .size = name.size};
}

/* Size of the name's text. */
static inline size_t name_size(struct name name) {
    char room[NAME_TEXT_ROOM];
    return name_text(name, room).size;
}

/* The stored bytes: equal ones with equal codes are of equal names. */
static inline struct bytes name_stored(struct name name) {
    return (struct bytes){.at = name.at, .size = name.size};
}

static inline bool name_equal(struct name a, struct name b) {
    return a.code == b.code && bytes_equal(name_stored(a), name_stored(b));
}

#endif
