/* test_authorities.c - the file of trusted certificates is found
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/remote/http.h"
#include "tap.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(void)
{
    setenv("SSL_CERT_FILE", "/some/where.pem", 1);
    const char *named = st_authorities();
    ok(named && !strcmp(named, "/some/where.pem"), "SSL_CERT_FILE is taken, whether it is there or not");
    setenv("SSL_CERT_FILE", "", 1);
    const char *empty = st_authorities();
    unsetenv("SSL_CERT_FILE");
    const char *here = st_authorities();
    ok(empty == here || (empty && here && !strcmp(empty, here)), "an empty SSL_CERT_FILE counts as none");
    ok(!here || !access(here, R_OK), "without it, a file that is there: %s", here ? here : "libcurl's own");
    const curl_version_info_data *built = curl_version_info(CURLVERSION_NOW);
    ok(!built->cainfo || access(built->cainfo, R_OK) || !here, "the file that libcurl was built with comes first");
    return done_testing();
}
