/* The server's name and version, and the Redis version whose commands and replies it follows. */
#ifndef SERVER_VERSION_H
#define SERVER_VERSION_H

#define SERVER_NAME    "leaderboard"
#define SERVER_VERSION "1.0.0-rc1"
/* The commit that was built: the build gives it to main.c, and to nothing else, so that a new commit
 * compiles one file. */
#ifndef SERVER_COMMIT
#define SERVER_COMMIT "unknown"
#endif
/* Clients and test suites choose features by it: 7.4 would promise fields of hashes that expire. */
#define SERVER_REDIS_VERSION "7.2.0"
/* HELLO's, with extended-redis-compatibility: the first that redis-py and Jedis take for one with CLIENT TRACKING. */
#define SERVER_HELLO_REDIS_VERSION "7.4.0"

#endif
