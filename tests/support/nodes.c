/* See nodes.h. */
#include "tests/support/nodes.h"

#include <arpa/inet.h>
#include <signal.h>
#include <sys/socket.h>

#include "server/system/clock.h"
#include "tests/support/test.h"

enum {
    WAIT_LIMIT_MS = 60000,
    MEMBERS_PER_COMMAND = 500,
    WORDS_MAX = 24,
};

void node_connect(struct node *node) {
    node->wire = wire_open(process_connect_unix(&node->server));
    wire_wait_loaded(&node->wire);
}

void node_start(struct node *node, const char *const *words) {
    const char *all[WORDS_MAX] = {"--repl-timeout", "10", "--save", ""};
    size_t count = 4;
    for (; *words != NULL; words++) {
        all[count++] = *words;
        assert_true(count < WORDS_MAX - 1);
    }
    const struct process_options options = {
        .directory = node->directory, .arguments = all, .port = node->port};
    assert_true(process_start(&node->server, &options));
    node->port = node->server.port;
    node->is_running = true;
    node_connect(node);
}

void node_end(struct node *node, int signal_number) {
    wire_close(&node->wire);
    process_signal(&node->server, signal_number);
    assert_true(process_wait(&node->server, PROCESS_STOP_LIMIT_MS));
    assert_int_equal(node->server.exit_status, signal_number == SIGKILL ? 128 + SIGKILL : 0);
    node->is_running = false;
}

void node_follow(struct node *node, const struct node *master) {
    char command[64];
    snprintf(command, sizeof command, "REPLICAOF 127.0.0.1 %u", master->port);
    wire_check(&node->wire, command, "OK");
}

bool node_is_up(struct node *node) {
    return strstr(wire_ask(&node->wire, "INFO replication"), "master_link_status:up") != NULL;
}

void node_wait_up(struct node *node) {
    int64_t give_up_at = process_now_ms() + WAIT_LIMIT_MS;
    while (!node_is_up(node)) {
        if (process_now_ms() > give_up_at) {
            fail_msg("no link: %s", wire_ask(&node->wire, "INFO replication"));
        }
        process_sleep_ms(5);
    }
}

void node_wait_synced(struct node *node, struct node *master) {
    node_wait_up(node);
    int64_t give_up_at = process_now_ms() + WAIT_LIMIT_MS;
    for (;;) {
        int64_t wanted = wire_info(&master->wire, "master_repl_offset");
        if (node_is_up(node) && wire_info(&node->wire, "slave_repl_offset") == wanted &&
            wire_info(&master->wire, "master_repl_offset") == wanted) {
            return;
        }
        if (process_now_ms() > give_up_at) {
            fail_msg("not in sync: %s", wire_ask(&node->wire, "INFO replication"));
        }
        process_sleep_ms(2);
    }
}

const char *node_master_id(struct node *node) {
    static char id[41];
    const char *at = strstr(wire_ask(&node->wire, "INFO replication"), "master_replid:");
    assert_non_null(at);
    snprintf(id, sizeof id, "%s", at + sizeof "master_replid:" - 1);
    return id;
}

void node_fill(struct node *master, const char *board, int count) {
    TEXT(text);
    for (int first = 0; first < count; first += MEMBERS_PER_COMMAND) {
        int last = first + MEMBERS_PER_COMMAND < count ? first + MEMBERS_PER_COMMAND : count;
        text_format(&text, "*%d\r\n$4\r\nZADD\r\n$%zu\r\n%s\r\n", 2 + 2 * (last - first),
                    strlen(board), board);
        for (int i = first; i < last; i++) {
            char number[16];
            int size = snprintf(number, sizeof number, "%u", (unsigned)i * 7919U % 100003U);
            text_format(&text, "$%d\r\n%s\r\n", size, number);
            size = snprintf(number, sizeof number, "m%d", i);
            text_format(&text, "$%d\r\n%s\r\n", size, number);
        }
    }
    wire_send(&master->wire, text.at, text.size);
    for (int first = 0; first < count; first += MEMBERS_PER_COMMAND) {
        assert_int_equal(wire_reply(&master->wire)[0], ':');
    }
}

struct node nodes[NODES];

void nodes_start_pair(const char *const *master_words, const char *const *replica_words) {
    node_start(MASTER, master_words);
    node_start(REPLICA, replica_words);
    node_follow(REPLICA, MASTER);
    node_wait_up(REPLICA);
}

int nodes_set_up(void **state) {
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    clock_calibrate();
    memset(nodes, 0, sizeof nodes);
    for (int i = 0; i < NODES; i++) {
        directory_make(nodes[i].directory);
    }
    return 0;
}

int nodes_tear_down(void **state) {
    (void)state;
    int status = 0;
    for (int i = 0; i < NODES; i++) {
        wire_close(&nodes[i].wire);
        if (nodes[i].is_running) {
            process_signal(&nodes[i].server, SIGCONT);
            status |= process_stop(&nodes[i].server);
        }
        directory_remove(nodes[i].directory);
    }
    return status;
}

int node_listen(uint16_t *port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(listener, 8), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    *port = ntohs(address.sin_port);
    return listener;
}
