/* Puts members and applies the board's rules. See writing.h. */
#include "server/commands/writing.h"

#include "server/clients/session.h"
#include "server/commands/zset/zset.h"

bool writing_begin(const struct call *call, struct bytes name, struct writing *writing) {
    *writing = (struct writing){.call = call};
    if (!zset_check_key(call, name)) {
        return false;
    }
    writing->key = registry_find_or_create(call->registry, call->session->database, name,
                                           call->now_ms, &writing->is_new);
    if (writing->key == NULL) {
        return call_out_of_memory(call);
    }
    writing->board = &writing->key->board;
    writing->rules = registry_rules(writing->key);
    return true;
}

/* Would a new member with this key rank below the cap? */
static bool is_pushed_out(const struct writing *writing, uint64_t key) {
    uint32_t count = board_count(writing->board);
    if (count < writing->rules->cap) {
        return false;
    }
    uint64_t last_key = board_at(writing->board, count - 1).key;
    const struct layout_time *time = &writing->rules->layout.time;
    /* A new member ranks after its equals; with LATEST, before them. */
    return time->bits > 0 && time->is_latest ? key < last_key : key <= last_key;
}

void writing_refuse_full(const struct call *call) {
    reply_error_format(call->reply, "ERR board is full: at most %u members",
                       (unsigned)BOARD_MEMBERS_MAX);
}

enum writing_status writing_put(struct writing *writing, const struct board_member *member,
                                uint64_t key, bool is_increment) {
    if (!writing_takes(writing, member, key, is_increment)) {
        return WRITING_LEFT;
    }
    if (writing->rules->cap > 0 && writing->is_only && !member->is_there &&
        is_pushed_out(writing, key)) {
        return WRITING_PUSHED_OUT;
    }
    switch (registry_put_member(writing->call->registry, writing->key, member, key)) {
    case BOARD_OK:
        writing->is_changed = true;
        return WRITING_PUT;
    case BOARD_FULL:
        writing_refuse_full(writing->call);
        return WRITING_FAILED;
    case BOARD_OUT_OF_MEMORY:
        break;
    }
    call_out_of_memory(writing->call);
    return WRITING_FAILED;
}

void writing_cut(struct writing *writing) {
    uint32_t cap = writing->rules->cap;
    uint32_t count = board_count(writing->board);
    if (count > cap) {
        registry_remove_range(writing->call->registry, writing->key, cap, count - cap);
        writing->has_lost = true;
    }
}
