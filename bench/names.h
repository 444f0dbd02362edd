/* Names of members as benchmarks need them: of a number there is one name of each form, and different
 * numbers have different names. */
#ifndef BENCH_NAMES_H
#define BENCH_NAMES_H

#include "bench/micro.h"

enum name_form {
    NAME_DIGITS, /* 12 */
    NAME_BYTES,  /* 20 that look random, any byte */
    NAME_UUID,   /* of version 4, lower case */
    NAME_ID,     /* 10 digits, the first not 0, in no order */
    NAME_MAIL,   /* an e-mail address of 26 characters, most with one of a few widespread endings */
    NAME_FORMS,
};

enum {
    NAME_BYTES_SIZE = 20,
    NAME_UUID_SIZE = 36,
    NAME_ID_SIZE = 10,
    NAME_MAIL_SIZE = 26,
    NAME_MAIL_SPARE =
        5, /* the first letters of one, without which different numbers still have different names */
    MICRO_NAME_MAX = NAME_UUID_SIZE,
};
#define NAME_ID_FIRST UINT64_C(1000000000)
#define NAME_ID_STEP  UINT64_C(5562305899)

/* As placeholders of load's commands have them. */
static const char *const name_forms[NAME_FORMS] = {"int", "bytes", "uuid", "id", "mail"};
static const size_t name_sizes[NAME_FORMS] = {MICRO_DIGITS, NAME_BYTES_SIZE, NAME_UUID_SIZE,
                                              NAME_ID_SIZE, NAME_MAIL_SIZE};

static inline void micro_write_uuid(char *out, uint64_t high, uint64_t low) {
    static const char digits[] = "0123456789abcdef";
    high = (high & ~UINT64_C(0xf000)) | UINT64_C(0x4000);
    low = (low & ~(UINT64_C(3) << 62)) | UINT64_C(1) << 63;
    for (int digit = 0; digit < 32; digit++) {
        uint64_t half = digit < 16 ? high : low;
        if (digit == 8 || digit == 12 || digit == 16 || digit == 20) {
            *out++ = '-';
        }
        *out++ = digits[half >> (60 - digit % 16 * 4) & 15];
    }
}

static inline void micro_write_mail(char *out, uint64_t number, uint64_t drawn) {
    static const char *const domains[] = {
        "@gmail.com",   "@gmail.com",   "@gmail.com",   "@gmail.com",  "@gmail.com", "@gmail.com",
        "@hotmail.com", "@hotmail.com", "@yahoo.com",   "@yahoo.com",  "@gmail.com", "@gmail.com",
        "@outlook.com", "@icloud.com",  "@company.com", "@t-online.de"};
    const char *domain = domains[drawn % 16];
    size_t size = NAME_MAIL_SIZE - strlen(domain);
    memcpy(out + size, domain, NAME_MAIL_SIZE - size);
    drawn /= 16;
    for (size_t i = size; i-- > 0;) {
        /* A word of which the last seven letters are the number, a dot, and another word. */
        uint64_t *from = i + 7 >= size ? &number : &drawn;
        out[i] = i == NAME_MAIL_SPARE ? '.' : (char)('a' + *from % 26);
        *from /= i == NAME_MAIL_SPARE ? 1 : 26;
    }
}

/* out has room for the form's size. number: below 2^31 but for NAME_DIGITS. seed: other seeds have
 * other UUIDs and bytes. */
static inline void micro_write_name(enum name_form form, uint64_t seed, uint64_t number,
                                    char *out) {
    if (form == NAME_DIGITS) {
        micro_write_digits(out, number);
        return;
    }
    if (form == NAME_ID) {
        /* A step without a common divisor with the count of ids: each number has its own. */
        uint64_t id = NAME_ID_FIRST + number * NAME_ID_STEP % (9 * NAME_ID_FIRST);
        for (int i = NAME_ID_SIZE - 1; i >= 0; i--, id /= 10) {
            out[i] = (char)('0' + id % 10);
        }
        return;
    }
    struct random random = {.state = number ^ seed << 40};
    uint64_t drawn[3];
    for (int i = 0; i < 3; i++) {
        drawn[i] = random_next(&random);
    }
    if (form == NAME_UUID) {
        micro_write_uuid(out, drawn[0], drawn[1]);
    } else if (form == NAME_MAIL) {
        micro_write_mail(out, number, drawn[0]);
    } else {
        memcpy(out, drawn, NAME_BYTES_SIZE);
    }
}

#endif
