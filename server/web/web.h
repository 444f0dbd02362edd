/* The page: what is on the boards, live, and how the server is (web-port).
 *
 *     exchange (http_server.h) --- web_query --- engine          a request
 *     stream                   --- view --------- query          viewers of one page share a view
 *
 * Files: web_query.h (commands and pace), web_engine.c (users), web_routes.c (the table of routes, which web_openapi.c
 * writes down), web_boards.c and web_figures.c (routes), web_results.h (what is written, and by web_write.c),
 * web_views.c (server-sent events), web_login.c (cookies), web_pace.c (what the engine may be asked), web_files.c
 * (what the browser loads). All but web_engine.c runs on the HTTP thread. */
#ifndef SERVER_WEB_H
#define SERVER_WEB_H

#include "server/clients/server.h"
#include "server/http/http_server.h"

struct web;

/* The listening socket, and PEM texts (certificate NULL: without TLS), which are borrowed. engine_loop is
 * the caller's. NULL: error (HTTP_ERROR_MAX) says why, and fd is closed. */
MUST_CHECK struct web *web_start(int fd, uv_loop_t *engine_loop, struct server *server,
                                 const char *certificate, const char *key, char *error);
/* Answers that wait (dispatch/commit_wait.h) may perhaps go. The engine's thread. web: a struct web. */
void web_release_answers(void *web);
/* The server drains: writes that come from now on are refused. false: some that came before are not answered yet. The
 * engine's thread. web: a struct web. */
bool web_drain(void *web);
/* As http_server_stop and http_server_destroy. */
void web_stop(struct web *web);
void web_destroy(struct web *web);

#endif
