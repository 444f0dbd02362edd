/* The page: what is on the boards, live, and how the server is (web-port).
 *
 *     exchange (http.h) --- web_query --- engine          a request
 *     stream                   --- view --------- query          viewers of one page share a view
 *
 * Files, each of which calls only those behind it: web.c (the table of routes, and requests on their way to one), web_views.c
 * (server-sent events), web_login.c (cookies, keys, guests), web_answer.c (answers on their way out, and those that are
 * given again), web_boards.c, web_figures.c and web_results.c (routes), web_reply.c (answers, by their schemas),
 * web_openapi.c (the schemas, and the document that is written from them and the table), web_write.c (bodies),
 * web_query.c (rounds of commands, and their pace), web_engine.c (users and their commands: the engine's side), value.c
 * (its replies). What all share is in web_query.h. All but
 * the engine's side runs on the HTTP thread. */
#ifndef SERVER_WEB_H
#define SERVER_WEB_H

#include "server/http/http.h"
#include "server/sessions/server.h"

struct web;

/* The listening socket, and PEM texts (certificate NULL: without TLS), which are borrowed. engine_loop is
 * the caller's. NULL: error (HTTP_ERROR_MAX) says why, and fd is closed. */
MUST_CHECK struct web *web_start(int fd, uv_loop_t *engine_loop, struct server *server,
                                 const char *certificate, const char *key, char *error);
/* Answers that wait (dispatch/waiting.h) may perhaps go. The engine's thread. web: a struct web. */
void web_release_answers(void *web);
/* The server drains: writes that come from now on are refused. false: some that came before are not answered yet. The
 * engine's thread. web: a struct web. */
bool web_drain(void *web);
/* As http_server_stop and http_server_destroy. */
void web_stop(struct web *web);
void web_destroy(struct web *web);

/* What the browser loads: the files of server/web/page/, made part of the program by server/web/embed. */
struct web_file {
    const char *name; /* "app.js"; NULL ends the table */
    const char *type;
    const char *tag; /* with its quotes */
    const unsigned char *at;
    size_t size;
};
extern const struct web_file web_files[];

#endif
