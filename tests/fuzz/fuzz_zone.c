/* Any bytes as a file of tzdata: refused with a reason, or a zone in which every period contains its
 * times. The times come from the bytes too. */
#include "codec/period.h"
#include "codec/zone.h"
#include "tests/fuzz/fuzz.h"

static void check_time(const struct zone *zone, int64_t time_s) {
    int32_t offset_s = zone_offset_s(zone, time_s);
    CHECK(offset_s > -ZONE_OFFSET_MAX && offset_s < ZONE_OFFSET_MAX);
    CHECK(zone_reach_s(zone, time_s + offset_s) <= time_s);
}

static void check_period(const struct period *period, int64_t time_ms) {
    int64_t start_ms = period_start(period, time_ms);
    int64_t end_ms = period_start_after(period, time_ms, 1);
    CHECK(start_ms <= time_ms && time_ms < end_ms);
    CHECK(period_start(period, start_ms) == start_ms);
    CHECK(period_start(period, end_ms - 1) == start_ms);
    CHECK(period_nearest_end(period, end_ms, start_ms) == end_ms);
    char name[PERIOD_NAME_TEXT_MAX];
    CHECK(period_print_name(name, period, time_ms) <= PERIOD_NAME_TEXT_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *reason = NULL;
    struct bytes file = {.at = (const char *)data, .size = size};
    struct zone *zone = zone_create(BYTES("A/B"), file, &reason);
    CHECK((zone == NULL) == (reason != NULL));
    if (zone == NULL) {
        return 0;
    }
    for (size_t i = 0; i + 8 <= size && i < 512; i += 8) {
        int64_t time_s;
        memcpy(&time_s, data + i, sizeof time_s);
        time_s %= PERIOD_TIME_MAX / 1000;
        check_time(zone, time_s);
        check_time(zone, time_s % (INT64_C(1) << 32));
        for (int unit = PERIOD_NONE + 1; unit < PERIOD_UNITS; unit++) {
            const struct period period = {.unit = (enum period_unit)unit,
                                          .every = (uint16_t)(1 + data[i] % 12),
                                          .hour = data[i + 1] % 24,
                                          .zone = zone};
            check_period(&period, time_s % (INT64_C(1) << 33) * 1000);
        }
    }
    zone_destroy(zone);
    return 0;
}
