/* Moving a board's blocks to other addresses, for an allocator that knows where its memory is full of
 * holes.
 *
 * Blocks refer to each other by id, so a block's address is in its node alone (on a small board: in the
 * board), and any block can be moved at any time between two commands, and so can sheets of tags, which
 * are in the block above their leaves. What stays where it is: the tables of ids, which are few and large,
 * members longer than NAME_TEXT_MAX, counts and values of tags. */
#ifndef SKIPLIST_BOARD_RELOCATE_H
#define SKIPLIST_BOARD_RELOCATE_H

#include "skiplist/board.h"

/* The allocation's new address, with the same content and the old one freed; NULL: it stays. */
typedef void *board_mover(void *context, void *allocation);

/* Offer to move the blocks with ids from `from` on, count ids of them. Returns where to go on; 0: that
 * was all. */
uint32_t board_relocate(struct board *board, uint32_t from, uint32_t count, board_mover *move,
                        void *context);
/* The bytes of the board itself have been moved here. */
void board_relocated(struct board *board);

#endif
