/* The PROXY protocol. See proxy_header.h. */
#include "protocol/proxy_header.h"

#include <arpa/inet.h>
#include <string.h>

static const char signature_v1[] = "PROXY ";
static const char signature_v2[] = "\r\n\r\n\0\r\nQUIT\n";

enum {
    SIGNATURE_V1_SIZE = sizeof signature_v1 - 1,
    SIGNATURE_V2_SIZE = sizeof signature_v2 - 1,
    V2_HEAD_SIZE = 16,
    V2_VERSION = 2,
    V2_LOCAL = 0,
    V2_PROXY = 1,
    V2_FAMILY_UNSPEC = 0,
    V2_FAMILY_IPV4 = 1,
    V2_FAMILY_IPV6 = 2,
    V2_FAMILY_UNIX = 3,
    V2_STREAM = 1,
    V2_TRANSPORT_MAX = 2, /* datagrams */
    PORT_DIGITS_MAX = 5,
};

/* ---- version 1 ---- */

/* The next word of the line, which ends with one blank or with the line. */
static bool proxy_header_take_word(struct bytes *line, struct bytes *word) {
    const char *blank = line->size > 0 ? memchr(line->at, ' ', line->size) : NULL;
    size_t size = blank != NULL ? (size_t)(blank - line->at) : line->size;
    size_t taken = blank != NULL ? size + 1 : size;
    *word = (struct bytes){.at = line->at, .size = size};
    *line = (struct bytes){.at = line->at + taken, .size = line->size - taken};
    return size > 0;
}

static bool proxy_header_take_address(struct bytes *line, int family, uint8_t *address) {
    char text[INET6_ADDRSTRLEN];
    struct bytes word;
    if (!proxy_header_take_word(line, &word) || word.size >= sizeof text ||
        memchr(word.at, '\0', word.size) != NULL) {
        return false;
    }
    memcpy(text, word.at, word.size);
    text[word.size] = '\0';
    return inet_pton(family, text, address) == 1;
}

static bool proxy_header_take_port(struct bytes *line, uint16_t *port) {
    struct bytes word;
    uint64_t value;
    if (!proxy_header_take_word(line, &word) || word.size > PORT_DIGITS_MAX ||
        !bytes_parse_u64(word, &value) || value > UINT16_MAX) {
        return false;
    }
    *port = (uint16_t)value;
    return true;
}

/* The line behind "PROXY ", without its end. */
static bool proxy_header_parse_line(struct bytes line, struct proxy_header *header) {
    struct bytes word;
    if (!proxy_header_take_word(&line, &word)) {
        return false;
    }
    if (bytes_equal(word, BYTES("UNKNOWN"))) {
        return true; /* what follows is to be ignored */
    }
    bool is_v4 = bytes_equal(word, BYTES("TCP4"));
    if (!is_v4 && !bytes_equal(word, BYTES("TCP6"))) {
        return false;
    }
    int family = is_v4 ? AF_INET : AF_INET6;
    if (!proxy_header_take_address(&line, family, header->source) ||
        !proxy_header_take_address(&line, family, header->destination) ||
        !proxy_header_take_port(&line, &header->source_port)) {
        return false;
    }
    bool is_last = line.size > 0 && memchr(line.at, ' ', line.size) == NULL;
    header->family = is_v4 ? PROXY_HEADER_IPV4 : PROXY_HEADER_IPV6;
    return is_last && proxy_header_take_port(&line, &header->destination_port);
}

static enum proxy_header_status proxy_header_parse_v1(const char *at, size_t size,
                                                      struct proxy_header *header, size_t *used) {
    size_t looked = size < PROXY_HEADER_V1_MAX ? size : (size_t)PROXY_HEADER_V1_MAX;
    const char *end = memchr(at, '\r', looked);
    if (end == NULL || end + 1 == at + looked) {
        return looked < PROXY_HEADER_V1_MAX ? PROXY_HEADER_MORE : PROXY_HEADER_BAD;
    }
    struct bytes line = {.at = at + SIGNATURE_V1_SIZE,
                         .size = (size_t)(end - at) - SIGNATURE_V1_SIZE};
    if (end[1] != '\n' || !proxy_header_parse_line(line, header)) {
        return PROXY_HEADER_BAD;
    }
    *used = (size_t)(end - at) + 2;
    return PROXY_HEADER_OK;
}

/* ---- version 2 ---- */

static uint16_t proxy_header_read_u16(const char *at) {
    return (uint16_t)((unsigned char)at[0] << 8 | (unsigned char)at[1]);
}

/* Two addresses of this size, and their ports. */
static void proxy_header_read_addresses(const char *at, size_t size, struct proxy_header *header) {
    memcpy(header->source, at, size);
    memcpy(header->destination, at + size, size);
    header->source_port = proxy_header_read_u16(at + 2 * size);
    header->destination_port = proxy_header_read_u16(at + 2 * size + 2);
}

/* size: of addresses and TLVs. */
static bool proxy_header_parse_addresses(unsigned family, const char *at, size_t size,
                                         struct proxy_header *header) {
    enum { V4_SIZE = 4, V6_SIZE = 16, PORTS_SIZE = 4 };
    switch (family) {
    case V2_FAMILY_UNSPEC:
        return true;
    case V2_FAMILY_IPV4:
        header->family = PROXY_HEADER_IPV4;
        if (size < 2 * V4_SIZE + PORTS_SIZE) {
            return false;
        }
        proxy_header_read_addresses(at, V4_SIZE, header);
        return true;
    case V2_FAMILY_IPV6:
        header->family = PROXY_HEADER_IPV6;
        if (size < 2 * V6_SIZE + PORTS_SIZE) {
            return false;
        }
        proxy_header_read_addresses(at, V6_SIZE, header);
        return true;
    case V2_FAMILY_UNIX:
        header->family = PROXY_HEADER_UNIX;
        if (size < 2 * (size_t)PROXY_HEADER_PATH_MAX) {
            return false;
        }
        memcpy(header->path, at + PROXY_HEADER_PATH_MAX, PROXY_HEADER_PATH_MAX);
        return true;
    default:
        return false;
    }
}

static enum proxy_header_status proxy_header_parse_v2(const char *at, size_t size,
                                                      struct proxy_header *header, size_t *used) {
    if (size < V2_HEAD_SIZE) {
        return PROXY_HEADER_MORE;
    }
    unsigned version = (unsigned char)at[SIGNATURE_V2_SIZE] >> 4;
    unsigned command = (unsigned char)at[SIGNATURE_V2_SIZE] & 15;
    unsigned family = (unsigned char)at[SIGNATURE_V2_SIZE + 1] >> 4;
    unsigned transport = (unsigned char)at[SIGNATURE_V2_SIZE + 1] & 15;
    size_t rest = proxy_header_read_u16(at + V2_HEAD_SIZE - 2);
    if (version != V2_VERSION || command > V2_PROXY || family > V2_FAMILY_UNIX ||
        transport > V2_TRANSPORT_MAX || V2_HEAD_SIZE + rest > PROXY_HEADER_MAX) {
        return PROXY_HEADER_BAD;
    }
    if (size - V2_HEAD_SIZE < rest) {
        return PROXY_HEADER_MORE;
    }
    /* Of a transport that is no stream, as of LOCAL, the addresses are not used. */
    if (command == V2_PROXY && transport == V2_STREAM &&
        !proxy_header_parse_addresses(family, at + V2_HEAD_SIZE, rest, header)) {
        return PROXY_HEADER_BAD;
    }
    *used = V2_HEAD_SIZE + rest;
    return PROXY_HEADER_OK;
}

/* ---- both ---- */

/* Do the bytes begin so, as far as there are any? */
static bool proxy_header_begins_with(const char *at, size_t size, const char *signature,
                                     size_t signature_size) {
    return memcmp(at, signature, size < signature_size ? size : signature_size) == 0;
}

enum proxy_header_status proxy_header_parse(const char *at, size_t size,
                                            struct proxy_header *header, size_t *used) {
    *header = (struct proxy_header){.family = PROXY_HEADER_NONE};
    if (size == 0) {
        return PROXY_HEADER_MORE;
    }
    if (proxy_header_begins_with(at, size, signature_v2, SIGNATURE_V2_SIZE)) {
        return size < SIGNATURE_V2_SIZE ? PROXY_HEADER_MORE
                                        : proxy_header_parse_v2(at, size, header, used);
    }
    if (proxy_header_begins_with(at, size, signature_v1, SIGNATURE_V1_SIZE)) {
        return size < SIGNATURE_V1_SIZE ? PROXY_HEADER_MORE
                                        : proxy_header_parse_v1(at, size, header, used);
    }
    return PROXY_HEADER_BAD;
}
