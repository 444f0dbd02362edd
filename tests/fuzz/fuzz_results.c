/* Any bytes as the body of a request that writes results or tags. Words lie within the body, or are constants; commands
 * have words, and no more than so many; what is refused has a whole problem document. */
#include "server/commands/table.h"
#include "server/dispatch/execute.h"
#include "server/web/web_query.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/web_target.h"

static struct web web;

static void check_commands(struct web_query *query) {
    const struct web_write *write = &query->write;
    const struct web_command *commands =
        (const struct web_command *)(const void *)write->commands.at;
    size_t count = write->commands.size / sizeof *commands;
    unsigned word_count, before = 0;
    const struct bytes *words = web_write_words(query, &word_count);
    CHECK(write->result_count >= 1 && write->result_count <= WEB_RESULTS_MAX);
    CHECK(count >= 1 && count <= write->result_count);
    for (size_t i = 0; i < count; i++) {
        CHECK(commands[i].end >= before + 4);
        before = commands[i].end;
    }
    CHECK(before == word_count);
    size_t total = 0;
    for (unsigned i = 0; i < word_count; i++) {
        bool is_of_body = words[i].at >= write->body.at &&
                          words[i].at + words[i].size <= write->body.at + write->body.size;
        CHECK(is_of_body || words[i].size <= 16);
        total += words[i].size > 0 ? (unsigned char)words[i].at[words[i].size - 1] : 0;
    }
    CHECK(total < SIZE_MAX);
}

static void read_body(unsigned kind, const uint8_t *data, size_t size) {
    static const char *const targets[] = {"/api/v1/boards/b/results?rank=1", "/api/v1/results",
                                          "/api/v1/leagues/b/results"};
    struct web_query *query = web_query_create(&web);
    CHECK(query != NULL);
    bool is_parsed = web_target_parse(query, HTTP_POST, targets[kind % 3]);
    CHECK(is_parsed);
    buffer_init(&query->write.body, 0);
    if (size > 0) {
        buffer_append(&query->write.body, data, size);
    }
    if (kind == 3 ? web_write_read_tags(query) : web_write_read(query)) {
        if (kind < 3) {
            check_commands(query);
        }
    } else {
        CHECK(query->status >= 400 && query->out.size > 2);
        CHECK(query->out.at[query->out.size - 1] == '}');
    }
    web_query_destroy(query);
    CHECK(web.memory_size == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static bool is_begun;
    if (!is_begun) {
        execute_init(command_table);
        web.data.pattern = BYTES("u:*");
        is_begun = true;
    }
    for (unsigned kind = 0; kind < 4; kind++) {
        read_body(kind, data, size);
    }
    return 0;
}
