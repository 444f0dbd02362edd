/* The pass over the boards of the registry. See board_task.h.
 *
 * In Redis and Valkey the boards are the host's, and server/module/host_run.c takes this file's
 * place. */
#include "server/commands/lb/board_task.h"

enum {
    PASS_COUNT = 32,     /* keys passed in a step */
    PASS_NAME_SIZE = 64, /* a longer name counts as several */
};

/* ---- boards that have the member ---- */

static void board_task_pass_find_board(struct board_task *task, const struct registry_key *key) {
    struct bytes name = registry_name(key);
    uint32_t size = (uint32_t)name.size;
    if (key->kind != REGISTRY_BOARD || (task->glob != NULL && !glob_takes(task->glob, name)) ||
        !board_task_has(task, key)) {
        return;
    }
    char *at = buffer_reserve(&task->found, 1 + sizeof size + name.size);
    if (at == NULL) {
        task->has_missed = true;
        return;
    }
    *at = (char)key->database;
    memcpy(at + 1, &size, sizeof size);
    memcpy(at + 1 + sizeof size, name.at, name.size);
    buffer_commit(&task->found, 1 + sizeof size + name.size);
}

static void board_task_pass_receive(void *context, const struct effect *effect) {
    struct board_task *task = context;
    if ((effect->kind == EFFECT_RENAME || effect->kind == EFFECT_COPY ||
         effect->kind == EFFECT_FILL) &&
        registry_walk_pass_has_passed(&task->pass, effect->key)) {
        board_task_pass_find_board(task, effect->key);
    }
}

void board_task_pass_note_moved(struct server *server, const struct registry_key *key,
                                struct bytes member) {
    for (struct job *job = server->jobs.first; job != NULL; job = job->next) {
        struct board_task *task = (struct board_task *)job;
        if ((job->kind == &board_task_reading || job->kind == &board_task_writing) &&
            task->registry == server->registry && bytes_equal(task->member, member) &&
            registry_walk_pass_has_passed(&task->pass, key)) {
            board_task_pass_find_board(task, key);
        }
    }
}

/* ---- the pass ---- */

bool board_task_pass_step(struct server *server, struct board_task *task) {
    struct registry_key *key;
    /* What is due changes the names of boards, and the listener must have seen it. */
    if (!registry_roll_some(server->registry, server->clock.now_ms)) {
        return true;
    }
    if (task->found_at < task->found.size) {
        const char *at = task->found.at + task->found_at;
        uint32_t size;
        memcpy(&size, at + 1, sizeof size);
        task->found_at += 1 + sizeof size + size;
        /* Nothing is due now, so nothing is appended to the names by this look-up. */
        key = registry_find(server->registry, (uint8_t)*at,
                            (struct bytes){.at = at + 1 + sizeof size, .size = size},
                            server->clock.now_ms);
        if (key != NULL && key->kind == REGISTRY_BOARD && board_task_has(task, key)) {
            task->action->act(server, task, key);
        }
        return true;
    }
    if (task->has_missed) {
        registry_walk_pass_begin(server->registry, &task->pass, task->first_database,
                                 task->end_database);
        task->has_missed = false;
    }
    if (registry_walk_pass_is_over(&task->pass)) {
        return false;
    }
    size_t size_left = (size_t)PASS_COUNT * PASS_NAME_SIZE;
    buffer_clear(&task->found);
    task->found_at = 0;
    while (size_left > 0 && !registry_walk_pass_is_over(&task->pass)) {
        key = registry_walk_pass_next(server->registry, &task->pass, server->clock.now_ms);
        size_t name_size = key != NULL ? key->name_size : 0;
        size_t size = name_size > PASS_NAME_SIZE ? name_size : PASS_NAME_SIZE;
        size_left -= size < size_left ? size : size_left;
        if (key != NULL) {
            board_task_pass_find_board(task, key);
        }
    }
    return true;
}

bool board_task_pass_begin(struct server *server, struct board_task *task) {
    task->registry = server->registry;
    registry_walk_pass_begin(server->registry, &task->pass, task->first_database,
                             task->end_database);
    task->listener = (struct effect_listener){.receive = board_task_pass_receive, .context = task};
    effect_listener_add(server->registry, &task->listener);
    return true;
}

void board_task_pass_end(struct board_task *task) {
    if (task->registry != NULL) {
        effect_listener_remove(task->registry, &task->listener);
        registry_walk_pass_end(task->registry, &task->pass);
        task->registry = NULL;
    }
}
