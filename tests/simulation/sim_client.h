/* A connection to a simulated server that speaks RESP, for a fiber that asks and waits. */
#ifndef SIM_CLIENT_H
#define SIM_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_reply {
    enum { SIM_STATUS, SIM_ERROR, SIM_INTEGER, SIM_BULK, SIM_NIL, SIM_ARRAY } kind;
    const char *at; /* text; also of a number */
    size_t size;
    int64_t number;
    size_t count; /* of an array, whose items follow each other, with theirs between */
    struct sim_reply *items;
    size_t whole; /* replies in it, itself included */
};

struct sim_client {
    int machine;   /* it is on */
    int server;    /* it is connected to; -1: not connected */
    bool was_left; /* the server has closed the last connection while it owed an answer */
    struct sim_socket *socket;
    char *input;
    size_t size, capacity;
    struct sim_reply *replies;
    size_t reply_capacity;
};

/* false: nobody answers there. */
bool sim_client_connect(struct sim_client *client, int server, int64_t timeout_ns);
void sim_client_close(struct sim_client *client);
/* Send requests, words separated by a space and requests by "|", and wait for all replies. The last
 * one, valid until the next call; NULL: none came in time, and the connection is closed. */
__attribute__((format(printf, 3, 4))) const struct sim_reply *
sim_client_ask(struct sim_client *client, int64_t timeout_ns, const char *format, ...);
/* The i-th item of an array. */
const struct sim_reply *sim_reply_item(const struct sim_reply *array, size_t index);
bool sim_reply_is(const struct sim_reply *reply, const char *text);

#endif
