/* See utf8.h. */
#include "codec/utf8.h"

static bool utf8_is_between(char byte, unsigned low, unsigned high) {
    return (unsigned char)byte >= low && (unsigned char)byte <= high;
}

size_t utf8_size(struct bytes text) {
    unsigned first = (unsigned char)text.at[0];
    if (first < 0x80) {
        return 1;
    }
    size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || text.size < size) {
        return 0;
    }
    /* No longer form than needed, no surrogates, nothing beyond the last code. */
    unsigned low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    unsigned high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    bool is_fine = utf8_is_between(text.at[1], low, high);
    for (size_t i = 2; i < size; i++) {
        is_fine = is_fine && utf8_is_between(text.at[i], 0x80, 0xbf);
    }
    return is_fine ? size : 0;
}

bool utf8_is_valid(struct bytes text) {
    while (text.size > 0) {
        size_t size = utf8_size(text);
        if (size == 0) {
            return false;
        }
        text = (struct bytes){.at = text.at + size, .size = text.size - size};
    }
    return true;
}

size_t utf8_print(char *out, uint32_t code) {
    static const unsigned char marks[UTF8_SIZE_MAX + 1] = {0, 0x00, 0xc0, 0xe0, 0xf0};
    size_t size = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = size; i-- > 1; code >>= 6) {
        out[i] = (char)(0x80 | (code & 0x3f));
    }
    out[0] = (char)(marks[size] | code);
    return size;
}
