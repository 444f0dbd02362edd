/* Timestamps in microseconds since 1970-01-01T00:00:00Z, and their text form.
 *
 * Input: ISO 8601 with an offset ("2029-01-01T00:00:00+08:00", "2022-12-15T13:30:30.250Z", fraction
 * up to 6 digits), or an integer in unix milliseconds. Years 1 to 9999, proleptic Gregorian. Leap
 * seconds are refused, because unix time has none. */
#ifndef CODEC_TIMESTAMP_H
#define CODEC_TIMESTAMP_H

#include "codec/bytes.h"

/* "2022-12-15T13:30:30.250000Z" */
enum { TIMESTAMP_TEXT_MAX = 32 };

/* false: text has neither form or is out of range; *time_us is then left unchanged. */
MUST_CHECK bool timestamp_parse(struct bytes text, int64_t *time_us);

/* Write ISO 8601 in UTC, with a fraction (3 or 6 digits) only if it is not zero. A time outside
 * years 1 to 9999 is written as unix milliseconds, which timestamp_parse accepts. Returns the size,
 * without a terminator. */
size_t timestamp_print(char *out, int64_t time_us);

#endif
