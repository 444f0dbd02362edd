/* HSCAN: all fields of a hash, in steps. A field that stays in the hash during the whole scan is
 * returned at least once, whatever else changes. */
#include "server/commands/scanning.h"
#include "server/dispatch/command.h"

static const struct option_row hscan_options[] = {SCANNING_OPTIONS, {0}};

static void hash_scan_visit(void *context, const struct hash_pair *pair) {
    struct scanning *scanning = context;
    if (scanning_takes(scanning, pair->field)) {
        reply_bulk(&scanning->found, pair->field);
        reply_bulk(&scanning->found, pair->value);
        scanning->found_count += 2;
    }
}

static void hscan_run(struct call *call) {
    struct glob glob;
    struct scanning scanning;
    uint64_t cursor;
    const struct hash *hash;
    scanning_begin(&scanning, call, &glob);
    if (!call_parse_cursor(call, call_arg(call, 2), &cursor) ||
        !call_find_hash(call, call_arg(call, 1), &hash) ||
        (hash != NULL && !options_read(call, 3, &scanning))) {
        return;
    }
    struct scan_limits limits = scanning_limits(&scanning);
    cursor = hash != NULL ? hash_scan(hash, cursor, &limits, hash_scan_visit, &scanning) : 0;
    scanning_end(&scanning, call, cursor);
}

const struct command command_hscan = {
    .name = "HSCAN",
    .syntax = "key cursor:integer [MATCH pattern] [COUNT count:integer]",
    .options = hscan_options,
    .summary = "Walk over all fields of a hash in small steps, in no order; COUNT is a hint",
    .complexity = "O(COUNT) for a step, half a millisecond at the most; O(n) for the whole hash",
    .flags = COMMAND_READ,
    .run = hscan_run,
};
