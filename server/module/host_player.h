/* The pass of LB.WHERE, LB.FORGET, LB.MOVE and LB.BAN over the host's keys. */
#ifndef SERVER_MODULE_HOST_PLAYER_H
#define SERVER_MODULE_HOST_PLAYER_H

#include "server/module/host_value.h"

/* The host has given a key this name, by a command of its own: what a pass has come past is looked at
 * again. */
void host_player_note(const struct host_value *value, struct bytes name, uint32_t database);
/* Databases have been exchanged or loaded: every pass begins again. */
void host_player_rewind(void);

#endif
