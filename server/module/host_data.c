/* DATA of records, in the place of server/commands/lb/lb_data.c: hashes are the host's, and in a
 * cluster in other slots, so a command on a board cannot read them. */
#include "server/commands/lb/lb_data.h"

bool lb_data_check_pattern(const struct call *call, uint32_t index, void *target) {
    (void)index;
    (void)target;
    return call_refuse(call, "ERR DATA is not available in the module: the hashes are the host's, "
                             "read them with HMGET");
}

bool lb_data_find(const struct call *call, const struct lb_data *data, const struct bytes *members,
                  unsigned count, const struct hash **hashes) {
    (void)call;
    (void)data;
    (void)members;
    memset(hashes, 0, count * sizeof(const struct hash *));
    return true;
}

void lb_data_reply(struct reply *reply, const struct lb_data *data, const struct hash *hash) {
    (void)data;
    (void)hash;
    reply_null_array(reply);
}
