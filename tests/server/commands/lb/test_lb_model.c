/* Random native commands, and writes by score, to the server and to a naive twin, on boards of every
 * layout, and with CAP and KEEP BEST: ties, several members of one command, the same member twice,
 * clocks that stand still or step back, times given, values and times that do not fit. */
#include "tests/support/twin_model.h"

#include "tests/server/zset_fixture.h"

/* Layouts of every kind, by the prefix of a key. */
static const char *const prefixes[] = {"",       "laps:",   "money:", "fine:", "wide:", "bare:",
                                       "three:", "latest:", "daily:", "paid:", "mixed:"};

/* And boards with options: the number of a pair begins their names. */
static const char *const optional_layouts[] = {"default", "laps",   "money", "bare",
                                               "three",   "latest", "mixed"};
static const char *const options[] = {"CAP 1",           "CAP 2 KEEP BEST", "cap 7",
                                      "CAP 7 KEEP BEST", "CAP 40 DENSE",    "KEEP BEST DENSE"};
enum { OPTION_BOARDS = COUNT_OF(optional_layouts) * COUNT_OF(options) };

/* ---- LB.ADD ---- */

enum operation { SET, INCREMENT, BEST };
enum stamping { OF_CHANGE, GIVEN, TOUCHED, KEPT };

/* A command in progress, and the twin's board if it succeeds. */
struct adding {
    bool is_new_only, is_existing_only, with_rank;
    enum operation operation;
    enum stamping stamping;
    int64_t at_ms;
    int count;
    int ids[8];
    bool are_written[8];
    const char *error; /* NULL: none */
    struct twin_key after;
};

/* The first error of a command is answered. */
static void refuse(struct adding *adding, const char *error) {
    adding->error = adding->error != NULL ? adding->error : error;
}

/* One value of the line, applied to a field. */
static int add_value(struct twin_model *twin, struct adding *adding, int index, bool is_skipped,
                     twin_wide *value, char *out, size_t size) {
    const struct twin_field *field = &twin->layout.fields[index];
    int64_t picked = twin_pick_value(twin, index);
    bool is_set = twin_flip(twin, 4);
    bool is_added = adding->operation == INCREMENT && !is_set;
    if (twin_flip(twin, 5)) {
        return snprintf(out, size, " *");
    }
    if (is_added) {
        picked = (int64_t)random_below(&twin->random, 4) - 1;
    } else if (twin_flip(twin, 80) && twin_highest(field) < INT64_MAX) {
        picked = (int64_t)twin_highest(field) + 1;
    }
    twin_wide sum = is_added ? *value + picked : picked;
    bool is_checked = !is_added || !is_skipped;
    if (is_checked && !twin_is_in_field(field, sum)) {
        refuse(adding, TWIN_VALUE_ERROR);
    } else if (is_checked) {
        *value = sum;
    }
    return snprintf(out, size, " %s%lldE-%d", is_set ? "=" : "", (long long)picked, field->scale);
}

/* Put the member, with its time, if that is a change. before: NULL if it is new. */
static void put_changed(struct twin_model *twin, struct adding *adding, struct twin_member member,
                        const struct twin_member *before) {
    bool is_changed = before == NULL || twin_compare_fields(&twin->layout, &member, before) != 0;
    bool is_stamped = adding->stamping == GIVEN || adding->stamping == TOUCHED ||
                      (is_changed && (adding->stamping == OF_CHANGE || before == NULL));
    int64_t time_us = adding->stamping == GIVEN ? adding->at_ms * 1000 : twin->server.now_us;
    if (is_stamped) {
        member.unit = twin_time_units(&twin->layout, time_us);
        if (!twin_is_time_in_field(&twin->layout, time_us)) {
            refuse(adding, TWIN_TIME_ERROR);
        }
    }
    if (is_changed || adding->stamping == TOUCHED || member.unit != before->unit) {
        twin_put_member(&twin->server, &adding->after, member);
        adding->are_written[adding->count - 1] = true;
    }
}

static int add_member(struct twin_model *twin, struct adding *adding, char *out, size_t size) {
    int id = twin_pick_member(twin);
    const struct twin_member *before = twin_member(&adding->after, id);
    struct twin_member member =
        before != NULL ? *before : (struct twin_member){.name = twin_name(id)};
    bool is_skipped = before != NULL ? adding->is_new_only : adding->is_existing_only;
    int used = 0;
    for (int i = 0; i < twin->layout.field_count; i++) {
        used += add_value(twin, adding, i, is_skipped, &member.values[i], out + used,
                          size - (size_t)used);
    }
    used += snprintf(out + used, size - (size_t)used, " m%d", id);
    adding->ids[adding->count++] = id;
    bool is_beaten = adding->operation == BEST && before != NULL &&
                     twin_compare_fields(&twin->layout, &member, before) >= 0;
    bool is_kept = adding->operation != INCREMENT && twin_keeps(&adding->after, &member);
    if (is_skipped || is_kept || (is_beaten && adding->stamping != TOUCHED)) {
        return used;
    }
    put_changed(twin, adding, is_beaten ? *before : member, before);
    return used;
}

/* Times around now, some of them outside the window. */
static int64_t pick_at_ms(struct twin_model *twin) {
    static const int64_t outside_ms[] = {-62135596800000, 253402300799999};
    int64_t unit_us = twin->layout.unit_us;
    if (twin_flip(twin, 40)) {
        return outside_ms[twin_flip(twin, 2)];
    }
    return (twin->server.now_us - (int64_t)random_below(&twin->random, 4) * unit_us) / 1000 + 1;
}

static int add_options(struct twin_model *twin, struct adding *adding, char *out, size_t size) {
    static const char *const operations[] = {"", " INCR", " BEST"};
    adding->is_new_only = twin_flip(twin, 8);
    adding->is_existing_only = !adding->is_new_only && twin_flip(twin, 8);
    adding->operation = (enum operation)random_below(&twin->random, 3);
    adding->stamping = (enum stamping)random_below(&twin->random, 4);
    adding->with_rank = twin_flip(twin, 3);
    int used = snprintf(out, size, "LB.ADD %s%s%s%s", twin->name, adding->is_new_only ? " NX" : "",
                        adding->is_existing_only ? " XX" : "", operations[adding->operation]);
    if (adding->stamping == GIVEN) {
        adding->at_ms = pick_at_ms(twin);
        if (twin->layout.time_bits == 0) {
            refuse(adding, "AT ~");
        } else if (!twin_is_time_in_field(&twin->layout, adding->at_ms * 1000)) {
            refuse(adding, TWIN_TIME_ERROR);
        }
        used += snprintf(out + used, size - (size_t)used, " AT %lld", (long long)adding->at_ms);
    } else if (adding->stamping != OF_CHANGE) {
        used += snprintf(out + used, size - (size_t)used, "%s",
                         adding->stamping == TOUCHED ? " TOUCH" : " KEEPTIME");
    }
    return used +
           snprintf(out + used, size - (size_t)used, "%s", adding->with_rank ? " WITHRANK" : "");
}

static void begin_adding(const struct twin_model *twin, struct adding *adding) {
    *adding = (struct adding){.error = NULL};
    twin_copy_members(&adding->after, twin->board);
}

static void finish_adding(struct twin_model *twin, struct adding *adding, const char *line) {
    struct twin_server *server = &twin->server;
    int64_t previous_ranks[8];
    int written_count = 0;
    twin_cut(&adding->after);
    for (int i = 0; i < adding->count; i++) {
        previous_ranks[i] = twin_rank(twin->board, adding->ids[i]);
        written_count += adding->are_written[i] &&
                         (previous_ranks[i] >= 0 || twin_rank(&adding->after, adding->ids[i]) >= 0);
    }
    if (adding->error == NULL) {
        twin_copy_members(twin->board, &adding->after);
    }
    if (adding->error != NULL) {
        twin_put_error(server, adding->error);
    } else if (adding->with_rank) {
        twin_put_array(server, (uint64_t)adding->count);
        for (int i = 0; i < adding->count; i++) {
            twin_put_array(server, 2);
            twin_put_found(twin, adding->ids[i], (struct twin_records){0});
            twin_put_rank(server, previous_ranks[i]);
        }
    } else {
        twin_put_integer(server, written_count);
    }
    twin_clear_members(&adding->after);
    twin_model_check(twin, line);
}

static void step_add(struct twin_model *twin) {
    char line[1024];
    struct adding adding;
    begin_adding(twin, &adding);
    int used = add_options(twin, &adding, line, sizeof(line));
    for (uint64_t left = twin_flip(twin, 2) ? 1 : 1 + random_below(&twin->random, 8); left > 0;
         left--) {
        used += add_member(twin, &adding, line + used, sizeof(line) - (size_t)used);
    }
    finish_adding(twin, &adding, line);
}

static void step_add_packed(struct twin_model *twin) {
    char line[1024];
    struct adding adding;
    begin_adding(twin, &adding);
    int used = snprintf(line, sizeof(line), "LB.ADD %s PACKED", twin->name);
    for (uint64_t left = 1 + random_below(&twin->random, 4); left > 0; left--) {
        int id = twin_pick_member(twin);
        const struct twin_member *before = twin_member(&adding.after, id);
        struct twin_member member = {.name = twin_name(id)};
        for (int i = 0; i < twin->layout.field_count; i++) {
            member.values[i] = twin_pick_value(twin, i);
        }
        int64_t earlier_us = (int64_t)random_below(&twin->random, 4) * twin->layout.unit_us;
        member.unit = twin_time_units(&twin->layout, twin->server.now_us - earlier_us);
        char text[64];
        used += snprintf(line + used, sizeof(line) - (size_t)used, " %s m%d",
                         twin_print_packed(twin, &member, text), id);
        bool is_same = before != NULL && before->unit == member.unit &&
                       twin_compare_fields(&twin->layout, &member, before) == 0;
        adding.ids[adding.count++] = id;
        if (!is_same && !twin_keeps(&adding.after, &member)) {
            twin_put_member(&twin->server, &adding.after, member);
            adding.are_written[adding.count - 1] = true;
        }
    }
    finish_adding(twin, &adding, line);
}

/* ---- other commands ---- */

static void step_zrem(struct twin_model *twin) {
    twin_model_run(twin, formatted("ZREM %s m%d", twin->name, twin_pick_member(twin)));
}

/* A write by score does not change the other fields. */
static void step_zadd(struct twin_model *twin) {
    static const char *const words[] = {"", "", "", " NX", " XX", " GT", " LT", " XX GT"};
    char line[512];
    int size = snprintf(line, sizeof(line), "ZADD %s%s%s", twin->name,
                        words[random_below(&twin->random, COUNT_OF(words))],
                        twin_flip(twin, 3) ? " CH" : "");
    for (uint64_t left = twin_flip(twin, 2) ? 1 : 1 + random_below(&twin->random, 8); left > 0;
         left--) {
        size += snprintf(line + size, sizeof(line) - (size_t)size, " %lldE-%d m%d",
                         (long long)twin_pick_value(twin, 0), twin->layout.fields[0].scale,
                         twin_pick_member(twin));
    }
    twin_model_run(twin, line);
}

static void step_increment(struct twin_model *twin) {
    int delta = (int)random_below(&twin->random, 4) - 1;
    bool is_zadd = twin_flip(twin, 2);
    twin_model_run(twin, formatted("%s%s%s %dE-%d m%d", is_zadd ? "ZADD " : "ZINCRBY ", twin->name,
                                   is_zadd ? " INCR" : "", delta, twin->layout.fields[0].scale,
                                   twin_pick_member(twin)));
}

/* Where LB.GET SORT answers it: by rank, missing ones last. */
static int64_t place_of(const struct twin_model *twin, int id) {
    int64_t rank = twin_rank(twin->board, id);
    return rank >= 0 ? rank : twin->board->count;
}

/* Those of the same place in the order of naming. */
static void sort_found(const struct twin_model *twin, int *ids, int count) {
    for (int i = 1; i < count; i++) {
        int moved = ids[i];
        int at = i;
        for (; at > 0 && place_of(twin, moved) < place_of(twin, ids[at - 1]); at--) {
            ids[at] = ids[at - 1];
        }
        ids[at] = moved;
    }
}

/* How ranks are shared, if they are. */
static struct twin_records pick_ranks(struct twin_model *twin) {
    uint64_t picked = random_below(&twin->random, 3);
    return (struct twin_records){.is_competition = picked == 1,
                                 .is_dense = picked == 2 && twin->is_dense};
}

static const char *word_of_ranks(struct twin_records records) {
    return records.is_competition ? " COMP" : records.is_dense ? " DENSE" : "";
}

static void step_get(struct twin_model *twin) {
    int count = 1 + (int)random_below(&twin->random, 40);
    int ids[40];
    struct twin_records records = pick_ranks(twin);
    records.with_percent = twin_flip(twin, 2);
    records.with_key = twin_flip(twin, 2);
    bool is_sorted = twin_flip(twin, 2);
    char line[512];
    int size = snprintf(line, sizeof(line), "LB.GET %s %d", twin->name, count);
    for (int i = 0; i < count; i++) {
        ids[i] = twin_pick_member(twin);
        size += snprintf(line + size, sizeof(line) - (size_t)size, " m%d", ids[i]);
    }
    snprintf(line + size, sizeof(line) - (size_t)size, "%s%s%s%s",
             records.with_key ? " WITHKEY" : "", is_sorted ? " SORT" : "", word_of_ranks(records),
             records.with_percent ? " PCT" : "");
    if (is_sorted) {
        sort_found(twin, ids, count);
    }
    twin_put_array(&twin->server, (uint64_t)count);
    for (int i = 0; i < count; i++) {
        twin_put_found(twin, ids[i], records);
    }
    twin_model_check(twin, line);
}

/* All ranks, in the order of the walk. */
static int list(const struct twin_model *twin, bool is_reverse, uint32_t *ranks) {
    uint32_t count = twin->board->count;
    for (uint32_t i = 0; i < count; i++) {
        ranks[i] = is_reverse ? count - 1 - i : i;
    }
    return (int)count;
}

/* Some of them from first on. */
static void put_records(struct twin_model *twin, const uint32_t *ranks, int first, int count,
                        struct twin_records records) {
    twin_put_array(&twin->server, (uint64_t)count);
    for (int i = first; i < first + count; i++) {
        twin_put_record(twin, ranks[i], records);
    }
}

static void step_range(struct twin_model *twin) {
    int start = (int)random_below(&twin->random, 2 * TWIN_MEMBERS + 6) - TWIN_MEMBERS - 3;
    int stop = (int)random_below(&twin->random, 2 * TWIN_MEMBERS + 6) - TWIN_MEMBERS - 3;
    struct twin_records records = pick_ranks(twin);
    records.with_key = twin_flip(twin, 2);
    bool is_reverse = twin_flip(twin, 2);
    uint32_t ranks[TWIN_MEMBERS];
    int count = list(twin, is_reverse, ranks);
    const char *line =
        formatted("LB.RANGE %s %d %d%s%s%s", twin->name, start, stop, is_reverse ? " REV" : "",
                  word_of_ranks(records), records.with_key ? " WITHKEY" : "");
    start = start < 0 ? start + count : start;
    stop = stop < 0 ? stop + count : stop;
    start = start < 0 ? 0 : start;
    stop = stop >= count ? count - 1 : stop;
    put_records(twin, ranks, start, start <= stop ? stop - start + 1 : 0, records);
    twin_model_check(twin, line);
}

/* Two limits, in either order, and what is inside. */
struct limits {
    char texts[2][32];
    int lower;         /* the text of the lower one */
    int64_t low, high; /* inclusive */
};

static void pick_limits(struct twin_model *twin, struct limits *limits) {
    int scale = twin->layout.fields[0].scale;
    int64_t values[2] = {twin_pick_value(twin, 0) - 1, twin_pick_value(twin, 0) + 1};
    int low = values[0] <= values[1] ? 0 : 1;
    limits->lower = low;
    limits->low = values[low];
    limits->high = values[1 - low];
    for (int i = 0; i < 2; i++) {
        bool is_out = twin_flip(twin, 3);
        bool is_open = twin_flip(twin, 6);
        snprintf(limits->texts[i], sizeof(limits->texts[i]), "%s%lldE-%d", is_out ? "(" : "",
                 (long long)values[i], scale);
        if (is_open) {
            strcpy(limits->texts[i], i == low ? "-inf" : "+inf");
        }
        int64_t *limit = i == low ? &limits->low : &limits->high;
        int64_t inward = i == low ? 1 : -1;
        *limit = is_open ? (i == low ? INT64_MIN : INT64_MAX) : *limit + (is_out ? inward : 0);
    }
}

/* Counts, ranks and removals by the score, on boards where other fields rank members, too. */
static void step_by_score(struct twin_model *twin) {
    struct limits limits;
    pick_limits(twin, &limits);
    const char *low = limits.texts[limits.lower], *high = limits.texts[1 - limits.lower];
    switch (random_below(&twin->random, 10)) {
    case 0:
        twin_model_run(twin, formatted("ZREMRANGEBYSCORE %s %s %s", twin->name, low, high));
        break;
    case 1:
        twin_model_run(twin, formatted("ZPOP%s %s %d", twin_flip(twin, 2) ? "MIN" : "MAX",
                                       twin->name, (int)random_below(&twin->random, 5)));
        break;
    case 2:
    case 3:
    case 4:
        twin_model_run(twin, formatted("ZCOUNT %s %s %s", twin->name, low, high));
        break;
    default:
        twin_model_run(twin,
                       formatted("Z%sRANK %s m%d%s", twin_flip(twin, 2) ? "REV" : "", twin->name,
                                 twin_pick_member(twin), twin_flip(twin, 2) ? " WITHSCORE" : ""));
    }
}

static void step_range_by_score(struct twin_model *twin) {
    struct limits limits;
    struct twin_records records = pick_ranks(twin);
    records.with_key = twin_flip(twin, 2);
    bool is_reverse = twin_flip(twin, 2);
    int offset = (int)random_below(&twin->random, 8) - 1;
    int limit = (int)random_below(&twin->random, 8) - 2;
    uint32_t ranks[TWIN_MEMBERS];
    char line[256];
    pick_limits(twin, &limits);
    snprintf(line, sizeof(line), "LB.RANGE %s %s %s BYSCORE LIMIT %d %d%s%s%s", twin->name,
             limits.texts[0], limits.texts[1], offset, limit, is_reverse ? " REV" : "",
             word_of_ranks(records), records.with_key ? " WITHKEY" : "");
    int count = 0;
    int all = list(twin, is_reverse, ranks);
    for (int i = 0; i < all; i++) {
        twin_wide score = twin->board->members[ranks[i]].values[0];
        if (score >= limits.low && score <= limits.high) {
            ranks[count++] = ranks[i];
        }
    }
    count = offset < 0 || offset >= count ? 0 : count - offset;
    count = limit >= 0 && limit < count ? limit : count;
    put_records(twin, ranks, offset, count, records);
    twin_model_check(twin, line);
}

static void step_around(struct twin_model *twin) {
    int size = 1 + (int)random_below(&twin->random, TWIN_MEMBERS + 4);
    struct twin_records records = pick_ranks(twin);
    bool is_score = twin_flip(twin, 2);
    int id = twin_pick_member(twin);
    uint32_t ranks[TWIN_MEMBERS];
    int count = list(twin, false, ranks);
    int64_t rank;
    char line[128];
    if (is_score) {
        int64_t score = twin_pick_value(twin, 0);
        struct twin_member newcomer = {.values = {score}, .unit = INT64_MAX, .arrival = UINT64_MAX};
        rank = twin_count_better(twin->board, &newcomer);
        snprintf(line, sizeof(line), "LB.AROUND %s SCORE %lldE-%d %d%s", twin->name,
                 (long long)score, twin->layout.fields[0].scale, size, word_of_ranks(records));
    } else {
        rank = twin_rank(twin->board, id);
        snprintf(line, sizeof(line), "LB.AROUND %s MEMBER m%d %d%s", twin->name, id, size,
                 word_of_ranks(records));
        count = rank >= 0 ? count : 0;
    }
    size = size < count ? size : count;
    int first = (int)rank - size / 2;
    first = first > count - size ? count - size : first;
    first = first < 0 ? 0 : first;
    put_records(twin, ranks, first, size, records);
    twin_model_check(twin, line);
}

static void step_quantile(struct twin_model *twin) {
    int count = (int)twin->board->count;
    char line[128];
    struct twin_records records = {.is_dense = twin->is_dense && twin_flip(twin, 2)};
    int size = snprintf(line, sizeof(line), "LB.QUANTILE %s", twin->name);
    twin_put_array(&twin->server, 3);
    for (int i = 0; i < 3; i++) {
        int thousandths = (int)random_below(&twin->random, 1001);
        size += snprintf(line + size, sizeof(line) - (size_t)size, " %dE-3", thousandths);
        int from_worst = (thousandths * count + 999) / 1000;
        from_worst = from_worst == 0 ? 1 : from_worst;
        if (count > 0) {
            twin_put_record(twin, (uint32_t)(count - from_worst), records);
        } else {
            twin_put_null_array(&twin->server);
        }
    }
    strcat(line, word_of_ranks(records));
    twin_model_check(twin, line);
}

/* Members with a score of low or more and below high. */
static int count_scores(const struct twin_model *twin, int64_t low, int64_t high) {
    int count = 0;
    for (uint32_t i = 0; i < twin->board->count; i++) {
        twin_wide score = twin->board->members[i].values[0];
        count += score >= low && score < high;
    }
    return count;
}

static void step_hist(struct twin_model *twin) {
    int64_t edge = twin_pick_value(twin, 0) - 1;
    int64_t low = INT64_MIN;
    char line[128];
    int size = snprintf(line, sizeof(line), "LB.HIST %s", twin->name);
    uint64_t edges = 1 + random_below(&twin->random, 4);
    twin_put_array(&twin->server, edges + 1);
    for (uint64_t left = edges; left > 0; left--) {
        size += snprintf(line + size, sizeof(line) - (size_t)size, " %lldE-%d", (long long)edge,
                         twin->layout.fields[0].scale);
        twin_put_integer(&twin->server, count_scores(twin, low, edge));
        low = edge;
        edge += 1 + (int64_t)random_below(&twin->random, 2);
    }
    twin_put_integer(&twin->server, count_scores(twin, low, INT64_MAX));
    twin_model_check(twin, line);
}

static twin_wide packed(const struct twin_model *twin, uint32_t rank, char *text) {
    const char *digits = twin_print_packed(twin, &twin->board->members[rank], text);
    twin_wide key = 0;
    for (const char *at = digits + (digits[0] == '-'); *at != '\0'; at++) {
        key = 10 * key + (*at - '0');
    }
    return digits[0] == '-' ? -key : key;
}

static void step_above(struct twin_model *twin) {
    uint32_t count = twin->board->count;
    if (count == 0) {
        return;
    }
    char text[64], other[64];
    bool is_equal = twin_flip(twin, 2);
    twin_wide key = packed(twin, (uint32_t)random_below(&twin->random, count), text);
    int64_t above = 0;
    for (uint32_t i = 0; i < count; i++) {
        twin_wide its = packed(twin, i, other);
        above += its > key || (is_equal && its == key);
    }
    twin_put_array(&twin->server, 1);
    twin_put_integer(&twin->server, above);
    twin_model_check(twin, formatted("LB.ABOVE %s %s%s", twin->name, is_equal ? "=" : "", text));
}

static void step_cuts(struct twin_model *twin) {
    uint32_t count = twin->board->count, cuts = 2 + (uint32_t)random_below(&twin->random, 8);
    uint32_t start = (uint32_t)random_below(&twin->random, 4);
    uint32_t size = start < count ? count - start : 0, shown = cuts < size ? cuts : size;
    twin_put_array(&twin->server, shown);
    for (uint32_t i = 0; i < shown; i++) {
        char text[64];
        uint32_t rank = start + (shown > 1 ? i * (size - 1) / (shown - 1) : 0);
        twin_put_array(&twin->server, 2);
        twin_put_integer(&twin->server, rank);
        twin_put_bulk(&twin->server,
                      bytes_from_text(twin_print_packed(twin, &twin->board->members[rank], text)));
    }
    twin_model_check(twin, formatted("LB.CUTS %s %u %u -1", twin->name, cuts, start));
}

static void step_clock(struct twin_model *twin) {
    static const int64_t steps_us[] = {1, 1000, 400000, 1000000, 61000000, -5000000, -1};
    twin->harness->wall_us += steps_us[random_below(&twin->random, 7)];
}

static const struct {
    void (*step)(struct twin_model *);
    int weight;
} steps[] = {
    {step_add, 8},      {step_add_packed, 1}, {step_zadd, 3},  {step_increment, 2},
    {step_zrem, 1},     {step_get, 2},        {step_range, 2}, {step_range_by_score, 2},
    {step_around, 2},   {step_quantile, 1},   {step_hist, 1},  {step_clock, 2},
    {step_by_score, 2}, {step_above, 1},      {step_cuts, 1},
};

static void run_step(struct twin_model *twin) {
    int left = (int)random_below(&twin->random, 31); /* the sum of the weights */
    size_t i = 0;
    for (; left >= steps[i].weight; i++) {
        left -= steps[i].weight;
    }
    twin_model_begin(twin);
    steps[i].step(twin);
}

static void run_board(struct twin_model *twin, const char *key, int step_count) {
    char name[32];
    snprintf(name, sizeof(name), "%s", key);
    twin_model_start(twin, name);
    for (int step = 0; step < step_count; step++) {
        run_step(twin);
        if (step % 32 == 0) {
            twin_model_compare(twin);
        }
    }
    twin_model_stop(twin);
}

TEST(the_server_answers_as_the_naive_twin) {
    bool is_short = getenv("LEADERBOARD_TEST_SHORT") != NULL;
    char settings[8192];
    int size = snprintf(settings, sizeof(settings), "%s", zset_settings);
    for (size_t i = 0; i < OPTION_BOARDS; i++) {
        size += snprintf(settings + size, sizeof(settings) - (size_t)size, "board %zu-* %s %s\n", i,
                         optional_layouts[i / COUNT_OF(options)], options[i % COUNT_OF(options)]);
    }
    struct harness *h = harness_create(settings);
    struct twin_model twin = {.harness = h, .random = random_begin("lb model")};
    harness_connect(h);
    for (size_t i = 0; i < COUNT_OF(prefixes); i++) {
        run_board(&twin, formatted("%sk", prefixes[i]), is_short ? 1000 : 5000);
    }
    for (int i = 0; i < OPTION_BOARDS; i++) {
        twin.is_dense = strstr(options[(size_t)i % COUNT_OF(options)], "DENSE") != NULL;
        run_board(&twin, formatted("%d-k", i), is_short ? 300 : 1500);
    }
    harness_destroy(h);
}
