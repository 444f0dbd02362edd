/* Where the keys of a command are, and what it does with them: Redis's key specifications. They
 * follow from an entry's syntax, and from its key_access where its flags do not say enough. */
#ifndef SERVER_KEY_SPEC_H
#define SERVER_KEY_SPEC_H

#include "server/dispatch/command.h"

enum key_flag {
    KEY_READ_ONLY = 1 << 0, /* RO: the value is not changed */
    KEY_CHANGED = 1 << 1,   /* RW: it may be */
    KEY_REPLACED = 1 << 2,  /* OW: whatever it was */
    KEY_REMOVED = 1 << 3,   /* RM */
    KEY_ACCESS = 1 << 4,    /* what is in it is shown or copied */
    KEY_UPDATE = 1 << 5,
    KEY_INSERT = 1 << 6, /* adds, and never removes or replaces */
    KEY_DELETE = 1 << 7,
    KEY_NONE = 1 << 8,       /* not_key: it is only found like one */
    KEY_INCOMPLETE = 1 << 9, /* what follows its word need not be a key: COMMAND GETKEYS tells */
};

/* A group of keys that are found in the same way. */
struct key_spec {
    const char
        *word; /* the value of this option of the command, begin being where it may stand at first;
                         NULL: not one of an option */
    bool is_counted;       /* the argument at begin is the number of keys after it */
    int begin, last, step; /* otherwise up to last, relative to begin; negative: from the end */
    const char *name;      /* of the argument; NULL: not documented */
    unsigned flags;        /* enum key_flag */
};
enum { KEY_SPECS_MAX = 4 }; /* COPY has two: source and destination */

/* Set what the functions below return. Call after command_init. */
void key_spec_init(void);
/* Returns the number of a command's specifications. */
uint32_t key_spec_of(uint32_t command, const struct key_spec **specs);
/* What a user needs for such keys: ACL_READ, ACL_WRITE, both or neither. */
unsigned key_spec_needs(unsigned flags);
/* The flags' names as Redis has them: "RW", "access". NULL: nothing has this bit. */
const char *key_spec_flag_name(unsigned flag);

/* The positions of a specification's keys in a request: next, then one after another, while it is
 * below end. end is 0 if the arguments do not fit; an option that is not given has no keys. */
struct key_walk {
    uint32_t next, end, step;
};
struct key_walk key_spec_walk(const struct command *command, const struct key_spec *spec,
                              const struct request *request);
/* All keys of a request that has the right number of arguments, specification after specification; one that does not
 * fit has none. */
struct request_keys {
    const struct command *command;
    const struct request *request;
    const struct key_spec *spec, *end; /* spec: of the key that was returned last */
    struct key_walk walk;
};
struct request_keys key_spec_request_begin(uint32_t command, const struct request *request);
/* The position of the next key; 0: there is no more. */
uint32_t key_spec_request_next(struct request_keys *keys);
/* Where the key is that the value of the command's key_option is; 0: none. */
uint32_t key_spec_option(const struct command *command, const struct request *request);
/* The positions of all the request's keys, fewer than its arguments. Returns their number, or -1 if
 * the arguments do not fit the command. */
int key_spec_positions(const struct command *command, const struct request *request,
                       uint32_t *positions);

#endif
