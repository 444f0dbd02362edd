/* Any bytes as CSV or JSON lines to be imported: never a crash, an error names the line, and what was
 * taken is exported and taken again as it is. */
#include "server/settings/settings.h"
#include "server/system/tzdata.h"
#include "server/tools/tools.h"
#include "tests/fuzz/fuzz.h"

static struct settings settings;

static struct registry *create(void) {
    struct registry *registry = registry_create(7, setting_board_options_for, &settings);
    CHECK(registry != NULL);
    return registry;
}

static bool take(struct registry *registry, enum record_format format, const void *at,
                 size_t size) {
    char error[IMPORT_ERROR_MAX] = "";
    FILE *in = fmemopen((void *)(uintptr_t)at, size, "r");
    CHECK(in != NULL);
    bool is_taken = import_records(registry, format, in, error);
    CHECK(is_taken || strncmp(error, "line ", 5) == 0);
    fclose(in);
    return is_taken;
}

static char *export(const struct registry *registry, enum record_format format, size_t *size) {
    char *text = NULL;
    FILE *out = open_memstream(&text, size);
    CHECK(out != NULL);
    CHECK(export_records(registry, format, out));
    fclose(out);
    return text;
}

/* By way of the other format. */
static void check_round_trip(const struct registry *registry, enum record_format format) {
    const char *reason = "";
    size_t size = 0;
    size_t size_again = 0;
    char *text = export(registry, format, &size);
    struct registry *again = create();
    CHECK(size == 0 || take(again, format, text, size));
    CHECK(registry_validate(again, &reason));
    char *text_again = export(again, format, &size_again);
    CHECK(size == size_again);
    registry_destroy(again);
    free(text);
    free(text_again);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size) {
    if (size < 2) {
        return 0;
    }
    uint64_t live_count = memory_live_count();
    enum record_format format = input[0] == '{' ? RECORD_JSONL : RECORD_CSV;
    CHECK(settings_init(&settings));
    struct registry *registry = create();
    if (take(registry, format, input, size)) {
        check_round_trip(registry, RECORD_CSV);
        check_round_trip(registry, RECORD_JSONL);
    }
    registry_destroy(registry);
    settings_deinit(&settings);
    tzdata_deinit();
    CHECK(memory_live_count() == live_count);
    return 0;
}
