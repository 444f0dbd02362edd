/* See vote.h. */
#include "server/replication/vote.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "server/durability/store.h"
#include "server/system/digest.h"

#define NAME  "leaderboard.promise"
#define TITLE "leaderboard promise 1\n"

static const char *const left_names[VOTE_LEFTS] = {"crashed", "durable", "clean"};

/* ---- text ---- */

size_t vote_print(const struct vote *vote, char out[VOTE_TEXT_MAX]) {
    CHECK(vote->left < VOTE_LEFTS);
    int size = snprintf(out, VOTE_TEXT_MAX,
                        TITLE "node %016" PRIx64 "\npromised %s\nleft %s\nboot %s\ngroup %" PRIu64
                              "\nlease %" PRId64 "\n",
                        vote->node, vote->voted.text, left_names[vote->left], vote->boot,
                        vote->group, vote->lease_ms);
    CHECK(size > 0 && size < VOTE_TEXT_MAX - 32);
    return (size_t)size + (size_t)snprintf(out + size, (size_t)(VOTE_TEXT_MAX - size),
                                           "checksum %016" PRIx64 "\n",
                                           (uint64_t)XXH3_64bits(out, (size_t)size));
}

/* The value of the next line, which is to have this name. at NULL: it has not. */
static struct bytes vote_take_line(struct bytes *text, const char *name) {
    size_t name_size = strlen(name);
    const char *end = memchr(text->at, '\n', text->size);
    if (end == NULL || (size_t)(end - text->at) < name_size + 1 ||
        memcmp(text->at, name, name_size) != 0 || text->at[name_size] != ' ') {
        return (struct bytes){.at = NULL};
    }
    struct bytes value = {.at = text->at + name_size + 1,
                          .size = (size_t)(end - text->at) - name_size - 1};
    text->size -= (size_t)(end + 1 - text->at);
    text->at = end + 1;
    return value;
}

bool vote_parse(struct bytes text, struct vote *vote) {
    enum { TITLE_SIZE = sizeof TITLE - 1 };
    char printed[VOTE_TEXT_MAX];
    struct bytes rest = text;
    if (text.size < TITLE_SIZE || memcmp(text.at, TITLE, TITLE_SIZE) != 0) {
        return false;
    }
    rest.at += TITLE_SIZE;
    rest.size -= TITLE_SIZE;
    struct bytes node = vote_take_line(&rest, "node");
    struct bytes voted = vote_take_line(&rest, "promised");
    struct bytes left = vote_take_line(&rest, "left");
    struct bytes boot = vote_take_line(&rest, "boot");
    struct bytes group = vote_take_line(&rest, "group");
    struct bytes lease = vote_take_line(&rest, "lease");
    int way = 0;
    while (way < VOTE_LEFTS && !bytes_equal(left, bytes_from_text(left_names[way]))) {
        way++;
    }
    if (node.at == NULL || voted.at == NULL || left.at == NULL || boot.at == NULL ||
        boot.size != VOTE_BOOT_SIZE || group.at == NULL || lease.at == NULL ||
        !term_parse_node(node, &vote->node) || vote->node == 0 ||
        !term_parse(voted, &vote->voted) || way == VOTE_LEFTS ||
        !bytes_parse_u64(group, &vote->group) || !bytes_parse_i64(lease, &vote->lease_ms) ||
        vote->lease_ms < 0) {
        return false;
    }
    vote->left = (enum vote_left)way;
    memcpy(vote->boot, boot.at, VOTE_BOOT_SIZE);
    vote->boot[VOTE_BOOT_SIZE] = '\0';
    /* With its checksum it is what would be written for these values, and nothing else. */
    size_t size = vote_print(vote, printed);
    return bytes_equal(text, (struct bytes){.at = printed, .size = size});
}

/* ---- the machine ---- */

void vote_read_boot(char boot[VOTE_BOOT_SIZE + 1]) {
    size_t size = 0;
    int fd = disk_open(AT_FDCWD, "/proc/sys/kernel/random/boot_id", O_RDONLY, 0);
    bool is_read = fd >= 0 && disk_read_all(fd, boot, VOTE_BOOT_SIZE, 0, &size) &&
                   size == VOTE_BOOT_SIZE && memchr(boot, '\n', size) == NULL;
    disk_close(fd);
    if (!is_read) {
        digest_random(boot, VOTE_BOOT_SIZE);
    }
    boot[VOTE_BOOT_SIZE] = '\0';
}

/* ---- the file ---- */

static enum vote_status vote_file_fail(char *error, enum vote_status status, const char *directory,
                                       const char *reason) {
    snprintf(error, DISK_ERROR_MAX, "%.900s/" NAME ": %.900s", directory, reason);
    return status;
}

enum vote_status vote_load(const char *directory, struct vote *vote, char *error) {
    char text[VOTE_TEXT_MAX + 1];
    size_t size = 0;
    int folder = disk_open(AT_FDCWD, directory, O_RDONLY | O_DIRECTORY, 0);
    int fd = folder >= 0 ? disk_open(folder, NAME, O_RDONLY, 0) : -1;
    bool is_read = fd >= 0 && disk_read_all(fd, text, sizeof text, 0, &size);
    int reason = errno;
    disk_close(fd);
    disk_close(folder);
    if (!is_read) {
        return vote_file_fail(error, reason == ENOENT ? VOTE_MISSING : VOTE_FAILED, directory,
                              strerror(reason));
    }
    if (!vote_parse((struct bytes){.at = text, .size = size}, vote)) {
        return vote_file_fail(
            error, VOTE_DAMAGED, directory,
            "is damaged. Without it, it is not known which term this server has voted for: put a "
            "server with an empty directory in its place");
    }
    return VOTE_OK;
}

bool vote_save(const char *directory, const struct vote *vote) {
    char text[VOTE_TEXT_MAX];
    size_t size = vote_print(vote, text);
    int folder = disk_open(AT_FDCWD, directory, O_RDONLY | O_DIRECTORY, 0);
    bool is_saved = folder >= 0 && store_replace(folder, NAME, text, size) == STORE_SET;
    disk_close(folder);
    return is_saved;
}
