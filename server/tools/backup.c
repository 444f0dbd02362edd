/* The client's side of a backup. See tools.h. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "codec/timestamp.h"
#include "server/durability/verify.h"
#include "server/system/clock.h"
#include "server/tools/tools.h"

enum {
    PATH_SIZE_MAX = 4096,
    CONNECT_SECONDS = 10,
    READ_SECONDS = 600,        /* another backup may have to end first */
    RECEIVE_SIZE = 128 * 1024, /* with a rate: what is in flight is little */
    SLEEP_MAX_MS = 1000,
};

struct receiving {
    const char *path;
    char part[PATH_SIZE_MAX]; /* "": there is none */
    struct tools_link link;
    const struct backup_options *options;
    int fd;
    uint64_t size;
};

/* ---- connecting ---- */

static bool backup_open_connection(struct receiving *receiving, const char *address) {
    struct tools_link *link = &receiving->link;
    if (!tools_link_open(link, address, &receiving->options->link, CONNECT_SECONDS)) {
        return tools_complain("cannot connect to %s: %s", address, link->error);
    }
    tools_link_set_limit(link, READ_SECONDS);
    if (receiving->options->rate > 0) {
        int size = RECEIVE_SIZE;
        (void)setsockopt(link->context->fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    }
    redisReply *refusal = tools_link_log_in(link, &receiving->options->link);
    bool is_in = refusal == NULL && link->error[0] == '\0';
    if (!is_in) {
        tools_complain("the server does not let in: %s",
                       refusal != NULL ? refusal->str : link->error);
    }
    freeReplyObject(refusal);
    return is_in;
}

/* ---- receiving ---- */

enum received { RECEIVED_PIECE, RECEIVED_END, RECEIVED_NOTHING };

static enum received backup_take_reply(struct receiving *receiving, const redisReply *reply,
                                       uint64_t *members) {
    if (reply->type == REDIS_REPLY_STRING) {
        receiving->size += reply->len;
        if (disk_write_all(receiving->fd, reply->str, reply->len)) {
            return RECEIVED_PIECE;
        }
        tools_complain("cannot write %s: %s", receiving->part, strerror(errno));
    } else if (reply->type == REDIS_REPLY_ERROR) {
        tools_complain("the server says: %s", reply->str);
    } else if (reply->type == REDIS_REPLY_STATUS &&
               sscanf(reply->str, "END group=%*u time=%*s boards=%*u members=%" SCNu64, members) ==
                   1) {
        return RECEIVED_END;
    } else {
        tools_complain("the server sent an unexpected reply to LB.SNAPSHOT");
    }
    return RECEIVED_NOTHING;
}

static bool backup_receive(struct receiving *receiving, uint64_t *members) {
    struct tools_link *link = &receiving->link;
    bool is_sent = tools_link_send(link, "LB.SNAPSHOT");
    enum received received = RECEIVED_PIECE;
    double rate = (double)receiving->options->rate;
    uint64_t begin_us = clock_monotonic_us();
    while (received == RECEIVED_PIECE) {
        redisReply *reply = is_sent ? tools_link_reply(link) : NULL;
        if (reply == NULL) {
            return tools_complain("the connection broke after %" PRIu64 " bytes: %s",
                                  receiving->size, link->error);
        }
        received = backup_take_reply(receiving, reply, members);
        freeReplyObject(reply);
        /* Wait until no more than the rate has come since the beginning. */
        double due_us = rate > 0 ? (double)receiving->size / rate * 1e6 : 0;
        double ahead_us = due_us - (double)(clock_monotonic_us() - begin_us);
        while (ahead_us > 0 && received == RECEIVED_PIECE) {
            double pause_us = ahead_us < SLEEP_MAX_MS * 1e3 ? ahead_us : SLEEP_MAX_MS * 1e3;
            const struct timespec pause = {.tv_sec = (time_t)(pause_us / 1e6),
                                           .tv_nsec = (long)pause_us % 1000000 * 1000};
            nanosleep(&pause, NULL);
            ahead_us -= pause_us;
        }
    }
    return received == RECEIVED_END;
}

/* ---- the file ---- */

static bool backup_open_part(struct receiving *receiving) {
    int size = snprintf(receiving->part, sizeof receiving->part, "%s.part-%d", receiving->path,
                        (int)getpid());
    if (size < 0 || (size_t)size >= sizeof receiving->part) {
        tools_complain("the path %.100s is too long", receiving->path);
        receiving->part[0] = '\0';
        return false;
    }
    receiving->fd = disk_open(AT_FDCWD, receiving->part, O_WRONLY | O_CREAT | O_TRUNC, 0640);
    if (receiving->fd < 0) {
        tools_complain("cannot make %s: %s", receiving->part, strerror(errno));
        receiving->part[0] = '\0';
    }
    return receiving->fd >= 0;
}

/* Verify what is on disk, and give it its name. */
static bool backup_finish(struct receiving *receiving, uint64_t members) {
    struct snapshot_footer footer;
    char error[DISK_ERROR_MAX];
    char time[TIMESTAMP_TEXT_MAX];
    if (!disk_sync(receiving->fd)) {
        tools_complain("cannot write %s: %s", receiving->part, strerror(errno));
        return false;
    }
    int fd = disk_open(AT_FDCWD, receiving->part, O_RDONLY, 0);
    if (!verify_blocks(fd, receiving->part, &footer, error)) {
        tools_complain("what came is not whole: %s", error);
        return false;
    }
    if (footer.member_count != members) {
        tools_complain("what came is not what the server has sent");
        return false;
    }
    if (disk->rename_at(AT_FDCWD, receiving->part, receiving->path) != 0) {
        tools_complain("cannot name the file %s: %s", receiving->path, strerror(errno));
        return false;
    }
    receiving->part[0] = '\0';
    if (!tools_sync_parent(receiving->path)) {
        tools_complain("cannot sync the directory of %s: %s", receiving->path, strerror(errno));
        return false;
    }
    int time_size = (int)timestamp_print(time, (int64_t)footer.time_us);
    printf("%s: whole, %" PRIu64 " bytes, %" PRIu64 " boards, %" PRIu64
           " members, as of group %" PRIu64 " (%.*s)\n",
           receiving->path, receiving->size, footer.board_count, footer.member_count,
           footer.sequence, time_size, time);
    return true;
}

bool backup_run(const char *address, const char *path, const struct backup_options *options) {
    struct receiving receiving = {.path = path, .options = options, .fd = -1};
    uint64_t members = 0;
    bool is_done = backup_open_connection(&receiving, address) && backup_open_part(&receiving) &&
                   backup_receive(&receiving, &members) && backup_finish(&receiving, members);
    disk_close(receiving.fd);
    if (receiving.part[0] != '\0') {
        (void)disk->unlink_at(AT_FDCWD, receiving.part);
    }
    tools_link_close(&receiving.link);
    return is_done;
}
