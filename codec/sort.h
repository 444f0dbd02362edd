/* Stable sorting of many records by a 64-bit word each, smallest first: a radix sort, linear in
 * their number. To sort by several words, sort by the least important one first.
 *
 * An order of any kind becomes words: flip the sign bit of a signed number; complement the word to
 * have the largest first. */
#ifndef CODEC_SORT_H
#define CODEC_SORT_H

#include <stdint.h>

struct sort_record {
    uint64_t word;
    uint32_t index; /* the caller's */
};

/* Sort records[0 .. count-1] by word; equal ones keep their order. spare: room for as many, whose
 * content does not matter. */
void sort_records(struct sort_record *records, struct sort_record *spare, uint32_t count);

#endif
