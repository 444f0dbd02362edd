/* Members of a board that belongs to a key, without a command. To be included behind cmocka.h. */
#ifndef TESTS_SUPPORT_KEY_PUT_H
#define TESTS_SUPPORT_KEY_PUT_H

#include "skiplist/keyspace/registry.h"

static inline bool key_put(struct registry *registry, struct registry_key *key, struct bytes name,
                           uint64_t packed_key) {
    struct board_member member;
    board_look_up(&key->board, name, NULL, &member);
    return registry_put_member(registry, key, &member, packed_key) == BOARD_OK;
}

#endif
