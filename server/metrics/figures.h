/* The server's figures: a struct with all of them as they were at one moment, and a table with a row for each, which
 * says what INFO, the metrics and the API call it, and which field it is.
 *
 *     {INFO("expired_keys"), COUNTER(BOARDS + 1, "expired_keys", "Keys removed ..."), FIELD(totals.expired)}
 *
 *     # Stats                  # TYPE leaderboard_expired_keys counter
 *     expired_keys:7           leaderboard_expired_keys_total 7
 *
 * Rows stand in the order of INFO. The metrics, and each object of the API, have them by the place that the row says,
 * and those of one place in the table's order. Of each command, database and thread INFO has one line, and each row
 * is a word of it.
 *
 * The struct is copied on the engine's thread between two ticks, and the metrics are printed on the HTTP thread
 * afterwards. So a scrape costs the engine the copying alone: some microseconds, however many boards there are. */
#ifndef SERVER_FIGURES_H
#define SERVER_FIGURES_H

#include "codec/json.h"
#include "server/durability/persistence.h"
#include "server/sessions/once_ids.h"

struct figures_database {
    uint32_t keys, boards, expiring;
    int64_t average_ttl_ms;
    uint64_t members;
};

/* A replica of this server. */
struct figures_replica {
    char address[REPLICATION_HOST_MAX + 8]; /* "10.0.0.2:6379" */
    const char *state;                      /* "online" */
    bool is_online;
    uint64_t lag_groups; /* that it has not acknowledged */
    int64_t lag_ms;      /* since its last acknowledgement */
};
enum {
    FIGURES_REPLICAS_MAX = 16, /* that are shown */
    FIGURES_USER_MAX = 512,    /* bytes of a user's name as a label */
};

struct figures_replication {
    bool is_replica, is_master, is_up, is_copying, is_failing_over;
    bool is_down, has_error; /* a replica's link */
    bool serves_as_master;   /* of a master */
    bool wants_replicas;     /* min-replicas-to-write */
    const char *role, *failover;
    uint64_t group;
    uint64_t replicas, good_replicas;
    int64_t priority;
    int64_t
        second_until; /* the first group that is not the second id's any more; -1: there is no such id */
    bool has_backlog;
    uint64_t backlog_size, backlog_first, backlog_used;
    int64_t up;              /* of a replica; -1: a master */
    int64_t down_ms;         /* of the link; -1: a master */
    uint64_t received, sent; /* bytes of copies and groups */
    /* of a replica */
    const char *link, *link_status;
    char master[REPLICATION_HOST_MAX + 8]; /* "10.0.0.1:6379" */
    int64_t heard_ms;                   /* since the master's last byte; -1: the link is not up */
    int64_t heard_s;                    /* the same in seconds */
    uint64_t unapplied_groups;          /* that have come, and are not in memory yet */
    uint64_t copy_size, copy_read_size; /* of a full copy that comes; 0: not known */
    uint64_t copy_left_size;
    double copy_percent;
    int64_t copy_heard_ms;             /* since its last byte */
    char error[REPLICATION_ERROR_MAX]; /* why the link stopped; "": it did not */
    struct figures_sync {
        enum sync_state state;
        const char *state_name;
        bool is_on, is_closed, is_open;
        bool has_lost_durability;
        char node[17];
        uint64_t wanted, counted; /* replicas: sync-replicas; those whose acknowledgements count */
        uint64_t votes, votes_needed;
        uint64_t unsafe; /* groups whose answers wait */
        int64_t held_ms;
    } sync;
    struct replication_counters counters;
    uint32_t shown;
    struct figures_replica shown_replicas[FIGURES_REPLICAS_MAX];
};

struct figures_process {
    uint64_t used, peak; /* heap bytes: codec/memory.h */
    uint64_t resident;   /* 0: unknown */
    uint64_t overhead;   /* startup and clients; the rest of used is boards and keys */
    uint64_t dataset;
    double peak_percent;
    double dataset_percent; /* boards and keys, as a share of what was allocated since startup */
    double fragmentation;   /* resident / used */
    int64_t fragmentation_size;
    uint64_t cpu_ns, user_us, system_us, children_user_us, children_system_us;
    uint64_t bits, pid;
    const char *allocator;
    char os[256];
};

struct figures {
    struct stats stats; /* its commands: see figures_take */
    struct persistence_info kept;
    struct figures_database databases[REGISTRY_DATABASES];
    struct registry_counts all;
    struct registry_totals totals;
    uint64_t unsettled; /* archives */
    uint64_t leagues;
    uint64_t windows_behind;
    uint64_t memory_limit, memory_clients, memory_clients_limit, memory_startup, memory_machine;
    uint64_t memory_replicas, memory_replication; /* what they have not read; with the backlog */
    uint64_t clients, clients_limit, clients_blocked, clients_watching, clients_pubsub;
    uint64_t clients_alone; /* without replicas, as INFO counts */
    uint64_t watched_keys;
    uint64_t tracking_clients, tracking_keys, tracking_items, tracking_prefixes;
    uint64_t channels, patterns, shard_channels;
    uint64_t once_ids, once_max, once_size;
    struct figures_once_user {
        char user[FIGURES_USER_MAX]; /* fit for a label */
        uint64_t ids;
    } once_users[ONCE_IDS_TOP]; /* those who have most */
    uint32_t once_user_count;
    /* System calls of all threads that have sockets, and of those beside the engine's. */
    uint64_t reads, writes, threaded_reads, threaded_writes;
    double input_rate, output_rate; /* bytes in a second */
    int64_t uptime_ms;
    int64_t started_at_s;
    int64_t retiring_ms; /* until the end, of a server that retires */
    int64_t clock_lead_us;
    uint64_t clock_steps;
    const char *clock_state;
    uint64_t unsynced_groups;
    uint64_t loaded; /* of 10000 */
    bool is_loading, is_writable, is_role_written, is_retiring, is_sync_pending, has_threads;
    struct figures_replication replication;
    struct figures_process process;
    /* of the engine's thread */
    uint64_t user_us, system_us, switches_forced, switches_own, faults;
    uint64_t look_ns; /* how long this copy took */
};

/* For a server with so many commands. */
static inline size_t figures_size(uint32_t command_count) {
    return sizeof(struct figures) + command_count * sizeof(struct stats_command);
}
/* On the engine's thread, for another one: stats.commands are then behind the figures (figures_size). */
void figures_take(const struct server *server, struct figures *figures);
/* For this thread: stats.commands are the server's own, which are right until another command runs, and the users of ids
 * are left out. */
void figures_look(const struct server *server, struct figures *figures);

/* ---- the table ---- */

/* Whose field it is: there is one, or one for each of these. */
enum figure_of {
    FIGURE_OF_FIGURES,
    FIGURE_OF_SERVER, /* struct server, which is not copied: INFO alone has it */
    FIGURE_OF_COMMAND,
    FIGURE_OF_ERROR,
    FIGURE_OF_DATABASE,
    FIGURE_OF_REPLICA,
    FIGURE_OF_SYNC_STATE,
    FIGURE_OF_THREAD,
    FIGURE_OF_ONCE_USER,
    FIGURE_OF_LIMITED, /* a board whose LIMITS refused results */
    /* Lines of INFO that are no rows. */
    FIGURE_OF_SOURCE,
    FIGURE_OF_LATENCY,
};

enum figure_type {
    FIGURE_U64,
    FIGURE_I64,
    FIGURE_U32,
    FIGURE_U16,
    FIGURE_BOOL,
    FIGURE_REAL,
    FIGURE_DURATIONS,
    FIGURE_TEXT,      /* const char * */
    FIGURE_TEXT_HERE, /* char [] */
    FIGURE_CONSTANT,  /* the row's text */
};

enum figure_kind { FIGURE_COUNTER, FIGURE_GAUGE, FIGURE_HISTOGRAM, FIGURE_INFO, FIGURE_KINDS };
extern const char *const figures_kind_names[FIGURE_KINDS];

/* How INFO prints it, and the API what is no number there. */
enum figure_form {
    FIGURE_PLAIN,   /* with a fraction: two digits of it */
    FIGURE_LINE,    /* the constant is the line, or several */
    FIGURE_SIZE,    /* name:1536 and name_human:1.50K */
    FIGURE_STATUS,  /* ok, err */
    FIGURE_PERCENT, /* 12.50% */
    FIGURE_ROUND,
    FIGURE_SECONDS, /* of microseconds: 1.000250 */
    FIGURE_MEAN,    /* of durations, in microseconds */
    FIGURE_P99,     /* the same */
    FIGURE_TIME,    /* unix seconds */
};

struct figure {
    const char *section; /* not NULL: a section of INFO begins, and there is no more in the row */
    bool is_hidden;      /* INFO without arguments leaves the section out */
    const char *info;    /* NULL: INFO has it not */
    enum figure_form info_form;
    uint32_t info_per_unit; /* 1000: INFO has thousands of them. 0: 1 */
    uint32_t
        when; /* where in the figures a bool is without which INFO has no such line; 0: always */
    const char *metric; /* NULL: none, or place not 0: a further sample of the row before */
    const char *help;
    enum figure_kind kind;
    uint32_t
        per_unit; /* so many of the field's units are one of the metric's: 1000000 for us. 0: 1 */
    bool is_optional;  /* negative: the metric is left out */
    const char *label; /* a further one, with its value: "mode=\"user\"" */
    const char *api;   /* "memory.used"; NULL: none */
    enum figure_form api_form;
    uint8_t place;
    enum figure_of of;
    enum figure_type type;
    uint32_t offset;
    const char *text; /* FIGURE_CONSTANT */
};

/* The headings of the metrics, and the places below each. */
enum { FIGURE_PLACES = 200, FIGURE_PLACES_OF_HEADING = 20 };
const char *figures_heading(unsigned place);
/* The label of the metrics that tells these apart: "command"; NULL: there is only one. */
const char *figures_label(enum figure_of of);
/* What a line of INFO with one of them begins with, before its name; NULL: INFO shows them in another way, or not. */
const char *figures_line(enum figure_of of);
/* One of them, and its name; NULL: there are no more. */
enum { FIGURES_NAME_MAX = FIGURES_USER_MAX };
const void *figures_object(const struct figures *figures, enum figure_of of, uint32_t index,
                           char name[FIGURES_NAME_MAX]);

extern const struct figure figures_table[];
extern const uint32_t figures_row_count;

/* A field's value. */
struct figure_value {
    bool is_negative;
    uint64_t number; /* without its sign */
    double real;
    const char *text;
    const struct durations *durations;
};
struct figure_value figures_read(const struct figure *row, const void *object);
double figures_mean_us(const struct durations *durations);
/* The bucket's upper bound in microseconds that a share of them does not exceed; 0: there are none. */
uint64_t figures_quantile_us(const struct durations *durations, double share);
/* A member of an object of the API. prefix: "memory." for those of memory in the figures, "" for those at the top, and
 * those of any one of several objects. false: no row has it, and nothing was written. */
MUST_CHECK bool figures_print_api(enum figure_of of, const void *object, const char *prefix,
                                  const char *name, struct json *json);

#endif
