/* What boards of ids have in common, wherever they are. See once_ids.h. */
#include "server/clients/once_ids.h"

void once_ids_make_rules(struct rules *rules) {
    static const struct layout_field field = {.name = "time_ms", .bits = 64, .is_ascending = true};
    *rules = (struct rules){.cap = 0};
    rules->layout.field_count = 1;
    rules->layout.fields[0] = field;
    layout_complete(&rules->layout);
}

uint64_t once_ids_newest(const struct registry_key *ids) {
    uint32_t count = ids != NULL ? board_count(&ids->board) : 0;
    return count > 0 ? once_ids_time_of(board_at(&ids->board, count - 1).key) : 0;
}

void once_ids_cut(struct server *server, struct registry_key *ids, uint64_t now) {
    uint64_t window_ms = (uint64_t)server->settings.once_window_s * 1000;
    uint32_t count = board_count(&ids->board);
    if (count == 0 ||
        once_ids_is_young(server, once_ids_time_of(board_at(&ids->board, 0).key), now)) {
        return;
    }
    uint32_t old = board_count_from(&ids->board, once_ids_key_of(now - window_ms));
    registry_remove_range(server->registry, ids, 0, old);
    if (old == count) {
        registry_remove(server->registry, ids);
    }
}
