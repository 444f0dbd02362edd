/* Values of settings: words -> fields of struct settings, and back to text.
 *
 *     "proto-max-bulk-len 64mb"  ->  settings.proto_max_bulk_len = 67108864
 *                                ->  "67108864" (CONFIG GET), "64mb" (a file)
 *
 * A setting's kind, in its row of the table, says where its field is, how it is written and which
 * values are allowed. Error texts are those of Redis where it has them: clients and operators know
 * them. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <limits.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdlib.h>

#include "codec/buffer.h"
#include "codec/bytes.h"
#include "server/settings/setting_private.h"
#include "server/system/digest.h"

/* ---- messages ---- */

bool setting_value_fail(char *error, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error, SETTING_ERROR_MAX, format, arguments);
    va_end(arguments);
    return false;
}

struct bytes_shown setting_value_show_path(const char *path) {
    struct bytes text = bytes_from_text(path);
    if (text.size <= BYTES_SHOWN_MAX) {
        return bytes_show(text);
    }
    size_t skipped = text.size - (BYTES_SHOWN_MAX - 3);
    struct bytes_shown tail =
        bytes_show((struct bytes){.at = text.at + skipped, .size = text.size - skipped});
    struct bytes_shown shown;
    snprintf(shown.text, sizeof shown.text, "...%.*s", BYTES_SHOWN_MAX - 3, tail.text);
    return shown;
}

/* ---- a line to words ---- */

bool setting_value_is_silent_line(struct bytes line) {
    size_t i = 0;
    while (i < line.size && bytes_is_blank(line.at[i])) {
        i++;
    }
    return i == line.size || line.at[i] == '#';
}

bool setting_value_split_line(struct bytes line, struct setting_words *words, char *reason) {
    struct bytes word;
    char *out = words->room;
    enum bytes_word_status status;
    words->count = 0;
    if (line.size > sizeof words->room) {
        return setting_value_fail(reason, "a line may have at most %d bytes", SETTING_LINE_MAX);
    }
    while ((status = bytes_take_quoted(&line, &out, &word)) == BYTES_WORD_TAKEN) {
        if (words->count == SETTING_WORDS_MAX) {
            return setting_value_fail(reason, "a line may have at most %d words",
                                      SETTING_WORDS_MAX);
        }
        words->words[words->count++] = word;
    }
    return status == BYTES_WORDS_END ||
           setting_value_fail(reason,
                              "unbalanced quotes: a closing quote is missing, or is not followed "
                              "by a blank or the end of the line");
}

/* Words end up in terminated texts. false: one has a zero byte inside. */
static bool setting_value_check_words(const struct bytes *words, size_t count, char *reason) {
    for (size_t i = 0; i < count; i++) {
        if (words[i].size > 0 && memchr(words[i].at, '\0', words[i].size) != NULL) {
            return setting_value_fail(reason, "a zero byte is not allowed");
        }
    }
    return true;
}

/* ---- a word into a line ---- */

bool setting_value_is_of(struct bytes word, const char *others) {
    for (size_t i = 0; i < word.size; i++) {
        char byte = word.at[i];
        if (!(byte >= 'a' && byte <= 'z') && !(byte >= 'A' && byte <= 'Z') &&
            !(byte >= '0' && byte <= '9') && (byte == '\0' || strchr(others, byte) == NULL)) {
            return false;
        }
    }
    return true;
}

static size_t setting_value_put_escaped(char *out, char byte) {
    static const char letters[] = "nrtab\"\\";
    static const char meanings[] = "\n\r\t\a\b\"\\";
    const char *meaning = byte != '\0' ? strchr(meanings, byte) : NULL;
    if (meaning != NULL) {
        out[0] = '\\';
        out[1] = letters[meaning - meanings];
        return 2;
    }
    if (byte >= ' ' && byte <= '~') {
        out[0] = byte;
        return 1;
    }
    out[0] = '\\';
    out[1] = 'x';
    bytes_print_hex((unsigned char)byte, out + 2);
    return 4;
}

/* Quote a word so that splitting returns it: quotes only if necessary, at most 4 * word.size + 2
 * bytes. Returns the size. */
static size_t setting_value_quote(char *out, struct bytes word) {
    if (word.size > 0 && setting_value_is_of(word, "_-./:*?[]^,@%+=~")) {
        memcpy(out, word.at, word.size);
        return word.size;
    }
    size_t size = 0;
    out[size++] = '"';
    for (size_t i = 0; i < word.size; i++) {
        size += setting_value_put_escaped(out + size, word.at[i]);
    }
    out[size++] = '"';
    return size;
}

/* ---- did you mean ---- */

bool setting_value_fail_unknown(char *reason, const char *what, struct bytes word,
                                setting_value_next *next, const void *context,
                                const char *otherwise) {
    const char *nearest = NULL;
    /* Up to one error in four letters counts as a typing error; more is another word. */
    unsigned fewest = (unsigned)word.size / 4 + 1;
    const char *candidate;
    for (uint32_t i = 0; (candidate = next(context, i)) != NULL; i++) {
        struct bytes text = bytes_from_text(candidate);
        unsigned slips = bytes_distance(word, text, false);
        if (slips < fewest || (slips == fewest && nearest == NULL && slips < text.size)) {
            fewest = slips;
            nearest = candidate;
        }
    }
    return nearest == NULL
               ? setting_value_fail(reason, "%s '%s'%s", what, bytes_show(word).text, otherwise)
               : setting_value_fail(reason, "%s '%s'; did you mean '%s'?", what,
                                    bytes_show(word).text, nearest);
}

enum {
    MEBIBYTE = 1024 * 1024,
    HOST_NAME_SIZE_MAX = 253, /* RFC 1035 */
};

static void *setting_value_field_of(struct settings *settings, const struct setting *setting) {
    return (char *)settings + setting->kind.offset;
}

/* ---- Strings ---- */

bool setting_value_is_borrowed(const struct settings *settings, char *const *slot) {
    size_t offset = (size_t)((const char *)slot - (const char *)settings);
    const char *original = (const char *)settings->original;
    return original != NULL && memcmp(original + offset, slot, sizeof *slot) == 0;
}

bool setting_value_replace(struct settings *settings, char **slot, struct bytes text) {
    if (bytes_equal(text, bytes_from_text(*slot != NULL ? *slot : ""))) {
        return true;
    }
    char *copy = text.size > 0 ? memory_copy_text(text.at, text.size) : NULL;
    if (copy == NULL && text.size > 0) {
        return false;
    }
    if (!setting_value_is_borrowed(settings, slot)) {
        memory_free(*slot);
    }
    *slot = copy;
    return true;
}

/* ---- One word in ---- */

static bool setting_value_put_number(const struct setting_input *in, int64_t value) {
    const struct setting_kind *kind = &in->setting->kind;
    if (value < kind->minimum || value > kind->maximum) {
        return setting_value_fail(in->reason,
                                  "argument must be between %" PRId64 " and %" PRId64 " inclusive",
                                  kind->minimum, kind->maximum);
    }
    *(int64_t *)setting_value_field_of(in->settings, in->setting) = value;
    return true;
}

static bool setting_value_assign_integer(const struct setting_input *in) {
    int64_t value;
    if (!bytes_parse_i64(in->words[0], &value)) {
        return setting_value_fail(in->reason, "argument couldn't be parsed into an integer");
    }
    return setting_value_put_number(in, value);
}

static bool setting_value_assign_octal(const struct setting_input *in) {
    struct bytes word = in->words[0];
    int64_t maximum = in->setting->kind.maximum;
    int64_t value = 0;
    bool is_octal = word.size > 0;
    for (size_t i = 0; i < word.size && is_octal; i++) {
        is_octal = word.at[i] >= '0' && word.at[i] <= '7';
        /* Clamped just above the maximum, however long the word is. */
        value = value > maximum ? value : value * 8 + (word.at[i] - '0');
    }
    if (!is_octal) {
        return setting_value_fail(in->reason, "argument couldn't be parsed as an octal number");
    }
    if (value > maximum) {
        return setting_value_fail(
            in->reason, "argument must be between 0 and %" PRIo64 " inclusive", (uint64_t)maximum);
    }
    *(int64_t *)setting_value_field_of(in->settings, in->setting) = value;
    return true;
}

static const struct {
    const char *name;
    uint64_t bytes;
} size_units[] = {
    {"", 1},        {"b", 1},         {"k", 1000},       {"kb", 1024},
    {"m", 1000000}, {"mb", MEBIBYTE}, {"g", 1000000000}, {"gb", (uint64_t)1024 * MEBIBYTE},
};
enum { SIZE_UNIT_COUNT = sizeof size_units / sizeof size_units[0] };

static bool setting_value_parse_size(struct bytes word, uint64_t *value) {
    size_t digits = 0;
    while (digits < word.size && word.at[digits] >= '0' && word.at[digits] <= '9') {
        digits++;
    }
    uint64_t number;
    if (!bytes_parse_u64((struct bytes){.at = word.at, .size = digits}, &number)) {
        return false;
    }
    struct bytes unit = {.at = word.at + digits, .size = word.size - digits};
    for (size_t i = 0; i < SIZE_UNIT_COUNT; i++) {
        if (bytes_is(unit, size_units[i].name)) {
            return !__builtin_mul_overflow(number, size_units[i].bytes, value);
        }
    }
    return false;
}

static bool setting_value_assign_size(const struct setting_input *in) {
    uint64_t value;
    if (!setting_value_parse_size(in->words[0], &value)) {
        return setting_value_fail(in->reason, "argument must be a memory%s value",
                                  in->setting->kind.type == SETTING_TYPE_SIZE ? "" : " or percent");
    }
    /* One above INT64_MAX becomes negative, and is out of range too. */
    return setting_value_put_number(in, (int64_t)value);
}

static bool setting_value_assign_size_or_percent(const struct setting_input *in) {
    struct bytes number = in->words[0];
    uint64_t percent;
    if (number.size == 0 || number.at[number.size - 1] != '%') {
        return setting_value_assign_size(in);
    }
    number.size--;
    if (!bytes_parse_u64(number, &percent)) {
        return setting_value_fail(in->reason, "argument must be a memory or percent value");
    }
    if (percent > 100) {
        return setting_value_fail(in->reason, "percentage argument must be less or equal to 100");
    }
    *(int64_t *)setting_value_field_of(in->settings, in->setting) = -(int64_t)percent;
    return true;
}

static bool setting_value_assign_boolean(const struct setting_input *in) {
    bool is_yes = bytes_is(in->words[0], "yes");
    if (!is_yes && !bytes_is(in->words[0], "no")) {
        return setting_value_fail(in->reason, "argument must be 'yes' or 'no'");
    }
    *(bool *)setting_value_field_of(in->settings, in->setting) = is_yes;
    return true;
}

/* "everysec, always, no". out: SETTING_ERROR_MAX. */
static void setting_value_join_choices(const char *const *choices, const char *separator,
                                       char *out) {
    for (int i = 0; choices[i] != NULL; i++) {
        out += sprintf(out, "%s%s", i > 0 ? separator : "", choices[i]);
    }
}

static bool setting_value_assign_choice(const struct setting_input *in) {
    const char *const *choices = in->setting->kind.choices;
    for (int i = 0; choices[i] != NULL; i++) {
        if (bytes_is(in->words[0], choices[i])) {
            *(int *)setting_value_field_of(in->settings, in->setting) = i;
            return true;
        }
    }
    char all[SETTING_ERROR_MAX];
    setting_value_join_choices(choices, ", ", all);
    return setting_value_fail(in->reason, "argument(s) must be one of the following: %s", all);
}

static bool setting_value_assign_string(const struct setting_input *in) {
    const struct setting_kind *kind = &in->setting->kind;
    struct bytes word = in->words[0];
    if (word.size > (size_t)kind->maximum) {
        return setting_value_fail(in->reason, "argument may have at most %" PRId64 " bytes",
                                  kind->maximum);
    }
    if (word.size < (size_t)kind->minimum) {
        return setting_value_fail(in->reason, "argument can't be empty");
    }
    return setting_value_replace(in->settings, setting_value_field_of(in->settings, in->setting),
                                 word) ||
           setting_value_fail(in->reason, "out of memory");
}

static bool setting_value_assign_file_name(const struct setting_input *in) {
    struct bytes word = in->words[0];
    if (memchr(word.at, '/', word.size) != NULL || bytes_is(word, ".") || bytes_is(word, "..")) {
        return setting_value_fail(in->reason, "argument can't be a path, just a name");
    }
    return setting_value_assign_string(in);
}

static bool setting_value_check_only(const struct setting_input *in) {
    const char *const *choices = in->setting->kind.choices;
    return bytes_is(in->words[0], choices[0]) ||
           setting_value_fail(in->reason, "%s, so the only value is %s", choices[1], choices[0]);
}

/* Letters of enum setting_event, from the lowest bit up, as Redis prints them. */
static const char event_letters[] = "g$lshzxetdnKEm";

static bool setting_value_assign_events(const struct setting_input *in) {
    struct bytes word = in->words[0];
    unsigned events = 0;
    for (size_t i = 0; i < word.size; i++) {
        const char *letter = memchr(event_letters, word.at[i], sizeof event_letters - 1);
        if (letter == NULL && word.at[i] != 'A') {
            return setting_value_fail(in->reason,
                                      "Invalid event class character. Use 'Ag$lshzxeKEtmdn'.");
        }
        events |= letter != NULL ? 1U << (letter - event_letters) : (unsigned)SETTING_EVENT_ALL;
    }
    *(unsigned *)setting_value_field_of(in->settings, in->setting) = events;
    return true;
}

/* ---- Many words in ---- */

static bool setting_value_is_address(struct bytes word) {
    if (word.size > 0 && word.at[0] == '-') {
        word = (struct bytes){.at = word.at + 1, .size = word.size - 1};
    }
    /* A host name must contain a letter, so that a mistyped IPv4 address is not accepted as one. */
    bool has_letter = false;
    for (size_t i = 0; i < word.size; i++) {
        has_letter |= word.at[i] >= 'A'; /* beyond digits, '-' and '.' */
    }
    if (has_letter && setting_value_is_of(word, "-.") && word.size <= HOST_NAME_SIZE_MAX &&
        word.at[0] != '-') {
        return true;
    }
    char text[INET6_ADDRSTRLEN + 32]; /* with an interface name: fe80::1%eth0 */
    if (word.size == 0 || word.size >= sizeof text || memchr(word.at, '\0', word.size) != NULL) {
        return false;
    }
    memcpy(text, word.at, word.size);
    text[word.size] = '\0';
    unsigned char parsed[sizeof(struct in6_addr)];
    if (strcmp(text, "*") == 0 || strcmp(text, "::*") == 0 || inet_pton(AF_INET, text, parsed)) {
        return true;
    }
    /* The name of an interface after '%' is within the kernel's limit, and of bytes that need no quotes. */
    char *zone = strchr(text, '%');
    if (zone != NULL) {
        *zone++ = '\0';
    }
    struct bytes name = bytes_from_text(zone != NULL ? zone : "");
    return inet_pton(AF_INET6, text, parsed) == 1 &&
           (zone == NULL ||
            (name.size >= 1 && name.size < IF_NAMESIZE && setting_value_is_of(name, "-_.:@")));
}

static bool setting_value_check_list(const struct setting_input *in) {
    return in->count <= SETTING_LIST_MAX ||
           setting_value_fail(in->reason, "at most %d addresses are allowed", SETTING_LIST_MAX);
}

/* Whether each of proxy-protocol is a word of bind is checked once that is known. */
static bool setting_value_assign_addresses(const struct setting_input *in) {
    struct setting_addresses *addresses = setting_value_field_of(in->settings, in->setting);
    if (!setting_value_check_list(in)) {
        return false;
    }
    for (size_t i = 0; i < in->count; i++) {
        if (!setting_value_is_address(in->words[i])) {
            return setting_value_fail(in->reason, "'%s' %s", bytes_show(in->words[i]).text,
                                      in->setting->kind.choices[0]);
        }
    }
    for (size_t i = 0; i < SETTING_LIST_MAX; i++) {
        struct bytes word = i < in->count ? in->words[i] : BYTES("");
        if (!setting_value_replace(in->settings, &addresses->at[i], word)) {
            return setting_value_fail(in->reason, "out of memory");
        }
    }
    addresses->count = (uint32_t)in->count;
    return true;
}

static bool setting_value_assign_subnets(const struct setting_input *in) {
    struct setting_subnets *subnets = setting_value_field_of(in->settings, in->setting);
    if (!setting_value_check_list(in)) {
        return false;
    }
    for (size_t i = 0; i < in->count; i++) {
        if (!subnet_parse(in->words[i], &subnets->at[i])) {
            return setting_value_fail(
                in->reason,
                "'%s' is not a network: 10.0.0.0/8, 192.0.2.7, fd00::/8 are; bits "
                "behind the prefix must be 0",
                bytes_show(in->words[i]).text);
        }
    }
    subnets->count = (uint32_t)in->count;
    return true;
}

static const char *const output_classes[SETTING_OUTPUT_CLASSES] = {"normal", "replica", "pubsub"};

static bool setting_value_assign_output_limit(const struct setting_input *in) {
    struct setting_output_limit limits[SETTING_OUTPUT_CLASSES];
    memcpy(limits, in->settings->output_limits, sizeof limits);
    if (in->count % 4 != 0) {
        return setting_value_fail(in->reason,
                                  "Wrong number of arguments in buffer limit configuration.");
    }
    for (const struct bytes *word = in->words; word < in->words + in->count; word += 4) {
        unsigned class = 0;
        while (class < SETTING_OUTPUT_CLASSES && !bytes_is(word[0], output_classes[class])) {
            class ++;
        }
        class = bytes_is(word[0], "slave") ? (unsigned)SETTING_OUTPUT_REPLICA : class;
        if (class == SETTING_OUTPUT_CLASSES) {
            return setting_value_fail(in->reason,
                                      "Invalid client class '%s' specified in buffer limit "
                                      "configuration: the classes are normal, replica and pubsub",
                                      bytes_show(word[0]).text);
        }
        struct setting_output_limit *limit = &limits[class];
        if (!setting_value_parse_size(word[1], &limit->hard_bytes) ||
            !setting_value_parse_size(word[2], &limit->soft_bytes) ||
            !bytes_parse_i64(word[3], &limit->soft_seconds) || limit->soft_seconds < 0 ||
            limit->soft_seconds > INT32_MAX) {
            return setting_value_fail(in->reason,
                                      "Error in hard, soft or soft_seconds setting in buffer "
                                      "limit configuration.");
        }
    }
    memcpy(in->settings->output_limits, limits, sizeof limits);
    return true;
}

static bool setting_value_assign_player_key(const struct setting_input *in) {
    struct settings *settings = in->settings;
    struct jwt_key key;
    if (!jwt_read_key(in->words, in->count, &key, in->reason)) {
        return false;
    }
    if (jwt_find_key(settings->player_keys, settings->player_key_count, bytes_from_text(key.kid)) !=
        NULL) {
        return setting_value_fail(in->reason, "kid '%s' has a key already", key.kid);
    }
    if (settings->player_key_count == JWT_KEYS_MAX) {
        return setting_value_fail(in->reason, "at most %d keys are allowed", JWT_KEYS_MAX);
    }
    settings->player_keys[settings->player_key_count++] = key;
    return true;
}

/* Without words: no snapshots. */
static bool setting_value_assign_save(const struct setting_input *in) {
    struct settings *settings = in->settings;
    bool is_list = in->origin->is_argument || in->origin->file_name != NULL;
    uint32_t before = is_list && settings->is_save_begun ? settings->save_point_count : 0;
    if (before + in->count / 2 > SETTING_SAVE_POINTS_MAX) {
        return setting_value_fail(in->reason, "at most %d pairs are allowed",
                                  SETTING_SAVE_POINTS_MAX);
    }
    struct setting_save_point *point = &settings->save_points[before];
    bool is_fine = in->count % 2 == 0;
    for (size_t i = 0; i < in->count && is_fine; i += 2, point++) {
        is_fine = bytes_parse_i64(in->words[i], &point->seconds) && point->seconds >= 1 &&
                  point->seconds <= INT32_MAX &&
                  bytes_parse_i64(in->words[i + 1], &point->changes) && point->changes >= 0;
    }
    if (!is_fine) {
        return setting_value_fail(in->reason, "Invalid save parameters");
    }
    settings->save_point_count = in->count > 0 ? before + (uint32_t)(in->count / 2) : 0;
    settings->is_save_begun = is_list;
    return true;
}

static bool setting_value_assign_rename(const struct setting_input *in) {
    struct settings *settings = in->settings;
    if (in->count != 2) {
        return setting_value_fail(in->reason,
                                  "wrong number of arguments, the form is: rename-command %s",
                                  in->setting->kind.text);
    }
    if (settings->rename_count == SETTING_RENAMES_MAX) {
        return setting_value_fail(in->reason, "at most %d lines are allowed", SETTING_RENAMES_MAX);
    }
    if (in->words[0].size > SETTING_RENAME_SIZE_MAX ||
        in->words[1].size > SETTING_RENAME_SIZE_MAX) {
        return setting_value_fail(in->reason, "a name may have at most %d bytes",
                                  SETTING_RENAME_SIZE_MAX);
    }
    struct setting_rename *rename = &settings->renames[settings->rename_count++];
    *rename = (struct setting_rename){.name = ""};
    memcpy(rename->name, in->words[0].at, in->words[0].size);
    memcpy(rename->new_name, in->words[1].at, in->words[1].size);
    return true;
}

bool setting_value_is_host(struct bytes host) {
    bool has_sign = host.size > 0 && (host.at[0] == '-' || host.at[0] == '*');
    return !has_sign && !bytes_is(host, "::*") && setting_value_is_address(host) &&
           memchr(host.at, '%', host.size) == NULL;
}

bool setting_value_set_master(struct settings *settings, struct bytes host, uint16_t port) {
    if (!setting_value_replace(settings, &settings->replicaof_host, host)) {
        return false;
    }
    settings->replicaof_port = host.size > 0 ? port : 0;
    return true;
}

static bool setting_value_check_host(const struct setting_input *in) {
    return setting_value_is_host(in->words[0]) ||
           setting_value_fail(in->reason, "'%s' is neither an address nor a host's name",
                              bytes_show(in->words[0]).text);
}

static bool setting_value_assign_host(const struct setting_input *in) {
    return (in->words[0].size == 0 || setting_value_check_host(in)) &&
           setting_value_assign_string(in);
}

static bool setting_value_assign_replicaof(const struct setting_input *in) {
    int64_t port = 0;
    bool is_none = in->count == 0 || (in->count == 2 && bytes_is(in->words[0], "no") &&
                                      bytes_is(in->words[1], "one"));
    if (!is_none && in->count != 2) {
        return setting_value_fail(in->reason,
                                  "wrong number of arguments, the form is: replicaof %s",
                                  in->setting->kind.text);
    }
    if (!is_none && !setting_value_check_host(in)) {
        return false;
    }
    if (!is_none && (!bytes_parse_i64(in->words[1], &port) || port < 1 || port > 65535)) {
        return setting_value_fail(in->reason, "Invalid master port");
    }
    return setting_value_set_master(in->settings, is_none ? BYTES("") : in->words[0],
                                    (uint16_t)port) ||
           setting_value_fail(in->reason, "out of memory");
}

/* ---- Text out ---- */

/* What to print, and where. */
struct printing {
    const struct settings *settings;
    const struct setting *setting;
    const void *field;
    uint32_t index;   /* of the line, if the setting repeats */
    bool is_for_file; /* not for CONFIG GET */
    char *out;
};

static size_t setting_value_print_text(const struct printing *p, const char *text) {
    struct bytes bytes = bytes_from_text(text != NULL ? text : "");
    if (p->is_for_file) {
        return setting_value_quote(p->out, bytes);
    }
    memcpy(p->out, bytes.at, bytes.size);
    return bytes.size;
}

static size_t setting_value_print_integer(const struct printing *p) {
    return bytes_print_i64(p->out, *(const int64_t *)p->field);
}

static size_t setting_value_print_octal(const struct printing *p) {
    return (size_t)sprintf(p->out, "%" PRIo64, *(const uint64_t *)p->field);
}

/* 67108864 -> "64mb": the largest power of 1024 that divides it. */
static size_t setting_value_put_size(char *out, uint64_t value, bool is_for_file) {
    const char *unit = "";
    for (size_t i = SIZE_UNIT_COUNT - 1; is_for_file && value > 0 && i > 0; i--) {
        uint64_t bytes = size_units[i].bytes;
        if (bytes % 1024 == 0 && value % bytes == 0) {
            unit = size_units[i].name;
            value /= bytes;
            break;
        }
    }
    return (size_t)sprintf(out, "%" PRIu64 "%s", value, unit);
}

static size_t setting_value_print_size(const struct printing *p) {
    return setting_value_put_size(p->out, *(const uint64_t *)p->field, p->is_for_file);
}

static size_t setting_value_print_size_or_percent(const struct printing *p) {
    int64_t value = *(const int64_t *)p->field;
    return value < 0 ? (size_t)sprintf(p->out, "%" PRId64 "%%", -value)
                     : setting_value_print_size(p);
}

static size_t setting_value_print_boolean(const struct printing *p) {
    return setting_value_print_text(p, *(const bool *)p->field ? "yes" : "no");
}

static size_t setting_value_print_choice(const struct printing *p) {
    return setting_value_print_text(p, p->setting->kind.choices[*(const int *)p->field]);
}

static size_t setting_value_print_only(const struct printing *p) {
    return setting_value_print_text(p, p->setting->kind.choices[0]);
}

static size_t setting_value_print_string(const struct printing *p) {
    return setting_value_print_text(p, *(char *const *)p->field);
}

/* Words that need no quotes, a blank between them. */
static size_t setting_value_print_plain(const struct printing *p) {
    struct bytes text = bytes_from_text(*(char *const *)p->field);
    memcpy(p->out, text.at, text.size);
    return text.size;
}

static size_t setting_value_print_events(const struct printing *p) {
    unsigned events = *(const unsigned *)p->field;
    char letters[sizeof event_letters + 1];
    size_t size = 0;
    if ((events & SETTING_EVENT_ALL) == SETTING_EVENT_ALL) {
        letters[size++] = 'A';
        events &= ~(unsigned)SETTING_EVENT_ALL;
    }
    for (unsigned i = 0; i < sizeof event_letters - 1; i++) {
        if ((events >> i & 1) != 0) {
            letters[size++] = event_letters[i];
        }
    }
    letters[size] = '\0';
    return setting_value_print_text(p, letters);
}

/* As in Redis: an absolute path, if the directory exists. */
static size_t setting_value_print_directory(const struct printing *p) {
    char absolute[PATH_MAX];
    const char *path = *(char *const *)p->field;
    return setting_value_print_text(
        p, !p->is_for_file && realpath(path, absolute) != NULL ? absolute : path);
}

/* Of an empty list: "" in a file, nothing for CONFIG GET. */
static size_t setting_value_print_nothing(const struct printing *p) {
    memcpy(p->out, "\"\"", 2);
    return p->is_for_file ? 2 : 0;
}

static size_t setting_value_print_addresses(const struct printing *p) {
    const struct setting_addresses *addresses = p->field;
    size_t size = 0;
    for (uint32_t i = 0; i < addresses->count; i++) {
        size += (size_t)sprintf(p->out + size, "%s%s", i > 0 ? " " : "", addresses->at[i]);
    }
    return size > 0 ? size : setting_value_print_nothing(p);
}

static size_t setting_value_print_subnets(const struct printing *p) {
    const struct setting_subnets *subnets = p->field;
    size_t size = 0;
    for (uint32_t i = 0; i < subnets->count; i++) {
        char text[SUBNET_TEXT_MAX];
        subnet_print(&subnets->at[i], text);
        size += (size_t)sprintf(p->out + size, "%s%s", i > 0 ? " " : "", text);
    }
    return size > 0 ? size : setting_value_print_nothing(p);
}

static size_t setting_value_print_output_limit(const struct printing *p) {
    size_t size = 0;
    for (unsigned class = 0; class < SETTING_OUTPUT_CLASSES; class ++) {
        const struct setting_output_limit *limit = &p->settings->output_limits[class];
        const char *name = class == SETTING_OUTPUT_REPLICA && !p->is_for_file
                               ? "slave" /* as CONFIG GET of Redis */
                               : output_classes[class];
        size += (size_t)sprintf(p->out + size, "%s%s ", class > 0 ? " " : "", name);
        size += setting_value_put_size(p->out + size, limit->hard_bytes, p->is_for_file);
        p->out[size++] = ' ';
        size += setting_value_put_size(p->out + size, limit->soft_bytes, p->is_for_file);
        size += (size_t)sprintf(p->out + size, " %" PRId64, limit->soft_seconds);
    }
    return size;
}

static size_t setting_value_print_save(const struct printing *p) {
    size_t size = 0;
    for (uint32_t i = 0; i < p->settings->save_point_count; i++) {
        const struct setting_save_point *point = &p->settings->save_points[i];
        size += (size_t)sprintf(p->out + size, "%s%" PRId64 " %" PRId64, i > 0 ? " " : "",
                                point->seconds, point->changes);
    }
    return size > 0 ? size : setting_value_print_text(p, "");
}

static size_t setting_value_print_replicaof(const struct printing *p) {
    const struct settings *settings = p->settings;
    return settings->replicaof_host != NULL
               ? (size_t)sprintf(p->out, "%s %" PRId64, settings->replicaof_host,
                                 settings->replicaof_port)
               : setting_value_print_nothing(p);
}

static size_t setting_value_print_rename(const struct printing *p) {
    const struct setting_rename *rename = &p->settings->renames[p->index];
    size_t size = setting_value_quote(p->out, bytes_from_text(rename->name));
    p->out[size++] = ' ';
    return size + setting_value_quote(p->out + size, bytes_from_text(rename->new_name));
}

static size_t setting_value_print_player_key(const struct printing *p) {
    const struct jwt_key *key = &p->settings->player_keys[p->index];
    const struct {
        const char *word, *text;
    } options[] = {{"ISS", key->issuer}, {"AUD", key->audience}};
    size_t size = setting_value_quote(p->out, bytes_from_text(key->kid));
    size += (size_t)sprintf(p->out + size, key->algorithm == JWT_HS256 ? " hs256 " : " ed25519 ");
    size += setting_value_quote(p->out + size, bytes_from_text(key->text));
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        if (options[i].text[0] != '\0') {
            size += (size_t)sprintf(p->out + size, " %s ", options[i].word);
            size += setting_value_quote(p->out + size, bytes_from_text(options[i].text));
        }
    }
    struct bytes rest = bytes_from_text(key->boards);
    for (bool is_first = true; rest.size > 0; is_first = false) {
        struct bytes pattern = {.at = rest.at, .size = strcspn(rest.at, " ")};
        size_t step = pattern.size + (pattern.size < rest.size);
        size += (size_t)sprintf(p->out + size, is_first ? " BOARDS " : " ");
        size += setting_value_quote(p->out + size, pattern);
        rest = (struct bytes){.at = rest.at + step, .size = rest.size - step};
    }
    return size;
}

/* layouts[0] is built in: no line gave it. */
static size_t setting_value_print_layout(const struct printing *p) {
    const struct setting_layout *layout = p->settings->layouts[p->index + 1];
    return (size_t)sprintf(p->out, "%s %s", layout->name, layout->text);
}

static size_t setting_value_print_rule(const struct printing *p) {
    const struct setting_rule *rule = &p->settings->rules[p->index];
    size_t size = setting_value_quote(p->out, bytes_from_text(rule->pattern));
    return size + (size_t)sprintf(p->out + size, " %s%s%s", rule->layout_name,
                                  rule->text != NULL ? " " : "",
                                  rule->text != NULL ? rule->text : "");
}

/* ---- Users ---- */

static bool setting_value_assign_user(const struct setting_input *in) {
    struct settings *settings = in->settings;
    const char *at = settings->user_lines;
    while (at != NULL && *at != '\0' &&
           (strcspn(at, " \n") != in->words[0].size ||
            memcmp(at, in->words[0].at, in->words[0].size) != 0)) {
        at = strchr(at, '\n') + 1;
    }
    if (at != NULL && *at != '\0') {
        return setting_value_fail(in->reason,
                                  "Duplicate user found. A user can only be defined once in "
                                  "config files");
    }
    struct buffer lines;
    buffer_init(&lines, 0);
    if (settings->user_lines != NULL) {
        buffer_append(&lines, settings->user_lines, strlen(settings->user_lines));
    }
    for (size_t i = 0; i < in->count; i++) {
        struct bytes word = in->words[i];
        for (size_t j = 0; j < word.size; j++) {
            if (word.at[j] == '\n' || (i == 0 && word.at[j] == ' ')) {
                buffer_deinit(&lines);
                return setting_value_fail(in->reason, "Spaces not allowed in ACL usernames");
            }
        }
        if (i > 0 && word.size > 0 && (word.at[0] == '>' || word.at[0] == '<')) {
            /* Passwords are kept as hashes. */
            char digest[DIGEST_TEXT_SIZE];
            digest_print((struct bytes){.at = word.at + 1, .size = word.size - 1}, digest);
            buffer_append(&lines, word.at[0] == '>' ? " #" : " !", 2);
            buffer_append(&lines, digest, sizeof digest);
        } else {
            buffer_append(&lines, " ", i > 0);
            buffer_append(&lines, word.at, word.size);
        }
    }
    buffer_append(&lines, "\n", 1);
    bool is_fine = !lines.is_broken && setting_value_set_user_lines(settings, buffer_bytes(&lines));
    buffer_deinit(&lines);
    return is_fine || setting_value_fail(in->reason, "out of memory");
}

bool setting_value_set_user_lines(struct settings *settings, struct bytes lines) {
    return setting_value_replace(settings, &settings->user_lines, lines);
}

/* The line with this index; NULL: it is after the last. */
static const char *setting_value_find_user_line(const struct settings *settings, uint32_t index) {
    const char *at = settings->user_lines;
    while (at != NULL && *at != '\0' && index-- > 0) {
        at = strchr(at, '\n') + 1;
    }
    return at != NULL && *at != '\0' ? at : NULL;
}

/* Its words, quoted where that is necessary. 0: they do not fit a line. */
static size_t setting_value_print_user(const struct printing *p) {
    enum { ROOM = SETTING_LINE_MAX - 16 };
    const char *at = setting_value_find_user_line(p->settings, p->index);
    size_t size = 0;
    for (uint32_t count = 1; at != NULL && *at != '\n'; count++) {
        struct bytes word = {.at = at, .size = strcspn(at, " \n")};
        /* Rules have many signs that need no quotes inside a line: ~* &* +@all #hash. */
        bool is_bare = true;
        for (size_t i = 0; i < word.size && is_bare; i++) {
            is_bare = at[i] > ' ' && at[i] <= '~' && strchr("\"'\\", at[i]) == NULL;
        }
        if (size + (is_bare ? word.size : 4 * word.size + 2) >= ROOM ||
            count >= SETTING_WORDS_MAX) {
            return 0;
        }
        if (is_bare) {
            memcpy(p->out + size, word.at, word.size);
            size += word.size;
        } else {
            size += setting_value_quote(p->out + size, word);
        }
        at += word.size;
        if (*at == ' ') {
            p->out[size++] = *at++;
        }
    }
    return size;
}

/* ---- Types ---- */

static const struct {
    bool (*assign)(const struct setting_input *in);
    size_t (*print)(const struct printing *printing);
    enum { WORD, TEXT, WORDS, TEXTS } form; /* one word or many; a string of the settings, or not */
} types[SETTING_TYPE_COUNT] = {
    [SETTING_TYPE_INTEGER] = {setting_value_assign_integer, setting_value_print_integer, WORD},
    [SETTING_TYPE_OCTAL] = {setting_value_assign_octal, setting_value_print_octal, WORD},
    [SETTING_TYPE_SIZE] = {setting_value_assign_size, setting_value_print_size, WORD},
    [SETTING_TYPE_SIZE_OR_PERCENT] = {setting_value_assign_size_or_percent,
                                      setting_value_print_size_or_percent, WORD},
    [SETTING_TYPE_BOOLEAN] = {setting_value_assign_boolean, setting_value_print_boolean, WORD},
    [SETTING_TYPE_CHOICE] = {setting_value_assign_choice, setting_value_print_choice, WORD},
    [SETTING_TYPE_ONLY] = {setting_value_check_only, setting_value_print_only, WORD},
    [SETTING_TYPE_STRING] = {setting_value_assign_string, setting_value_print_string, TEXT},
    [SETTING_TYPE_DIRECTORY] = {setting_value_assign_string, setting_value_print_directory, TEXT},
    [SETTING_TYPE_HOST] = {setting_value_assign_host, setting_value_print_string, TEXT},
    [SETTING_TYPE_FILE_NAME] = {setting_value_assign_file_name, setting_value_print_string, TEXT},
    [SETTING_TYPE_DEFAULT_LAYOUT] = {setting_board_assign_default, setting_value_print_plain,
                                     TEXTS},
    [SETTING_TYPE_EVENTS] = {setting_value_assign_events, setting_value_print_events, WORD},
    [SETTING_TYPE_USER] = {setting_value_assign_user, setting_value_print_user, TEXTS},
    [SETTING_TYPE_ADDRESSES] = {setting_value_assign_addresses, setting_value_print_addresses,
                                WORDS},
    [SETTING_TYPE_SUBNETS] = {setting_value_assign_subnets, setting_value_print_subnets, WORDS},
    [SETTING_TYPE_OUTPUT_LIMIT] = {setting_value_assign_output_limit,
                                   setting_value_print_output_limit, WORDS},
    [SETTING_TYPE_SAVE] = {setting_value_assign_save, setting_value_print_save, WORDS},
    [SETTING_TYPE_RENAME] = {setting_value_assign_rename, setting_value_print_rename, WORDS},
    [SETTING_TYPE_PLAYER_KEY] = {setting_value_assign_player_key, setting_value_print_player_key,
                                 WORDS},
    [SETTING_TYPE_REPLICAOF] = {setting_value_assign_replicaof, setting_value_print_replicaof,
                                WORDS},
    [SETTING_TYPE_LAYOUT] = {setting_board_assign_layout, setting_value_print_layout, WORDS},
    [SETTING_TYPE_BOARD] = {setting_board_assign_rule, setting_value_print_rule, WORDS},
};

char **setting_value_string(struct settings *settings, const struct setting *setting) {
    return (types[setting->kind.type].form & TEXT) != 0 ? setting_value_field_of(settings, setting)
                                                        : NULL;
}

static bool setting_value_fail_count(const struct setting_input *in) {
    char syntax[SETTING_SYNTAX_MAX];
    return setting_value_fail(in->reason, "wrong number of arguments, the form is: %s %s",
                              in->setting->name, setting_value_print_syntax(in->setting, syntax));
}

bool setting_value_assign_text(const struct setting_input *in, struct bytes line) {
    struct setting_input each = *in;
    struct setting_words words = {.count = 0};
    if (!setting_value_split_line(line, &words, in->reason) ||
        !setting_value_check_words(words.words, words.count, in->reason)) {
        return false;
    }
    each.words = words.words;
    each.count = words.count;
    return (int64_t)each.count >= in->setting->kind.minimum
               ? types[in->setting->kind.type].assign(&each)
               : setting_value_fail_count(in);
}

bool setting_value_assign(const struct setting_input *in) {
    enum setting_type type = in->setting->kind.type;
    if (in->count == 0 || (in->count > 1 && types[type].form < WORDS)) {
        return setting_value_fail_count(in);
    }
    if (!setting_value_check_words(in->words, in->count, in->reason)) {
        return false;
    }
    if (types[type].form < WORDS || in->count > 1 || type == SETTING_TYPE_USER) {
        return types[type].assign(in);
    }
    /* A single word with blanks inside is a quoted list, as CONFIG SET and shells pass it. */
    return setting_value_assign_text(in, in->words[0]);
}

static size_t setting_value_print(const struct settings *settings, const struct setting *setting,
                                  uint32_t index, bool is_for_file, char *out) {
    return types[setting->kind.type].print(
        &(struct printing){.settings = settings,
                           .setting = setting,
                           .field = (const char *)settings + setting->kind.offset,
                           .index = index,
                           .is_for_file = is_for_file,
                           .out = out});
}

size_t setting_value_show(const struct settings *settings, const struct setting *setting,
                          char *out) {
    return setting_value_print(settings, setting, 0, false, out);
}

bool setting_value_print_line(const struct settings *settings, const struct setting *setting,
                              uint32_t index, char *out, size_t *size) {
    enum setting_type type = setting->kind.type;
    uint32_t line_count = type == SETTING_TYPE_LAYOUT       ? settings->layout_count - 1
                          : type == SETTING_TYPE_BOARD      ? settings->rule_count
                          : type == SETTING_TYPE_RENAME     ? settings->rename_count
                          : type == SETTING_TYPE_PLAYER_KEY ? settings->player_key_count
                                                            : 1;
    bool is_user = type == SETTING_TYPE_USER;
    if (is_user ? setting_value_find_user_line(settings, index) == NULL : index >= line_count) {
        return false;
    }
    *size = setting_value_print(settings, setting, index, true, out);
    return true;
}

const char *setting_value_print_syntax(const struct setting *setting, char *out) {
    const struct setting_kind *kind = &setting->kind;
    if (kind->type == SETTING_TYPE_INTEGER) {
        snprintf(out, SETTING_SYNTAX_MAX, "%" PRId64 "..%" PRId64 "%s%s", kind->minimum,
                 kind->maximum, kind->text[0] != '\0' ? " " : "", kind->text);
    } else if (kind->type == SETTING_TYPE_CHOICE) {
        setting_value_join_choices(kind->choices, "|", out);
    } else {
        snprintf(out, SETTING_SYNTAX_MAX, "%s", kind->text);
    }
    return out;
}
