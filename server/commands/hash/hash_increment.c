/* HINCRBY and HINCRBYFLOAT: adding to a field that is a number. A field that does not exist is 0.
 *
 * HINCRBYFLOAT calculates as Redis does, with a long double, and writes at most 17 decimals. So on
 * x86-64 the results are those of Redis there, digit by digit. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "server/commands/hash/hash_write.h"

enum {
    FLOAT_TEXT_MAX = 5 * 1024, /* bytes, as in Redis; the largest long double has 4,933 digits */
};

/* The field's value; empty and *is_there false: it does not exist. false: the error was replied. */
static bool hash_increment_find_value(const struct call *call, struct bytes *value,
                                      bool *is_there) {
    const struct hash *hash;
    if (!call_find_hash(call, call_arg(call, 1), &hash)) {
        return false;
    }
    *is_there = hash != NULL && hash_find(hash, call_arg(call, 2), value);
    return true;
}

static bool hash_increment_write_value(const struct call *call, struct bytes text) {
    const char *event = command_full_name(command_index(call->command));
    uint32_t added_count;
    return hash_write(call, (const struct bytes[]){call_arg(call, 2), text}, 1, event,
                      &added_count);
}

static void hincrby_run(struct call *call) {
    struct bytes text;
    char printed[BYTES_INTEGER_TEXT_MAX];
    int64_t increment;
    int64_t sum = 0;
    bool is_there;
    if (!call_parse_integer(call, call_arg(call, 3), &increment) ||
        !hash_increment_find_value(call, &text, &is_there)) {
        return;
    }
    if (is_there && !bytes_parse_i64(text, &sum)) {
        reply_error(call->reply, "ERR hash value is not an integer");
    } else if (__builtin_add_overflow(sum, increment, &sum)) {
        reply_error(call->reply, "ERR increment or decrement would overflow");
    } else {
        size_t size = bytes_print_i64(printed, sum);
        if (hash_increment_write_value(call, (struct bytes){.at = printed, .size = size})) {
            reply_wide_integer(call->reply, sum);
        }
    }
}

const struct command command_hincrby = {
    .name = "HINCRBY",
    .syntax = "key field increment:integer",
    .summary = "Add to a whole number in a field of a hash, and return the sum",
    .flags = COMMAND_WRITE | COMMAND_DENYOOM | COMMAND_FAST,
    .key_access = "RW access update",
    .reads_hash = true,
    .run = hincrby_run,
};

/* As Redis's string2ld: what strtold reads, to the last byte. */
static bool hash_increment_parse_float(struct bytes text, long double *value) {
    char copy[FLOAT_TEXT_MAX];
    char *end;
    if (text.size == 0 || text.size >= sizeof copy || isspace((unsigned char)text.at[0])) {
        return false;
    }
    memcpy(copy, text.at, text.size);
    copy[text.size] = '\0';
    errno = 0;
    *value = strtold(copy, &end);
    bool is_out_of_range = errno == ERANGE && (isinf(*value) || *value == 0);
    return end == copy + text.size && !is_out_of_range && !isnan(*value);
}

/* Without an exponent and without zeros at the end. */
static struct bytes hash_increment_print_float(char *out, long double value) {
    int printed = snprintf(out, FLOAT_TEXT_MAX, "%.17Lf", value);
    CHECK(printed > 0 && printed < FLOAT_TEXT_MAX);
    size_t size = (size_t)printed;
    while (out[size - 1] == '0') {
        size--;
    }
    size -= out[size - 1] == '.';
    return size == 2 && memcmp(out, "-0", 2) == 0 ? BYTES("0") : (struct bytes){out, size};
}

static void hincrbyfloat_run(struct call *call) {
    struct bytes text;
    char printed[FLOAT_TEXT_MAX];
    long double increment;
    long double sum = 0;
    bool is_there;
    if (!hash_increment_parse_float(call_arg(call, 3), &increment)) {
        reply_error(call->reply, "ERR value is not a valid float");
        return;
    }
    if (isinf(increment)) {
        reply_error(call->reply, "ERR value is NaN or Infinity");
        return;
    }
    if (!hash_increment_find_value(call, &text, &is_there)) {
        return;
    }
    if (is_there && !hash_increment_parse_float(text, &sum)) {
        reply_error(call->reply, "ERR hash value is not a float");
        return;
    }
    sum += increment;
    if (isinf(sum)) {
        reply_error(call->reply, "ERR increment would produce NaN or Infinity");
        return;
    }
    text = hash_increment_print_float(printed, sum);
    if (hash_increment_write_value(call, text)) {
        reply_bulk(call->reply, text);
    }
}

const struct command command_hincrbyfloat = {
    .name = "HINCRBYFLOAT",
    .syntax = "key field increment:double",
    .summary = "Add to a number with decimals in a field of a hash, and return the sum",
    .flags = COMMAND_WRITE | COMMAND_DENYOOM | COMMAND_FAST,
    .key_access = "RW access update",
    .reads_hash = true,
    .run = hincrbyfloat_run,
};
