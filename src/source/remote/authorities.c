/* authorities.c - which certificate authorities are trusted
 *
 * libcurl fixes the place of their file when it is built, which suits a distribution's own build. A
 * wheel runs on all of them, and they keep it in different places.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/remote/http.h"

#include <curl/curl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

static bool readable(const char *path) { return path && access(path, R_OK) == 0; }

const char *st_authorities(void)
{
    static const char *const places[] = {
        "/etc/ssl/certs/ca-certificates.crt", /* Debian, Ubuntu, Arch */
        "/etc/pki/tls/certs/ca-bundle.crt",   /* Fedora, Red Hat */
        "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
        "/etc/ssl/ca-bundle.pem", /* SUSE */
        "/etc/ssl/cert.pem",      /* Alpine */
    };
    const char *named = getenv("SSL_CERT_FILE");
    if (named && *named)
        return named;
    const curl_version_info_data *built = curl_version_info(CURLVERSION_NOW);
    if (readable(built->cainfo) || readable(built->capath))
        return NULL;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (readable(places[i]))
            return places[i];
    return NULL;
}
