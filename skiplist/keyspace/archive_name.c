/* See archive_name.h. */
#include "skiplist/keyspace/archive_name.h"

size_t archive_name_print_suffix(const struct period *period, int64_t time_ms, char *out) {
    out[0] = '@';
    return 1 + period_print_name(out + 1, period, time_ms);
}

struct bytes archive_name_print(struct bytes board, const struct period *period, int64_t time_ms,
                                char *out) {
    CHECK(board.size <= REGISTRY_KEY_MAX);
    memcpy(out, board.at, board.size);
    return (struct bytes){.at = out,
                          .size = board.size +
                                  archive_name_print_suffix(period, time_ms, out + board.size)};
}

/* ---- reading ---- */

/* Take so many digits, or more where the number is open. */
static bool archive_name_take_digits(struct bytes *text, size_t least, size_t most) {
    size_t count = 0;
    while (count < text->size && count < most && text->at[count] >= '0' && text->at[count] <= '9') {
        count++;
    }
    *text = bytes_behind(*text, count);
    return count >= least;
}

static bool archive_name_take(struct bytes *text, char character) {
    bool is_there = text->size > 0 && text->at[0] == character;
    *text = is_there ? bytes_behind(*text, 1) : *text;
    return is_there;
}

/* What is behind the '@' is "2026-11-16", "2026-11-16T05", each perhaps with a number behind it, as
 * archive_name_print_suffix and registry_roll.c write it. */
bool archive_name_find_board(struct bytes name, struct bytes *board) {
    for (size_t size = 1; size < name.size && size <= REGISTRY_SUFFIX_MAX; size++) {
        struct bytes before = {.at = name.at, .size = name.size - size};
        struct bytes text = bytes_behind(name, before.size + 1);
        if (name.at[before.size] != '@') {
            continue;
        }
        (void)archive_name_take(&text, '-');
        if (archive_name_take_digits(&text, 4, 6) && archive_name_take(&text, '-') &&
            archive_name_take_digits(&text, 2, 2) && archive_name_take(&text, '-') &&
            archive_name_take_digits(&text, 2, 2) &&
            (!archive_name_take(&text, 'T') || archive_name_take_digits(&text, 2, 2)) &&
            (!archive_name_take(&text, '.') || archive_name_take_digits(&text, 1, 10)) &&
            text.size == 0) {
            *board = before;
            return true;
        }
    }
    return false;
}
