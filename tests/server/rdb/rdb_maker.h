/* Dump files and payloads, byte by byte as Redis and Valkey write them. */
#ifndef TESTS_SERVER_RDB_MAKER_H
#define TESTS_SERVER_RDB_MAKER_H

#include "tests/support/test.h"

#include "codec/buffer.h"
#include "codec/bytes.h"
#include "server/rdb/rdb_bytes.h"

static inline void make_raw(struct buffer *out, const char *at, size_t size) {
    buffer_append(out, at, size);
}
#define MAKE_RAW(out, literal) make_raw((out), (literal), sizeof(literal) - 1)

static inline void make_byte(struct buffer *out, unsigned byte) {
    const char raw = (char)byte;
    buffer_append(out, &raw, 1);
}

static inline void make_u32(struct buffer *out, uint32_t value) {
    char raw[4];
    bytes_put_u32(raw, value);
    buffer_append(out, raw, sizeof raw);
}

static inline void make_u64(struct buffer *out, uint64_t value) {
    char raw[8];
    bytes_put_u64(raw, value);
    buffer_append(out, raw, sizeof raw);
}

static inline void make_double(struct buffer *out, double value) {
    uint64_t word;
    memcpy(&word, &value, sizeof word);
    make_u64(out, word);
}

static inline void make_length(struct buffer *out, uint64_t length) {
    if (length < 64) {
        make_byte(out, (unsigned)length);
    } else if (length < 16384) {
        make_byte(out, 0x40 | (unsigned)(length >> 8));
        make_byte(out, length & 0xff);
    } else {
        make_byte(out, length > UINT32_MAX ? 0x81 : 0x80);
        for (int bits = length > UINT32_MAX ? 56 : 24; bits >= 0; bits -= 8) {
            make_byte(out, (length >> bits) & 0xff);
        }
    }
}

static inline void make_bytes(struct buffer *out, const char *at, size_t size) {
    make_length(out, size);
    buffer_append(out, at, size);
}

static inline void make_text(struct buffer *out, const char *text) {
    make_bytes(out, text, strlen(text));
}

static inline void make_key(struct buffer *out, unsigned type, const char *name) {
    make_byte(out, type);
    make_text(out, name);
}

/* ---- packed values: begin, elements, end into a string ---- */

static inline void listpack_begin(struct buffer *pack) {
    buffer_clear(pack);
    make_u32(pack, 0);
    make_raw(pack, "\0\0", 2);
}

static inline void listpack_back(struct buffer *pack, size_t size) {
    char raw[5];
    unsigned count = size <= 127 ? 1 : size < 16384 ? 2 : size < (1 << 21) ? 3 : 4;
    for (unsigned i = 0; i < count; i++) {
        raw[count - 1 - i] = (char)((size & 127) | (i > 0 ? 128 : 0));
        size >>= 7;
    }
    for (unsigned i = 0; i < count; i++) {
        make_byte(pack, (unsigned char)raw[i]);
    }
}

static inline void listpack_raw(struct buffer *pack, const char *at, size_t size) {
    make_raw(pack, at, size);
    listpack_back(pack, size);
}
#define LISTPACK_RAW(pack, literal) listpack_raw((pack), (literal), sizeof(literal) - 1)

static inline void listpack_bytes(struct buffer *pack, const char *at, size_t size) {
    size_t head = size < 64 ? 1 : size < 4096 ? 2 : 5;
    if (head == 1) {
        make_byte(pack, 0x80 | (unsigned)size);
    } else if (head == 2) {
        make_byte(pack, 0xe0 | (unsigned)(size >> 8));
        make_byte(pack, size & 0xff);
    } else {
        make_byte(pack, 0xf0);
        make_u32(pack, (uint32_t)size);
    }
    make_raw(pack, at, size);
    listpack_back(pack, head + size);
}

static inline void listpack_text(struct buffer *pack, const char *text) {
    listpack_bytes(pack, text, strlen(text));
}

static inline void listpack_end(struct buffer *pack, unsigned count, struct buffer *out) {
    make_byte(pack, 0xff);
    bytes_put_u32(pack->at, (uint32_t)pack->size);
    pack->at[4] = (char)(count & 0xff);
    pack->at[5] = (char)(count >> 8);
    make_bytes(out, pack->at, pack->size);
}

static inline void ziplist_begin(struct buffer *pack) {
    buffer_clear(pack);
    make_raw(pack, "\0\0\0\0\0\0\0\0\0\0", 10);
}

/* An element without the size of the one before: readers do not need it. */
static inline void ziplist_raw(struct buffer *pack, const char *at, size_t size) {
    make_byte(pack, 0);
    make_raw(pack, at, size);
}
#define ZIPLIST_RAW(pack, literal) ziplist_raw((pack), (literal), sizeof(literal) - 1)

static inline void ziplist_end(struct buffer *pack, unsigned count, struct buffer *out) {
    make_byte(pack, 0xff);
    bytes_put_u32(pack->at, (uint32_t)pack->size);
    pack->at[8] = (char)(count & 0xff);
    pack->at[9] = (char)(count >> 8);
    make_bytes(out, pack->at, pack->size);
}

/* ---- files and payloads ---- */

static inline void make_end(struct buffer *out) {
    make_byte(out, 0xff);
    make_u64(out, rdb_bytes_crc(0, out->at, out->size));
}

static inline void make_footer(struct buffer *out, unsigned version) {
    make_byte(out, version & 0xff);
    make_byte(out, version >> 8);
    make_u64(out, rdb_bytes_crc(0, out->at, out->size));
}

/* A file of RDB version 16 with every kind of value, in every way in which it may be stored; the boards
 * are z0, z1 ..., the hashes h0, h1 ... */
#define MADE_LATE_MS (UINT64_C(1) << 42)
enum { MADE_ZSETS = 5, MADE_HASHES = 14, MADE_SKIPPED = 16 };
static inline void make_zsets(struct buffer *out, struct buffer *pack) {
    make_key(out, 5, "z0"); /* as Redis writes it: the highest first */
    make_length(out, 4);
    make_text(out, "zoe");
    make_double(out, 900);
    make_text(out, "kim");
    make_double(out, 7);
    make_text(out, "bob");
    make_double(out, 7);
    make_raw(out, "\xc0\xf9", 2); /* -7 as an integer */
    make_double(out, -0.0);
    make_key(out, 3, "z1");
    make_length(out, 3);
    make_text(out, "ann");
    MAKE_RAW(out, "\x03"
                  "100");
    make_text(out, "bob");
    MAKE_RAW(out, "\x04"
                  "1e+2");
    MAKE_RAW(out, "\xc1\x10\x27"); /* 10000 */
    MAKE_RAW(out, "\x02"
                  "-5");
    make_key(out, 17, "z2");
    listpack_begin(pack);
    listpack_text(pack, "bob");
    LISTPACK_RAW(pack, "\xdf\xff"); /* -1 of 13 bits */
    LISTPACK_RAW(pack, "\x05");     /* member 5 */
    LISTPACK_RAW(pack, "\x7f");
    listpack_text(pack, "ann");
    LISTPACK_RAW(pack, "\xf1\xe8\x03"); /* 1000 */
    listpack_text(pack, "cid");
    LISTPACK_RAW(pack, "\xf2\xa0\x86\x01"); /* 100000 */
    listpack_text(pack, "dan");
    LISTPACK_RAW(pack, "\xf3\x00\x2f\x68\x59"); /* 1500000000 */
    listpack_text(pack, "eve");
    LISTPACK_RAW(pack, "\xf4\x00\xf2\x05\x2a\x01\x00\x00\x00"); /* 5000000000 / 1 */
    listpack_end(pack, 12, out);
    make_key(out, 12, "z3");
    ziplist_begin(pack);
    ZIPLIST_RAW(pack, "\x03"
                      "bob");
    ZIPLIST_RAW(pack, "\xf1"); /* 0 */
    ZIPLIST_RAW(pack, "\x40\x03"
                      "cid");
    ZIPLIST_RAW(pack, "\xfd"); /* 12 */
    ZIPLIST_RAW(pack, "\x80\x00\x00\x00\x03"
                      "dan");
    ZIPLIST_RAW(pack, "\xfe\x64"); /* 100 */
    ZIPLIST_RAW(pack, "\x03"
                      "eve");
    ZIPLIST_RAW(pack, "\xc0\xe8\x03");
    ZIPLIST_RAW(pack, "\x03"
                      "fay");
    ZIPLIST_RAW(pack, "\xf0\xa0\x86\x01");
    ZIPLIST_RAW(pack, "\x03"
                      "gus");
    ZIPLIST_RAW(pack, "\xd0\x00\x2f\x68\x59");
    ZIPLIST_RAW(pack, "\x03"
                      "hal");
    ZIPLIST_RAW(pack, "\xe0\x01\x2f\x68\x59\x00\x00\x00\x00");
    ziplist_end(pack, 14, out);
    MAKE_RAW(out, "\xfc");
    make_u64(out, UINT64_C(4102444800000)); /* 2100 */
    make_key(out, 5, "z4");
    make_length(out, 1);
    MAKE_RAW(out, "\xc3\x07\x14\x00"
                  "a\xe0\x09\x00\x00"
                  "x"); /* 1 + 18 + 1 bytes, compressed */
    make_double(out, 3);
}

static inline void make_hashes(struct buffer *out, struct buffer *pack) {
    make_key(out, 4, "h0");
    make_length(out, 2);
    make_text(out, "a");
    MAKE_RAW(out, "\xc2\x00\x00\x00\x80"); /* -2147483648 */
    make_text(out, "");
    make_text(out, "empty");
    make_key(out, 16, "h1");
    listpack_begin(pack);
    listpack_text(pack, "a");
    LISTPACK_RAW(pack, "\x01");
    listpack_end(pack, 2, out);
    make_key(out, 13, "h2");
    ziplist_begin(pack);
    ZIPLIST_RAW(pack, "\x01"
                      "a");
    ZIPLIST_RAW(pack, "\x01"
                      "b");
    ziplist_end(pack, 2, out);
    make_key(out, 9, "h3");
    MAKE_RAW(out, "\x11"
                  "\x02"
                  "\x01"
                  "a"
                  "\x02\x01"
                  "bc"
                  "?"
                  "\xfe\x01\0\0\0"
                  "d"
                  "\x00\x00"
                  "\xff");
    make_key(out, 22, "h4");
    make_length(out, 1);
    make_length(out, MADE_LATE_MS);
    make_text(out, "a");
    make_text(out, "b");
    make_key(out, 24, "h5");
    make_u64(out, MADE_LATE_MS);
    make_length(out, 2);
    make_length(out, 0);
    make_text(out, "a");
    make_text(out, "b");
    make_length(out, 5);
    make_text(out, "c");
    make_text(out, "d");
    for (unsigned type = 23; type <= 25; type += 2) {
        make_key(out, type, type == 23 ? "h6" : "h7");
        if (type == 25) {
            make_u64(out, 1);
        }
        listpack_begin(pack);
        listpack_text(pack, "a");
        listpack_text(pack, "b");
        LISTPACK_RAW(pack, "\x00");
        listpack_text(pack, "c");
        listpack_text(pack, "d");
        LISTPACK_RAW(pack, "\xf4\x00\x00\x00\x00\x00\x04\x00\x00"); /* MADE_LATE_MS */
        listpack_end(pack, 6, out);
    }
}

/* Names of fields that are said once, for hashes behind them. */
static inline void make_templates(struct buffer *out) {
    make_byte(out, 242);
    make_length(out, 5);
    make_length(out, 1);
    make_text(out, "unused");
    make_byte(out, 242);
    make_length(out, 300);
    make_length(out, 2);
    make_text(out, "a");
    make_text(out, "c");
    make_byte(out, 242);
    make_length(out, 0);
    make_length(out, 2);
    make_text(out, "a");
    make_text(out, "c");
}

static inline void make_names_listpack(struct buffer *out, struct buffer *pack) {
    listpack_begin(pack);
    listpack_text(pack, "a");
    listpack_text(pack, "c");
    listpack_end(pack, 2, out);
}

/* The number of a template, and two values. */
static inline void make_values_listpack(struct buffer *out, struct buffer *pack, unsigned id) {
    listpack_begin(pack);
    if (id < 128) {
        const char small = (char)id;
        listpack_raw(pack, &small, 1);
    } else {
        const char large[2] = {(char)(0xc0 | id >> 8), (char)(id & 0xff)};
        listpack_raw(pack, large, 2);
    }
    listpack_text(pack, "b");
    listpack_text(pack, "d");
    listpack_end(pack, 3, out);
}

/* Of the file's templates, and with names of their own. */
static inline void make_template_hashes(struct buffer *out, struct buffer *pack) {
    make_key(out, 30, "h8");
    make_values_listpack(out, pack, 300);
    make_key(out, 32, "h9");
    make_length(out, 0);
    make_text(out, "b");
    make_text(out, "d");
    make_key(out, 29, "h10");
    make_byte(out, 0);
    make_names_listpack(out, pack);
    make_values_listpack(out, pack, 7);
    make_key(out, 29, "h11");
    make_byte(out, 1);
    make_length(out, 2);
    make_text(out, "a");
    make_text(out, "c");
    make_values_listpack(out, pack, 0);
    make_key(out, 31, "h12");
    make_byte(out, 0);
    make_names_listpack(out, pack);
    make_text(out, "b");
    make_text(out, "d");
    make_key(out, 31, "h13");
    make_byte(out, 1);
    make_length(out, 2);
    make_text(out, "a");
    make_text(out, "c");
    make_text(out, "b");
    make_text(out, "d");
}

static inline void make_stream(struct buffer *out, unsigned type, const char *name) {
    static const char id[16] = "0123456789abcde";
    make_key(out, type, name);
    make_length(out, 1);
    make_text(out, "sixteen bytes id");
    make_text(out, "listpack");
    for (int i = 0; i < (type == 15 ? 3 : 8); i++) {
        make_length(out, 1000);
    }
    make_length(out, 2); /* groups */
    for (int group = 0; group < 2; group++) {
        make_text(out, "group");
        for (int i = 0; i < (type == 15 ? 2 : 3); i++) {
            make_length(out, 5);
        }
        make_length(out, 2); /* pending */
        for (int i = 0; i < 2; i++) {
            make_raw(out, id, 16);
            make_u64(out, 1);
            make_length(out, 1);
        }
        make_length(out, (uint64_t)group); /* consumers */
        for (int i = 0; i < group; i++) {
            make_text(out, "consumer");
            make_u64(out, 1);
            if (type >= 21) {
                make_u64(out, 1);
            }
            make_length(out, 2);
            make_raw(out, id, 16);
            make_raw(out, id, 16);
        }
        if (type == 27) {
            make_length(out, 1); /* given back */
            make_raw(out, id, 16);
        }
    }
    if (type >= 26) { /* producers, and what they have sent */
        make_length(out, 100);
        make_length(out, 100);
        make_length(out, 2);
        for (int producer = 0; producer < 2; producer++) {
            make_text(out, "producer");
            make_length(out, (uint64_t)producer);
            for (int i = 0; i < producer; i++) {
                make_text(out, "one id");
                make_length(out, UINT64_C(1) << 40);
                make_length(out, 0);
            }
        }
        make_length(out, 3);
        make_length(out, 0);
    }
}

static inline void make_others(struct buffer *out) {
    make_key(out, 0, "string");
    make_text(out, "text");
    for (unsigned type = 1; type <= 2; type++) {
        make_key(out, type, "list or set");
        make_length(out, 2);
        make_text(out, "a");
        MAKE_RAW(out, "\xc0\x01");
    }
    make_key(out, 7, "module");
    make_length(out, UINT64_C(1) << 60);
    MAKE_RAW(out, "\x01\x05\x02\x06"
                  "\x03"
                  "1234"
                  "\x04"
                  "12345678"
                  "\x05\x02"
                  "ab"
                  "\x00");
    make_key(out, 10, "ziplist");
    make_text(out, "anything");
    make_key(out, 11, "intset");
    make_text(out, "anything");
    make_key(out, 14, "quicklist");
    make_length(out, 1);
    make_text(out, "anything");
    make_key(out, 18, "quicklist 2");
    make_length(out, 1);
    make_length(out, 2);
    make_text(out, "anything");
    make_key(out, 20, "set listpack");
    make_text(out, "anything");
    make_stream(out, 15, "stream");
    make_stream(out, 19, "stream 2");
    make_stream(out, 21, "stream 3");
    MAKE_RAW(out, "\xf3\x02" /* metadata of two classes */
                  "meta\x02\x07\x00"
                  "more\x05\x02"
                  "ab"
                  "\x01\x03\x00");
    make_stream(out, 26, "stream 4");
    make_stream(out, 27, "stream 5");
    make_key(out, 33, "bitmap");
    make_length(out, 1000);
    make_text(out, "anything");
    MAKE_RAW(out, "\xfd\x01\x00\x00\x00"); /* expired in 1970 */
    make_key(out, 0, "gone");
    make_text(out, "text");
}

static inline void make_file(struct buffer *out) {
    struct buffer pack;
    buffer_init(&pack, 0);
    buffer_clear(out);
    MAKE_RAW(out, "REDIS0016");
    MAKE_RAW(out, "\xfa\x09"
                  "redis-ver"
                  "\x05"
                  "8.6.3"
                  "\xfa\x04"
                  "bits"
                  "\xc0\x40");
    make_templates(out);
    MAKE_RAW(out, "\xf5\x03"
                  "lib"
                  "\xfe\x00"
                  "\xfb\x05\x01"
                  "\xf4\x01\x02\x03");
    MAKE_RAW(out, "\xf7\x01\x02\x03"
                  "\x05\x01"
                  "x"
                  "\x00");     /* of a module */
    MAKE_RAW(out, "\xf8\x05"); /* idle */
    make_zsets(out, &pack);
    MAKE_RAW(out, "\xf9\x05"); /* frequency */
    make_hashes(out, &pack);
    make_template_hashes(out, &pack);
    MAKE_RAW(out, "\xfe\x02");
    make_others(out);
    make_end(out);
    buffer_deinit(&pack);
}

#endif
