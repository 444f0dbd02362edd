/* The methods of clients/node (server/docs_methods.h), to stdout. */
#ifndef SERVER_DOCS_NODE_H
#define SERVER_DOCS_NODE_H

void docs_node_write_script(void); /* commands.js */
void docs_node_write_types(void);  /* commands.d.ts */

#endif
