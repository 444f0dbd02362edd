/* See archive_name.h. */
#include "skiplist/keyspace/archive_name.h"

size_t archive_print_suffix(const struct period *period, int64_t time_ms, char *out) {
    out[0] = '@';
    return 1 + period_print_name(out + 1, period, time_ms);
}

struct bytes archive_print_name(struct bytes board, const struct period *period, int64_t time_ms,
                                char *out) {
    CHECK(board.size <= REGISTRY_KEY_MAX);
    memcpy(out, board.at, board.size);
    return (struct bytes){
        .at = out, .size = board.size + archive_print_suffix(period, time_ms, out + board.size)};
}

bool archive_find_board(struct bytes name, struct bytes *board) {
    for (size_t size = 1; size < name.size && size <= REGISTRY_SUFFIX_MAX; size++) {
        if (name.at[name.size - size] == '@') {
            *board = (struct bytes){.at = name.at, .size = name.size - size};
            return true;
        }
    }
    return false;
}
