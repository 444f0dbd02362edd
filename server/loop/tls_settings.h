/* The TLS context that the settings describe: made at start, and by CONFIG SET of a tls- setting, also
 * of one that names the same file again: it may have new contents. Clients that are connected keep the
 * context that they began with. */
#ifndef SERVER_TLS_SETTINGS_H
#define SERVER_TLS_SETTINGS_H

#include "server/network/tls.h"
#include "server/settings/settings.h"

/* Zero-initialised: no TLS. */
struct tls_settings {
    struct ssl_ctx_st *context;  /* NULL: tls-port is 0 */
    struct ssl_ctx_st *prepared; /* by tls_settings_prepare */
};

/* Before clients come. false: error (SETTING_ERROR_MAX) names the setting. */
MUST_CHECK bool tls_settings_open(struct tls_settings *tls, const struct settings *settings,
                                  char *error);
void tls_settings_close(struct tls_settings *tls);
/* As settings_check: make the context of what is wanted. tls is a struct tls_settings. */
const char *tls_settings_prepare(void *tls, const struct settings *wanted, char *reason);
/* It becomes the context of new clients, or is dropped. */
void tls_settings_end(void *tls, bool is_set);

#endif
