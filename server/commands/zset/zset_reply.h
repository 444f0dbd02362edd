/* Members in replies, alone or with their scores. */
#ifndef SERVER_COMMAND_ZSET_REPLY_H
#define SERVER_COMMAND_ZSET_REPLY_H

#include "server/commands/zset/zset.h"

/* The score in a packed key. */
static inline void zset_reply_score(const struct call *call, const struct layout_field *lead,
                                    uint64_t ordinal) {
    reply_decimal(call->reply, layout_field_decimal(lead, ordinal), lead->scale);
}

/* How a reply lists members. */
enum zset_shape {
    ZSET_MEMBERS, /* members only */
    ZSET_FLAT,    /* member, score, member, score */
    ZSET_PAIRS,   /* [member, score], [member, score] */
};
/* WITHSCORES as in Redis: pairs in RESP3, flat in RESP2. */
static inline enum zset_shape zset_shape_with_scores(const struct call *call) {
    return call->reply->version == 3 ? ZSET_PAIRS : ZSET_FLAT;
}
/* The header of an array of count members in that shape. */
void zset_reply_header(const struct call *call, uint64_t count, enum zset_shape shape);
/* One member in that shape. */
void zset_reply_entry(const struct call *call, const struct board *board,
                      const struct board_entry *entry, enum zset_shape shape);
/* Every member of span, header included. */
void zset_reply_span(const struct call *call, const struct board *board, struct zset_span span,
                     bool is_best_first, enum zset_shape shape);

#endif
