/* Settings to contexts. See tls_settings.h. */
#include "server/loop/tls_settings.h"

#include <stdio.h>

_Static_assert((int)SETTING_TLS_CLIENTS_NO == (int)TLS_CLIENTS_UNKNOWN &&
                   (int)SETTING_TLS_CLIENTS_YES == (int)TLS_CLIENTS_KNOWN &&
                   (int)SETTING_TLS_CLIENTS_OPTIONAL == (int)TLS_CLIENTS_OPTIONAL,
               "one is the other");

/* Make the context that the settings describe, if there is a tls-port, and see whether that of the link to a master
 * (tls-replication), which makes one of its own when it is made, could be. false: one of them cannot. */
static bool tls_settings_create(const struct settings *settings, struct ssl_ctx_st **context,
                                const char **failed, char *reason) {
    const struct tls_context_options options = {
        .certificate_file = settings->tls_cert_file,
        .key_file = settings->tls_key_file,
        .key_password = settings->tls_key_file_pass,
        .ca_file = settings->tls_ca_cert_file,
        .ca_directory = settings->tls_ca_cert_dir,
        .protocols = settings->tls_protocols,
        .ciphers = settings->tls_ciphers,
        .ciphersuites = settings->tls_ciphersuites,
        .clients = (enum tls_clients)settings->tls_auth_clients,
        .prefers_own_ciphers = settings->tls_prefer_server_ciphers,
        .has_session_caching = settings->tls_session_caching,
        .session_cache_size = settings->tls_session_cache_size,
        .session_cache_timeout_s = settings->tls_session_cache_timeout_s,
    };
    if (settings->tls_replication) {
        struct ssl_ctx_st *link = tls_context_create_client(&options, failed, reason);
        tls_context_release(link);
        if (link == NULL) {
            return false;
        }
    }
    if (settings->tls_port != 0) {
        *context = tls_context_create(&options, failed, reason);
    }
    return settings->tls_port == 0 || *context != NULL;
}

bool tls_settings_open(struct tls_settings *tls, const struct settings *settings, char *error) {
    char reason[TLS_CONTEXT_ERROR_MAX];
    const char *failed;
    bool is_fine = tls_settings_create(settings, &tls->context, &failed, reason);
    if (!is_fine) {
        snprintf(error, SETTING_ERROR_MAX, "%s: %s", failed, reason);
    }
    return is_fine;
}

void tls_settings_close(struct tls_settings *tls) {
    tls_context_release(tls->context);
    tls_context_release(tls->prepared);
    *tls = (struct tls_settings){.context = NULL};
}

const char *tls_settings_prepare(void *tls, const struct settings *wanted, char *reason) {
    struct tls_settings *settings = tls;
    char error[TLS_CONTEXT_ERROR_MAX];
    const char *failed;
    if (tls_settings_create(wanted, &settings->prepared, &failed, error)) {
        return NULL;
    }
    snprintf(reason, SETTING_ERROR_MAX, "Unable to update TLS configuration. %s", error);
    return failed;
}

void tls_settings_end(void *tls, bool is_set) {
    struct tls_settings *settings = tls;
    if (is_set && settings->prepared != NULL) {
        tls_context_release(settings->context);
        settings->context = settings->prepared;
    } else {
        tls_context_release(settings->prepared);
    }
    settings->prepared = NULL;
}
