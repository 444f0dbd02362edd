/* The server's name and version, and the Redis version whose commands and replies it follows. */
#ifndef SERVER_VERSION_H
#define SERVER_VERSION_H

#define SERVER_NAME    "leaderboard"
#define SERVER_VERSION "1.0.0"
/* Clients choose features by it. */
#define SERVER_REDIS_VERSION "7.4.0"

#endif
