/* Hashes in records. See lb_data.h. */
#include "server/commands/lb/lb_data.h"

#include "server/acl/acl_check.h"
#include "server/commands/window.h"
#include "skiplist/keyspace/archive_name.h"

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

char *lb_data_print_key(struct bytes pattern, struct bytes member, struct bytes board,
                        struct bytes suffix, char *out) {
    const char *mark = lb_data_find_mark(pattern);
    for (const char *each = pattern.at; each < pattern.at + pattern.size; each++) {
        if (*each == '*') {
            out = lb_data_append(out, member);
        } else if (each == mark) {
            out = lb_data_append(lb_data_append(out, board), suffix);
            each++;
        } else {
            *out++ = *each;
        }
    }
    return out;
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
    bool has_window = has_period && options->window.count > 0;
    if (has_window) {
        window_find_shown(call->registry, key, members, keys, count, call->now_ms, starts_ms);
    }
    for (unsigned i = 0; i < count; i++) {
        struct bytes *suffix = &periods->suffixes[i];
        *suffix = (struct bytes){.at = periods->texts[i], .size = 0};
        if (has_period) {
            int64_t start_ms = has_window ? starts_ms[i] : options->period_start_ms;
            suffix->size = archive_name_print_suffix(&options->period, start_ms, periods->texts[i]);
        }
    }
}

uint64_t lb_data_work(const struct cost_view *view, const struct lb_data *data, uint64_t count) {
    if (!lb_data_is_asked(data)) {
        return count;
    }
    const struct registry_key *key = lb_data_names_period(data->pattern) ? cost_key(view, 1) : NULL;
    uint64_t period_count =
        key != NULL && key->kind == REGISTRY_BOARD ? registry_options(key)->window.count : 0;
    return count * (1 + LB_DATA_RECORDS + period_count / 2);
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

static void lb_data_reply_fields(struct reply *reply, const struct option_values *fields,
                                 const struct hash *hash) {
    struct bytes value;
    reply_array(reply, fields->count);
    for (uint32_t i = 0; i < fields->count && !reply_is_lost(reply); i++) {
        if (hash_find(hash, fields->at[i], &value)) {
            reply_bulk(reply, value);
        } else {
            reply_null(reply);
        }
    }
}

void lb_data_reply(struct reply *reply, const struct lb_data *data, const struct hash *hash) {
    if (hash == NULL) {
        reply_null_array(reply);
    } else if (data->fields.at != NULL) {
        lb_data_reply_fields(reply, &data->fields, hash);
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
