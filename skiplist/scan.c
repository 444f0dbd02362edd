/* The header describes the algorithm. Nothing here interprets ids. */
#include "skiplist/scan.h"

enum {
    /* In units of work. A candidate is three or four cache misses, most of which overlap with
     * others. */
    BUCKET_WORK = 4,
    CANDIDATE_WORK = 100,
    VISIT_WORK = 60,
    /* A step ends even if it finds only empty buckets, as in Redis. */
    STEPS_PER_NAME = 10,
};

void scan_init(struct scan *scan, const struct scan_limits *limits, scan_visit *visit,
               void *context) {
    /* The arrays are written before they are read. */
    scan->visit = visit;
    scan->context = context;
    scan->limits = limits;
    scan->next = 0;
    scan->cut = SCAN_END;
    scan->work = 0;
    scan->visited = 0;
    scan->last_prefix = 0;
    scan->candidate_count = 0;
    scan->item_count = 0;
}

uint64_t scan_visit_work(const struct scan_limits *limits, uint64_t count, uint64_t name_bytes) {
    return count * VISIT_WORK + name_bytes * (1 + limits->byte_work);
}

static bool scan_is_spent(const struct scan *scan) {
    return scan->work >= scan->limits->work_max;
}

static void scan_visit_item(struct scan *scan, const struct scan_item *item) {
    scan->visit(scan->context, item);
    scan->visited++;
    scan->work += scan_visit_work(scan->limits, 1, item->name_size);
}

/* Visit the items in order. When the work is used up, stop before the next item whose prefix
 * differs from the last: the next step could not tell equal prefixes apart. Stop where there was no room for more. */
static void scan_visit_items(struct scan *scan) {
    /* Insertion sort: items arrive bucket by bucket, so few move far. */
    for (uint32_t i = 1; i < scan->item_count; i++) {
        struct scan_item item = scan->items[i];
        uint32_t place = i;
        for (; place > 0 && scan->items[place - 1].prefix > item.prefix; place--) {
            scan->items[place] = scan->items[place - 1];
        }
        scan->items[place] = item;
    }
    for (uint32_t i = 0; i < scan->item_count; i++) {
        const struct scan_item *item = &scan->items[i];
        if (item->prefix >= scan->cut ||
            (scan_is_spent(scan) && scan->visited > 0 && item->prefix != scan->last_prefix)) {
            scan->next = item->prefix;
            break;
        }
        scan_visit_item(scan, item);
        scan->last_prefix = item->prefix;
    }
    scan->next = scan->cut < scan->next ? scan->cut : scan->next;
    scan->cut = SCAN_END;
    scan->item_count = 0;
}

/* There is no room for this item, too: the step ends before the last of them, whose place it may take (*place). false:
 * it comes in the next step. When all have one prefix they are visited out of turn. */
static bool scan_make_room(struct scan *scan, uint32_t prefix, uint32_t *place) {
    uint32_t least = UINT32_MAX;
    *place = 0;
    for (uint32_t i = 0; i < scan->item_count; i++) {
        uint32_t other = scan->items[i].prefix;
        least = other < least ? other : least;
        *place = other > scan->items[*place].prefix ? i : *place;
    }
    uint32_t most = scan->items[*place].prefix;
    if (prefix == most && most == least) {
        for (uint32_t i = 0; i < scan->item_count; i++) {
            scan_visit_item(scan, &scan->items[i]);
        }
        scan->last_prefix = most;
        scan->item_count = 1;
        *place = 0;
        return true;
    }
    scan->cut = prefix < most ? most : prefix;
    return prefix < most;
}

/* The array is full where nearly all that came before in the order of the scan was removed: what is left crowds few
 * buckets (skiplist/map.h). */
void scan_add(struct scan *scan, const struct scan_item *item) {
    uint32_t place = scan->item_count;
    if (item->prefix >= scan->cut ||
        (place == SCAN_ITEMS_MAX && !scan_make_room(scan, item->prefix, &place))) {
        return;
    }
    scan->item_count += place == scan->item_count;
    scan->items[place] = *item;
}

static void scan_find_names(struct scan *scan) {
    scan->find(scan->owner, scan->candidates, scan->candidate_count, scan);
    scan->work += (uint64_t)scan->candidate_count * CANDIDATE_WORK;
    scan->candidate_count = 0;
}

static void scan_note_candidate(void *context, uint32_t id) {
    struct scan *scan = context;
    if (scan->candidate_count == SCAN_CANDIDATES_MAX) {
        scan_find_names(scan);
    }
    scan->candidates[scan->candidate_count++] = (struct scan_candidate){
        .id = id, .from = scan->step_from, .last = (uint32_t)(scan->step_end - 1)};
    scan->gathered_count++;
    scan->fetch(scan->owner, id);
}

uint64_t scan_items(struct scan *scan) {
    scan->next = SCAN_END;
    scan_visit_items(scan);
    return scan->next < SCAN_END ? scan->next : 0;
}

bool scan_has_room(const struct scan *scan) {
    return scan->next < SCAN_END && scan->visited < scan->limits->count && !scan_is_spent(scan);
}

uint64_t scan_map(struct scan *scan, const struct map *map, uint64_t cursor) {
    uint64_t count = scan->limits->count > 0 ? scan->limits->count : 1;
    uint64_t steps_left = (count + 1) * STEPS_PER_NAME;
    scan->next = cursor;
    while (scan->next < SCAN_END && scan->visited < count && steps_left > 0 &&
           (!scan_is_spent(scan) || scan->next == cursor)) {
        /* A bucket holds about sixteen: half a batch leaves room for the last one. */
        uint64_t wanted = count - scan->visited;
        if (wanted > SCAN_CANDIDATES_MAX / 2) {
            wanted = SCAN_CANDIDATES_MAX / 2;
        }
        scan->gathered_count = 0;
        do {
            scan->step_from = (uint32_t)scan->next;
            uint32_t buckets =
                map_scan(map, scan->step_from, &scan->step_end, scan_note_candidate, scan);
            scan->next = scan->step_end;
            scan->work += (uint64_t)buckets * BUCKET_WORK;
            steps_left--;
        } while (scan->next < SCAN_END && scan->gathered_count < wanted && steps_left > 0 &&
                 !scan_is_spent(scan));
        scan_find_names(scan);
        scan_visit_items(scan);
    }
    return scan->next < SCAN_END ? scan->next : 0;
}
