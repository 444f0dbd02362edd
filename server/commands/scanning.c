/* Scans in steps. See keyspace.h. */
#include "server/commands/keyspace.h"

void scanning_begin(struct scanning *scanning, const struct call *call, struct glob *glob) {
    *scanning = (struct scanning){.glob = glob, .count = SCANNING_COUNT};
    buffer_init(&scanning->text, 0);
    reply_init(&scanning->found, &scanning->text, call->reply->version);
}

void scanning_end(struct scanning *scanning, const struct call *call, uint64_t cursor) {
    const struct buffer *text = &scanning->text;
    if (text->is_broken) {
        call_out_of_memory(call);
    } else {
        reply_array(call->reply, 2);
        reply_bulk_format(call->reply, "%llu", (unsigned long long)cursor);
        reply_array(call->reply, scanning->found_count);
        if (!call->reply->is_silent && text->size > 0) {
            buffer_append(call->reply->out, text->at, text->size);
        }
    }
    buffer_deinit(&scanning->text);
}

bool scanning_read_pattern(const struct call *call, uint32_t index, void *target) {
    struct scanning *scanning = target;
    scanning->has_pattern = true;
    scanning->pattern = call_arg(call, index);
    return call_prepare_glob(call, call_arg(call, index), scanning->glob);
}

bool scanning_check_count(const struct call *call, uint32_t index, void *target) {
    return ((struct scanning *)target)->count >= 1 ||
           call_refuse_word(call, call_arg(call, index), "is not a count of 1 or more",
                            "ERR syntax error");
}

struct scan_limits scanning_limits(const struct scanning *scanning) {
    return (struct scan_limits){
        .count = scanning->count < UINT32_MAX ? (uint32_t)scanning->count : UINT32_MAX,
        .work_max = COMMAND_SCAN_WORK_MAX,
        .byte_work = scanning->has_pattern ? glob_byte_work(scanning->glob) : 0,
    };
}

uint64_t scanning_keys(const struct scanning *scanning, const struct call *call, uint64_t cursor,
                       uint32_t count_max, registry_visit *visit, void *context) {
    struct scan_limits limits = scanning_limits(scanning);
    limits.count = limits.count < count_max ? limits.count : count_max;
    return keyspace_scan(call, cursor, &limits, visit, context);
}
