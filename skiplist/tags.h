/* The tags of a board's members, and reading inside a group of members with the same values.
 *
 *     rank             0    1    2    3    4    5             board_layout(board)->tags: country, class
 *     country/class   DE/1 FR/2 DE/2 --/1 DE/1 US/2
 *     WHERE country DE: ranks 0, 2, 4 are 0, 1, 2 inside the group
 *
 * What tags there are is in the layout; which values the members have, here. A board on which no member
 * has ever had a value holds nothing for tags. Values move with their members (board_put, board_copy,
 * board_move_to) and go with them. Ranks are those of the board, 0-based, best first.
 *
 * Errors are the status; the board is then unchanged. */
#ifndef SKIPLIST_TAGS_H
#define SKIPLIST_TAGS_H

#include "codec/tag.h"
#include "skiplist/board.h"

enum tags_status {
    TAGS_OK = 0,
    TAGS_SAME, /* it was so before */
    TAGS_OUT_OF_MEMORY,
    /* No room for another value: *full is the tag's index. Values of removed members count until their
     * remains are freed (board_free_step). */
    TAGS_FULL,
};

/* Set the values in the mask of a member that has been looked up and is on the board. */
MUST_CHECK enum tags_status tags_set(struct board *board, const struct board_member *member,
                                     const struct tag_values *values, unsigned *full);
/* The same for the member at a rank; also while a board is being loaded (board_append). */
MUST_CHECK enum tags_status tags_set_at(struct board *board, uint32_t rank,
                                        const struct tag_values *values, unsigned *full);
/* Would tags_set of any number of members find room for these values, whatever memory there is? */
MUST_CHECK bool tags_fit(const struct board *board, const struct tag_values *values,
                         unsigned *full);
/* Estimated bytes that tags_set of count members may allocate; for memory_reserve_begin. */
size_t tags_growth_size(const struct board *board, uint32_t count);

/* All values of a member: mask has the bits of those that are not empty. Borrowed until the next change
 * of the board. */
void tags_of(const struct board *board, const struct board_member *member,
             struct tag_values *values);
void tags_at(const struct board *board, uint32_t rank, struct tag_values *values);
/* The same of many at once, at most BOARD_AT_MAX; or of those that were looked up. */
void tags_at_many(const struct board *board, const uint32_t *ranks, uint32_t count,
                  struct tag_values *values);
void tags_below_many(const struct board *board, const struct board_below *below, uint32_t count,
                     struct tag_values *values);
/* Has any member a value? */
bool tags_has_values(const struct board *board);
/* Different values of a tag now. */
uint32_t tags_count_values(const struct board *board, unsigned tag);

/* Use a layout that differs only in its tags: tags of the same name keep their values, also with other
 * bits, those that are not in it lose them. In time independent of the number of members if tags_keep_codes; else the
 * codes of all members are read (15 ms for a million), as there are some that fewer bits do not allow.
 * Errors: TAGS_FULL, a tag has more different values than the new bits allow; TAGS_OUT_OF_MEMORY. */
MUST_CHECK enum tags_status tags_alter(struct board *board, const struct layout *layout,
                                       unsigned *full);
MUST_CHECK bool tags_keep_codes(const struct board *board, const struct layout *layout);

/* ---- groups ---- */

/* One WHERE (or WHERENOT). Several of the same tag are "or", of different tags "and"; what is excluded
 * never matches. An empty value: members that have none. */
struct tag_choice {
    uint8_t tag;
    bool is_excluded;
    struct bytes value;
};

struct tag_filter;
/* For this board, until its next change; choices are not needed afterwards. Where many ranks are asked for, a filter
 * remembers what it has counted. NULL: no memory. */
MUST_CHECK struct tag_filter *tag_filter_create(const struct board *board,
                                                const struct tag_choice *choices, uint32_t count);
void tag_filter_destroy(struct tag_filter *filter); /* may be NULL */
/* The group of those that have these values of the tags in tag_mask, and whom all tests of `whole` but those of these
 * tags let pass. *part: NULL, or what an earlier call made, which becomes this; to be destroyed before whole. false: no
 * memory. */
MUST_CHECK bool tag_filter_narrow(const struct board *board, const struct tag_filter *whole,
                                  unsigned tag_mask, const struct tag_values *values,
                                  struct tag_filter **part);

/* About so many ranks are going to be asked for: what makes each of them faster is then made at once. */
void tag_filter_expect(struct tag_filter *filter, uint32_t count);

/* For estimates: how many codes one rank inside a group reads at worst, by the tags that it asks for, and those among
 * them of which it only leaves values out. All ranks of one filter together read twice the board at most. */
uint32_t tag_filter_reads(const struct board *board, unsigned tag_mask, unsigned excluding_mask);

/* Is a member that has been looked up, and is there, in the group? */
bool tag_group_has(const struct board *board, const struct tag_filter *filter,
                   const struct board_member *member);
/* Its rank inside, or if it is not in the group: members of it that rank above. */
uint32_t tag_group_rank(const struct board *board, struct tag_filter *filter,
                        const struct board_member *member);
/* Members of the group among the first `ranks` ranks: the rank inside the group of whoever is there. */
uint32_t tag_group_count(const struct board *board, struct tag_filter *filter, uint32_t ranks);
/* The same of many, at most BOARD_AT_MAX, with overlapping cache misses: counts[i] was ranks, and is that. */
void tag_group_count_many(const struct board *board, struct tag_filter *filter, uint32_t count,
                          uint32_t *counts);
/* The rank of the group's nth member, 0: the best. false: it has fewer. */
MUST_CHECK bool tag_group_find(const struct board *board, struct tag_filter *filter, uint32_t nth,
                               uint32_t *rank);
/* The ranks of up to count_max of the group, the first at rank `from` or behind it, best first; or at `from` or before it,
 * worst first. Returns how many there are. */
MUST_CHECK uint32_t tag_group_read(const struct board *board, struct tag_filter *filter,
                                   uint32_t from, bool is_best_first, uint32_t *ranks,
                                   uint32_t count_max);

#endif
