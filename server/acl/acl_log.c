/* A list of entries, the newest first. See acl_log.h. */
#include "server/acl/acl_log.h"

#include "codec/memory.h"

enum { SAME_WITHIN_MS = 60000, COMPARED_MAX = 10 };

static void acl_log_cut(struct acl_log *log, uint32_t length_max) {
    struct acl_log_entry **end = &log->first;
    uint32_t kept = 0;
    for (; *end != NULL && kept < length_max; end = &(*end)->next) {
        kept++;
    }
    struct acl_log_entry *rest = *end;
    *end = NULL;
    log->count = kept;
    while (rest != NULL) {
        struct acl_log_entry *next = rest->next;
        memory_free((char *)(uintptr_t)rest->client.at);
        memory_free(rest);
        rest = next;
    }
}

void acl_log_clear(struct acl_log *log) {
    acl_log_cut(log, 0);
}

static struct bytes acl_log_shorten(struct bytes text) {
    text.size = text.size < ACL_LOG_TEXT_MAX ? text.size : ACL_LOG_TEXT_MAX;
    return text;
}

/* Unlink the entry that this is a repetition of. NULL: there is none. */
static struct acl_log_entry *acl_log_take_same(struct acl_log *log, const char *reason,
                                               const char *context, struct bytes object,
                                               struct bytes user, int64_t now_ms) {
    struct acl_log_entry **at = &log->first;
    for (int i = 0; i < COMPARED_MAX && *at != NULL; i++, at = &(*at)->next) {
        struct acl_log_entry *entry = *at;
        if (strcmp(entry->reason, reason) == 0 && strcmp(entry->context, context) == 0 &&
            now_ms - entry->time_ms <= SAME_WITHIN_MS && bytes_equal(entry->object, object) &&
            bytes_equal(entry->user, user)) {
            *at = entry->next;
            log->count--;
            return entry;
        }
    }
    return NULL;
}

void acl_log_add(struct acl_log *log, uint32_t length_max, const char *reason, const char *context,
                 struct bytes object, struct bytes user, struct bytes client, int64_t now_ms) {
    log->denied_auth += strcmp(reason, "auth") == 0;
    log->denied_command += strcmp(reason, "command") == 0;
    log->denied_key += strcmp(reason, "key") == 0;
    log->denied_channel += strcmp(reason, "channel") == 0;
    object = acl_log_shorten(object);
    user = acl_log_shorten(user);
    char *line = memory_allocate(client.size + 1);
    struct acl_log_entry *entry =
        line != NULL ? acl_log_take_same(log, reason, context, object, user, now_ms) : NULL;
    if (entry == NULL && line != NULL) {
        entry = memory_allocate_zeroed(sizeof *entry + object.size + user.size);
        if (entry != NULL) {
            memcpy(entry->texts, object.size > 0 ? object.at : "", object.size);
            memcpy(entry->texts + object.size, user.size > 0 ? user.at : "", user.size);
            entry->object = (struct bytes){.at = entry->texts, .size = object.size};
            entry->user = (struct bytes){.at = entry->texts + object.size, .size = user.size};
        }
        if (entry != NULL) {
            entry->id = log->next_id++;
            entry->first_time_ms = now_ms;
        }
    }
    if (entry == NULL) {
        memory_free(line);
        return;
    }
    memcpy(line, client.size > 0 ? client.at : "", client.size);
    memory_free((char *)(uintptr_t)entry->client.at);
    entry->client = (struct bytes){.at = line, .size = client.size};
    entry->reason = reason;
    entry->context = context;
    entry->time_ms = now_ms;
    entry->count++;
    entry->next = log->first;
    log->first = entry;
    log->count++;
    acl_log_cut(log, length_max);
}
