/* Networks of IP addresses: "10.0.0.0/8", "fd00::/8", "192.0.2.7".
 *
 * An address is 16 bytes; those of IPv4 are mapped (::ffff:a.b.c.d), so that a client that comes
 * through an IPv6 socket is in the same network. */
#ifndef CODEC_SUBNET_H
#define CODEC_SUBNET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "codec/bytes.h"

enum { SUBNET_ADDRESS_SIZE = 16, SUBNET_TEXT_MAX = 64 };

struct subnet {
    uint8_t address[SUBNET_ADDRESS_SIZE];
    unsigned bits; /* how many of them count, 0..128 */
};

/* An address with or without /bits. Bits behind those that count must be 0. false: it is none. */
MUST_CHECK bool subnet_parse(struct bytes text, struct subnet *subnet);
/* "10.0.0.0/8"; without the bits if all count. */
void subnet_print(const struct subnet *subnet, char out[SUBNET_TEXT_MAX]);
bool subnet_has(const struct subnet *subnet, const uint8_t address[SUBNET_ADDRESS_SIZE]);
/* Is it in one of them? */
bool subnet_list_has(const struct subnet *subnets, unsigned count,
                     const uint8_t address[SUBNET_ADDRESS_SIZE]);

/* The address of a socket. false: it is not of IP, or NULL; all bytes are then 0. */
bool subnet_take_address(const struct sockaddr *from, uint8_t address[SUBNET_ADDRESS_SIZE]);
bool subnet_is_v4(const uint8_t address[SUBNET_ADDRESS_SIZE]);
/* Of this machine? */
bool subnet_is_loopback(const uint8_t address[SUBNET_ADDRESS_SIZE]);

#endif
