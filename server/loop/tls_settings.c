/* Settings to contexts. See tls_settings.h. */
#include "server/loop/tls_settings.h"

#include <stdio.h>

_Static_assert((int)SETTING_TLS_CLIENTS_NO == (int)TLS_CLIENTS_UNKNOWN &&
                   (int)SETTING_TLS_CLIENTS_YES == (int)TLS_CLIENTS_KNOWN &&
                   (int)SETTING_TLS_CLIENTS_OPTIONAL == (int)TLS_CLIENTS_OPTIONAL,
               "one is the other");

static struct ssl_ctx_st *create(const struct settings *settings, const char **failed,
                                 char *reason) {
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
    return tls_context_create(&options, failed, reason);
}

bool tls_settings_open(struct tls_settings *tls, const struct settings *settings, char *error) {
    char reason[TLS_CONTEXT_ERROR_MAX];
    const char *failed;
    if (settings->tls_port == 0) {
        return true;
    }
    tls->context = create(settings, &failed, reason);
    if (tls->context == NULL) {
        snprintf(error, SETTING_ERROR_MAX, "%s: %s", failed, reason);
    }
    return tls->context != NULL;
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
    if (wanted->tls_port == 0) {
        return NULL;
    }
    settings->prepared = create(wanted, &failed, error);
    if (settings->prepared != NULL) {
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
