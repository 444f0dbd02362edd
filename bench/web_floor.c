/* What libmicrohttpd costs by itself: its set-up in server/http/http.c, and a handler that answers every request with the
 * same bytes, at once or, with "waits", in the loop's next turn: as one has to whose answer comes from another thread.
 * build/bench/web_floor PORT [BYTES of the reply [waits]] */
#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "server/http/http.h"

enum { CONNECTIONS_MAX = 1000 };

struct floor {
    struct MHD_Daemon *daemon;
    struct MHD_Response *response;
    bool waits;
    struct MHD_Connection *waiting[CONNECTIONS_MAX];
    unsigned waiting_count;
};

static enum MHD_Result floor_answer(void *context, struct MHD_Connection *connection,
                                    const char *path, const char *method, const char *version,
                                    const char *upload, size_t *upload_size, void **own) {
    struct floor *floor = context;
    (void)path;
    (void)method;
    (void)version;
    (void)upload;
    if (*own == NULL) { /* the headers are there */
        *own = context;
        return MHD_YES;
    }
    if (*upload_size > 0) {
        *upload_size = 0;
        return MHD_YES;
    }
    if (floor->waits && *own == context) {
        *own = floor->waiting;
        floor->waiting[floor->waiting_count++] = connection;
        MHD_suspend_connection(connection);
        return MHD_YES;
    }
    return MHD_queue_response(connection, MHD_HTTP_OK, floor->response);
}

static void floor_on_poll(uv_poll_t *poll, int status, int events) {
    struct floor *floor = poll->data;
    (void)status;
    (void)events;
    MHD_UNSIGNED_LONG_LONG wait_ms;
    do {
        while (floor->waiting_count > 0) {
            MHD_resume_connection(floor->waiting[--floor->waiting_count]);
        }
        MHD_run(floor->daemon);
    } while (floor->waiting_count > 0 ||
             (MHD_get_timeout(floor->daemon, &wait_ms) == MHD_YES && wait_ms == 0));
}

int main(int argument_count, char **arguments) {
    static struct floor floor;
    uv_poll_t poll;
    char error[HTTP_ERROR_MAX];
    if (argument_count < 2) {
        fprintf(stderr, "web_floor PORT [BYTES [waits]]\n");
        return 2;
    }
    int fd = http_listen("web", "127.0.0.1", atoi(arguments[1]), error);
    size_t size = argument_count > 2 ? strtoul(arguments[2], NULL, 10) : 100;
    static char body[1 << 20];
    floor.waits = argument_count > 3;
    if (fd < 0 || size > sizeof body) {
        fprintf(stderr, "%s\n", fd < 0 ? error : "at most a megabyte");
        return 1;
    }
    memset(body, 'x', size);
    floor.response = MHD_create_response_from_buffer(size, body, MHD_RESPMEM_PERSISTENT);
    MHD_add_response_header(floor.response, MHD_HTTP_HEADER_CONTENT_TYPE, "application/json");
    floor.daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL, NULL, floor_answer,
        &floor, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MAX,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HTTP_CONNECTION_SIZE, MHD_OPTION_END);
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(floor.daemon, MHD_DAEMON_INFO_EPOLL_FD);
    poll.data = &floor;
    if (info == NULL || uv_poll_init(uv_default_loop(), &poll, info->epoll_fd) != 0 ||
        uv_poll_start(&poll, UV_READABLE, floor_on_poll) != 0) {
        fprintf(stderr, "libmicrohttpd does not start\n");
        return 1;
    }
    return uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}
