/* The engine's side of the page: users, and their commands. */
#ifndef SERVER_WEB_ENGINE_H
#define SERVER_WEB_ENGINE_H

#include "server/clients/server.h"
#include "server/web/web_query.h"

struct web_engine {
    struct server *server;
    struct acl_user *public_user; /* NULL: nothing is public */
    struct asks *asks;
    struct web_query *held_first; /* whose answers wait (dispatch/commit_wait.h); next */
};

/* false: error (HTTP_ERROR_MAX) says what of web-public is wrong. */
MUST_CHECK bool web_engine_init(struct web_engine *engine, struct server *server, char *error);
void web_engine_deinit(struct web_engine *engine);
/* Answer a struct web_query (ask.h). */
bool web_engine_answer(void *engine, struct ask *ask);
/* Give back the answers that wait no more, and those that are never to be sent, as WEB_LOADING. */
void web_engine_release_answers(struct web_engine *engine);
/* A password: is the user's digest kept? */
enum http_verdict web_engine_check_login(void *engine, struct http_login *login);

#endif
