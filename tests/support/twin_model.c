#include "tests/support/twin_model.h"

#include "tests/support/test.h"

/* ---- the board ---- */

static struct twin_layout describe(const struct board_options *options) {
    const struct layout *layout = &options->layout;
    struct twin_layout twin = {
        .prefix = "",
        .field_count = layout->field_count,
        .time_bits = layout->time.bits,
        .is_latest = layout->time.is_latest,
        .unit_us = layout->time.unit_us,
        .start_us = layout->time.start_us,
        .cap = options->cap,
        .keeps_best = options->keeps_best,
    };
    assert_in_range(layout->field_count, 1, TWIN_FIELDS);
    for (int i = 0; i < layout->field_count; i++) {
        const struct layout_field *field = &layout->fields[i];
        twin.fields[i] =
            (struct twin_field){field->bits, field->scale, field->is_signed, field->is_ascending};
    }
    return twin;
}

void twin_model_start(struct twin_model *twin, const char *name) {
    struct harness *harness = twin->harness;
    harness_run(harness, harness->server.sessions.first, "FLUSHALL");
    twin->name = name;
    twin->layout =
        describe(setting_board_options_for(&harness->server.settings, bytes_from_text(name), 0));
    twin_server_init(&twin->server, &twin->layout);
}

void twin_model_stop(struct twin_model *twin) {
    twin_server_deinit(&twin->server);
}

struct bytes twin_name(int id) {
    static char names[TWIN_MEMBERS][8];
    snprintf(names[id], sizeof names[id], "m%d", id);
    return bytes_from_text(names[id]);
}

int64_t twin_rank(const struct twin_key *board, int id) {
    return twin_find_member(board, twin_name(id));
}

const struct twin_member *twin_member(const struct twin_key *board, int id) {
    int64_t rank = twin_rank(board, id);
    return rank >= 0 ? &board->members[rank] : NULL;
}

/* ---- picking ---- */

bool twin_flip(struct twin_model *twin, uint64_t one_in) {
    return random_below(&twin->random, one_in) == 0;
}

int twin_pick_member(struct twin_model *twin) {
    return (int)random_below(&twin->random, TWIN_MEMBERS);
}

int64_t twin_pick_value(struct twin_model *twin, int index) {
    const struct twin_field *field = &twin->layout.fields[index];
    int64_t low = field->is_signed ? -2 : 0;
    int64_t high = twin_highest(field) < 3 ? (int64_t)twin_highest(field) : 3;
    return low + (int64_t)random_below(&twin->random, (uint64_t)(high - low) + 1);
}

/* ---- records ---- */

const char *twin_print_packed(const struct twin_model *twin, const struct twin_member *member,
                              char *out) {
    const struct twin_layout *layout = &twin->layout;
    twin_wide key = 0;
    int bits = layout->time_bits;
    for (int i = 0; i < layout->field_count; i++) {
        const struct twin_field *field = &layout->fields[i];
        twin_wide value = member->values[i];
        key = (key << field->bits) +
              (field->is_ascending ? twin_highest(field) - value : value - twin_lowest(field));
        bits += field->bits;
    }
    if (layout->time_bits > 0) {
        twin_wide last = ((twin_wide)1 << layout->time_bits) - 1;
        key = (key << layout->time_bits) + (layout->is_latest ? member->unit : last - member->unit);
    }
    key -= layout->fields[0].is_signed ? (twin_wide)1 << (bits - 1) : 0;
    out[twin_print_decimal(out, key, 0)] = '\0';
    return out;
}

/* Different fields among the members up to this one. */
static uint32_t count_scores_to(const struct twin_model *twin, uint32_t rank) {
    const struct twin_member *members = twin->board->members;
    uint32_t count = 1;
    for (; rank > 0; rank--) {
        count += twin_compare_fields(&twin->layout, &members[rank - 1], &members[rank]) != 0;
    }
    return count;
}

void twin_put_record(struct twin_model *twin, uint32_t rank, struct twin_records records) {
    struct twin_server *server = &twin->server;
    const struct twin_layout *layout = &twin->layout;
    const struct twin_key *board = twin->board;
    const struct twin_member *member = &board->members[rank];
    while (records.is_competition && rank > 0 &&
           twin_compare_fields(layout, &board->members[rank - 1], member) == 0) {
        rank--;
    }
    uint32_t count = board->count;
    if (records.is_dense) {
        rank = count_scores_to(twin, rank) - 1;
        count = count_scores_to(twin, count - 1);
    }
    twin_put_array(server,
                   3U + (unsigned)layout->field_count + records.with_percent + records.with_key);
    twin_put_bulk(server, member->name);
    twin_put_integer(server, rank);
    if (layout->time_bits > 0) {
        int64_t time_us = layout->start_us + member->unit * layout->unit_us;
        twin_put_integer(server, time_us / 1000);
    } else {
        twin_put_null(server);
    }
    for (int i = 0; i < layout->field_count; i++) {
        if (layout->fields[i].scale == 0) {
            twin_put_integer(server, (int64_t)member->values[i]);
        } else {
            twin_put_decimal(server, member->values[i], layout->fields[i].scale);
        }
    }
    if (records.with_percent) {
        twin_put_decimal(server, (twin_wide)10000000000 * (count - rank) / count, 8);
    }
    if (records.with_key) {
        char text[64];
        twin_put_bulk(server, bytes_from_text(twin_print_packed(twin, member, text)));
    }
}

void twin_put_found(struct twin_model *twin, int id, struct twin_records records) {
    int64_t rank = twin_rank(twin->board, id);
    if (rank >= 0) {
        twin_put_record(twin, (uint32_t)rank, records);
    } else {
        twin_put_null_array(&twin->server);
    }
}

void twin_put_rank(struct twin_server *server, int64_t rank) {
    if (rank >= 0) {
        twin_put_integer(server, rank);
    } else {
        twin_put_null(server);
    }
}

/* ---- asking the server ---- */

static struct session *client(const struct twin_model *twin) {
    return twin->harness->server.sessions.first;
}

void twin_model_begin(struct twin_model *twin) {
    struct bytes name = bytes_from_text(twin->name);
    client(twin)->protocol = twin_flip(twin, 2) ? 3 : 2;
    twin_begin(&twin->server, harness_now_us(twin->harness), 0, client(twin)->protocol);
    twin->board = twin_find(&twin->server, name);
    if (twin->board == NULL) {
        twin->board = twin_create_in(&twin->server, 0, name);
    }
}

/* The server has no empty board. */
static void leave_board(struct twin_model *twin) {
    twin_remove_if_empty(&twin->server, twin->board);
    twin->board = NULL;
}

static void compare_boards(struct twin_model *twin) {
    const struct server *server = &twin->harness->server;
    char difference[256];
    leave_board(twin);
    if (!twin_server_equals(&twin->server, server->registry, server->clock.now_ms, difference,
                            sizeof difference)) {
        print_error("%s\n", difference);
        fail();
    }
}

void twin_model_check(struct twin_model *twin, const char *line) {
    const char *answered = harness_run(twin->harness, client(twin), line);
    if (!twin_server_expects(&twin->server, answered)) {
        print_error("%s\n--- expected\n%s\n--- answered\n%s\n", line, twin->server.reply, answered);
        fail();
    }
    if (answered[0] == '-') {
        compare_boards(twin);
    }
}

void twin_model_run(struct twin_model *twin, const char *line) {
    struct bytes args[32];
    uint32_t count = 0;
    for (const char *at = line; *at != '\0'; at += strspn(at, " ")) {
        assert_in_range(count, 0, sizeof args / sizeof args[0] - 1);
        args[count] = (struct bytes){.at = at, .size = strcspn(at, " ")};
        at += args[count++].size;
    }
    leave_board(twin);
    twin_server_run(&twin->server, args, count, twin->server.now_us, 0, twin->server.protocol);
    twin_model_check(twin, line);
}

void twin_model_compare(struct twin_model *twin) {
    char line[TWIN_MEMBERS * 8 + 64];
    int size = snprintf(line, sizeof line, "LB.GET %s %d", twin->name, TWIN_MEMBERS);
    twin_model_begin(twin);
    twin_put_array(&twin->server, TWIN_MEMBERS);
    for (int id = 0; id < TWIN_MEMBERS; id++) {
        size += snprintf(line + size, sizeof line - (size_t)size, " m%d", id);
        twin_put_found(twin, id, (struct twin_records){.with_percent = true, .with_key = true});
    }
    twin_model_check(twin, strcat(line, " PCT WITHKEY"));
    compare_boards(twin);
}
