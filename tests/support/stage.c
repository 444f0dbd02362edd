#include "tests/support/stage.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"

void stage_begin(struct stage *stage, int client_count, const char *config) {
    *stage = (struct stage){.client_count = client_count};
    assert_in_range(client_count, 1, STAGE_CLIENTS_MAX);
    assert_true(process_start(&stage->servers[0], &(struct process_options){.config = config}));
    assert_true(process_start(&stage->servers[1],
                              &(struct process_options){.program = process_redis_program()}));
    for (int side = 0; side < 2; side++) {
        stage->witnesses[side] = wire_open(process_connect_unix(&stage->servers[side]));
        for (int i = 0; i < client_count; i++) {
            char name[64];
            stage->wires[side][i] = wire_open(process_connect_unix(&stage->servers[side]));
            snprintf(name, sizeof name, "CLIENT SETNAME client%d", i);
            wire_check(&stage->wires[side][i], name, "OK");
        }
    }
}

void stage_end(struct stage *stage) {
    for (int side = 0; side < 2; side++) {
        wire_close(&stage->witnesses[side]);
        for (int i = 0; i < stage->client_count; i++) {
            wire_close(&stage->wires[side][i]);
            text_free(&stage->received[side][i]);
        }
        assert_int_equal(process_stop(&stage->servers[side]), 0);
    }
}

static void send_lines(struct wire *wire, const char *lines) {
    while (*lines != '\0') {
        size_t size = strcspn(lines, ";");
        wire_send(wire, lines, size);
        wire_send_text(wire, "\r\n");
        lines += size + (lines[size] == ';');
    }
}

/* All that the client has received up to the reply to a PING. */
static void collect(struct stage *stage, int side, int client) {
    struct wire *wire = &stage->wires[side][client];
    struct text *received = &stage->received[side][client];
    char mark[64];
    snprintf(mark, sizeof mark, "mark-%llu", (unsigned long long)stage->step_count);
    received->size = 0;
    text_add(received, "", 0);
    for (;;) {
        const char *reply = wire_reply(wire);
        if (strstr(reply, mark) != NULL) {
            return;
        }
        text_format(received, "%s\n", reply);
    }
}

static int compare_lines(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The same words in any order? (Whoever ends all subscriptions is told each with the number left.) */
static bool is_same_set(const char *ours, const char *theirs) {
    enum { WORDS_MAX = 4096 };
    char *copies[2] = {strdup(ours), strdup(theirs)};
    char *words[2][WORDS_MAX];
    int counts[2] = {0, 0};
    for (int side = 0; side < 2; side++) {
        for (char *at = strtok(copies[side], " \n"); at != NULL; at = strtok(NULL, " \n")) {
            assert_true(counts[side] < WORDS_MAX);
            words[side][counts[side]++] = at;
        }
        qsort(words[side], (size_t)counts[side], sizeof words[side][0], compare_lines);
    }
    bool is_same = counts[0] == counts[1];
    for (int i = 0; is_same && i < counts[0]; i++) {
        is_same = strcmp(words[0][i], words[1][i]) == 0;
    }
    free(copies[0]);
    free(copies[1]);
    return is_same;
}

static void compare(const struct stage *stage, int actor, const char *lines, bool is_ordered) {
    for (int i = 0; i < stage->client_count; i++) {
        if (stage->is_waiting[i]) {
            continue;
        }
        const char *ours = stage->received[0][i].at;
        const char *theirs = stage->received[1][i].at;
        if (strcmp(ours, theirs) != 0 && (is_ordered || !is_same_set(ours, theirs))) {
            fail_msg("step %llu, client %d sends '%s', client %d receives\nours:\n%stheirs:\n%s",
                     (unsigned long long)stage->step_count, actor, lines, i, ours, theirs);
        }
    }
}

static void step(struct stage *stage, int client, const char *lines, bool is_ordered) {
    stage->step_count++;
    assert_false(stage->is_waiting[client]);
    for (int side = 0; side < 2; side++) {
        char ping[64];
        snprintf(ping, sizeof ping, "PING mark-%llu\r\n", (unsigned long long)stage->step_count);
        send_lines(&stage->wires[side][client], lines);
        wire_send_text(&stage->wires[side][client], ping);
        collect(stage, side, client);
        for (int i = 0; i < stage->client_count; i++) {
            if (i != client && !stage->is_waiting[i]) {
                wire_send_text(&stage->wires[side][i], ping);
                collect(stage, side, i);
            }
        }
    }
    compare(stage, client, lines, is_ordered);
}

void stage_step(struct stage *stage, int client, const char *lines) {
    step(stage, client, lines, true);
}

void stage_steps(struct stage *stage, int client, const char *const *lines, size_t count) {
    for (size_t i = 0; i < count; i++) {
        step(stage, client, lines[i], true);
    }
}

void stage_step_unordered(struct stage *stage, int client, const char *lines) {
    step(stage, client, lines, false);
}

void stage_wait(struct stage *stage, int client, const char *line) {
    assert_false(stage->is_waiting[client]);
    for (int side = 0; side < 2; side++) {
        int64_t count = wire_info(&stage->witnesses[side], "blocked_clients");
        send_lines(&stage->wires[side][client], line);
        wire_wait_info(&stage->witnesses[side], "blocked_clients", count + 1);
    }
    stage->is_waiting[client] = true;
}

const char *stage_woken(struct stage *stage, int client) {
    assert_true(stage->is_waiting[client]);
    stage->is_waiting[client] = false;
    const char *ours = wire_reply(&stage->wires[0][client]);
    const char *theirs = wire_reply(&stage->wires[1][client]);
    if (strcmp(ours, theirs) != 0) {
        fail_msg("after step %llu, client %d, woken: ours '%s', theirs '%s'",
                 (unsigned long long)stage->step_count, client, ours, theirs);
    }
    return ours;
}

bool stage_still_waits(struct stage *stage, int client) {
    bool waits[2];
    for (int side = 0; side < 2; side++) {
        char name[32];
        const char *list = wire_ask(&stage->witnesses[side], "CLIENT LIST");
        snprintf(name, sizeof name, " name=client%d ", client);
        const char *line = strstr(list, name);
        assert_non_null(line);
        const char *flags = strstr(line, " flags=");
        assert_non_null(flags);
        waits[side] = flags[strlen(" flags=")] == 'b';
    }
    if (waits[0] != waits[1]) {
        fail_msg("after step %llu, client %d waits: ours %d, theirs %d",
                 (unsigned long long)stage->step_count, client, waits[0], waits[1]);
    }
    return waits[0];
}

const char *stage_received(const struct stage *stage, int client) {
    return stage->received[0][client].at;
}
