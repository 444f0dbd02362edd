/* What boards of ids have in common, wherever they are. See once_ids.h. */
#include "server/sessions/once_ids.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

/* The same on every server, and after every start. */
uint16_t once_ids_board_owner_named(struct bytes user) {
    return (uint16_t)(1 + XXH3_64bits(user.at, user.size) % UINT16_MAX);
}

void once_ids_board_make_options(struct board_options *options) {
    static const struct layout_field field = {.name = "time_ms", .bits = 64, .is_ascending = true};
    *options = (struct board_options){.cap = 0};
    options->layout.field_count = 1;
    options->layout.fields[0] = field;
    layout_complete(&options->layout);
}

uint32_t once_ids_board_begin_of(const struct registry_key *ids, uint32_t owner) {
    if (owner == 0) {
        return 0;
    }
    return board_count_from(&ids->board, once_ids_key_of((uint16_t)(owner - 1), ONCE_IDS_TIME_MAX));
}

uint64_t once_ids_board_newest(const struct registry_key *ids) {
    uint64_t newest = 0;
    uint32_t count = ids != NULL ? board_count(&ids->board) : 0;
    for (uint32_t at = 0; at < count;) {
        uint16_t owner = once_ids_owner_of(board_at(&ids->board, at).key);
        at = once_ids_board_begin_of(ids, owner + UINT32_C(1));
        uint64_t time = once_ids_time_of(board_at(&ids->board, at - 1).key);
        newest = time > newest ? time : newest;
    }
    return newest;
}

uint32_t once_ids_board_cut_next(struct server *server, struct registry_key *ids, uint32_t owner,
                                 uint64_t now) {
    uint64_t window_ms = (uint64_t)server->settings.once_window_s * 1000;
    uint32_t count = board_count(&ids->board);
    uint32_t begin = once_ids_board_begin_of(ids, owner);
    if (begin == count) {
        return 0;
    }
    uint64_t first = board_at(&ids->board, begin).key;
    uint16_t found = once_ids_owner_of(first);
    if (once_ids_is_young(server, once_ids_time_of(first), now)) {
        return found + UINT32_C(1);
    }
    uint32_t end = board_count_from(&ids->board, once_ids_key_of(found, now - window_ms));
    registry_board_cut(server->registry, ids, begin, end - begin);
    if (end - begin == count) {
        registry_remove(server->registry, ids);
        return 0;
    }
    return found + UINT32_C(1);
}
