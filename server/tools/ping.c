/* See ping.h. */
#include "server/tools/ping.h"

#include <string.h>

enum { ADDRESS_MAX = 64 };

/* To be freed; of an AUTH that is refused the error. NULL: link->error says why there is none. */
static redisReply *ping_ask(struct link *link, const struct ping_options *options) {
    if (options->password != NULL) {
        bool is_sent = link_login(link, options->user, options->password);
        redisReply *reply = is_sent ? link_reply(link) : NULL;
        if (reply == NULL || reply->type == REDIS_REPLY_ERROR) {
            return reply;
        }
        freeReplyObject(reply);
    }
    return link_send(link, "PING") ? link_reply(link) : NULL;
}

bool ping_run(const char *target, const struct ping_options *options, FILE *out) {
    struct link link = {.context = NULL};
    struct link_options link_options = options->link;
    char address[ADDRESS_MAX];
    const char *at = target;
    if (strpbrk(target, ":/") == NULL) {
        snprintf(address, sizeof address, "127.0.0.1:%s", target);
        link_options.takes_any_name = true;
        at = address;
    }
    bool is_open = link_open(&link, at, &link_options, PING_LIMIT_S);
    redisReply *reply = is_open ? ping_ask(&link, options) : NULL;
    bool has_text = reply != NULL && reply->str != NULL;
    bool is_fine = has_text && (options->is_alive || (reply->type == REDIS_REPLY_STATUS &&
                                                      strcmp(reply->str, "PONG") == 0));
    if (has_text) {
        fprintf(out, "%s\n", reply->str);
    } else {
        fprintf(out, "%s: %s\n", target, link.error);
    }
    freeReplyObject(reply);
    link_close(&link);
    return is_fine;
}
