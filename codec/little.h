/* Integers in little endian, as files keep them, at any address. */
#ifndef CODEC_LITTLE_H
#define CODEC_LITTLE_H

#include <stdint.h>
#include <string.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
enum { LITTLE_IS_SWAPPED = 1 };
#else
enum { LITTLE_IS_SWAPPED = 0 };
#endif

static inline uint32_t little_order_32(uint32_t value) {
    return LITTLE_IS_SWAPPED ? __builtin_bswap32(value) : value;
}

static inline uint64_t little_order_64(uint64_t value) {
    return LITTLE_IS_SWAPPED ? __builtin_bswap64(value) : value;
}

static inline void little_put_u32(char *at, uint32_t value) {
    value = little_order_32(value);
    memcpy(at, &value, sizeof value);
}

static inline void little_put_u64(char *at, uint64_t value) {
    value = little_order_64(value);
    memcpy(at, &value, sizeof value);
}

static inline uint32_t little_get_u32(const char *at) {
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return little_order_32(value);
}

static inline uint64_t little_get_u64(const char *at) {
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return little_order_64(value);
}

/* 48 bits. */
static inline void little_put_u48(char *at, uint64_t value) {
    little_put_u32(at, (uint32_t)value);
    at[4] = (char)(value >> 32);
    at[5] = (char)(value >> 40);
}

static inline uint64_t little_get_u48(const char *at) {
    return little_get_u32(at) | (uint64_t)(uint8_t)at[4] << 32 | (uint64_t)(uint8_t)at[5] << 40;
}

#endif
