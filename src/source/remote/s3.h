/* s3.h - S3 endpoints and credentials, from the environment and ~/.aws
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_REMOTE_S3_H
#define ST_SOURCE_REMOTE_S3_H

#include "source/remote/http.h"

#include <stdio.h>

struct st_s3 {
    char key[256], secret[256], token[4096]; /* "": anonymous */
    char region[64];
    char endpoint[512]; /* "": Amazon's */
    /* In the form that libcurl expects: */
    char sign[96], login[520], token_header[4160];
};

/* AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION (AWS_DEFAULT_REGION),
 * AWS_ENDPOINT_URL_S3 (AWS_ENDPOINT_URL), or the profile AWS_PROFILE of ~/.aws/credentials and
 * ~/.aws/config (AWS_SHARED_CREDENTIALS_FILE, AWS_CONFIG_FILE). What is not set anywhere stays empty. */
int st_s3_load(struct st_s3 *out, struct stoker_error *err);
/* Reads the section [profile] of a settings file, for settings that are still empty; false: there is no
 * such section. */
bool st_s3_read_settings(struct st_s3 *s3, FILE *file, const char *profile);
/* Sets the http URL of "s3://bucket/key" and how to sign requests; without keys they are not signed. The
 * target points into `s3`. */
int st_s3_aim(const struct st_s3 *s3, const char *url, struct st_http_target *out,
              struct stoker_error *err);

#endif
