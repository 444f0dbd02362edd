/* The host's hashes in records (DATA): copies that live for one group of records. */
#ifndef SERVER_MODULE_HOST_DATA_H
#define SERVER_MODULE_HOST_DATA_H

/* Free the copies. After each command. */
void host_data_clear(void);

#endif
