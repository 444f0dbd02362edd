/* The metrics, from the table of figures. See metrics.h.
 *
 *     row                             OpenMetrics                     Prometheus
 *     COUNTER(..., "x", ...)          # TYPE leaderboard_x counter    # TYPE leaderboard_x_total counter
 *                                     leaderboard_x_total 1           leaderboard_x_total 1
 *
 * Units are seconds and bytes, and end the name. Numbers are printed exactly, from integers. */
#include "server/metrics/metrics.h"

#include <stdarg.h>

#include "server/dispatch/command.h"
#include "server/http/http_header.h"

struct page {
    const struct figures *figures;
    enum metrics_format format;
    struct buffer *out;
    const struct figure *family; /* being printed */
    const struct figure *sample; /* the same, or the row of a further sample */
};

/* ---- printing ---- */

__attribute__((format(printf, 2, 3))) static void metrics_put(struct page *page, const char *format,
                                                              ...) {
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    CHECK(size >= 0 && (size_t)size < sizeof line);
    buffer_append(page->out, line, (size_t)size);
}

/* value / per_unit, exactly: per_unit is a power of ten. */
static void metrics_put_value(struct page *page, bool is_negative, uint64_t value,
                              uint32_t per_unit) {
    int digits = 0;
    uint64_t rest = value % per_unit;
    for (uint32_t unit = per_unit; unit > 1; unit /= 10) {
        digits++;
    }
    const char *sign = is_negative ? "-" : "";
    if (rest == 0) {
        metrics_put(page, " %s%llu\n", sign, (unsigned long long)(value / per_unit));
        return;
    }
    while (rest % 10 == 0) {
        rest /= 10;
        digits--;
    }
    metrics_put(page, " %s%llu.%0*llu\n", sign, (unsigned long long)(value / per_unit), digits,
                (unsigned long long)rest);
}

enum { LABELS_MAX = 768 }; /* a replica's host has up to 255 bytes */

/* The labels of the sample without their braces: "thread=\"0\",call=\"read\"". */
static void metrics_print_labels(const struct figure *sample, const char *value,
                                 char labels[LABELS_MAX]) {
    const char *more = sample->label != NULL ? sample->label : "";
    const char *name = figures_label(sample->of);
    const char *comma = name != NULL && more[0] != '\0' ? "," : "";
    int size = name == NULL
                   ? snprintf(labels, LABELS_MAX, "%s", more)
                   : snprintf(labels, LABELS_MAX, "%s=\"%s\"%s%s", name, value, comma, more);
    CHECK(size >= 0 && size < LABELS_MAX);
}

enum { BUCKET_STEP = 2, BUCKETS_SHOWN = 24 }; /* 1 us, 4 us, 16 us ... 4.2 s */

static void metrics_put_histogram(struct page *page, const char *labels,
                                  const struct durations *durations) {
    const char *name = page->family->metric;
    const char *comma = labels[0] != '\0' ? "," : "";
    uint64_t seen = 0;
    for (int i = 0; i < DURATIONS_BUCKETS; i++) {
        seen += durations->buckets[i];
        if (i < BUCKETS_SHOWN && i % BUCKET_STEP == 0) {
            metrics_put(page, "%s_bucket{%s%sle=\"%.10g\"} %llu\n", name, labels, comma,
                        (double)(UINT64_C(1) << i) / 1e6, (unsigned long long)seen);
        }
    }
    metrics_put(page, "%s_bucket{%s%sle=\"+Inf\"} %llu\n", name, labels, comma,
                (unsigned long long)seen);
    const char *open = comma[0] != '\0' ? "{" : "";
    const char *close = comma[0] != '\0' ? "}" : "";
    metrics_put(page, "%s_count%s%s%s %llu\n%s_sum%s%s%s", name, open, labels, close,
                (unsigned long long)seen, name, open, labels, close);
    metrics_put_value(page, false, durations->total_ns, 1000000000);
}

/* Samples of a counter or of information have the family's name and this. */
static const char *metrics_sample_suffix(const struct figure *family) {
    return family->kind == FIGURE_COUNTER ? "_total" : family->kind == FIGURE_INFO ? "_info" : "";
}

/* A sample: the row's field of this object, which the label names. */
static void metrics_put_sample(struct page *page, const void *object, const char *name) {
    const struct figure *sample = page->sample;
    struct figure_value value = figures_read(sample, object);
    char labels[LABELS_MAX];
    metrics_print_labels(sample, name, labels);
    if (sample->type == FIGURE_DURATIONS) {
        metrics_put_histogram(page, labels, value.durations);
    } else if (!sample->is_optional || !value.is_negative) {
        metrics_put(page, labels[0] != '\0' ? "%s%s{%s}" : "%s%s%s", page->family->metric,
                    metrics_sample_suffix(page->family), labels);
        metrics_put_value(page, value.is_negative, value.number,
                          sample->per_unit > 0 ? sample->per_unit : 1);
    }
}

/* ---- the objects that have samples ---- */

static void metrics_put_commands(struct page *page) {
    bool is_histogram = page->sample->type == FIGURE_DURATIONS;
    for (uint32_t i = 0; i < page->figures->stats.command_count; i++) {
        const struct stats_command *command = &page->figures->stats.commands[i];
        if (command->calls.count > 0 || (!is_histogram && command->rejected_calls > 0)) {
            metrics_put_sample(page, command, command_full_name(i));
        }
    }
}

/* A prefix is the first word of an error, which the server chose; what would end a label's value
 * early is shown as '_'. */
static void metrics_put_errors(struct page *page) {
    const struct stats *stats = &page->figures->stats;
    for (uint32_t i = 0; i < stats->error_kind_count; i++) {
        char prefix[sizeof stats->errors[i].prefix];
        memcpy(prefix, stats->errors[i].prefix, sizeof prefix);
        for (char *at = prefix; *at != '\0'; at++) {
            if (*at == '"' || *at == '\\' || *at == '\n') {
                *at = '_';
            }
        }
        metrics_put_sample(page, &stats->errors[i], prefix);
    }
}

static void metrics_put_numbered(struct page *page, const void *object, uint32_t number) {
    char name[16];
    snprintf(name, sizeof name, "%u", number);
    metrics_put_sample(page, object, name);
}

/* Of databases those that have keys, and the first. */
static void metrics_put_samples(struct page *page) {
    const struct figures *figures = page->figures;
    const struct figures_replication *replication = &figures->replication;
    switch (page->sample->of) {
    case FIGURE_OF_FIGURES:
        metrics_put_sample(page, figures, NULL);
        break;
    case FIGURE_OF_COMMAND:
        metrics_put_commands(page);
        break;
    case FIGURE_OF_ERROR:
        metrics_put_errors(page);
        break;
    case FIGURE_OF_DATABASE:
        for (uint32_t i = 0; i < REGISTRY_DATABASES; i++) {
            if (i == 0 || figures->databases[i].keys > 0) {
                metrics_put_numbered(page, &figures->databases[i], i);
            }
        }
        break;
    case FIGURE_OF_REPLICA:
        for (uint32_t i = 0; i < replication->shown; i++) {
            const struct figures_replica *replica = &replication->shown_replicas[i];
            metrics_put_sample(page, replica, replica->address);
        }
        break;
    case FIGURE_OF_SYNC_STATE:
        for (enum sync_state state = SYNC_OFF; state < SYNC_STATES; state++) {
            uint64_t is_state = replication->sync.state == state;
            metrics_put_sample(page, &is_state, sync_state_name(state));
        }
        break;
    case FIGURE_OF_THREAD:
        for (uint32_t i = 0; i < figures->stats.network_count; i++) {
            metrics_put_numbered(page, &figures->stats.networks[i], i);
        }
        break;
    case FIGURE_OF_ONCE_USER:
        for (uint32_t i = 0; i < figures->once_user_count; i++) {
            metrics_put_sample(page, &figures->once_users[i], figures->once_users[i].user);
        }
        break;
    case FIGURE_OF_SERVER:
    case FIGURE_OF_SOURCE:
    case FIGURE_OF_LATENCY:
        break;
    }
}

/* ---- the page ---- */

static const char *const kind_names[] = {[FIGURE_COUNTER] = "counter",
                                         [FIGURE_GAUGE] = "gauge",
                                         [FIGURE_HISTOGRAM] = "histogram",
                                         [FIGURE_INFO] = "info"};

/* The name ends with it. */
static const char *metrics_unit(const struct figure *family) {
    static const char *const units[] = {"_seconds", "_bytes", "_ratio"};
    size_t size = strlen(family->metric);
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        size_t unit = strlen(units[i]);
        if (size > unit && strcmp(family->metric + size - unit, units[i]) == 0) {
            return units[i] + 1;
        }
    }
    return "";
}

static void metrics_begin_family(struct page *page, const struct figure *family) {
    bool is_open = page->format == METRICS_OPENMETRICS;
    const char *suffix = is_open ? "" : metrics_sample_suffix(family);
    const char *kind = family->kind == FIGURE_INFO && !is_open ? "gauge" : kind_names[family->kind];
    metrics_put(page, "# TYPE %s%s %s\n", family->metric, suffix, kind);
    if (is_open && metrics_unit(family)[0] != '\0') {
        metrics_put(page, "# UNIT %s %s\n", family->metric, metrics_unit(family));
    }
    metrics_put(page, "# HELP %s%s %s.\n", family->metric, suffix, family->help);
}

void metrics_print(const struct figures *figures, enum metrics_format format, struct buffer *out) {
    const struct figure *end = figures_table + figures_row_count;
    struct page page = {.figures = figures, .format = format, .out = out, .family = figures_table};
    for (unsigned place = 1; place < FIGURE_PLACES; place++) {
        for (const struct figure *row = figures_table; row < end; row++) {
            if (row->place != place) {
                continue;
            }
            if (row->metric != NULL) {
                metrics_begin_family(&page, row);
                page.family = row;
            }
            page.sample = row;
            metrics_put_samples(&page);
        }
    }
    if (format == METRICS_OPENMETRICS) {
        metrics_put(&page, "# EOF\n");
    }
}

/* ---- formats ---- */

enum metrics_format metrics_choose(const char *accept) {
    return http_header_quality(accept, "text/plain") >
                   http_header_quality(accept, "application/openmetrics-text")
               ? METRICS_PROMETHEUS
               : METRICS_OPENMETRICS;
}

const char *metrics_content_type(enum metrics_format format) {
    return format == METRICS_OPENMETRICS
               ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
               : "text/plain; version=0.0.4; charset=utf-8";
}
