/* Zones against zdump, which reads the same files with the C library's own code, and periods in
 * them against a naive clock that goes minute by minute. */
#include "tests/support/test.h"

#include <time.h>

#include "codec/memory.h"
#include "codec/period.h"
#include "codec/zone.h"
#include "tests/support/random.h"

/* Summer time of an hour; at midnight; of half an hour; a day left out (2011); at one minute past
 * midnight (until 2011); south of the equator; around Ramadan; none. */
static const char *const zones[] = {
    "Europe/Berlin",    "America/Havana", "Australia/Lord_Howe", "Pacific/Apia",
    "America/St_Johns", "Asia/Gaza",      "Africa/Casablanca",   "Asia/Shanghai",
};
enum { ZONES = COUNT_OF(zones), DUMPED_MAX = 4096 };

static int first_year = 2000;
static int last_year = 2030;

/* ---- files ---- */

static size_t read_file(const char *name, char *out, size_t size_max) {
    const char *directory = getenv("TZDIR");
    FILE *file = fopen(
        formatted("%s/%s", directory != NULL ? directory : "/usr/share/zoneinfo", name), "rb");
    assert_non_null(file);
    size_t size = fread(out, 1, size_max, file);
    fclose(file);
    return size;
}

static struct zone *load(const char *name) {
    static char bytes[ZONE_FILE_MAX];
    const char *reason = NULL;
    struct bytes file = {.at = bytes, .size = read_file(name, bytes, sizeof bytes)};
    struct zone *zone = zone_create(bytes_from_text(name), file, &reason);
    assert_non_null(zone);
    assert_null(reason);
    return zone;
}

/* ---- zdump ---- */

struct dumped {
    int64_t time_s;
    int32_t offset_s; /* from then on */
};

static int month_of(const char *name) {
    static const char names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    return (int)(strstr(names, name) - names) / 3;
}

/* The offset on 1 January of the first year, then the changes from 1990 to 2110. */
static size_t dump(const char *name, struct dumped *dumped) {
    char line[512];
    size_t count = 0;
    snprintf(line, sizeof line, "zdump -v -c 1990,2110 %s", name);
    FILE *pipe = popen(line, "r");
    assert_non_null(pipe);
    while (fgets(line, sizeof line, pipe) != NULL) {
        char month[4];
        struct tm tm = {0};
        const char *at = strstr(line, " = ");
        const char *offset = strstr(line, "gmtoff=");
        if (at == NULL || offset == NULL ||
            sscanf(line, "%*s %*s %3s %d %d:%d:%d %d UT", month, &tm.tm_mday, &tm.tm_hour,
                   &tm.tm_min, &tm.tm_sec, &tm.tm_year) != 6) {
            continue;
        }
        tm.tm_mon = month_of(month);
        tm.tm_year -= 1900;
        assert_true(count < DUMPED_MAX);
        dumped[count].time_s = timegm(&tm);
        dumped[count++].offset_s = (int32_t)strtol(offset + 7, NULL, 10);
    }
    assert_int_equal(pclose(pipe), 0);
    return count;
}

TEST(offsets_are_those_of_zdump_on_both_sides_of_every_change) {
    static struct dumped dumped[DUMPED_MAX];
    for (size_t i = 0; i < ZONES; i++) {
        struct zone *zone = load(zones[i]);
        size_t count = dump(zones[i], dumped);
        assert_true(count > 0 || strcmp(zones[i], "Asia/Shanghai") == 0);
        for (size_t j = 0; j < count; j++) {
            /* zdump has a line for the last second before a change and one for the first after. */
            assert_int_equal(zone_offset_s(zone, dumped[j].time_s), dumped[j].offset_s);
        }
        zone_destroy(zone);
    }
}

/* ---- a naive clock ---- */

/* Minutes since 1970 in local time at each change, in order. */
struct naive_zone {
    struct dumped changes[DUMPED_MAX];
    size_t count;
    size_t next; /* of the changes */
    int32_t offset_s;
};

static void naive_begin(struct naive_zone *naive, const char *name, int64_t time_s) {
    naive->count = dump(name, naive->changes);
    naive->next = 0;
    naive->offset_s = naive->count > 0 ? naive->changes[0].offset_s : 28800;
    while (naive->next < naive->count && naive->changes[naive->next].time_s <= time_s) {
        naive->offset_s = naive->changes[naive->next++].offset_s;
    }
}

static int64_t naive_local(struct naive_zone *naive, int64_t time_s) {
    while (naive->next < naive->count && naive->changes[naive->next].time_s <= time_s) {
        naive->offset_s = naive->changes[naive->next++].offset_s;
    }
    return time_s + naive->offset_s;
}

/* Does a period begin at this local time, by the calendar? */
static bool is_beginning(const struct period *period, int64_t local_s) {
    time_t seconds = local_s;
    time_t from_seconds = period->from_day * INT64_C(86400);
    struct tm tm;
    struct tm from;
    if (local_s % 3600 != 0) {
        return false;
    }
    gmtime_r(&seconds, &tm);
    gmtime_r(&from_seconds, &from);
    int64_t days = local_s / 86400 - period->from_day;
    int weekday = (tm.tm_wday + 6) % 7;
    switch (period->unit) {
    case PERIOD_HOUR:
        return (days * 24 + tm.tm_hour - period->hour) % period->every == 0;
    case PERIOD_DAY:
        return tm.tm_hour == period->hour && days % period->every == 0;
    case PERIOD_WEEK: {
        int64_t from_week = period->from_day - (from.tm_wday + 6 - period->weekday + 7) % 7;
        return tm.tm_hour == period->hour && weekday == period->weekday &&
               (local_s / 86400 - from_week) / 7 % period->every == 0;
    }
    case PERIOD_MONTH:
        return tm.tm_hour == period->hour && tm.tm_mday == 1 &&
               ((tm.tm_year - from.tm_year) * 12 + tm.tm_mon - from.tm_mon) % period->every == 0;
    case PERIOD_YEAR:
        return tm.tm_hour == period->hour && tm.tm_yday == 0 &&
               (tm.tm_year - from.tm_year) % period->every == 0;
    case PERIOD_NONE:
    case PERIOD_UNITS:
        break;
    }
    return false;
}

static void pick_period(struct random *random, size_t index, const struct zone *zone,
                        struct period *period) {
    static const enum period_unit units[] = {PERIOD_HOUR, PERIOD_DAY, PERIOD_WEEK, PERIOD_MONTH,
                                             PERIOD_YEAR, PERIOD_DAY, PERIOD_HOUR};
    *period = (struct period){.unit = units[index % 7], .every = 1, .zone = zone};
    if (index >= 5) {
        period->every = (uint16_t)(2 + random_below(random, index == 5 ? 9 : 30));
        period->from_day = (int32_t)random_below(random, 20000);
    }
    /* Half of them at the hours that changes of summer time leave out or repeat. */
    period->hour = (uint8_t)random_below(random, random_below(random, 2) == 0 ? 4 : 24);
    if (period->unit == PERIOD_WEEK) {
        period->weekday = (uint8_t)(random_below(random, 2) == 0 ? 6 : random_below(random, 7));
    }
}

enum { PERIODS = 7 };

struct naive_period {
    struct period period;
    int64_t start_ms; /* of the present one; -1: not known yet */
};

static void check_beginning(struct naive_period *naive, int64_t time_ms) {
    const struct period *period = &naive->period;
    if (naive->start_ms >= 0) {
        assert_true(period_start_after(period, naive->start_ms, 1) == time_ms);
        assert_true(period_start_after(period, time_ms - 1, 1) == time_ms);
        assert_true(period_start(period, time_ms - 1) == naive->start_ms);
        assert_true(time_ms - naive->start_ms <= period_longest_ms(period) ||
                    zone_setback_s(period->zone) == 0);
    }
    assert_true(period_start(period, time_ms) == time_ms);
    naive->start_ms = time_ms;
}

static void check_zone(struct random *random, const char *name) {
    static struct naive_zone clock;
    struct naive_period naive[PERIODS];
    struct tm tm = {.tm_year = first_year - 1900, .tm_mon = 0, .tm_mday = 2};
    int64_t time_s = timegm(&tm);
    tm = (struct tm){.tm_year = last_year - 1900, .tm_mon = 0, .tm_mday = 2};
    int64_t end_s = timegm(&tm);
    struct zone *zone = load(name);
    naive_begin(&clock, name, time_s);
    for (size_t i = 0; i < PERIODS; i++) {
        pick_period(random, i, zone, &naive[i].period);
        naive[i].start_ms = -1;
    }
    /* The latest local time that the clock has shown. */
    int64_t shown_s = naive_local(&clock, time_s);
    for (; time_s < end_s; time_s += 60) {
        int64_t local_s = naive_local(&clock, time_s);
        int64_t from_s = shown_s + 60;
        shown_s = local_s > shown_s ? local_s : shown_s;
        for (size_t i = 0; i < PERIODS; i++) {
            bool is_begun = false;
            for (int64_t at_s = from_s; at_s <= local_s; at_s += 60) {
                is_begun = is_begun || is_beginning(&naive[i].period, at_s);
            }
            if (is_begun) {
                check_beginning(&naive[i], time_s * 1000);
            }
        }
    }
    zone_destroy(zone);
}

TEST(periods_begin_when_a_clock_that_goes_minute_by_minute_shows_it) {
    struct random random = random_begin(__func__);
    for (size_t i = 0; i < ZONES; i++) {
        check_zone(&random, zones[i]);
    }
}

/* ---- by hand ---- */

static int64_t at(int year, int month, int day, int hour, int minute) {
    struct tm tm = {.tm_year = year - 1900,
                    .tm_mon = month - 1,
                    .tm_mday = day,
                    .tm_hour = hour,
                    .tm_min = minute};
    return timegm(&tm);
}

TEST(a_time_that_is_left_out_is_the_end_of_the_gap_and_one_that_exists_twice_the_first) {
    struct zone *berlin = load("Europe/Berlin");
    assert_int_equal(zone_reach_s(berlin, at(2026, 3, 29, 1, 59)), at(2026, 3, 29, 0, 59));
    assert_int_equal(zone_reach_s(berlin, at(2026, 3, 29, 2, 30)), at(2026, 3, 29, 1, 0));
    assert_int_equal(zone_reach_s(berlin, at(2026, 3, 29, 3, 0)), at(2026, 3, 29, 1, 0));
    assert_int_equal(zone_reach_s(berlin, at(2026, 10, 25, 2, 30)), at(2026, 10, 25, 0, 30));
    assert_int_equal(zone_reach_s(berlin, at(2026, 10, 25, 3, 0)), at(2026, 10, 25, 2, 0));
    /* Long after the last change in the file, by the rule. */
    assert_int_equal(zone_reach_s(berlin, at(2497, 7, 1, 0, 0)), at(2497, 6, 30, 22, 0));
    assert_int_equal(zone_setback_s(berlin), 3600);
    assert_string_equal(zone_name(berlin), "Europe/Berlin");
    assert_false(zone_is_missing(berlin));
    zone_destroy(berlin);
}

TEST(an_hour_that_exists_twice_is_one_period_of_two_hours) {
    struct zone *berlin = load("Europe/Berlin");
    struct period hour = {.unit = PERIOD_HOUR, .every = 1, .zone = berlin};
    int64_t start_ms = at(2026, 10, 25, 0, 0) * 1000;
    char text[PERIOD_NAME_TEXT_MAX];
    assert_true(period_start(&hour, start_ms + 7199999) == start_ms);
    assert_true(period_start_after(&hour, start_ms, 1) == start_ms + 7200000);
    assert_true(period_longest_ms(&hour) == 7200000);
    struct bytes name = {text, period_print_name(text, &hour, start_ms + 7199999)};
    assert_true(bytes_equal(name, BYTES("2026-10-25T02")));
    /* The hour that is left out has no length. */
    int64_t gap_ms = at(2026, 3, 29, 1, 0) * 1000;
    assert_true(period_start(&hour, gap_ms) == gap_ms);
    name.size = period_print_name(text, &hour, gap_ms);
    assert_true(bytes_equal(name, BYTES("2026-03-29T03")));
    assert_true(period_start_after(&hour, gap_ms - 1, 1) == gap_ms);
    assert_true(period_start_after(&hour, gap_ms - 1, 2) == gap_ms);
    zone_destroy(berlin);
}

TEST(after_an_update_of_tzdata_the_nearest_end_counts) {
    struct zone *berlin = load("Europe/Berlin");
    struct period day = {.unit = PERIOD_DAY, .every = 1, .zone = berlin};
    int64_t start_ms = at(2026, 11, 15, 23, 0) * 1000;
    int64_t end_ms = start_ms + 86400000;
    assert_true(period_nearest_end(&day, end_ms, start_ms) == end_ms);
    /* The older tzdata had another offset. */
    assert_true(period_nearest_end(&day, end_ms + 3600000, start_ms) == end_ms);
    assert_true(period_nearest_end(&day, end_ms - 3600000, start_ms) == end_ms);
    assert_true(period_nearest_end(&day, start_ms + 1, start_ms) == end_ms);
    zone_destroy(berlin);
}

TEST(names_never_lead_out_of_the_directory) {
    static const char *const good[] = {"UTC",
                                       "GB",
                                       "Etc/GMT+10",
                                       "America/Port-au-Prince",
                                       "America/Argentina/ComodRivadavia",
                                       "Asia/Ust-Nera"};
    static const char *const bad[] = {
        "",      "/etc/passwd", "../x",  "a/../b",         "a//b",    "a/",   "/",     ".",
        "a.tab", "+08:00",      "+0800", "Europe/Ber lin", "Eur\x80", "a/-b", "a/./b", "a\\b"};
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        assert_true(zone_is_name(bytes_from_text(good[i])));
    }
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_false(zone_is_name(bytes_from_text(bad[i])));
    }
    char name[ZONE_NAME_MAX + 1];
    memset(name, 'a', sizeof name);
    assert_true(zone_is_name((struct bytes){name, ZONE_NAME_MAX}));
    assert_false(zone_is_name((struct bytes){name, ZONE_NAME_MAX + 1}));
    assert_false(zone_is_name((struct bytes){"a\0b", 3}));
}

TEST(a_missing_zone_is_utc_and_says_so) {
    struct zone *zone = zone_create_missing(BYTES("Mars/Base"));
    assert_true(zone_is_missing(zone));
    assert_string_equal(zone_name(zone), "Mars/Base");
    assert_int_equal(zone_offset_s(zone, 0), 0);
    assert_int_equal(zone_reach_s(zone, 12345), 12345);
    zone_destroy(zone);
}

/* ---- damaged files ---- */

static struct zone *read_bytes(const char *bytes, size_t size, const char **reason) {
    /* A copy of exactly that size, for the sanitizer. */
    char *copy = malloc(size > 0 ? size : 1);
    memcpy(copy, bytes, size);
    *reason = NULL;
    struct zone *zone = zone_create(BYTES("X"), (struct bytes){copy, size}, reason);
    assert_true((zone == NULL) == (*reason != NULL));
    free(copy);
    return zone;
}

TEST(a_file_cut_anywhere_is_refused_and_one_damaged_anywhere_is_read_or_refused) {
    static char bytes[ZONE_FILE_MAX];
    struct random random = random_begin(__func__);
    const char *reason;
    size_t size = read_file("Europe/Berlin", bytes, sizeof bytes);
    for (size_t cut = 0; cut < size; cut++) {
        assert_null(read_bytes(bytes, cut, &reason));
    }
    for (int i = 0; i < 20000; i++) {
        size_t place = random_below(&random, size);
        char before = bytes[place];
        bytes[place] = (char)random_below(&random, 256);
        struct zone *zone = read_bytes(bytes, size, &reason);
        if (zone != NULL) {
            int64_t time_s = (int64_t)random_below(&random, UINT64_C(1) << 33);
            int32_t offset_s = zone_offset_s(zone, time_s);
            assert_true(offset_s > -ZONE_OFFSET_MAX);
            assert_true(offset_s < ZONE_OFFSET_MAX);
            assert_true(zone_reach_s(zone, time_s + offset_s) <= time_s);
            zone_destroy(zone);
        }
        bytes[place] = before;
    }
}

TEST(leap_seconds_and_old_files_are_refused) {
    static char bytes[ZONE_FILE_MAX];
    const char *reason;
    size_t size = read_file("Europe/Berlin", bytes, sizeof bytes);
    bytes[4] = '\0';
    assert_null(read_bytes(bytes, size, &reason));
    assert_string_equal(reason, "it is not a file of tzdata, or one from before 2005");
    assert_null(read_bytes("TZif3", 5, &reason));
}

/* A file without changes, with this last line. */
static struct zone *with_rule(const char *rule, const char **reason) {
    char bytes[512] = {0};
    size_t size = 0;
    for (int block = 0; block < 2; block++) {
        memcpy(bytes + size, "TZif2", 5);
        bytes[size + 39] = 1; /* a type */
        size += 44 + 6;
    }
    size += (size_t)snprintf(bytes + size, sizeof bytes - size, "\n%s\n", rule);
    return read_bytes(bytes, size, reason);
}

TEST(rules_are_those_of_posix) {
    static const struct {
        const char *rule;
        int64_t summer_s; /* a time at which it begins, and one at which it ends */
        int64_t winter_s;
        int32_t shift_s;
    } samples[] = {
        {"CET-1CEST,M3.5.0,M10.5.0/3", 1774746000, 1792890000, 3600},
        /* Summer time goes the other way round, as in Dublin's file. */
        {"IST-1GMT0,M10.5.0,M3.5.0/1", 1792890000, 1774746000, -3600},
        {"AAA0BBB,J60/0,J300/1", 1772323200, 1793059200, 3600},
        {"AAA0BBB,59/0,299/1", 1772323200, 1793059200, 3600},
        {"<-02>2<-01>,M3.5.0/-1,M10.5.0/0", 1774746000, 1792890000, 3600},
        {"EET-2EEST-3,M3.4.4/50,M10.4.4/50", 1774656000, 1792796400, 3600},
    };
    const char *reason;
    for (size_t i = 0; i < COUNT_OF(samples); i++) {
        struct zone *zone = with_rule(samples[i].rule, &reason);
        assert_non_null(zone);
        int32_t winter_s = zone_offset_s(zone, samples[i].summer_s - 1);
        assert_int_equal(zone_offset_s(zone, samples[i].summer_s), winter_s + samples[i].shift_s);
        assert_int_equal(zone_offset_s(zone, samples[i].winter_s - 1),
                         winter_s + samples[i].shift_s);
        assert_int_equal(zone_offset_s(zone, samples[i].winter_s), winter_s);
        assert_int_equal(zone_setback_s(zone), 3600);
        zone_destroy(zone);
    }
    /* All year, as RFC 9636 writes it. */
    struct zone *zone = with_rule("XXX3EDT4,0/0,J365/23", &reason);
    assert_non_null(zone);
    for (int64_t time_s = 1767225600; time_s < 1767225600 + 800 * 86400; time_s += 3600) {
        assert_int_equal(zone_offset_s(zone, time_s), -4 * 3600);
    }
    zone_destroy(zone);
    static const char *const wrong[] = {
        "CE-1",
        "CET",
        "CET-25",
        "CET-1CEST",
        "CET-1CEST,M3.5.0",
        "CET-1CEST,M13.5.0,M10.5.0",
        "CET-1CEST,M3.6.0,M10.5.0",
        "CET-1CEST,M3.5.7,M10.5.0",
        "CET-1CEST,J0,J9",
        "CET-1CEST,366,9",
        "CET-1CEST,M3.5.0,M10.5.0x",
        "CET-1CEST,M3.5.0/168,M10.5.0",
        "<CET-1",
        "CET-1:60",
        "CET-1 ",
        "CET-1CEST,M3.5,M10.5.0",
    };
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        assert_null(with_rule(wrong[i], &reason));
        assert_string_equal(reason, "the rule in its last line is not understood");
    }
}

TEST(without_memory_there_is_no_zone) {
    static char bytes[ZONE_FILE_MAX];
    const char *reason = NULL;
    struct bytes file = {bytes, read_file("Europe/Berlin", bytes, sizeof bytes)};
    memory_fail_at(1);
    assert_null(zone_create(BYTES("Europe/Berlin"), file, &reason));
    assert_string_equal(reason, "out of memory");
    memory_fail_at(1);
    assert_null(zone_create_missing(BYTES("Europe/Berlin")));
    memory_fail_at(0);
}

int main(void) {
    if (is_short_run()) {
        first_year = 2009;
        last_year = 2013;
    }
    return test_run(NULL, NULL);
}
