/* What the pages of docs/ say is asked of the server: every layout line parses, every
 * range of scores is the server's, every last moment is the layout's, and the transcripts are
 * replayed. A page that sets a clock is replayed in this process, by that clock, except where several clients
 * talk. The test is run from the repository's root. */
#include <glob.h>
#include <sys/socket.h>
#include <unistd.h>

#include "codec/layout.h"
#include "codec/timestamp.h"
#include "server/commands/window.h"
#include "server/dispatch/category.h"
#include "server/sessions/job.h"
#include "tests/support/harness.h"
#include "tests/support/layout_text.h"
#include "tests/support/process.h"
#include "tests/support/wire.h"

enum { LINE_MAX_SIZE = 1024, CELLS_MAX = 8, TEXT_SIZE = 64 };

static const char layouts[] = "docs/reference/layouts.md", moving[] = "docs/migrate/README.md",
                  users[] = "docs/operate/secure.md",
                  unlike_redis[] = "docs/reference/differences-from-redis.md";

/* ---- reading the pages ---- */

struct page {
    FILE *file;
    char line[LINE_MAX_SIZE];
    char *cells[CELLS_MAX]; /* of a table's row, trimmed, without backticks */
    size_t cell_count;
    bool is_fenced;     /* behind an opening ``` */
    bool is_transcript; /* behind one that names no language */
};

/* Go to the line that begins so. */
static void page_open(struct page *page, const char *name, const char *heading) {
    *page = (struct page){.file = fopen(name, "r")};
    if (page->file == NULL) {
        fail_msg("%s cannot be read: the test is run from the repository's root", name);
    }
    while (fgets(page->line, sizeof page->line, page->file)) {
        if (strncmp(page->line, heading, strlen(heading)) == 0) {
            return;
        }
    }
    fail_msg("%s has no line that begins with \"%s\"", name, heading);
}

static bool page_read(struct page *page) {
    if (!fgets(page->line, sizeof page->line, page->file)) {
        return false;
    }
    page->line[strcspn(page->line, "\n")] = '\0';
    if (strncmp(page->line, "```", 3) == 0) {
        page->is_fenced = !page->is_fenced;
        page->is_transcript = page->is_fenced && page->line[3] == '\0';
    }
    return true;
}

static char *trim(char *text) {
    text += strspn(text, " `");
    size_t size = strlen(text);
    while (size > 0 && (text[size - 1] == ' ' || text[size - 1] == '`')) {
        text[--size] = '\0';
    }
    return text;
}

/* The next row of the table whose heading page_open found; false: the table is over. */
static bool page_row(struct page *page) {
    do {
        if (!page_read(page) || page->line[0] != '|') {
            fclose(page->file);
            return false;
        }
    } while (strncmp(page->line, "|--", 3) == 0);
    char *save = NULL;
    page->cell_count = 0;
    for (char *cell = strtok_r(page->line, "|", &save); cell && page->cell_count < CELLS_MAX;
         cell = strtok_r(NULL, "|", &save)) {
        page->cells[page->cell_count++] = trim(cell);
    }
    return true;
}

/* "0 .. 7, less is better" and "0..7" both become "0..7". */
static void squeeze_range(const char *cell, char *out) {
    size_t size = 0;
    for (; *cell != '\0' && *cell != ',' && size < TEXT_SIZE - 1; cell++) {
        if (*cell != ' ') {
            out[size++] = *cell;
        }
    }
    out[size] = '\0';
}

/* ---- asking ---- */

static struct layout parsed(const char *text) {
    struct layout layout;
    char error[LAYOUT_ERROR_MAX];
    struct bytes bytes = {.at = text, .size = strlen(text)};
    if (layout_parse(bytes, &layout, error) != LAYOUT_OK) {
        fail_msg("\"%s\": %s", text, error);
    }
    return layout;
}

/* "2088-01-19 03:14:07": the last second in which the layout takes scores. */
static void last_moment(const struct layout *layout, char *out) {
    const struct layout_time *time = &layout->time;
    int64_t last_us = time->start_us + (int64_t)(time->mask + 1) * time->unit_us - 1;
    char text[TIMESTAMP_TEXT_MAX];
    size_t size = timestamp_print(text, last_us);
    assert_true(size >= 19);
    snprintf(out, TEXT_SIZE, "%.10s %.8s", text, text + 11);
}

/* The range that a server tells whose boards have this layout, as "lowest..highest". */
static void server_range(const char *layout, char *out) {
    const char *config = formatted("layout told %s\nboard b told\n", layout);
    const struct process_options options = {.config = config};
    SERVER(server, &options);
    WIRE(wire, process_connect_tcp(&server));
    const char *reply = wire_ask(&wire, "ZADD b 999999999999999999999 m");
    const char *range = strstr(reply, "takes ");
    if (range == NULL) {
        fail_msg("\"%s\" answers %s", layout, reply);
    } else {
        snprintf(out, TEXT_SIZE, "%.*s", TEXT_SIZE - 1, range + strlen("takes "));
    }
}

static void check_range(const char *layout, const char *said) {
    char told[TEXT_SIZE], wanted[TEXT_SIZE];
    server_range(layout, told);
    squeeze_range(said, wanted);
    if (strcmp(told, wanted) != 0) {
        fail_msg("%s: the page says %s, the server %s", layout, wanted, told);
    }
}

/* said holds "until " and the beginning of the last moment. */
static void check_until(const char *layout_text, const char *said) {
    struct layout layout = parsed(layout_text);
    const char *until = strstr(said, "until ");
    if (until != NULL) {
        char last[TEXT_SIZE];
        last_moment(&layout, last);
        const char *wanted = until + strlen("until ");
        if (strncmp(last, wanted, strlen(wanted)) != 0) {
            fail_msg("%s: the page says %s, the layout %s", layout_text, said, last);
        }
    }
}

/* ---- the tables ---- */

TEST(the_table_of_examples_is_right) {
    struct page page;
    page_open(&page, layouts, "| line | scores | ties |");
    unsigned rows = 0;
    while (page_row(&page)) {
        assert_int_equal(page.cell_count, 3);
        char *layout = page.cells[0];
        layout[strcspn(layout, "`(")] = '\0'; /* "(the default)" */
        struct layout shape = parsed(layout);
        if (shape.field_count == 1 && strstr(page.cells[1], "..")) {
            check_range(layout, page.cells[1]);
        } else if (shape.field_count == 1) {
            check_range(layout, "-9223372036854775808..9223372036854775807");
        }
        assert_int_equal(shape.time.bits != 0, strstr(layout, "TIME") != NULL);
        check_until(layout, page.cells[2]);
        rows++;
    }
    assert_int_equal(rows, 6);
}

TEST(the_table_of_score_widths_is_right) {
    struct page page;
    page_open(&page, layouts, "| bits | highest |");
    unsigned rows = 0;
    while (page_row(&page)) {
        assert_int_equal(page.cell_count, 4);
        char layout[LINE_MAX_SIZE];
        snprintf(layout, sizeof layout, "FIELD s %s", page.cells[0]);
        check_range(layout, formatted("0..%.40s", page.cells[1]));
        check_range(formatted("FIELD s %s SIGNED", page.cells[0]), page.cells[2]);
        snprintf(layout, sizeof layout, "FIELD s %s SCALE 2", page.cells[0]);
        check_range(layout, formatted("0..%.40s", page.cells[3]));
        rows++;
    }
    assert_int_equal(rows, 10);
}

TEST(the_table_of_time_widths_is_right) {
    struct page page;
    page_open(&page, layouts, "| time | length |");
    unsigned rows = 0;
    while (page_row(&page)) {
        assert_int_equal(page.cell_count, 4);
        char text[LINE_MAX_SIZE], until[TEXT_SIZE], years[TEXT_SIZE];
        snprintf(text, sizeof text, "FIELD s %d %s", atoi(page.cells[3]), page.cells[0]);
        struct layout layout = parsed(text);
        assert_int_equal(layout.bits_total, 64);
        snprintf(until, sizeof until, "until %.40s", page.cells[2]);
        check_until(text, until);
        double seconds = (double)(layout.time.mask + 1) * (double)layout.time.unit_us / 1e6;
        snprintf(years, sizeof years, "%.1f years", seconds / (365.2425 * 86400));
        assert_string_equal(page.cells[1], years);
        rows++;
    }
    assert_int_equal(rows, 10);
}

TEST(the_table_for_those_who_come_from_redis_is_right) {
    struct page page;
    page_open(&page, moving, "| today | line |");
    unsigned rows = 0;
    while (page_row(&page)) {
        assert_int_equal(page.cell_count, 4);
        const char *layout = "FIELD score 33 SIGNED TIME 31 S";
        char *line = strstr(page.cells[1], "FIELD");
        if (line != NULL) {
            line[strcspn(line, "`")] = '\0'; /* a remark may follow */
            layout = line;
        }
        check_range(layout, page.cells[2]);
        const char *last = page.cells[3];
        last += strncmp(last, "the year ", 9) == 0 ? 9 : 0;
        if (last[0] >= '0' && last[0] <= '9') {
            char until[TEXT_SIZE];
            snprintf(until, sizeof until, "until %.40s", last);
            check_until(layout, until);
        }
        rows++;
    }
    assert_int_equal(rows, 15);
}

/* "`SET` `GET`" and "SET GET" both become "SET GET". */
static void drop_backticks(char *text) {
    char *out = text;
    for (const char *at = text; *at != '\0'; at++) {
        if (*at != '`') {
            *out++ = *at;
        }
    }
    *out = '\0';
}

TEST(the_table_of_commands_that_are_not_here_is_the_servers) {
    struct page page;
    page_open(&page, unlike_redis, "| no | commands |");
    const struct absent_group *group = category_absent_groups;
    for (; page_row(&page); group++) {
        assert_int_equal(page.cell_count, 3);
        assert_non_null(group->title);
        drop_backticks(page.cells[1]);
        assert_string_equal(page.cells[0], group->title);
        assert_string_equal(page.cells[1], group->names);
    }
    assert_null(group->title);
}

/* ---- the lines of configuration and the transcripts ---- */

/* All lines of a page's blocks that begin with "layout " or "board ". */
static void read_config(const char *name, struct text *config) {
    struct page page;
    page_open(&page, name, "#");
    while (page_read(&page)) {
        bool is_setting =
            strncmp(page.line, "layout ", 7) == 0 || strncmp(page.line, "board ", 6) == 0;
        if (page.is_transcript && is_setting) {
            text_format(config, "%s\n", page.line);
        }
    }
    fclose(page.file);
    text_format(config, "\n");
}

static void start_documented(const char *name, struct process *server) {
    TEXT(config);
    read_config(name, &config);
    const struct process_options options = {.config = config.at};
    assert_true(process_start(server, &options));
}

/* A reply as the pages write it: no type marks, no brackets around the whole. */
static const char *plain(const char *reply, char *out) {
    size_t size = 0;
    bool is_error = reply[0] == '-' && reply[1] >= 'A' && reply[1] <= 'Z';
    size_t depth = 0;
    char before = '[';
    reply += is_error || strcmp(reply, "+OK") == 0;
    for (; *reply != '\0' && size < LINE_MAX_SIZE - 1; before = *reply++) {
        bool is_mark = *reply == ':' && (before == '[' || before == ' ') && !is_error;
        bool is_bracket = (*reply == '[' || *reply == ']') && !is_error;
        depth -= is_bracket && *reply == ']';
        if (!is_mark && !(is_bracket && depth == 0)) {
            out[size++] = *reply;
        }
        depth += is_bracket && *reply == '[';
    }
    out[size] = '\0';
    return out;
}

/* "> ZINCRBY day 0 ann            nothing changed": the words up to the gap. */
static void cut_remark(char *command) {
    char *gap = strstr(command, "   ");
    if (gap != NULL) {
        *gap = '\0';
    }
    command[strcspn(command, "\n")] = '\0';
}

/* A server in this process, whose clock is ours, and a socket behind which its replies are read. */
struct clocked {
    struct harness *harness;
    struct session *session;
    struct wire wire;
    int fd; /* the other end of wire */
};

static void clocked_start(struct clocked *clocked, const char *name) {
    TEXT(config);
    int ends[2];
    read_config(name, &config);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    clocked->harness = harness_create(config.at);
    clocked->session = harness_connect(clocked->harness);
    job_board_begin(&clocked->harness->server, &window_job);
    job_board_begin(&clocked->harness->server, &job_board_stale);
    clocked->wire = wire_open(ends[0]);
    clocked->fd = ends[1];
}

static void clocked_stop(struct clocked *clocked) {
    wire_close(&clocked->wire);
    close(clocked->fd);
    job_list_end(&clocked->harness->server);
    harness_destroy(clocked->harness);
}

static const char *clocked_ask(struct clocked *clocked, const char *command) {
    const char *reply = harness_run(clocked->harness, clocked->session, command);
    size_t size = clocked->harness->reply.size;
    assert_int_equal(write(clocked->fd, reply, size), size);
    return wire_reply(&clocked->wire);
}

/* "# 2026-11-16T09:00:00+08:00   Monday morning" */
static void set_clock(struct clocked *clocked, const char *line) {
    struct bytes text = {.at = line, .size = strcspn(line, " ")};
    int64_t time_us;
    assert_true(timestamp_parse(text, &time_us));
    assert_true(time_us >= clocked->harness->wall_us);
    clocked->harness->wall_us = time_us;
    server_update_time(&clocked->harness->server);
    /* As the loop does within a minute. */
    struct registry *registry = clocked->harness->server.registry;
    while (registry_roll_archive_step(registry, time_us / 1000, 64)) {}
    while (registry_roll_due(registry, time_us / 1000, 1000) > 0 ||
           job_list_step(&clocked->harness->server, 0, true)) {}
}

/* The page's command and the line behind it, which has to be the reply. Where it is another, both are printed. */
static bool is_as_printed(struct page *page, const char *name, const char *answer,
                          const char *command) {
    char reply[LINE_MAX_SIZE];
    plain(answer, reply);
    assert_true(page_read(page));
    if (strcmp(page->line, reply) == 0) {
        return true;
    }
    print_error("%s: %s\n- %s\n+ %s\n", name, command, page->line, reply);
    return false;
}

struct replayed {
    unsigned commands, differences;
};

/* Every command is followed by its answer, one line. All that differ are printed. */
static struct replayed replay_clocked(const char *name) {
    struct clocked clocked;
    clocked_start(&clocked, name);
    struct page page;
    page_open(&page, name, "#");
    char command[LINE_MAX_SIZE];
    struct replayed replayed = {0};
    while (page_read(&page)) {
        if (page.is_transcript && strncmp(page.line, "# 2", 3) == 0) {
            set_clock(&clocked, page.line + 2);
        } else if (page.is_transcript && strncmp(page.line, "> ", 2) == 0) {
            cut_remark(page.line);
            snprintf(command, sizeof command, "%s", page.line);
            const char *answer = clocked_ask(&clocked, command + 2);
            replayed.differences += !is_as_printed(&page, name, answer, command);
            replayed.commands++;
        }
    }
    fclose(page.file);
    clocked_stop(&clocked);
    return replayed;
}

/* The same with a server of its own, by the machine's clock. */
static struct replayed replay_served(const char *name) {
    struct process server;
    start_documented(name, &server);
    struct wire wire = wire_open(process_connect_tcp(&server));
    struct page page;
    page_open(&page, name, "#");
    char command[LINE_MAX_SIZE];
    struct replayed replayed = {0};
    while (page_read(&page)) {
        if (page.is_transcript && strncmp(page.line, "> ", 2) == 0) {
            cut_remark(page.line);
            snprintf(command, sizeof command, "%s", page.line);
            wire_send_text(&wire, command + 2); /* as it is: the server reads its quotes */
            wire_send_text(&wire, "\r\n");
            replayed.differences += !is_as_printed(&page, name, wire_reply(&wire), command);
            replayed.commands++;
        }
    }
    fclose(page.file);
    wire_close(&wire);
    assert_int_equal(process_stop(&server), 0);
    return replayed;
}

/* "ann> PING" is sent by a client of that name, "ann< PONG" is what it receives next. */
struct named_client {
    char name[16];
    struct wire wire;
};

static struct wire *client_of(struct process *server, struct named_client *clients,
                              const char *name, size_t size) {
    enum { NAMED_MAX = 4 };
    for (int i = 0; i < NAMED_MAX; i++) {
        if (clients[i].name[0] == '\0') {
            assert_true(size < sizeof clients[i].name);
            memcpy(clients[i].name, name, size);
            clients[i].wire = wire_open(process_connect_unix(server));
        }
        if (strlen(clients[i].name) == size && memcmp(clients[i].name, name, size) == 0) {
            return &clients[i].wire;
        }
    }
    fail_msg("too many clients");
    return NULL;
}

/* ":1" is "1" on the page. */
static void without_colons(const char *reply, char *out) {
    for (const char *at = reply; *at != '\0'; at++) {
        bool is_first = at == reply || at[-1] == ' ' || at[-1] == '[';
        if (*at != ':' || !is_first) {
            *out++ = *at;
        }
    }
    *out = '\0';
}

/* Whoever waits sends nothing else until somebody else has received a reply. Returns how many commands there
 * are, and how many lines were received. */
static unsigned replay_clients(const char *name, unsigned *received_out) {
    struct named_client clients[4] = {{.name = ""}};
    struct process server;
    struct page page;
    unsigned commands = 0;
    unsigned received = 0;
    start_documented(name, &server);
    struct wire witness = wire_open(process_connect_unix(&server));
    page_open(&page, name, "#");
    while (page_read(&page)) {
        size_t size = strcspn(page.line, " <>");
        if (!page.is_transcript || size == 0 || size > 8 ||
            (page.line[size] != '>' && page.line[size] != '<') || page.line[size + 1] != ' ') {
            continue;
        }
        cut_remark(page.line);
        struct wire *wire = client_of(&server, clients, page.line, size);
        const char *text = page.line + size + 2;
        if (page.line[size] == '<') {
            char reply[LINE_MAX_SIZE];
            without_colons(wire_reply(wire), reply);
            if (strcmp(reply, text) != 0) {
                fail_msg("%s:\n- %s\n+ %s", name, page.line, reply);
            }
            received++;
            continue;
        }
        int64_t waiting = wire_info(&witness, "blocked_clients");
        wire_send_text(wire, text);
        wire_send_text(wire, "\r\n");
        if (strncmp(text, "BZPOPMIN", 8) == 0) {
            wire_wait_info(&witness, "blocked_clients", waiting + 1);
        }
        commands++;
    }
    fclose(page.file);
    for (int i = 0; i < 4 && clients[i].name[0] != '\0'; i++) {
        wire_close(&clients[i].wire);
    }
    wire_close(&witness);
    assert_int_equal(process_stop(&server), 0);
    *received_out = received;
    return commands;
}

/* ---- whole folders ---- */

/* What a page's transcripts need: "> " a client, "# 2" a clock, "ann> " clients with names. */
struct kinds {
    bool has_commands, has_clock, has_names;
};

static struct kinds page_kinds(const char *name) {
    struct kinds kinds = {0};
    struct page page;
    page_open(&page, name, "#");
    while (page_read(&page)) {
        size_t size = strspn(page.line, "abcdefghijklmnopqrstuvwxyz");
        bool is_named = size > 0 && size <= 8 && strncmp(page.line + size, "> ", 2) == 0;
        kinds.has_commands |= page.is_transcript && strncmp(page.line, "> ", 2) == 0;
        kinds.has_clock |= page.is_transcript && strncmp(page.line, "# 2", 3) == 0;
        kinds.has_names |= page.is_transcript && is_named;
    }
    fclose(page.file);
    return kinds;
}

/* Each command of a page has its reply on the next line. */
static struct replayed replay_page(const char *name) {
    struct kinds kinds = page_kinds(name);
    struct replayed replayed = {0};
    if (kinds.has_commands) {
        replayed = kinds.has_clock ? replay_clocked(name) : replay_served(name);
    }
    if (kinds.has_names) {
        unsigned received;
        replayed.commands += replay_clients(name, &received);
        assert_true(received > 0);
    }
    return replayed;
}

static void replay_folder(const char *pattern, bool must_have_commands) {
    unsigned differences = 0;
    glob_t found;
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        struct replayed replayed = replay_page(found.gl_pathv[i]);
        if (must_have_commands && replayed.commands == 0) {
            fail_msg("%s has no transcript", found.gl_pathv[i]);
        }
        differences += replayed.differences;
    }
    globfree(&found);
    assert_int_equal(differences, 0);
}

TEST(the_cookbook_is_replayed) {
    replay_folder("docs/cookbook/[!R]*.md", true);
    replay_folder("docs/cookbook/README.md", false);
}

TEST(the_reference_is_replayed) {
    replay_folder("docs/reference/*.md", false);
}

TEST(the_operators_pages_are_replayed) {
    replay_folder(users, true);
    replay_folder("docs/operate/*.md", false);
}

TEST(the_pages_on_moving_are_replayed) {
    replay_folder("docs/migrate/*.md", false);
}

TEST(the_page_of_concepts_is_replayed) {
    replay_folder("docs/concepts.md", true);
}

TEST(the_users_of_the_page_on_users_are_there) {
    struct page page;
    TEXT(config);
    page_open(&page, users, "#");
    while (page_read(&page)) {
        if (strncmp(page.line, "user ", 5) == 0) {
            text_format(&config, "%s\n", page.line);
        }
    }
    fclose(page.file);
    const struct process_options options = {.config = config.at};
    SERVER(server, &options);
    WIRE(wire, process_connect_tcp(&server));
    wire_check_prefix(&wire, "PING", "-NOAUTH");
    wire_check(&wire, "AUTH game a", "OK");
    wire_check_prefix(&wire, "CONFIG GET port", "-NOPERM");
    wire_check(&wire, "AUTH dash d4shb0ard", "OK");
    wire_check(&wire, "ZCARD top:eu", ":0");
}

static void a_documented_refusal_is_in_the_log(const char *config, const char *line) {
    struct page page;
    page_open(&page, layouts, line);
    fclose(page.file);
    const struct process_options options = {.config = config, .is_start_failure_expected = true};
    struct process refused;
    assert_true(process_start(&refused, &options));
    assert_true(process_has_logged(&refused, strchr(line, ':')));
    process_stop(&refused);
}

TEST(bad_lines_are_refused_in_the_words_of_the_page) {
    a_documented_refusal_is_in_the_log(
        "layout laps FIELD lap_ms 40 TIME 31 S\n",
        "bad.conf:1: layout: TIME: 31 bits are too many: 24 of a key's 64 are left");
    a_documented_refusal_is_in_the_log(
        "layout laps FIELD lap_ms 32\nboard race:* lasp\n",
        "bad.conf:2: board: there is no layout 'lasp'; did you mean 'laps'?");
}
