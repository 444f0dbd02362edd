/* A hash map from 64-bit hashes to 32-bit ids, which keeps neither keys nor values: a slot is a
 * piece of the hash (the tag) and the id, in 32 bits together. Looking up yields candidates, and
 * the owner compares the real thing.
 *
 * Drawing of one bucket, a cache line:
 *
 *     +--------+--------+-- ... --+---------+----------+
 *     | slot 0 | slot 1 |         | slot 14 | overflow |     slot: tag bits | id bits, 0 = free
 *     +--------+--------+-- ... --+---------+----------+     overflow: how many entries whose
 *                                                            home this is, or lay on the way,
 *                                                            went past it
 *
 * The home bucket is hash32 * bucket_count >> 32 (so any bucket count will do, and buckets lie in
 * the order of their hashes: scans survive growth). A full bucket overflows into the next one and
 * is counted, so that a lookup stops at the first bucket without overflow and a removal needs no
 * tombstones (as F14 does: engineering.fb.com, "Open-sourcing F14", 2019).
 *
 * Growth is in small steps. While it goes on there are two tables, and the owner's ids are moved
 * one after another: every entry with id < cursor is in the new table, the others in the old one.
 * Each step asks the owner for the hashes of one id (map_hashes), so no insert pays for a whole
 * rehash. Slots of moved ids stay in the old table as stale hints until it is dropped; they
 * cost a comparison, never a wrong answer, because the owner compares.
 *
 * Entries (hash, id) may repeat; the map is a multiset of pairs. */
#ifndef SKIPLIST_MAP_H
#define SKIPLIST_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codec/check.h"
