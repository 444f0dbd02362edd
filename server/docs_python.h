/* The commands of the Python client: clients/python/leaderboard_client/commands.py, and async_commands.py with
 * the same methods for redis.asyncio. */
#ifndef SERVER_DOCS_PYTHON_H
#define SERVER_DOCS_PYTHON_H

#include <stdbool.h>

/* To stdout. */
void docs_python_write(bool is_async);

#endif
