/* Moving blocks. See board_relocate.h. */
#include "skiplist/board_relocate.h"

#include "codec/memory.h"
#include "skiplist/board_parts.h"
#include "skiplist/sheet.h"

static void board_relocate_leaf(struct board *board, board_mover *move, void *context) {
    void *leaf = board->leaf != NULL ? move(context, board->leaf) : NULL;
    if (leaf != NULL) {
        board->leaf = leaf;
    }
}

static void board_relocate_sheet(struct skiplist *list, struct index_block *index,
                                 board_mover *move, void *context) {
    size_t size = index->sheet != NULL ? memory_size(index->sheet) : 0;
    void *sheet = index->sheet != NULL ? move(context, index->sheet) : NULL;
    if (sheet != NULL) {
        index->sheet = sheet;
        list->tags->memory_size += memory_size(sheet) - size;
    }
}

uint32_t board_relocate(struct board *board, uint32_t from, uint32_t count, board_mover *move,
                        void *context) {
    if (!board->is_large) {
        board_relocate_leaf(board, move, context);
        return 0;
    }
    struct skiplist *list = &board->large->list;
    uint32_t id = from;
    for (; id < list->node_end && id - from < count; id++) {
        struct skiplist_node *node = skiplist_node(list, id);
        size_t size = node->block != NULL ? memory_size(node->block) : 0;
        void *block = node->block != NULL ? move(context, node->block) : NULL;
        if (block != NULL) {
            node->block = block;
            list->memory_size += memory_size(block) - size;
        }
        if (list->tags != NULL && node->block != NULL && node->level == 1) {
            board_relocate_sheet(list, node->block, move, context);
        }
    }
    return id < list->node_end ? id : 0;
}

void board_relocated(struct board *board) {
    if (board->is_large) {
        board->large->board = board;
        if (board->large->link != NULL) {
            *board->large->link = board;
        }
    }
}
