/* Loading: reads what the manifest names into an empty registry, in bounded steps.
 *
 *     base      blocks, read and decompressed by a thread one ahead --> boards, filled in order
 *     journals  groups after the base's sequence                    --> effect_apply
 *
 * A board of the base that is stored in pieces may have changed between them. While it is open,
 * effects on it are kept, and entries of later pieces are skipped if their member has a kept
 * effect. At the end of the board the kept effects are applied: then it is as it was at that point
 * of the stream.
 *
 * Values of tags come with the pieces. Those of pieces from different times may be more different ones than
 * a tag takes, though never so many were there at one time: from there on, and from a change of the tags
 * on, values are kept, too, and set in the order in which they came.
 *
 * Any damage stops loading, except for a torn tail of the last journal, which the caller may cut:
 * journal.torn. */
#ifndef SERVER_LOADING_H
#define SERVER_LOADING_H

#include "server/durability/effect_batch.h"
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
    bool is_ending; /* all pieces are read, its index is being built */
    uint32_t database;
    char name[REGISTRY_NAME_MAX];
    uint32_t name_size;
    int64_t expire_at_ms;
    struct rules rules;
    struct board_state state;
    struct board board;
    struct board_indexing indexing;
    struct board touched; /* members with an effect since the board was opened */
    struct buffer kept;   /* those effects */
    bool keeps_values;    /* among them */
    bool changes_tags;    /* among them are the rules that it is to have, with these tags: */
    struct tag_set tags;
    struct board seen[TAGS_MAX]; /* different values of each tag so far, as members */
    uint64_t last_key;           /* of the last appended member */
    struct effect_encoder encoder;
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
    struct effect_decoder decoder, kept_decoder;
    bool is_decoding;
    struct effect_batch batch;
    uint64_t batch_offsets[EFFECT_BATCH]; /* of the block or group of each effect */
    bool applies_kept;                    /* the batch holds kept effects */
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
