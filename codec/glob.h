/* Redis's glob patterns: * ? [abc] [^a-z] and \x, over bytes.
 *
 * Without recursion: the last star is all that is remembered, so time is at most
 * pattern * text and 100 KB of stars take milliseconds. */
#ifndef CODEC_GLOB_H
#define CODEC_GLOB_H

#include "codec/bytes.h"

bool glob_matches(struct bytes pattern, struct bytes text);

#endif
