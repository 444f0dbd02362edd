/* See rdb_bytes.h. Integers are little endian unless a line says otherwise. */
#include "server/rdb/rdb_bytes.h"

#include <ctype.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "codec/bytes.h"

/* ---- the checksum ----
 *
 * Eight bytes at a time: table[n][b] is the checksum of the byte b with n zeros behind it. */

enum { SLICES = 8, BYTE_VALUES = 256 };
#define REFLECTED_POLYNOMIAL UINT64_C(0x95ac9329ac4bc9b5)

static uint64_t table[SLICES][BYTE_VALUES];
static atomic_bool is_made;

/* Two threads that make it at the same time write the same words. */
static void rdb_bytes_make_table(void) {
    uint64_t made[SLICES][BYTE_VALUES];
    for (unsigned byte = 0; byte < BYTE_VALUES; byte++) {
        uint64_t crc = byte;
        for (int bit = 0; bit < 8; bit++) {
            crc = (crc >> 1) ^ ((crc & 1) != 0 ? REFLECTED_POLYNOMIAL : 0);
        }
        made[0][byte] = crc;
    }
    for (unsigned slice = 1; slice < SLICES; slice++) {
        for (unsigned byte = 0; byte < BYTE_VALUES; byte++) {
            uint64_t crc = made[slice - 1][byte];
            made[slice][byte] = made[0][crc & 0xff] ^ (crc >> 8);
        }
    }
    memcpy(table, made, sizeof table);
    atomic_store(&is_made, true);
}

uint64_t rdb_bytes_crc(uint64_t crc, const char *at, size_t size) {
    if (!atomic_load(&is_made)) {
        rdb_bytes_make_table();
    }
    for (; size >= SLICES; at += SLICES, size -= SLICES) {
        crc ^= bytes_get_u64(at);
        crc = table[7][crc & 0xff] ^ table[6][(crc >> 8) & 0xff] ^ table[5][(crc >> 16) & 0xff] ^
              table[4][(crc >> 24) & 0xff] ^ table[3][(crc >> 32) & 0xff] ^
              table[2][(crc >> 40) & 0xff] ^ table[1][(crc >> 48) & 0xff] ^ table[0][crc >> 56];
    }
    for (; size > 0; at++, size--) {
        crc = table[0][(crc ^ (unsigned char)*at) & 0xff] ^ (crc >> 8);
    }
    return crc;
}

bool rdb_bytes_open_payload(struct bytes bytes, struct rdb_payload *payload) {
    if (bytes.size < RDB_FOOTER_SIZE) {
        return false;
    }
    size_t size = bytes.size - RDB_FOOTER_SIZE;
    const unsigned char *footer = (const unsigned char *)bytes.at + size;
    uint64_t stored = bytes_get_u64(bytes.at + size + 2);
    *payload = (struct rdb_payload){.value = {.at = bytes.at, .size = size},
                                    .version = (unsigned)(footer[0] | footer[1] << 8),
                                    .is_checked = stored == rdb_bytes_crc(0, bytes.at, size + 2),
                                    .is_open = stored == 0};
    return true;
}

bool rdb_bytes_parse_score(struct bytes text, double *score) {
    enum { TEXT_MAX = 255 };
    char copy[TEXT_MAX + 1];
    if (text.size == 0 || text.size > TEXT_MAX || isspace((unsigned char)text.at[0])) {
        return false;
    }
    memcpy(copy, text.at, text.size);
    copy[text.size] = '\0';
    char *end;
    double value = strtod(copy, &end);
    if (end != copy + text.size || isnan(value)) {
        return false;
    }
    *score = value;
    return true;
}
/* ---- compressed strings ---- */

enum { LITERALS_END = 32, LENGTH_LONG = 7, LENGTH_LEAST = 2 };

bool rdb_bytes_expand(struct bytes from, size_t size, struct buffer *out) {
    const unsigned char *at = (const unsigned char *)from.at;
    const unsigned char *end = at + from.size;
    buffer_clear(out);
    while (at < end) {
        unsigned control = *at++;
        if (control < LITERALS_END) {
            size_t count = control + 1;
            if (count > (size_t)(end - at) || count > size - out->size) {
                return false;
            }
            buffer_append(out, at, count);
            if (out->is_broken) {
                return false;
            }
            at += count;
            continue;
        }
        size_t count = control >> 5;
        if (count == LENGTH_LONG && at < end) {
            count += *at++;
        }
        if (at == end) {
            return false;
        }
        size_t distance = ((size_t)(control & 31) << 8 | *at++) + 1;
        count += LENGTH_LEAST;
        bool is_inside = count <= size - out->size && distance <= out->size;
        char *to = is_inside ? buffer_reserve(out, count) : NULL;
        if (to == NULL) {
            return false;
        }
        /* Copies may overlap what they write: "aaaa" is one byte and a copy from one byte before. */
        for (size_t i = 0; i < count; i++) {
            to[i] = to[(ptrdiff_t)i - (ptrdiff_t)distance];
        }
        buffer_commit(out, count);
    }
    return out->size == size;
}

/* ---- packed values ---- */

enum {
    LISTPACK_HEAD = 6,
    ZIPLIST_HEAD = 10,
    ZIPMAP_HEAD = 1,
    END = 0xff,
    COUNT_UNKNOWN = UINT16_MAX,
    ZIPMAP_COUNT_UNKNOWN = 254,
};

/* One element: its bytes, or a number, and where the next one begins. */
struct element {
    size_t head, size; /* of a string */
    int64_t number;
    bool is_number;
    size_t total;
};

/* How an element is encoded, by its first byte: a row's is the first that has these bits under the mask. What else is in
 * the head, which is of 1, 2 or 5 bytes, is a string's size or the number, unless that is behind it. */
struct encoding {
    unsigned char mask, bits, head;
    unsigned char number_size; /* behind the head; 0: none is */
    bool is_string;
};

static const struct encoding listpack_encodings[] = {
    {0x80, 0x00, 1, 0, false}, /* 7 bits */
    {0xc0, 0x80, 1, 0, true},
    {0xe0, 0xc0, 2, 0, false}, /* 13 bits, signed */
    {0xf0, 0xe0, 2, 0, true},
    {0xff, 0xf0, 5, 0, true},
    {0xff, 0xf1, 1, 2, false},
    {0xff, 0xf2, 1, 3, false},
    {0xff, 0xf3, 1, 4, false},
    {0xff, 0xf4, 1, 8, false},
    {0},
};
static const struct encoding ziplist_encodings[] = {
    {0xc0, 0x00, 1, 0, true},
    {0xc0, 0x40, 2, 0, true},
    {0xc0, 0x80, 5, 0, true}, /* big endian */
    {0xff, 0xc0, 1, 2, false},
    {0xff, 0xd0, 1, 4, false},
    {0xff, 0xe0, 1, 8, false},
    {0xff, 0xf0, 1, 3, false},
    {0xff, 0xfe, 1, 1, false},
    {0xff, 0xff, 0, 0, false}, /* the end */
    {0xf0, 0xf0, 1, 0, false}, /* 1 to 13, for 0 to 12 */
    {0},
};

static size_t rdb_bytes_left(const struct rdb_packed *packed) {
    return (size_t)(packed->end - packed->at);
}

static uint32_t rdb_bytes_get_u32(const unsigned char *at) {
    return bytes_get_u32((const char *)at);
}

bool rdb_bytes_begin_packed(struct rdb_packed *packed, enum rdb_packed_form form,
                            struct bytes bytes) {
    const unsigned char *at = (const unsigned char *)bytes.at;
    size_t head = form == RDB_LISTPACK  ? LISTPACK_HEAD
                  : form == RDB_ZIPLIST ? ZIPLIST_HEAD
                                        : ZIPMAP_HEAD;
    if (bytes.size < head + 1 || at[bytes.size - 1] != END ||
        (form != RDB_ZIPMAP && rdb_bytes_get_u32(at) != bytes.size)) {
        return false;
    }
    *packed = (struct rdb_packed){.form = form, .at = at + head, .end = at + bytes.size - 1};
    if (form == RDB_ZIPMAP) {
        packed->count = at[0] * 2U;
        packed->has_count = at[0] < ZIPMAP_COUNT_UNKNOWN;
    } else {
        packed->count = (uint32_t)(at[head - 2] | at[head - 1] << 8);
        packed->has_count = packed->count != COUNT_UNKNOWN;
    }
    return true;
}

static bool rdb_bytes_is_string(struct element *element, size_t room, size_t head, uint64_t size) {
    if (room < head || size > room - head) {
        return false;
    }
    element->head = head;
    element->size = (size_t)size;
    element->total = head + (size_t)size;
    return true;
}

/* ---- listpack and ziplist ---- */

static bool rdb_bytes_read_element(const struct encoding *encoding, bool is_ziplist,
                                   const unsigned char *at, size_t room, struct element *element) {
    while (room > 0 && encoding->mask != 0 && (at[0] & encoding->mask) != encoding->bits) {
        encoding++;
    }
    size_t size = (size_t)encoding->head + encoding->number_size;
    if (encoding->head == 0 || room < size) {
        return false;
    }
    uint32_t value = at[0] & ~encoding->mask & UINT8_MAX;
    if (encoding->head == 5) {
        value = rdb_bytes_get_u32(at + 1);
        value = is_ziplist ? __builtin_bswap32(value) : value; /* big endian there */
    } else if (encoding->head == 2) {
        value = value << 8 | at[1];
    }
    if (encoding->is_string) {
        return rdb_bytes_is_string(element, room, encoding->head, value);
    }
    element->is_number = true;
    element->total = size;
    element->number = is_ziplist                             ? (int64_t)value - 1
                      : encoding->head == 2 && value >= 4096 ? (int64_t)value - 8192
                                                             : (int64_t)value;
    if (encoding->number_size > 0) {
        uint64_t number = 0;
        unsigned unused = 64 - 8U * encoding->number_size;
        for (size_t i = 0; i < encoding->number_size; i++) {
            number |= (uint64_t)at[encoding->head + i] << (8 * i);
        }
        element->number = (int64_t)(number << unused) >> unused;
    }
    return true;
}

static bool rdb_bytes_read_listpack(const unsigned char *at, size_t room, struct element *element) {
    if (!rdb_bytes_read_element(listpack_encodings, false, at, room, element)) {
        return false;
    }
    size_t back = 1; /* bytes of its size, seven bits in each */
    while (back < 5 && element->total >> (7 * back) != 0) {
        back++;
    }
    if (room - element->total < back) {
        return false;
    }
    element->total += back;
    return true;
}

static bool rdb_bytes_read_ziplist(const unsigned char *at, size_t room, struct element *element) {
    size_t before = at[0] == 0xfe ? 5 : 1;
    if (at[0] == END || room < before ||
        !rdb_bytes_read_element(ziplist_encodings, true, at + before, room - before, element)) {
        return false;
    }
    element->head += before;
    element->total += before;
    return true;
}

/* ---- zipmap ---- */

/* Behind the size of a value, a byte says how many bytes after it are unused. */
static bool rdb_bytes_read_zipmap(const struct rdb_packed *packed, struct element *element) {
    const unsigned char *at = packed->at;
    size_t room = rdb_bytes_left(packed);
    size_t head = at[0] == 0xfe ? 5 : 1;
    if (at[0] == END || room < head + packed->is_at_value) {
        return false;
    }
    uint64_t size = head == 5 ? rdb_bytes_get_u32(at + 1) : at[0];
    size_t unused = packed->is_at_value ? at[head] : 0;
    if (!rdb_bytes_is_string(element, room, head + packed->is_at_value, size) ||
        room - element->total < unused) {
        return false;
    }
    element->total += unused;
    return true;
}

/* ---- all ---- */

enum rdb_packed_status rdb_bytes_next_packed(struct rdb_packed *packed, char *room,
                                             struct bytes *value) {
    if (packed->at == packed->end) {
        bool is_whole =
            (!packed->has_count || packed->count == packed->read_count) && !packed->is_at_value;
        return is_whole ? RDB_PACKED_END : RDB_PACKED_BAD;
    }
    struct element element = {.head = 0};
    bool is_read = packed->form == RDB_LISTPACK
                       ? rdb_bytes_read_listpack(packed->at, rdb_bytes_left(packed), &element)
                   : packed->form == RDB_ZIPLIST
                       ? rdb_bytes_read_ziplist(packed->at, rdb_bytes_left(packed), &element)
                       : rdb_bytes_read_zipmap(packed, &element);
    if (!is_read) {
        return RDB_PACKED_BAD;
    }
    if (element.is_number) {
        *value = (struct bytes){.at = room, .size = bytes_print_i64(room, element.number)};
    } else {
        *value =
            (struct bytes){.at = (const char *)packed->at + element.head, .size = element.size};
    }
    packed->at += element.total;
    packed->read_count++;
    packed->is_at_value = packed->form == RDB_ZIPMAP && !packed->is_at_value;
    return RDB_PACKED_VALUE;
}
