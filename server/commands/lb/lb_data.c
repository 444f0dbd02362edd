/* DATA and HSET, but for the keys themselves. See lb_data.h. */
#include "server/commands/lb/lb_data.h"

#include "server/acl/acl_check.h"
#include "server/acl/player.h"
#include "server/commands/window.h"
#include "skiplist/keyspace/registry.h"

bool lb_data_check_star(const struct call *call, struct bytes pattern) {
    const char *star = pattern.size > 0 ? memchr(pattern.at, '*', pattern.size) : NULL;
    if (star == NULL) {
        return call_refuse(call, "ERR DATA needs a key with a * where the member goes");
    }
    size_t left = pattern.size - (size_t)(star + 1 - pattern.at);
    return memchr(star + 1, '*', left) == NULL ||
           call_refuse(call, "ERR DATA takes one *, which stands for the member: it names one key "
                             "of each member, not all keys that match");
}

/* Where %@ is; NULL: nowhere. */
static const char *lb_data_find_mark(struct bytes pattern) {
    bool may_be_there = pattern.size > 0 && memchr(pattern.at, '%', pattern.size) != NULL;
    return may_be_there ? memmem(pattern.at, pattern.size, "%@", 2) : NULL;
}

bool lb_data_names_period(struct bytes pattern) {
    return lb_data_find_mark(pattern) != NULL;
}

/* The right to all keys that the pattern names with this behind the board's name. */
static bool lb_data_may_read(const struct call *call, struct bytes pattern, const char *suffix) {
    struct bytes board = call_arg(call, 1);
    struct bytes behind = bytes_from_text(suffix);
    struct bytes star = {.at = "*", .size = 1};
    char *text = memory_allocate(lb_data_key_size(pattern, star, board, behind));
    if (text == NULL) {
        return call_out_of_memory(call);
    }
    const char *end = lb_data_print_key(pattern, star, board, behind, text);
    struct bytes all = {.at = text, .size = (size_t)(end - text)};
    bool may = acl_check_pattern(call, all, true, ACL_READ);
    memory_free(text);
    return may;
}

bool lb_data_check_pattern(const struct call *call, uint32_t index, void *target) {
    (void)target;
    struct bytes pattern = call_arg(call, index);
    if (!lb_data_check_star(call, pattern)) {
        return false;
    }
    if (pattern.size > REGISTRY_KEY_MAX) {
        return call_refuse(call, "ERR DATA needs a key with a * where the member goes");
    }
    const char *mark = lb_data_find_mark(pattern);
    if (mark == NULL) {
        return acl_check_pattern(call, pattern, true, ACL_READ);
    }
    if (lb_data_names_period(bytes_behind(pattern, (size_t)(mark + 2 - pattern.at)))) {
        return call_refuse(call, "ERR DATA takes one %@, which stands for the board's period");
    }
    return lb_data_may_read(call, pattern, "") && lb_data_may_read(call, pattern, "@*");
}

/* ---- keys ---- */

static char *lb_data_append(char *out, struct bytes text) {
    memcpy(out, text.at, text.size);
    return out + text.size;
}

/* mark: of the board's name, and of what is behind it if an @ follows; NULL: there is none. */
static char *lb_data_print(struct bytes pattern, const char *mark, struct bytes member,
                           struct bytes board, struct bytes suffix, char *out) {
    const char *end = pattern.at + pattern.size;
    for (const char *each = pattern.at; each < end; each++) {
        if (*each == '*') {
            out = lb_data_append(out, member);
        } else if (each != mark) {
            *out++ = *each;
        } else {
            out = lb_data_append(out, board);
            if (each + 1 < end && each[1] == '@') {
                out = lb_data_append(out, suffix);
                each++;
            }
        }
    }
    return out;
}

char *lb_data_print_key(struct bytes pattern, struct bytes member, struct bytes board,
                        struct bytes suffix, char *out) {
    return lb_data_print(pattern, lb_data_find_mark(pattern), member, board, suffix, out);
}

void lb_data_find_periods(const struct call *call, const struct bytes *members,
                          const uint64_t *keys, unsigned count, struct lb_data_periods *periods) {
    int64_t starts_ms[LB_DATA_GROUP];
    periods->board = call_arg(call, 1);
    const struct registry_key *key =
        registry_peek(call->registry, call->session->database, periods->board, call->now_ms);
    const struct board_options *options =
        key != NULL && key->kind == REGISTRY_BOARD ? registry_options(key) : NULL;
    bool has_period = options != NULL && options->period.unit != PERIOD_NONE;
    if (has_period) {
        window_find_shown(call->registry, key, members, keys, count, call->now_ms, starts_ms);
    }
    for (unsigned i = 0; i < count; i++) {
        struct bytes *suffix = &periods->suffixes[i];
        *suffix = (struct bytes){.at = periods->texts[i], .size = 0};
        if (has_period) {
            suffix->size =
                registry_roll_archive_suffix(&options->period, starts_ms[i], periods->texts[i]);
        }
    }
}

uint64_t lb_data_work(const struct cost_view *view, const struct lb_data *data, uint64_t count) {
    if (!lb_data_is_asked(data)) {
        return count;
    }
    uint64_t share_count = lb_data_names_period(data->pattern) ? cost_count_shares(view) : 0;
    return count * (1 + LB_DATA_RECORDS + share_count / 2);
}

bool lb_data_is_named(struct session_names *names, const struct hash *hash) {
    struct bytes name;
    struct bytes prefix = names->prefix;
    if (names->left == 0 || hash == NULL || !hash_find(hash, names->field, &name)) {
        return false;
    }
    name.size = name.size < LB_DATA_NAME_MAX ? name.size : LB_DATA_NAME_MAX;
    for (struct bytes word = name; word.size >= prefix.size;) {
        struct bytes begin = {.at = word.at, .size = prefix.size};
        if (prefix.size == 0 || (bytes_lower(word.at[0]) == bytes_lower(prefix.at[0]) &&
                                 bytes_equal_ignoring_case(begin, prefix))) {
            names->left--;
            return true;
        }
        const char *blank = memchr(word.at, ' ', word.size);
        if (blank == NULL) {
            return false;
        }
        word = bytes_behind(word, (size_t)(blank + 1 - word.at));
    }
    return false;
}

/* ---- replies ---- */

void lb_data_reply(struct reply *reply, const struct lb_data *data, const struct hash *hash) {
    if (hash == NULL) {
        reply_null_array(reply);
    } else if (data->fields.at != NULL) {
        struct bytes value;
        reply_array(reply, data->fields.count);
        for (uint32_t i = 0; i < data->fields.count && !reply_is_lost(reply); i++) {
            if (hash_find(hash, data->fields.at[i], &value)) {
                reply_bulk(reply, value);
            } else {
                reply_null(reply);
            }
        }
    } else {
        struct hash_cursor cursor = hash_begin(hash);
        struct hash_pair pair;
        reply_map(reply, hash_count(hash));
        while (!reply_is_lost(reply) && hash_next(&cursor, &pair)) {
            reply_bulk(reply, pair.field);
            reply_bulk(reply, pair.value);
        }
    }
}

/* ---- HSET ---- */

enum { NAME_ON_STACK = 512 };

bool lb_data_hset_read(const struct call *call, uint32_t index, struct lb_hset *hset) {
    const struct bytes *args = &call->request->args[index];
    int64_t count;
    if (!call_parse_integer(call, args[1], &count)) {
        return false;
    }
    if (count < 1 || count > LB_HSET_FIELDS_MAX) {
        return call_refuse_reason(call, "HSET takes 1 to 1024 fields");
    }
    *hset = (struct lb_hset){.pattern = args[0], .args = args + 2, .count = (uint32_t)count};
    return (uint64_t)count * 2 <= call->request->count - index - 2 || call_syntax_error(call);
}

static size_t lb_data_count_of(struct bytes pattern, char character) {
    size_t count = 0;
    for (size_t i = 0; i < pattern.size; i++) {
        count += pattern.at[i] == character;
    }
    return count;
}

bool lb_data_hset_names_board(const struct lb_hset *hset) {
    return lb_data_count_of(hset->pattern, '%') > 0;
}

bool lb_data_hset_names_period(const struct lb_hset *hset) {
    return lb_data_names_period(hset->pattern);
}

bool lb_data_hset_check(const struct call *call, const struct lb_hset *hset, uint64_t times) {
    uint64_t size = 0;
    if (!lb_data_hset_is_asked(hset)) {
        return true;
    }
    if (lb_data_count_of(hset->pattern, '*') != 1 || lb_data_count_of(hset->pattern, '%') > 1) {
        return call_refuse(call,
                           "ERR HSET needs a key with one * where the member goes, and at most "
                           "one % where the board's name goes");
    }
    if (!player_may_name_hashes(call, hset->pattern)) {
        return false;
    }
    for (uint32_t i = 0; i < 2 * hset->count; i++) {
        size += hset->args[i].size;
    }
    if (times * hset->count > LB_HSET_FIELDS_MAX || times * size > LB_HSET_SIZE_MAX) {
        return call_refuse_format(call,
                                  "ERR HSET takes %d fields and %d bytes of all members together",
                                  (int)LB_HSET_FIELDS_MAX, (int)LB_HSET_SIZE_MAX);
    }
    return true;
}

bool lb_data_hset_begin(const struct call *call, const struct lb_hset *hset,
                        const struct registry_key *board, struct bytes member,
                        struct lb_hset_place *place) {
    char on_stack[NAME_ON_STACK];
    char suffix[REGISTRY_SUFFIX_MAX];
    struct bytes base = registry_name(board);
    struct bytes behind = {.at = suffix, .size = 0};
    const struct board_options *options = registry_options(board);
    if (lb_data_hset_names_period(hset) && options->period.unit != PERIOD_NONE) {
        behind.size =
            registry_roll_archive_suffix(&options->period, options->period_start_ms, suffix);
        int64_t end_ms = board_options_archive_end_ms(options);
        if (place != NULL && end_ms != INT64_MAX && !options->settles) {
            place->expire_at_ms = end_ms;
        }
    }
    size_t size = hset->pattern.size + base.size + behind.size + member.size;
    if (lb_data_hset_names_board(hset) &&
        (memchr(base.at, '*', base.size) != NULL ||
         (!lb_data_hset_names_period(hset) && memmem(base.at, base.size, "%@", 2) != NULL))) {
        return call_refuse(call, "ERR HSET takes no % for a board with a * or %@ in its name: DATA "
                                 "could not name the hash");
    }
    char *at = size <= sizeof on_stack ? on_stack : memory_allocate(size);
    if (at == NULL) {
        return call_out_of_memory(call);
    }
    const char *mark = memchr(hset->pattern.at, '%', hset->pattern.size);
    const char *end = lb_data_print(hset->pattern, mark, member, base, behind, at);
    const struct bytes name = {.at = at, .size = (size_t)(end - at)};
    bool is_open = call_check_key(call, name) && acl_check_made_key(call, name, base, ACL_WRITE) &&
                   player_may_write_hash(call, name) &&
                   (place == NULL || lb_data_keys_open(call, hset, name, place));
    if (at != on_stack) {
        memory_free(at);
    }
    return is_open;
}
