/* Stable radix sort of many records by a 64-bit word, smallest first, in linear time. To sort by
 * several words, sort by the least significant one first.
 *
 * Map other orders to words: flip the sign bit of signed numbers; complement the word for a
 * descending order. */
#ifndef CODEC_SORT_H
#define CODEC_SORT_H

#include <stdint.h>

struct sort_record {
    uint64_t word;
    uint32_t index; /* the caller's */
};

/* Sort records[0 .. count-1] by word; equal ones keep their order. spare: scratch space for count
 * records. */
void sort_records(struct sort_record *records, struct sort_record *spare, uint32_t count);

#endif
