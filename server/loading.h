/* Loading: what the manifest names, read back into an empty registry, in bounded steps.
 *
 *     base      blocks, read and decompressed by a thread one ahead --> boards, filled in order
 *     journals  groups behind the base's sequence                   --> effect_apply
 *
 * A board of the base that comes in pieces may have changed between them. While it is open, effects
 * on it are kept, members of later pieces that have one are passed over, and at its end the kept
 * ones are applied: then it is as it was at that point of the stream.
 *
 * Anything that is damaged stops the loading, but for the torn tail of the last journal, which is
 * reported and left to the caller to cut. */
#ifndef SERVER_LOADING_H
#define SERVER_LOADING_H

#include "server/effect_bytes.h"
#include "server/journal_file.h"
#include "server/snapshot_file.h"
#include "server/store.h"
#include "server/worker.h"

#ifdef SERVER_TINY
enum { LOADING_BATCH = 3 };
#else
enum { LOADING_BATCH = 64 };
#endif
enum { LOADING_ERROR_MAX = DISK_ERROR_MAX };

enum loading_status {
    LOADING_MORE,  /* there is more to do at once */
    LOADING_WAITS, /* for the thread: changed is called */
    LOADING_DONE,
    LOADING_FAILED, /* error says why */
};

/* The board whose pieces are being read. */
struct loading_board {
    bool is_open;
    bool is_ending; /* all pieces are there, its index is being filled */
    uint32_t database;
    char name[REGISTRY_NAME_MAX];
    uint32_t name_size;
    int64_t expire_at_ms;
    struct rules rules;
    struct board board;
    struct board_indexing indexing;
    struct board touched; /* members with an effect since it was opened */
    struct buffer kept;   /* those effects */
    uint64_t last_key;    /* of the member that was appended last */
    struct effect_encoder encoder;
};

struct loading {
    struct registry *registry; /* borrowed */
    const struct store *store; /* borrowed */
    void (*changed)(void *context);
    void *context;
    enum { LOADING_BASE, LOADING_JOURNALS, LOADING_END } phase;
    struct worker worker;
    /* the base */
    struct snapshot_reader base;
    bool is_base_open;
    char *raw, *next_raw; /* the block that is decoded, and the thread's */
    size_t raw_room, next_room, next_size;
    enum snapshot_status next_status;
    bool has_next, is_reading;
    struct loading_board open;
    /* the journals */
    struct journal_reader journal;
    bool is_journal_open;
    uint32_t journal_index;
    struct journal_group group;
    bool has_group;
    /* both */
    struct effect_decoder decoder, kept_decoder;
    bool is_decoding;
    struct effect batch[LOADING_BATCH];
    uint64_t batch_offsets[LOADING_BATCH]; /* of the block or group it is from */
    uint32_t batch_count;
    bool applies_kept; /* the batch is of kept effects */
    char path[STORE_PATH_MAX + STORE_NAME_MAX];
    char error[LOADING_ERROR_MAX];
    bool is_out_of_memory; /* that is what error says */
    /* what was read */
    uint64_t size_total, size_done; /* bytes of files */
    uint64_t size_before;           /* of the files before this one */
    uint64_t board_count, member_count;
    uint64_t group_count, skipped_count, effect_count;
    uint64_t sequence; /* of the last group */
    uint64_t time_us;  /* of it, or of the base: the clock's floor */
    bool is_torn;      /* the last journal is: torn says where */
    struct journal_torn torn;
    uint64_t base_file_size;
    /* of the last journal, as far as it is whole */
    uint64_t journal_id, journal_size, journal_next_sequence;
};

/* Zeroed but for registry, store, changed and context. false: error says why. */
MUST_CHECK bool loading_init(struct loading *loading, uv_loop_t *loop);
/* Also before it is done. */
void loading_deinit(struct loading *loading);
/* Go on for about budget_ns. */
MUST_CHECK enum loading_status loading_step(struct loading *loading, uint64_t budget_ns);
/* All at once. false: error says why. */
MUST_CHECK bool loading_run(struct loading *loading);

#endif
