/* Loading: reads what the manifest names into an empty registry, in bounded steps.
 *
 *     base      blocks, read and decompressed by a thread one ahead --> boards, filled in order
 *     journals  groups after the base's sequence                    --> effect_apply
 *
 * A board of the base is stored in pieces, and may have changed between them: the effects there change what the pieces
 * before them have made (registry_walk_trim). Pieces are appended without an index, many times faster; it is built at the
 * board's end, or before the first effect on it, and from then on with each piece.
 *
 * Any damage stops loading, except for a torn tail of the last journal, which the caller may cut:
 * journal.torn. */
#ifndef SERVER_LOADING_H
#define SERVER_LOADING_H

#include "server/durability/effect_bytes.h"
#include "server/durability/journal_file.h"
#include "server/durability/snapshot_file.h"
#include "server/durability/store.h"
#include "server/system/worker.h"

enum { LOADING_ERROR_MAX = DISK_ERROR_MAX };

enum loading_status {
    LOADING_MORE,  /* call loading_step again */
    LOADING_WAITS, /* for the thread; changed is called when it is done */
    LOADING_DONE,
    LOADING_FAILED, /* error says why */
};

/* The board whose pieces are being read. */
struct loading_board {
    bool is_open;
    bool is_known;    /* it is in the registry, by its name, with an index; else: */
    bool is_indexing; /* the index is being built */
    bool is_whole;    /* all pieces are read */
    uint32_t database;
    char name[REGISTRY_NAME_MAX];
    uint32_t name_size;
    int64_t expire_at_ms;
    struct board_state state;
    struct board board;
    struct board_indexing indexing;
};

struct loading {
    struct registry *registry; /* borrowed */
    const struct store *store; /* borrowed */
    bool is_copy; /* a master has sent it: errors have no advice for files of one's own */
    void (*changed)(void *context);
    void *context;
    enum { LOADING_BASE, LOADING_JOURNALS, LOADING_END } phase;
    struct worker worker;
    /* the base */
    struct snapshot_reader base; /* the thread's while the worker is busy */
    bool is_base_open;
    struct loading_block {
        char *raw;
        size_t room, size;
        uint64_t offset;                /* in the file */
    } block, next;                      /* the one being decoded, and the thread's */
    uint64_t base_boards, base_members; /* found so far: the footer has the totals */
    enum snapshot_status next_status;
    bool has_next;
    struct loading_board open;
    /* the journals */
    struct journal_reader journal; /* once done: the last one, read up to its last whole group */
    bool is_journal_open;
    uint32_t journal_index;
    struct journal_group group;
    /* for both */
    struct effect_decoder decoder;
    bool is_decoding;
    struct effect_batch batch;
    uint64_t batch_offsets[EFFECT_BATCH]; /* of the block or group of each effect */
    char path[STORE_PATH_MAX + STORE_NAME_MAX];
    char error[LOADING_ERROR_MAX];
    bool is_out_of_memory; /* error reports an allocation failure */
    /* what was read */
    uint64_t size_total, size_done; /* of files, in bytes */
    uint64_t size_before;           /* of the files before the current one */
    uint64_t board_count, member_count;
    uint64_t group_count, effect_count;
    uint64_t sequence; /* of the last group */
    uint64_t time_us;  /* of that group, or of the base: the clock's floor */
};

/* All borrowed. NULL: no memory. Free it with memory_free. */
MUST_CHECK struct loading *loading_create(struct registry *registry, const struct store *store,
                                          void (*changed)(void *context), void *context);
/* Of loading_create, or a struct that is zeroed except for these four. false: error says why. */
MUST_CHECK bool loading_init(struct loading *loading, uv_loop_t *loop);
/* May be called before loading is done. */
void loading_deinit(struct loading *loading);
/* Continue for about budget_ns. */
MUST_CHECK enum loading_status loading_step(struct loading *loading, uint64_t budget_ns);
/* Load everything in one call. false: error says why. */
MUST_CHECK bool loading_run(struct loading *loading);

#endif
