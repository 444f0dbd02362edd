/* Any bytes as leaderboard.conf: never a crash, and what was understood is understood again from
 * what the settings print. A refused text changes nothing. */
#include "server/settings/settings.h"
#include "server/system/tzdata.h"
#include "tests/fuzz/fuzz.h"

static char *print_all(const struct settings *settings, size_t *size) {
    char *text = NULL;
    char line[SETTING_VALUE_MAX];
    size_t line_size;
    FILE *file = open_memstream(&text, size);
    CHECK(file != NULL);
    for (const struct setting *setting = setting_table; setting->name != NULL; setting++) {
        for (uint32_t i = 0; setting_value_print_line(settings, setting, i, line, &line_size);
             i++) {
            CHECK(line_size <= SETTING_VALUE_MAX - 128);
            fprintf(file, "%s ", setting->name);
            fwrite(line, 1, line_size, file);
            fputc('\n', file);
        }
        if ((setting->flags & SETTING_REPEATS) == 0) {
            CHECK(setting_value_show(settings, setting, line) <= SETTING_VALUE_MAX);
        }
    }
    fclose(file);
    return text;
}

static void check_error(const char *error) {
    size_t size = strnlen(error, SETTING_ERROR_MAX);
    CHECK(size > 0 && size < SETTING_ERROR_MAX);
    for (size_t i = 0; i < size; i++) {
        CHECK(error[i] >= ' ' && error[i] <= '~');
    }
}

/* Give the settings' own text to new ones; they print the same. */
static void check_round_trip(const struct settings *settings) {
    static struct settings again;
    char error[SETTING_ERROR_MAX];
    size_t size = 0;
    size_t size_again = 0;
    char *text = print_all(settings, &size);
    CHECK(settings_init(&again));
    CHECK(
        setting_file_apply_text(&again, (struct bytes){.at = text, .size = size}, "again", error));
    char *text_again = print_all(&again, &size_again);
    CHECK(size == size_again && memcmp(text, text_again, size) == 0);
    settings_deinit(&again);
    free(text);
    free(text_again);
}

static void check_unchanged(const struct settings *settings) {
    static struct settings fresh;
    size_t size = 0;
    size_t size_fresh = 0;
    CHECK(settings_init(&fresh));
    char *text = print_all(settings, &size);
    char *text_fresh = print_all(&fresh, &size_fresh);
    CHECK(size == size_fresh && memcmp(text, text_fresh, size) == 0);
    settings_deinit(&fresh);
    free(text);
    free(text_fresh);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size) {
    static struct settings settings;
    char error[SETTING_ERROR_MAX];
    uint64_t live_count = memory_live_count();
    struct bytes text = {.at = (const char *)input, .size = size};
    CHECK(settings_init(&settings));
    if (!setting_file_apply_text(&settings, text, "fuzz.conf", error)) {
        check_error(error);
        check_unchanged(&settings);
    } else if (!settings_finish(&settings, error)) {
        check_error(error);
        check_round_trip(&settings);
    } else {
        check_round_trip(&settings);
        CHECK(setting_board_options_for(&settings, text, 0) != NULL);
    }
    settings_deinit(&settings);
    tzdata_deinit();
    CHECK(memory_live_count() == live_count);
    return 0;
}
