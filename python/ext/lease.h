/* lease.h - slots of an exchange that tensors refer to, and forks that must leave them alone
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXT_LEASE_H
#define EXT_LEASE_H

#include "ext.h"

/* Starts counting forks that may leave a child with lent tensors. */
void ext_watch_forks(void);
PyObject *ext_exchange_harmless_forks(PyObject *object, PyObject *args);
/* The memory of a slot's block as a buffer, lent until the last view of it is gone. */
PyObject *ext_lease_new(const struct ext_state *state, PyObject *exchange, uint32_t slot, void *data);

#endif
