/* Every command there is. One `extern` and one entry a line, by group. */
#include "server/command.h"

/* connection */
extern const struct command command_auth;
extern const struct command command_client;
extern const struct command command_echo;
extern const struct command command_hello;
extern const struct command command_ping;
extern const struct command command_quit;
extern const struct command command_readonly;
extern const struct command command_readwrite;
extern const struct command command_reset;
extern const struct command command_select;
/* server */
extern const struct command command_monitor;
extern const struct command command_shutdown;

const struct command *const command_table[] = {
    /* connection */
    &command_auth,
    &command_client,
    &command_echo,
    &command_hello,
    &command_ping,
    &command_quit,
    &command_readonly,
    &command_readwrite,
    &command_reset,
    &command_select,
    /* server */
    &command_monitor,
    &command_shutdown,
    NULL,
};
