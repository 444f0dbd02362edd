/* What the files of the naive twin share: storage (twin_server.c), text (twin_text.c), and one
 * function a command family (twin_zadd.c, twin_zset.c, twin_combine.c, twin_keys.c). */
#ifndef TESTS_SUPPORT_TWIN_PARTS_H
#define TESTS_SUPPORT_TWIN_PARTS_H

#include "tests/support/twin_server.h"

/* ---- storage: twin_server.c ---- */

/* malloc and realloc, never NULL. */
void *twin_plain(void *at);
void twin_free_bytes(struct bytes bytes);
struct bytes twin_copy_bytes(struct bytes bytes);
/* The key in a database, or in that of the client; NULL: there is none. */
struct twin_key *twin_find_in(struct twin_server *twin, uint32_t database, struct bytes name);
struct twin_key *twin_find(struct twin_server *twin, struct bytes name);
struct twin_key *twin_create_in(struct twin_server *twin, uint32_t database, struct bytes name);
void twin_remove_key(struct twin_server *twin, struct twin_key *key);
void twin_remove_if_empty(struct twin_server *twin, struct twin_key *key);
/* The layout of a new key. */
const struct twin_layout *twin_layout_for(const struct twin_server *twin, struct bytes name);
/* A member's rank, best first; -1: not there. key may be NULL. */
int64_t twin_find_member(const struct twin_key *key, struct bytes name);
/* Negative: a's fields are better. */
int twin_compare_fields(const struct twin_layout *layout, const struct twin_member *a,
                        const struct twin_member *b);
/* How many members are better. */
uint32_t twin_count_better(const struct twin_key *key, const struct twin_member *member);
/* Put or move a member (its name is copied), which arrives now. */
void twin_put_member(struct twin_server *twin, struct twin_key *key, struct twin_member member);
void twin_remove_rank(struct twin_key *key, uint32_t rank);
void twin_clear_members(struct twin_key *key);
/* Remove those below the layout's cap. */
void twin_cut(struct twin_key *key);
/* Would that member stay as it is, as the layout keeps the best? */
bool twin_keeps(const struct twin_key *key, const struct twin_member *member);
/* Everything but name and database. */
void twin_copy_members(struct twin_key *to, const struct twin_key *from);
int64_t twin_time_units(const struct twin_layout *layout, int64_t time_us);
/* Another command begins, its reply empty. */
void twin_begin(struct twin_server *twin, int64_t now_us, uint32_t database, int protocol);

/* ---- replies: twin_text.c ---- */

void twin_put_bytes(struct twin_server *twin, const char *at, size_t size);
__attribute__((format(printf, 2, 3))) void twin_put(struct twin_server *twin, const char *format,
                                                    ...);
void twin_put_integer(struct twin_server *twin, int64_t value);
void twin_put_array(struct twin_server *twin, uint64_t count);
void twin_put_bulk(struct twin_server *twin, struct bytes text);
void twin_put_null(struct twin_server *twin);
void twin_put_null_array(struct twin_server *twin);
/* As a double, in units of 10^-scale. */
void twin_put_decimal(struct twin_server *twin, twin_wide number, int scale);
void twin_put_score(struct twin_server *twin, const struct twin_key *key, twin_wide score);
void twin_put_error(struct twin_server *twin, const char *text);
#define TWIN_SYNTAX_ERROR  "syntax error"
#define TWIN_INTEGER_ERROR "value is not an integer or out of range"
#define TWIN_ANY_ERROR     "~" /* the text is the layout's business */
#define TWIN_VALUE_ERROR   "value ~"
#define TWIN_TIME_ERROR    "time ~"

/* ---- numbers: twin_text.c ---- */

/* The same word, its letters in any case; word is upper case. */
bool twin_is_word(struct bytes text, const char *word);
bool twin_read_integer(struct bytes text, int64_t *value);

/* Decimal text in units of 10^-scale; the tests write at most 30 digits and small exponents. */
enum twin_number { TWIN_NOT_A_NUMBER, TWIN_NUMBER, TWIN_TOO_PRECISE, TWIN_TOO_LARGE };
enum twin_number twin_read_number(struct bytes text, int scale, twin_wide *value);
twin_wide twin_lowest(const struct twin_field *field);
twin_wide twin_highest(const struct twin_field *field);
bool twin_is_in_field(const struct twin_field *field, twin_wide value);
bool twin_is_time_in_field(const struct twin_layout *layout, int64_t time_us);

/* One end of a range of scores, in thousandths of a score's unit: a limit may lie between two. */
struct twin_bound {
    twin_wide value;
    bool is_exclusive;
};
bool twin_read_bound(struct bytes text, int scale, struct twin_bound *bound);
bool twin_is_inside(twin_wide score, struct twin_bound lower, struct twin_bound upper);

/* ---- commands ---- */

typedef void twin_run(struct twin_server *twin, const struct bytes *args, uint32_t count);
/* twin_zadd.c */
twin_run twin_run_zadd, twin_run_zincrby, twin_run_zrem;
/* twin_zset.c */
twin_run twin_run_zscore, twin_run_zrank, twin_run_zcard, twin_run_zcount, twin_run_range;
twin_run twin_run_rangestore, twin_run_remove_range, twin_run_zpop, twin_run_zmpop;
/* twin_combine.c */
twin_run twin_run_combine;
/* Answer ZRANGESTORE: store the members at count ranks of a key, which may be NULL if there are
 * none. */
void twin_store_members(struct twin_server *twin, struct bytes name, const struct twin_key *from,
                        const uint32_t *ranks, uint32_t count);
/* twin_keys.c */
twin_run twin_run_del, twin_run_exists, twin_run_type, twin_run_rename, twin_run_copy;
twin_run twin_run_flush, twin_run_dbsize, twin_run_expire, twin_run_persist, twin_run_ttl;

#endif
