/* See reads.h. */
#include "server/sessions/reads.h"

static void reads_on_stale(struct watch_list *list) {
    reads_outdate((struct reads *)list);
}

void reads_begin(struct server *server) {
    server->reads.keys.hash_seed = server->hash_seed;
    server->reads.on_stale = reads_on_stale;
}

void reads_init(struct reads *reads) {
    *reads = (struct reads){.due_ms = REGISTRY_NO_EXPIRY};
}

static void reads_note_due(struct reads *reads, int64_t due_ms) {
    if (due_ms != REGISTRY_NO_EXPIRY &&
        (reads->due_ms == REGISTRY_NO_EXPIRY || due_ms < reads->due_ms)) {
        reads->due_ms = due_ms;
    }
}

void reads_note(struct server *server, struct reads *reads, uint32_t database, struct bytes name) {
    if (reads_are_outdated(reads)) {
        return;
    }
    int64_t now_ms = server->clock.now_ms;
    const struct registry_key *key = registry_peek(server->registry, database, name, now_ms);
    if (key != NULL) {
        reads_note_due(reads, registry_expiry(server->registry, key));
    }
    if (key != NULL && key->kind == REGISTRY_BOARD) {
        const struct board_options *options = registry_options(key);
        bool decays = layout_field_decays(&board_layout(&key->board)->fields[0]);
        if (options->period.unit != PERIOD_NONE) {
            reads_note_due(reads, options->period_end_ms);
        }
        if (decays) {
            reads_note_due(reads, now_ms);
        }
    }
    if (!watch_add(&server->reads, &reads->list, database, name, key != NULL)) {
        reads_outdate(reads);
    }
}

void reads_end(struct server *server, struct reads *reads) {
    watch_clear(&server->reads, &reads->list);
}

void reads_outdate_all(struct server *server) {
    watch_outdate_all(&server->reads);
    server->reads_outdated_count++;
}
