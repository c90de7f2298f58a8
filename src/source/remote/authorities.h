/* authorities.h - which certificate authorities are trusted
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_REMOTE_AUTHORITIES_H
#define ST_SOURCE_REMOTE_AUTHORITIES_H

/* The file of trusted certificates for CURLOPT_CAINFO: SSL_CERT_FILE if that is set, else the file that
 * libcurl was built to use, else the one of this system. NULL: libcurl's own default applies. */
const char *st_authorities(void);

#endif
