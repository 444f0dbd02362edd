/* LB.FORGET: takes a member off all boards, and removes its hashes. */
#include "server/acl/acl_check.h"
#include "server/clients/server.h"
#include "server/commands/keyspace.h"
#include "server/commands/lb/lb_data.h"
#include "server/commands/lb/player.h"

static void lb_forget_act(struct server *server, struct player_walk *walk,
                          struct registry_key *key) {
    struct board_member member;
    board_look_up(&key->board, walk->member, NULL, &member);
    player_take(server, key, &member);
    walk->done_count++;
}

static void lb_forget_remove_hash(struct server *server, const struct player_walk *walk,
                                  struct bytes name) {
    for (uint32_t i = walk->first_database; i < walk->end_database; i++) {
        keyspace_remove_hash(server, i, name);
    }
}

static void lb_forget_finish(struct server *server, struct player_walk *walk) {
    uint32_t size;
    for (size_t at = 0; at < walk->data.size; at += sizeof size + size) {
        memcpy(&size, walk->data.at + at, sizeof size);
        if (size <= REGISTRY_KEY_MAX) {
            lb_forget_remove_hash(
                server, walk, (struct bytes){.at = walk->data.at + at + sizeof size, .size = size});
        }
    }
}

static void lb_forget_answer(struct player_walk *walk, struct reply *reply) {
    reply_integer(reply, (int64_t)walk->done_count);
}

/* DATA, as often as it is given. */
static bool lb_forget_read_data(const struct call *call, uint32_t index, void *target) {
    struct player_walk *walk = target;
    struct bytes pattern = call_arg(call, index);
    if (!lb_data_check_star(call, pattern) || !acl_check_pattern(call, pattern, true, ACL_WRITE)) {
        return false;
    }
    uint32_t size = (uint32_t)(pattern.size - 1 + walk->member.size);
    char *out = buffer_reserve(&walk->data, sizeof size + size);
    if (out == NULL) {
        return call_out_of_memory(call);
    }
    memcpy(out, &size, sizeof size);
    lb_data_print_key(pattern, walk->member, out + sizeof size);
    walk->data.size += sizeof size + size;
    return true;
}

static const struct option_row lb_forget_options[] = {
    PLAYER_MATCH_OPTION,
    {"DATA", OPTION_READ, 0, lb_forget_read_data},
    {"ALL", OPTION_FLAG, offsetof(struct player_walk, is_all), NULL},
    {0},
};

const struct command command_lb_forget = {
    .name = "LB.FORGET",
    .syntax = "member [MATCH pattern] data=[DATA data:pattern]... [ALL]",
    .options = lb_forget_options,
    .summary = "Take a member off all boards, and remove its hashes; count the boards",
    .complexity = "O(n log m) for n boards of m members, in steps between other commands",
    .flags = COMMAND_WRITE | COMMAND_NO_MULTI,
    .audit = AUDIT_PLAYERS,
    .run = player_run,
    .variant = &(const struct player_action){.writes = true,
                                             .act = lb_forget_act,
                                             .finish = lb_forget_finish,
                                             .answer = lb_forget_answer},
};
