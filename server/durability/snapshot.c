/* Writing a snapshot. See snapshot.h for an overview.
 *
 * Invariant: while the worker is busy it owns writing, file, journal, error and what (and footer,
 * new_state and the store during the last job). */
#include "server/durability/snapshot.h"

#include <errno.h>

#include "server/system/clock.h"
#include "server/system/log.h"
#include "skiplist/keyspace/effect.h"

enum {
    STEP_ENTRIES = EFFECT_ENTRIES_MAX, /* per piece: the loader fills leaves with as many */
#ifdef SERVER_TINY
    CHUNK_END = 200,
    RECORD_SIZE = 50,
    BUFFER_SIZE = 512,
    AHEAD_MAX = 2000,
    FILLING_MAX = 4000,
    STREAM_FILLING_MAX = 8000,
#else
    CHUNK_END = 896 * 1024,  /* a longer chunk is closed */
    RECORD_SIZE = 32 * 1024, /* of members in a record, or a single larger one */
    BUFFER_SIZE = 5 * 1024 * 1024,
    AHEAD_MAX = 4 * 1024 * 1024,    /* walked but not yet taken by the thread; < BUFFER_SIZE */
    FILLING_MAX = 16 * 1024 * 1024, /* including effects */
    STREAM_FILLING_MAX = 48 * 1024 * 1024,
#endif
    KEPT_MAX = 8 * 1024 * 1024,
};

/* ---- chunks ---- */

static void snapshot_begin_chunk(struct snapshot *snapshot) {
    snapshot->chunk_at = snapshot->filling.size;
    effect_bytes_encode_begin(&snapshot->encoder, &snapshot->filling);
}

static void snapshot_close_chunk(struct snapshot *snapshot) {
    size_t size = snapshot->filling.size - snapshot->chunk_at;
    if (size > 0) {
        snapshot->chunk_sizes[snapshot->chunk_count++] = (uint32_t)size;
        snapshot_begin_chunk(snapshot);
    }
}

/* Called after each record. */
static void snapshot_check_chunk(struct snapshot *snapshot) {
    if (snapshot->filling.size - snapshot->chunk_at >= CHUNK_END &&
        snapshot->chunk_count < SNAPSHOT_CHUNKS_MAX - 1) {
        snapshot_close_chunk(snapshot);
    }
    if (snapshot->filling.is_broken) {
        snapshot->is_failed = true;
    }
}

/* ---- the thread's jobs ---- */

static bool snapshot_fail(struct snapshot *snapshot, const char *what) {
    snapshot->error = errno;
    snapshot->what = what;
    return false;
}

static void snapshot_run_begin(void *context) {
    struct snapshot *snapshot = context;
    if (snapshot->is_streamed) {
        if (!snapshot_file_writer_open_pipe(&snapshot->file, snapshot->file.fd,
                                            snapshot->created_ms)) {
            (void)snapshot_fail(snapshot, "cannot write");
        }
    } else if (!store_begin(snapshot->store)) {
        (void)snapshot_fail(snapshot, "cannot make a manifest");
    } else if (!snapshot_file_writer_open(&snapshot->file, snapshot->store->directory,
                                          store_name(STORE_BASE, snapshot->number).text,
                                          snapshot->created_ms)) {
        (void)snapshot_fail(snapshot, "cannot make its file");
    }
}

static bool snapshot_write_chunks(struct snapshot *snapshot) {
    const char *at = snapshot->writing.at;
    for (uint32_t i = 0; i < snapshot->writing_count; i++) {
        if (!snapshot_file_writer_block(&snapshot->file, at, snapshot->writing_sizes[i])) {
            return snapshot_fail(snapshot, "cannot write");
        }
        at += snapshot->writing_sizes[i];
    }
    return true;
}

static void snapshot_run_write(void *context) {
    (void)snapshot_write_chunks(context);
}

static void snapshot_run_end(void *context) {
    struct snapshot *snapshot = context;
    if (!snapshot_write_chunks(snapshot)) {
        return;
    }
    if (!snapshot_file_writer_finish(&snapshot->file, &snapshot->footer)) {
        (void)snapshot_fail(snapshot, "cannot write");
        return;
    }
    if (snapshot->is_streamed) {
        return;
    }
    bool makes_journal = snapshot->journal_after == SNAPSHOT_MAKES_JOURNAL;
    enum store_set_status status = store_adopt(snapshot->store, &snapshot->new_state,
                                               makes_journal ? &snapshot->journal : NULL);
    snapshot->is_kept |= status == STORE_SET_UNKNOWN;
    if (status != STORE_SET) {
        (void)snapshot_fail(snapshot, makes_journal && snapshot->journal.fd < 0
                                          ? "cannot make a journal"
                                          : "cannot change the manifest");
    }
}

/* ---- the loop's side ---- */

static void snapshot_hand_over(struct snapshot *snapshot, worker_run *run) {
    struct buffer spare = snapshot->writing;
    snapshot->writing = snapshot->filling;
    snapshot->filling = spare;
    snapshot->writing_count = snapshot->chunk_count;
    memcpy(snapshot->writing_sizes, snapshot->chunk_sizes,
           snapshot->chunk_count * sizeof snapshot->chunk_sizes[0]);
    snapshot->chunk_count = 0;
    snapshot->walked_size = 0;
    snapshot_begin_chunk(snapshot);
    worker_start(&snapshot->worker, run);
}

static void snapshot_close_files(struct snapshot *snapshot) {
    snapshot_file_writer_close(&snapshot->file);
    snapshot->file.fd = -1;
    buffer_deinit(&snapshot->filling);
    buffer_deinit(&snapshot->writing);
}

/* Give the thread its next job, if it is free. */
static void snapshot_go_on(struct snapshot *snapshot) {
    if (snapshot->worker.is_busy || snapshot->is_failed) {
        return;
    }
    if (snapshot->state == SNAPSHOT_ENDS) {
        snapshot_close_chunk(snapshot);
        if (!snapshot->is_streamed) {
            /* Compute the manifest's state that will include the file. */
            struct store *store = snapshot->store;
            struct store_state *state = &snapshot->new_state;
            *state = (struct store_state){.base_number = snapshot->number,
                                          .base_sequence = snapshot->footer.sequence};
            if (snapshot->journal_after == SNAPSHOT_MAKES_JOURNAL) {
                snapshot->journal_number = store_take_number(store);
                state->journals[state->journal_count++] =
                    (struct store_journal){.number = snapshot->journal_number,
                                           .first_sequence = snapshot->footer.sequence + 1};
            } else if (snapshot->journal_after == SNAPSHOT_KEEPS_JOURNAL) {
                state->journals[state->journal_count++] =
                    store->state.journals[store->state.journal_count - 1];
            }
        }
        snapshot_hand_over(snapshot, snapshot_run_end);
    } else if (snapshot->state == SNAPSHOT_WALKS && snapshot->chunk_count > 0) {
        /* Hand over whole chunks only: records that follow open a new one. */
        snapshot_close_chunk(snapshot);
        snapshot_hand_over(snapshot, snapshot_run_write);
    }
}

static void snapshot_on_done(void *context) {
    struct snapshot *snapshot = context;
    buffer_clear(&snapshot->writing);
    if (snapshot->writing.capacity > KEPT_MAX) {
        buffer_deinit(&snapshot->writing);
    }
    if (snapshot->what != NULL) {
        snapshot->is_failed = true;
    } else if (snapshot->worker.run == snapshot_run_end) {
        snapshot->state = SNAPSHOT_ADOPTED;
    }
    snapshot_go_on(snapshot);
    if (snapshot->is_failed || snapshot->state == SNAPSHOT_ADOPTED) {
        snapshot->changed(snapshot->context);
    }
}

bool snapshot_init(struct snapshot *snapshot, uv_loop_t *loop) {
    snapshot->file.fd = -1;
    snapshot->journal.fd = -1;
    buffer_init(&snapshot->filling, 0);
    buffer_init(&snapshot->writing, 0);
    return worker_init(&snapshot->worker, loop, WORKER_BEHIND, snapshot_on_done, snapshot);
}

void snapshot_deinit(struct snapshot *snapshot) {
    snapshot->is_failed = true;
    worker_wait(&snapshot->worker);
    if (snapshot_take_outcome(snapshot) == SNAPSHOT_DONE) {
        journal_file_close(&snapshot->journal);
    }
    worker_deinit(&snapshot->worker);
}

static bool snapshot_begin_walk(struct snapshot *snapshot, int64_t now_us) {
    CHECK(snapshot->state == SNAPSHOT_IDLE && !snapshot->worker.is_busy);
    /* Reserve now: growing later would move large buffers and touch many pages at once. */
    if (!snapshot_file_writer_init(&snapshot->file, SNAPSHOT_LEVEL) ||
        buffer_reserve(&snapshot->filling, BUFFER_SIZE) == NULL ||
        buffer_reserve(&snapshot->writing, BUFFER_SIZE) == NULL) {
        snapshot_close_files(snapshot);
        return false;
    }
    snapshot->is_overrun = false;
    snapshot->created_ms = (uint64_t)(now_us / 1000);
    snapshot->state = SNAPSHOT_WALKS;
    snapshot->is_failed = false;
    snapshot->is_kept = false;
    snapshot->journal_after = SNAPSHOT_NO_JOURNAL;
    snapshot->journal_number = 0;
    snapshot->journal.fd = -1;
    snapshot->error = 0;
    snapshot->what = NULL;
    snapshot->footer = (struct snapshot_footer){.sequence = 0};
    snapshot->chunk_count = 0;
    snapshot->walked_size = 0;
    snapshot->begin_us = clock_monotonic_us();
    snapshot_begin_chunk(snapshot);
    registry_walk_begin(snapshot->registry);
    return true;
}

bool snapshot_begin(struct snapshot *snapshot, int64_t now_us) {
    if (!snapshot_begin_walk(snapshot, now_us)) {
        return false;
    }
    snapshot->is_streamed = false;
    snapshot->number = store_take_number(snapshot->store);
    worker_start(&snapshot->worker, snapshot_run_begin);
    return true;
}

bool snapshot_begin_stream(struct snapshot *snapshot, int pipe, int64_t now_us) {
    if (!snapshot_begin_walk(snapshot, now_us)) {
        return false;
    }
    snapshot->is_streamed = true;
    snapshot->file.fd = pipe;
    worker_start(&snapshot->worker, snapshot_run_begin);
    return true;
}

void snapshot_give_up(struct snapshot *snapshot) {
    snapshot->is_failed |= snapshot->state != SNAPSHOT_IDLE;
}

/* ---- effects ---- */

bool snapshot_is_full(const struct snapshot *snapshot) {
    return snapshot->state == SNAPSHOT_WALKS && !snapshot->is_failed && !snapshot->is_streamed &&
           snapshot->filling.size >= FILLING_MAX;
}

static void snapshot_write_effect(struct snapshot *snapshot, const struct effect *effect) {
    if (snapshot_is_full(snapshot)) {
        worker_wait(&snapshot->worker);
        snapshot_go_on(snapshot); /* unless the thread has taken the buffer already */
    }
    if (snapshot->is_streamed && snapshot->filling.size >= STREAM_FILLING_MAX) {
        snapshot->is_overrun = true;
        snapshot->is_failed = true;
    }
    if (!snapshot->is_failed) {
        effect_bytes_encode(&snapshot->encoder, effect);
        snapshot_check_chunk(snapshot);
    }
}

void snapshot_add_effect(struct snapshot *snapshot, const struct effect *effect) {
    struct registry_walk_change change;
    if (snapshot->state != SNAPSHOT_WALKS ||
        !registry_walk_trim(snapshot->registry, effect, &change)) {
        return;
    }
    snapshot_write_effect(snapshot, &change.effect);
    if (change.has_come && tags_has_values(&effect->key->board)) {
        const struct board *board = &effect->key->board;
        char packed[TAG_VALUES_PACKED_MAX];
        struct board_member member;
        struct tag_values values;
        board_look_up(board, effect->member, NULL, &member);
        tags_of(board, &member, &values);
        if (values.mask != 0) {
            change.effect.kind = EFFECT_TAGS;
            change.effect.value =
                (struct bytes){.at = packed, .size = tag_values_pack(&values, packed)};
            snapshot_write_effect(snapshot, &change.effect);
        }
    }
}

/* ---- walking ---- */

static void snapshot_write_board_piece(struct snapshot *snapshot,
                                       const struct registry_walk_piece *piece,
                                       const void *of_piece) {
    struct effect_encoder *encoder = &snapshot->encoder;
    const struct board *board = &piece->key->board;
    if (piece->is_first) {
        snapshot->values_size = 0;
        effect_bytes_encode_open(encoder, piece->key,
                                 registry_expiry(snapshot->registry, piece->key));
        snapshot->footer.board_count++;
    }
    const struct board_stored *entries = of_piece;
    const struct hash_pair *notes = of_piece;
    for (uint32_t i = 0; piece->is_notes && i < piece->count; i++) {
        struct registry_note_room room;
        const struct effect effect = {
            .kind = EFFECT_NOTE,
            .database = piece->key->database,
            .name = registry_name(piece->key),
            .member = registry_note_field(registry_options(piece->key), notes[i].field, &room),
            .value = notes[i].value};
        effect_bytes_encode(encoder, &effect);
        snapshot_check_chunk(snapshot);
    }
    for (uint32_t done = 0; !piece->is_notes && done < piece->count;) {
        /* As many as fit into one record with their tags, so that chunks do not get much too long. */
        const struct board_stored *first = entries + done;
        size_t size = 0, members_size = 0;
        uint32_t count = 0;
        while (done + count < piece->count && size < RECORD_SIZE) {
            size_t member_size = name_size(first[count++].member);
            members_size += member_size;
            size += member_size + snapshot->values_size;
        }
        size = snapshot->filling.size;
        effect_bytes_encode_piece(encoder, board, piece->rank + done, first, count);
        size = snapshot->filling.size - size;
        size -= members_size < size ? members_size : size;
        snapshot->values_size = tags_has_values(board) ? size / count : 0;
        snapshot_check_chunk(snapshot);
        done += count;
    }
    snapshot->footer.member_count += piece->is_notes ? 0 : piece->count;
    if (piece->is_last) {
        effect_bytes_encode_close(encoder);
    }
    snapshot_check_chunk(snapshot);
}

static void snapshot_write_hash_effect(struct snapshot *snapshot, const struct effect *effect) {
    effect_bytes_encode(&snapshot->encoder, effect);
    snapshot_check_chunk(snapshot);
}

/* A hash is written as the effects that make it. */
static void snapshot_write_hash_piece(struct snapshot *snapshot,
                                      const struct registry_walk_piece *piece,
                                      const struct hash_pair *pairs) {
    struct effect effect = {.kind = EFFECT_CREATE,
                            .key_kind = &key_kind_hash,
                            .database = piece->key->database,
                            .name = registry_name(piece->key)};
    if (piece->is_first) {
        snapshot_write_hash_effect(snapshot, &effect);
        effect.kind = EFFECT_EXPIRE;
        effect.expire_at_ms = registry_expiry(snapshot->registry, piece->key);
        if (effect.expire_at_ms != REGISTRY_NO_EXPIRY) {
            snapshot_write_hash_effect(snapshot, &effect);
        }
    }
    effect.kind = EFFECT_PUT;
    for (uint32_t i = 0; i < piece->count; i++) {
        effect.member = pairs[i].field;
        effect.value = pairs[i].value;
        snapshot_write_hash_effect(snapshot, &effect);
    }
}

/* Applies even while the thread is free: it gets its next job only at the end of a step, and
 * nothing else would end the step of SAVE. Effects do not count, or a client that makes many could
 * stop the walk. */
static bool snapshot_has_room(const struct snapshot *snapshot) {
    return snapshot->walked_size < AHEAD_MAX;
}

bool snapshot_step(struct snapshot *snapshot, uint64_t budget_ns, uint64_t group, int64_t now_us) {
    union {
        struct board_stored of_board[STEP_ENTRIES];
        struct hash_pair of_hash[STEP_ENTRIES];
    } entries;
    struct registry_walk_piece piece;
    uint64_t begin = clock_ticks();
    while (snapshot->state == SNAPSHOT_WALKS && !snapshot->is_failed &&
           snapshot_has_room(snapshot)) {
        if (!registry_walk_next(snapshot->registry, &entries, STEP_ENTRIES, &piece)) {
            /* Everything is walked: the file will hold the state of this moment. */
            registry_walk_end(snapshot->registry);
            snapshot->state = SNAPSHOT_WALKED;
            snapshot->footer.sequence = group;
            snapshot->footer.time_us = (uint64_t)now_us;
        } else if (piece.key != NULL) {
            size_t size_before = snapshot->filling.size;
            if (piece.key->kind == REGISTRY_HASH) {
                snapshot_write_hash_piece(snapshot, &piece, entries.of_hash);
            } else {
                snapshot_write_board_piece(snapshot, &piece, &entries);
            }
            snapshot->walked_size += snapshot->filling.size - size_before;
        }
        if (clock_ticks_to_ns(clock_ticks() - begin) >= budget_ns) {
            break;
        }
    }
    snapshot_go_on(snapshot);
    return snapshot->state == SNAPSHOT_WALKS && snapshot_has_room(snapshot);
}

void snapshot_finish(struct snapshot *snapshot, enum snapshot_journal journal_after) {
    CHECK(snapshot->state == SNAPSHOT_WALKED);
    snapshot->journal_after = journal_after;
    snapshot->state = SNAPSHOT_ENDS;
    snapshot_go_on(snapshot);
}

enum snapshot_outcome snapshot_take_outcome(struct snapshot *snapshot) {
    bool is_done = snapshot->state == SNAPSHOT_ADOPTED;
    if (snapshot->state == SNAPSHOT_WALKED && !snapshot->is_failed) {
        return SNAPSHOT_IS_WALKED;
    }
    if (snapshot->state == SNAPSHOT_IDLE || snapshot->worker.is_busy ||
        (!snapshot->is_failed && !is_done)) {
        return SNAPSHOT_NOTHING;
    }
    if (!is_done) {
        if (snapshot->state == SNAPSHOT_WALKS) {
            registry_walk_end(snapshot->registry);
        }
        const char *reason =
            snapshot->is_overrun ? "it was read more slowly than boards changed" : "no memory";
        log_write(
            LOG_WARNING, "%s: given up: %s%s%s", snapshot->is_streamed ? "backup" : "snapshot",
            snapshot->what != NULL ? snapshot->what : reason, snapshot->error != 0 ? ": " : "",
            snapshot->error != 0 ? strerror(snapshot->error) : "");
        journal_file_close(&snapshot->journal);
        if (!snapshot->is_kept && !snapshot->is_streamed) {
            (void)store_remove(snapshot->store, STORE_BASE, snapshot->number);
            if (snapshot->journal_number != 0) {
                (void)store_remove(snapshot->store, STORE_JOURNAL, snapshot->journal_number);
            }
        }
    }
    snapshot->state = SNAPSHOT_IDLE;
    snapshot->file_size = snapshot->file.size;
    snapshot_close_files(snapshot);
    return is_done ? SNAPSHOT_DONE : SNAPSHOT_ABORTED;
}
