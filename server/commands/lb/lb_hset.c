/* The option HSET, and the names of its hashes. See lb_hset.h. */
#include "server/commands/lb/lb_hset.h"

#include "server/acl/acl_check.h"
#include "server/acl/player.h"
#include "server/commands/lb/lb_data.h"
#include "skiplist/keyspace/archive_name.h"
#include "skiplist/keyspace/registry.h"

enum { NAME_ON_STACK = 512 };

bool lb_hset_read(const struct call *call, uint32_t index, struct lb_hset *hset) {
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

static size_t lb_hset_count_of(struct bytes pattern, char character) {
    size_t count = 0;
    for (size_t i = 0; i < pattern.size; i++) {
        count += pattern.at[i] == character;
    }
    return count;
}

bool lb_hset_names_board(const struct lb_hset *hset) {
    return lb_hset_count_of(hset->pattern, '%') > 0;
}

bool lb_hset_names_period(const struct lb_hset *hset) {
    return lb_data_names_period(hset->pattern);
}

bool lb_hset_check(const struct call *call, const struct lb_hset *hset, uint64_t times) {
    uint64_t size = 0;
    if (!lb_hset_is_asked(hset)) {
        return true;
    }
    if (lb_hset_count_of(hset->pattern, '*') != 1 || lb_hset_count_of(hset->pattern, '%') > 1) {
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

/* The hash's key. Returns its end. */
static char *lb_hset_print_name(const struct lb_hset *hset, struct bytes board, struct bytes suffix,
                                struct bytes member, char *out) {
    for (size_t i = 0; i < hset->pattern.size; i++) {
        const char *each = &hset->pattern.at[i];
        struct bytes text = *each == '*'   ? member
                            : *each == '%' ? board
                                           : (struct bytes){.at = each, .size = 1};
        memcpy(out, text.at, text.size);
        out += text.size;
        if (*each == '%' && i + 1 < hset->pattern.size && hset->pattern.at[i + 1] == '@') {
            memcpy(out, suffix.at, suffix.size);
            out += suffix.size;
            i++;
        }
    }
    return out;
}

bool lb_hset_begin(const struct call *call, const struct lb_hset *hset,
                   const struct registry_key *board, struct bytes member,
                   struct lb_hset_place *place) {
    char on_stack[NAME_ON_STACK];
    char suffix[REGISTRY_SUFFIX_MAX];
    struct bytes base = registry_name(board);
    struct bytes behind = {.at = suffix, .size = 0};
    const struct board_options *options = registry_options(board);
    if (lb_hset_names_period(hset) && options->period.unit != PERIOD_NONE) {
        behind.size = archive_name_print_suffix(&options->period, options->period_start_ms, suffix);
        int64_t end_ms = board_options_archive_end_ms(options);
        if (place != NULL && end_ms != INT64_MAX && !options->settles) {
            place->expire_at_ms = end_ms;
        }
    }
    size_t size = hset->pattern.size + base.size + behind.size + member.size;
    if (lb_hset_names_board(hset) &&
        (memchr(base.at, '*', base.size) != NULL ||
         (!lb_hset_names_period(hset) && memmem(base.at, base.size, "%@", 2) != NULL))) {
        return call_refuse(call, "ERR HSET takes no % for a board with a * or %@ in its name: DATA "
                                 "could not name the hash");
    }
    char *at = size <= sizeof on_stack ? on_stack : memory_allocate(size);
    if (at == NULL) {
        return call_out_of_memory(call);
    }
    const char *end = lb_hset_print_name(hset, base, behind, member, at);
    const struct bytes name = {.at = at, .size = (size_t)(end - at)};
    bool is_open = call_check_key(call, name) && acl_check_made_key(call, name, base, ACL_WRITE) &&
                   player_may_write_hash(call, name) &&
                   (place == NULL || lb_hset_open(call, hset, name, place));
    if (at != on_stack) {
        memory_free(at);
    }
    return is_open;
}
