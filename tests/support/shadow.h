/* The module in redis-server, beside the harness: every command on boards that a test gives to the
 * harness goes to a redis-server with the module, too, through a socket, and the replies must be equal
 * to the last byte. So the tests of commands, the model and the twin test the module as well.
 *
 *     LEADERBOARD_MODULE=build/leaderboard-test.so build/tests/server/commands/zset/test_zset_add
 *
 * Without the variable nothing of this happens. The module for tests has a command more,
 * LB.TESTCLOCK, by which its clock shows what the harness's does. What the module cannot know (changes
 * that a test makes past the commands, expiry by the harness's clock, commands that it does not have)
 * ends the comparison, or is carried over. */
#ifndef TESTS_SUPPORT_SHADOW_H
#define TESTS_SUPPORT_SHADOW_H

#include "protocol/resp.h"
#include "server/sessions/server.h"

struct shadow;

/* With these settings. NULL: no module is to be tested. */
struct shadow *shadow_create(const char *settings);
/* Prints how many replies were compared. NULL: nothing. */
void shadow_destroy(struct shadow *shadow);
/* The request ran in the harness, which replied so. The test fails if the module's reply differs. */
void shadow_run(struct shadow *shadow, const struct server *server, const struct session *session,
                const struct request *request, struct bytes reply);
/* The test changes boards past the commands: nothing is compared from now on. */
void shadow_end(struct shadow *shadow);
/* A key of the harness has expired. */
void shadow_expire(struct shadow *shadow, uint32_t database, struct bytes name);
/* The client is gone. */
void shadow_disconnect(struct shadow *shadow, const struct session *session);

#endif
