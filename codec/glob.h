/* Redis's glob patterns: * ? [abc] [^a-z] and \x, over bytes.
 *
 * Without recursion: the last star is all that is remembered, so time is at most
 * pattern * text and 100 KB of stars take milliseconds. The worst is one long run behind a star
 * that nearly matches everywhere in a text as long: 32 KiB in 64 KiB take more than a second, so
 * what strangers may send is for the caller to limit. */
#ifndef CODEC_GLOB_H
#define CODEC_GLOB_H

#include "codec/bytes.h"

bool glob_matches(struct bytes pattern, struct bytes text);

#endif
