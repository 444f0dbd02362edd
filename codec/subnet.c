/* Networks of IP addresses. See subnet.h. */
#include "codec/subnet.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

enum { V4_AT = 12, V4_BITS = 32, BITS = 128, BYTE_BITS = 8 };

static void subnet_map_v4(const void *v4, uint8_t address[SUBNET_ADDRESS_SIZE]) {
    memset(address, 0, V4_AT - 2);
    memset(address + V4_AT - 2, 0xff, 2);
    memcpy(address + V4_AT, v4, SUBNET_ADDRESS_SIZE - V4_AT);
}

/* The bits of one byte that count. */
static uint8_t subnet_mask_of(const struct subnet *subnet, unsigned index) {
    unsigned begin = index * BYTE_BITS;
    if (subnet->bits <= begin) {
        return 0;
    }
    unsigned count = subnet->bits - begin;
    return (uint8_t)(count >= BYTE_BITS ? 0xff : 0xff << (BYTE_BITS - count));
}

bool subnet_parse(struct bytes text, struct subnet *subnet) {
    char host[INET6_ADDRSTRLEN];
    uint8_t v4[SUBNET_ADDRESS_SIZE - V4_AT];
    uint64_t bits;
    const char *slash = text.size > 0 ? memchr(text.at, '/', text.size) : NULL;
    size_t size = slash != NULL ? (size_t)(slash - text.at) : text.size;
    if (size == 0 || size >= sizeof host) {
        return false;
    }
    memcpy(host, text.at, size);
    host[size] = '\0';
    bool is_whole = strlen(host) == size;
    bool is_v4 = inet_pton(AF_INET, host, v4) == 1;
    if (is_v4) {
        subnet_map_v4(v4, subnet->address);
    } else if (inet_pton(AF_INET6, host, subnet->address) != 1) {
        return false;
    }
    if (!is_whole) {
        return false;
    }
    uint64_t bits_max = is_v4 ? V4_BITS : BITS;
    bits = bits_max;
    if (slash != NULL &&
        (!bytes_parse_u64((struct bytes){.at = slash + 1, .size = text.size - size - 1}, &bits) ||
         bits > bits_max)) {
        return false;
    }
    subnet->bits = (unsigned)(bits + (BITS - bits_max));
    for (unsigned i = 0; i < SUBNET_ADDRESS_SIZE; i++) {
        if ((subnet->address[i] & ~subnet_mask_of(subnet, i)) != 0) {
            return false;
        }
    }
    return true;
}

void subnet_print(const struct subnet *subnet, char out[SUBNET_TEXT_MAX]) {
    bool is_v4 = subnet->bits >= BITS - V4_BITS && subnet_is_v4(subnet->address);
    inet_ntop(is_v4 ? AF_INET : AF_INET6, subnet->address + (is_v4 ? V4_AT : 0), out,
              SUBNET_TEXT_MAX);
    if (subnet->bits < BITS) {
        size_t size = strlen(out);
        snprintf(out + size, SUBNET_TEXT_MAX - size, "/%u",
                 subnet->bits - (is_v4 ? BITS - V4_BITS : 0));
    }
}

bool subnet_has(const struct subnet *subnet, const uint8_t address[SUBNET_ADDRESS_SIZE]) {
    for (unsigned i = 0; i < SUBNET_ADDRESS_SIZE; i++) {
        if (((subnet->address[i] ^ address[i]) & subnet_mask_of(subnet, i)) != 0) {
            return false;
        }
    }
    return true;
}

bool subnet_list_has(const struct subnet *subnets, unsigned count,
                     const uint8_t address[SUBNET_ADDRESS_SIZE]) {
    unsigned i = 0;
    while (i < count && !subnet_has(&subnets[i], address)) {
        i++;
    }
    return i < count;
}

bool subnet_take_address(const struct sockaddr *from, uint8_t address[SUBNET_ADDRESS_SIZE]) {
    memset(address, 0, SUBNET_ADDRESS_SIZE);
    if (from != NULL && from->sa_family == AF_INET) {
        subnet_map_v4(&((const struct sockaddr_in *)(const void *)from)->sin_addr, address);
        return true;
    }
    if (from != NULL && from->sa_family == AF_INET6) {
        memcpy(address, &((const struct sockaddr_in6 *)(const void *)from)->sin6_addr,
               SUBNET_ADDRESS_SIZE);
        return true;
    }
    return false;
}

bool subnet_is_v4(const uint8_t address[SUBNET_ADDRESS_SIZE]) {
    static const uint8_t prefix[V4_AT] = {[V4_AT - 2] = 0xff, [V4_AT - 1] = 0xff};
    return memcmp(address, prefix, sizeof prefix) == 0;
}

bool subnet_is_loopback(const uint8_t address[SUBNET_ADDRESS_SIZE]) {
    static const uint8_t loopback[SUBNET_ADDRESS_SIZE] = {[SUBNET_ADDRESS_SIZE - 1] = 1};
    return subnet_is_v4(address) ? address[V4_AT] == 127
                                 : memcmp(address, loopback, sizeof loopback) == 0;
}
