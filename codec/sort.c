/* Lowest byte first, with stable passes, so that the words are in order after the highest. Bytes
 * that are equal in all words are skipped; in most inputs only a few differ. */
#include "codec/sort.h"

#include <stdbool.h>
#include <string.h>

enum {
    DIGITS = 8,
    DIGIT_VALUES = 256,
    SMALL_MAX = 48, /* counting digits costs more than moving so few records */
};

static unsigned sort_digit_of(uint64_t word, unsigned digit) {
    return (unsigned)(word >> (digit * 8)) & (DIGIT_VALUES - 1);
}

/* Move the records of `from` to `to`, ordered by one digit. */
static void sort_by_digit(const struct sort_record *from, struct sort_record *to, uint32_t count,
                          unsigned digit) {
    uint32_t begins[DIGIT_VALUES] = {0};
    for (uint32_t i = 0; i < count; i++) {
        begins[sort_digit_of(from[i].word, digit)]++;
    }
    uint32_t before = 0;
    for (unsigned value = 0; value < DIGIT_VALUES; value++) {
        uint32_t here = begins[value];
        begins[value] = before;
        before += here;
    }
    for (uint32_t i = 0; i < count; i++) {
        to[begins[sort_digit_of(from[i].word, digit)]++] = from[i];
    }
}

void sort_records(struct sort_record *records, struct sort_record *spare, uint32_t count) {
    if (count <= SMALL_MAX) {
        for (uint32_t i = 1; i < count; i++) {
            struct sort_record moved = records[i];
            uint32_t at = i;
            for (; at > 0 && records[at - 1].word > moved.word; at--) {
                records[at] = records[at - 1];
            }
            records[at] = moved;
        }
        return;
    }
    uint64_t differing = 0; /* bits, between any two words */
    bool is_sorted = true;
    for (uint32_t i = 1; i < count; i++) {
        differing |= records[i].word ^ records[0].word;
        is_sorted &= records[i - 1].word <= records[i].word;
    }
    if (is_sorted) {
        return;
    }
    struct sort_record *from = records;
    struct sort_record *to = spare;
    for (unsigned digit = 0; digit < DIGITS; digit++) {
        if (sort_digit_of(differing, digit) != 0) {
            sort_by_digit(from, to, count, digit);
            struct sort_record *swapped = from;
            from = to;
            to = swapped;
        }
    }
    if (from != records) {
        memcpy(records, from, count * sizeof(*records));
    }
}
