/* failure.c - which sample a failure concerns
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pipe/failure.h"

#include "base/interrupt.h"

void st_bad_name(const struct stoker_loader *loader, uint64_t sample, struct stoker_error *err)
{
    char name[PATH_MAX];
    st_dataset_name(loader->data, sample, name, sizeof name);
    st_fail_in(err, err->code, name);
}

int st_bad_cancelled(struct stoker_loader *loader, struct stoker_error *err)
{
    pthread_mutex_lock(&loader->lock);
    const bool stops = !loader->epoch.running || st_was_interrupted();
    pthread_mutex_unlock(&loader->lock);
    return err->code = stops ? STOKER_ECANCELED : STOKER_EIO;
}
