/* Private to redis_stream*.c:
 *
 *     redis_stream.c         the states; loading; commands
 *     redis_stream_check.c   CHECKS, one event of the RDB file after the other */
#ifndef SERVER_REDIS_STREAM_PARTS_H
#define SERVER_REDIS_STREAM_PARTS_H

#include "server/migration/redis_stream.h"

/* Note why it is to stop. Always false. */
bool redis_stream_stop(struct redis_stream *stream, const char *error);
/* For what `apply` has said. */
bool redis_stream_stop_applied(struct redis_stream *stream);

/* The name of the key that is read. */
static inline struct bytes redis_stream_name(const struct redis_stream *stream) {
    return (struct bytes){.at = stream->reader.name.at, .size = stream->reader.name.size};
}

/* What has been read can be held here; the reader has it. false: it cannot, and the stream stops. */
MUST_CHECK bool redis_stream_check(struct redis_stream *stream, enum rdb_event event);

#endif
