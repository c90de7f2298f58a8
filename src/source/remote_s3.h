/* remote_s3.h - where S3's buckets are, and who asks: from the environment and ~/.aws
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_REMOTE_S3_H
#define ST_SOURCE_REMOTE_S3_H

#include "base/err.h"

struct st_s3 {
    char key[256], secret[256], token[4096]; /* "": anonymous */
    char region[64];
    char endpoint[512]; /* "": Amazon's */
    /* As libcurl wants them: */
    char sign[96], login[520], token_header[4160];
};

/* AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION (AWS_DEFAULT_REGION),
 * AWS_ENDPOINT_URL_S3 (AWS_ENDPOINT_URL), else the profile AWS_PROFILE of ~/.aws/credentials and
 * ~/.aws/config (AWS_SHARED_CREDENTIALS_FILE, AWS_CONFIG_FILE). What is nowhere stays empty. */
int st_s3_load(struct st_s3 *out, struct stoker_error *err);
/* The http URL of "s3://bucket/key"; the caller frees it. NULL: out of memory, or no such URL. */
char *st_s3_url(const struct st_s3 *s3, const char *url, struct stoker_error *err);

#endif
