/* The metrics as text: OpenMetrics 1.0, or the text format of Prometheus that is older.
 *
 * The room: monitoring.h is a table of routes on http/; /metrics copies figures.h on the engine's thread, and this
 * file prints them on the HTTP thread. INFO and the page (web/) show the same figures. */
#ifndef SERVER_METRICS_H
#define SERVER_METRICS_H

#include "codec/buffer.h"
#include "server/metrics/figures.h"

enum metrics_format { METRICS_OPENMETRICS, METRICS_PROMETHEUS };

/* The format that an Accept header asks for; NULL: OpenMetrics. */
enum metrics_format metrics_choose(const char *accept);
const char *metrics_content_type(enum metrics_format format);
/* Print all metrics. */
void metrics_print(const struct figures *figures, enum metrics_format format, struct buffer *out);

#endif
