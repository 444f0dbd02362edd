/* Real servers that follow one another: started in directories that stay, so that they can be killed and come
 * back with the same port and the same files. */
#ifndef TESTS_SUPPORT_NODES_H
#define TESTS_SUPPORT_NODES_H

#include "tests/support/directory.h"
#include "tests/support/process.h"
#include "tests/support/wire.h"

struct node {
    struct process server;
    struct wire wire;
    char directory[DIRECTORY_PATH_MAX];
    bool is_running;
    uint16_t port; /* kept over restarts */
};

/* With these words, ended by NULL, and what each node has: no save points, a repl-timeout of 10 s. */
void node_start(struct node *node, const char *const *words);
/* Of node_start: open the wire to a server that was started otherwise. */
void node_connect(struct node *node);
/* The signal, and the end that it must bring. */
void node_end(struct node *node, int signal_number);

/* REPLICAOF; the link comes later. */
void node_follow(struct node *node, const struct node *master);
bool node_is_up(struct node *node);
void node_wait_up(struct node *node);
/* Until it has all that the master has now. */
void node_wait_synced(struct node *node, struct node *master);
/* Its replication id; valid until the next call. */
const char *node_master_id(struct node *node);

/* A socket of the test's own that listens on loopback, for whom nodes take for a master. */
int node_listen(uint16_t *port);

/* Put so many members on one board. */
void node_fill(struct node *master, const char *board, int count);

/* What a test of three has: they are in fresh directories, and stopped and removed at its end. */
enum { NODES = 3 };
extern struct node nodes[NODES];
#define MASTER  (&nodes[0])
#define REPLICA (&nodes[1])
#define THIRD   (&nodes[2])
/* The replica follows the master, and has its copy. */
void nodes_start_pair(const char *const *master_words, const char *const *replica_words);
int nodes_set_up(void **state);
int nodes_tear_down(void **state);
#define WITH_NODES(name) TEST_WITH(name, nodes_set_up, nodes_tear_down)

#endif
