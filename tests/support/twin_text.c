/* The naive twin's replies, and numbers from text. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/twin_parts.h"

/* ---- replies ---- */

void twin_put_bytes(struct twin_server *twin, const char *at, size_t size) {
    if (twin->reply_size + size + 1 > twin->reply_capacity) {
        twin->reply_capacity = (twin->reply_size + size + 1) * 2;
        twin->reply = twin_plain(realloc(twin->reply, twin->reply_capacity));
    }
    memcpy(twin->reply + twin->reply_size, at, size);
    twin->reply_size += size;
    twin->reply[twin->reply_size] = '\0';
}

__attribute__((format(printf, 2, 3))) void twin_put(struct twin_server *twin, const char *format,
                                                    ...) {
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    twin_put_bytes(twin, text, (size_t)size);
}

void twin_put_integer(struct twin_server *twin, int64_t value) {
    twin_put(twin, ":%lld\r\n", (long long)value);
}

void twin_put_array(struct twin_server *twin, uint64_t count) {
    twin_put(twin, "*%llu\r\n", (unsigned long long)count);
}

void twin_put_bulk(struct twin_server *twin, struct bytes text) {
    twin_put(twin, "$%zu\r\n", text.size);
    twin_put_bytes(twin, text.at, text.size);
    twin_put(twin, "\r\n");
}

void twin_put_null(struct twin_server *twin) {
    twin_put(twin, twin->protocol == 3 ? "_\r\n" : "$-1\r\n");
}

void twin_put_null_array(struct twin_server *twin) {
    twin_put(twin, twin->protocol == 3 ? "_\r\n" : "*-1\r\n");
}

void twin_put_error(struct twin_server *twin, const char *text) {
    twin_put(twin, "-ERR %s\r\n", text);
}

/* Digits from the last to the first, a point before the scale-th, trailing zeros left out. */
size_t twin_print_decimal(char *out, twin_wide number, int scale) {
    char reversed[64];
    size_t size = 0;
    bool is_negative = number < 0;
    twin_wide left = is_negative ? -number : number;
    bool has_fraction = false;
    for (int i = 0; i < scale || left > 0 || i == scale; i++) {
        int digit = (int)(left % 10);
        left /= 10;
        if (i == scale && has_fraction) {
            reversed[size++] = '.';
        }
        has_fraction = has_fraction || (i < scale && digit != 0);
        if (i >= scale || has_fraction) {
            reversed[size++] = (char)('0' + digit);
        }
    }
    if (is_negative) {
        reversed[size++] = '-';
    }
    for (size_t i = 0; i < size; i++) {
        out[i] = reversed[size - 1 - i];
    }
    return size;
}

void twin_put_decimal(struct twin_server *twin, twin_wide number, int scale) {
    char text[64];
    size_t size = twin_print_decimal(text, number, scale);
    if (twin->protocol == 3) {
        twin_put(twin, ",%.*s\r\n", (int)size, text);
    } else {
        twin_put_bulk(twin, (struct bytes){.at = text, .size = size});
    }
}

void twin_put_score(struct twin_server *twin, const struct twin_key *key, twin_wide score) {
    twin_put_decimal(twin, score, key->layout->fields[0].scale);
}

/* ---- numbers from text ---- */

bool twin_is_word(struct bytes text, const char *word) {
    if (text.size != strlen(word)) {
        return false;
    }
    for (size_t i = 0; i < text.size; i++) {
        char c = text.at[i];
        if ((c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c) != word[i]) {
            return false;
        }
    }
    return true;
}

bool twin_read_integer(struct bytes text, int64_t *value) {
    twin_wide sum = 0;
    size_t i = text.size > 1 && text.at[0] == '-' ? 1 : 0;
    bool is_negative = i == 1;
    if (i == text.size || text.size > 20 || (text.at[i] == '0' && text.size > 1)) {
        return false;
    }
    for (; i < text.size; i++) {
        if (text.at[i] < '0' || text.at[i] > '9') {
            return false;
        }
        sum = sum * 10 + (text.at[i] - '0');
    }
    sum = is_negative ? -sum : sum;
    *value = (int64_t)sum;
    return sum == *value;
}

enum twin_number twin_read_number(struct bytes text, int scale, twin_wide *value) {
    size_t i = 0;
    twin_wide sum = 0;
    int shift = scale;
    bool has_digits = false;
    bool has_point = false;
    bool is_negative = i < text.size && text.at[i] == '-';
    i += i < text.size && (text.at[i] == '-' || text.at[i] == '+');
    for (; i < text.size && (text.at[i] == '.' || (text.at[i] >= '0' && text.at[i] <= '9')); i++) {
        if (text.at[i] == '.') {
            if (has_point) {
                return TWIN_NOT_A_NUMBER;
            }
            has_point = true;
        } else {
            sum = sum * 10 + (text.at[i] - '0');
            shift -= has_point;
            has_digits = true;
        }
    }
    if (i < text.size && (text.at[i] == 'e' || text.at[i] == 'E')) {
        int64_t exponent = 0;
        struct bytes rest = {.at = text.at + i + 1, .size = text.size - i - 1};
        bool is_read = twin_is_word(rest, "-0") || twin_read_integer(rest, &exponent);
        if (!is_read || exponent < -40 || exponent > 40) {
            return TWIN_NOT_A_NUMBER;
        }
        shift += (int)exponent;
        i = text.size;
    }
    if (!has_digits || i != text.size) {
        return TWIN_NOT_A_NUMBER;
    }
    for (; shift > 0 && sum != 0; shift--) {
        if (sum > (twin_wide)1 << 100) {
            return TWIN_TOO_LARGE;
        }
        sum *= 10;
    }
    bool is_exact = true;
    for (; shift < 0; shift++) {
        is_exact = is_exact && sum % 10 == 0;
        sum /= 10;
    }
    *value = is_negative ? -sum : sum;
    return is_exact ? TWIN_NUMBER : TWIN_TOO_PRECISE;
}

twin_wide twin_lowest(const struct twin_field *field) {
    return field->is_signed ? -((twin_wide)1 << (field->bits - 1)) : 0;
}

twin_wide twin_highest(const struct twin_field *field) {
    return twin_lowest(field) + ((twin_wide)1 << field->bits) - 1;
}

bool twin_is_in_field(const struct twin_field *field, twin_wide value) {
    return value >= twin_lowest(field) && value <= twin_highest(field);
}

bool twin_is_time_in_field(const struct twin_layout *layout, int64_t time_us) {
    int64_t units = twin_time_units(layout, time_us);
    return layout->time_bits == 0 || (units >= 0 && units < (int64_t)1 << layout->time_bits);
}

/* Past every limit that may be asked for. */
#define FAR ((twin_wide)1 << 110)

bool twin_read_bound(struct bytes text, int scale, struct twin_bound *bound) {
    bound->is_exclusive = text.size > 0 && text.at[0] == '(';
    if (bound->is_exclusive) {
        text = (struct bytes){.at = text.at + 1, .size = text.size - 1};
    }
    if (text.size == 0) { /* as strtod has it */
        bound->value = 0;
        return true;
    }
    while (text.size > 1 && text.at[0] == ' ') {
        text = (struct bytes){.at = text.at + 1, .size = text.size - 1};
    }
    if (twin_is_word(text, "-INF")) {
        bound->value = -FAR;
        return true;
    }
    if (twin_is_word(text, "+INF") || twin_is_word(text, "INF")) {
        bound->value = FAR;
        return true;
    }
    enum twin_number kind = twin_read_number(text, scale + 3, &bound->value);
    if (kind == TWIN_TOO_LARGE) {
        bound->value = text.at[0] == '-' ? -FAR + 1 : FAR - 1;
    }
    return kind != TWIN_NOT_A_NUMBER;
}

bool twin_is_inside(twin_wide score, struct twin_bound lower, struct twin_bound upper) {
    twin_wide value = score * 1000;
    return (lower.is_exclusive ? value > lower.value : value >= lower.value) &&
           (upper.is_exclusive ? value < upper.value : value <= upper.value);
}
