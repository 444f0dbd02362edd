/* LB.FORGET: takes a member off all boards, and removes its hash. */
#include "server/clients/server.h"
#include "server/commands/keyspace.h"
#include "server/commands/lb/player.h"
#include "server/dispatch/acl_check.h"

static void act(struct server *server, struct player_walk *walk, struct registry_key *key) {
    struct board_member member;
    board_look_up(&key->board, walk->member, NULL, &member);
    player_take(server, key, &member);
    walk->done_count++;
}

static void finish(struct server *server, struct player_walk *walk) {
    struct bytes name = {.at = walk->data.at, .size = walk->data.size};
    if (name.size == 0 || name.size > REGISTRY_KEY_MAX) {
        return;
    }
    for (uint32_t i = walk->first_database; i < walk->end_database; i++) {
        keyspace_remove_hash(server, i, name);
    }
}

static void answer(struct player_walk *walk, struct reply *reply) {
    reply_integer(reply, (int64_t)walk->done_count);
}

/* DATA: the member replaces the first star, as in SORT. */
static bool read_data(const struct call *call, uint32_t index, void *target) {
    struct player_walk *walk = target;
    struct bytes pattern = call_arg(call, index);
    const char *star = pattern.size > 0 ? memchr(pattern.at, '*', pattern.size) : NULL;
    if (star == NULL) {
        return call_refuse(call, "ERR DATA needs a pattern with a *, such as profile:*");
    }
    if (!acl_check_pattern(call, pattern, true, ACL_WRITE)) {
        return false;
    }
    size_t before = (size_t)(star - pattern.at);
    buffer_clear(&walk->data);
    buffer_append(&walk->data, pattern.at, before);
    buffer_append(&walk->data, walk->member.at, walk->member.size);
    buffer_append(&walk->data, star + 1, pattern.size - before - 1);
    return !walk->data.is_broken || call_out_of_memory(call);
}

static const struct option_row lb_forget_options[] = {
    {"MATCH", OPTION_READ, 0, player_read_match},
    {"DATA", OPTION_READ, 0, read_data},
    {"ALL", OPTION_FLAG, offsetof(struct player_walk, is_all), NULL},
    {0},
};

const struct command command_lb_forget = {
    .name = "LB.FORGET",
    .syntax = "member [MATCH pattern] [DATA data:pattern] [ALL]",
    .options = lb_forget_options,
    .summary = "Take a member off all boards, and remove its hash; count the boards",
    .complexity = "O(n log m) for n boards of m members, in steps between other commands",
    .flags = COMMAND_WRITE | COMMAND_NO_MULTI,
    .audit = AUDIT_PLAYERS,
    .run = player_run,
    .variant = &(
        const struct player_action){.writes = true, .act = act, .finish = finish, .answer = answer},
};
