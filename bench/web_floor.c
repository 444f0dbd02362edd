/* What libmicrohttpd costs by itself: its set-up in server/http/http.c, and a handler that answers every request with the
 * same bytes at once. build/bench/web_floor PORT [BYTES of the reply] */
#include <microhttpd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "server/http/http.h"

struct floor {
    struct MHD_Daemon *daemon;
    struct MHD_Response *response;
};

static enum MHD_Result floor_answer(void *context, struct MHD_Connection *connection,
                                    const char *path, const char *method, const char *version,
                                    const char *upload, size_t *upload_size, void **own) {
    const struct floor *floor = context;
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
    return MHD_queue_response(connection, MHD_HTTP_OK, floor->response);
}

static void floor_on_poll(uv_poll_t *poll, int status, int events) {
    const struct floor *floor = poll->data;
    (void)status;
    (void)events;
    MHD_run(floor->daemon);
}

int main(int argument_count, char **arguments) {
    enum { CONNECTIONS_MAX = 1000 };
    struct floor floor;
    uv_poll_t poll;
    char error[HTTP_ERROR_MAX];
    if (argument_count < 2) {
        fprintf(stderr, "web_floor PORT [BYTES]\n");
        return 2;
    }
    int fd = http_listen("web", "127.0.0.1", atoi(arguments[1]), error);
    size_t size = argument_count > 2 ? strtoul(arguments[2], NULL, 10) : 100;
    static char body[1 << 20];
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
