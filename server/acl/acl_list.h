/* A list of different texts, in the order in which they were added: a user's passwords, patterns and
 * rules. */
#ifndef SERVER_ACL_LIST_H
#define SERVER_ACL_LIST_H

#include "codec/bytes.h"

struct acl_text {
    struct bytes text; /* owned */
    uint32_t hash;
    uint32_t value; /* what the list's owner keeps of it */
};
/* Zero-initialised: empty. */
struct acl_list {
    struct acl_text *at;
    uint32_t count, capacity;
};

void acl_list_deinit(struct acl_list *list);
/* The element with this text and, unless it is ACL_LIST_ANY, this value. NULL: there is none. */
#define ACL_LIST_ANY UINT32_MAX
struct acl_text *acl_list_find(const struct acl_list *list, struct bytes text, uint32_t value);
/* Append a copy. false: out of memory. */
MUST_CHECK bool acl_list_add(struct acl_list *list, struct bytes text, uint32_t value);
/* The others stay in order. */
void acl_list_remove(struct acl_list *list, uint32_t index);
/* into is empty. false: out of memory, and it still is. */
MUST_CHECK bool acl_list_copy(struct acl_list *into, const struct acl_list *from);

#endif
