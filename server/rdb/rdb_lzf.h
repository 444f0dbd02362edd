/* LZF, as Redis compresses long strings.
 *
 *     000lllll           l + 1 bytes follow as they are
 *     lllddddd d         l + 2 bytes from d + 1 bytes before; l = 7: another byte is added to l, and
 *                        stands before the last byte of d */
#ifndef SERVER_RDB_LZF_H
#define SERVER_RDB_LZF_H

#include "codec/buffer.h"
#include "codec/bytes.h"

/* Replace the buffer's content with what the bytes expand to, which must be of this size. The buffer
 * grows with what is written, not with what is announced. false: the bytes are damaged, or there is
 * no memory (out->is_broken). */
MUST_CHECK bool rdb_lzf_expand(struct bytes from, size_t size, struct buffer *out);

#endif
