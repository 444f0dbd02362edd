/* Effects of one command as the module replicates them:
 *
 *     LB.APPLY key blob [key blob] ...
 *     blob     FILE_FORMAT (1 byte), server time in microseconds (8 bytes), and a chunk of effects
 *              (server/durability/effect_bytes.h), all in database 0: that of the command
 *
 * A blob may be empty, but not the first one. The module writes and applies them; a server that follows a Redis
 * with the module applies them, too. */
#ifndef SERVER_EFFECT_BLOB_H
#define SERVER_EFFECT_BLOB_H

#include "server/durability/effect_bytes.h"

enum { EFFECT_BLOB_HEAD_SIZE = 1 + 8 };

/* Begin a blob in out, which is cleared. */
void effect_blob_begin(struct effect_encoder *encoder, struct buffer *out, int64_t now_us);
/* One more effect; never a FILL. */
void effect_blob_add(struct effect_encoder *encoder, const struct effect *effect);
/* Its time and its chunk. false: it is none, or of another format. */
MUST_CHECK bool effect_blob_open(struct bytes blob, int64_t *time_us, struct bytes *chunk);
bool effect_blob_is_of_another_format(struct bytes blob);

/* Decode the whole chunk, before anything changes. false: it is damaged, or not every effect is allowed. */
typedef bool effect_blob_allow(void *context, const struct effect *effect);
MUST_CHECK bool effect_blob_check(struct effect_decoder *decoder, struct bytes chunk,
                                  effect_blob_allow *allow, void *context);

/* Apply a chunk that was checked. Each effect is shown just before it is applied, to be noted, or to get other
 * databases; false: it is passed over. The effects before it are applied by then, except that PUTs wait for each
 * other. Errors: the effects before are applied. */
typedef bool effect_blob_visit(void *context, struct effect *effect);
MUST_CHECK enum effect_status effect_blob_apply(struct registry *registry,
                                                struct effect_decoder *decoder, struct bytes chunk,
                                                effect_blob_visit *visit, void *context);

#endif
