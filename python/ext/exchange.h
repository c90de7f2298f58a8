/* exchange.h - the two sides of an exchange: the loader and its workers
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXT_EXCHANGE_H
#define EXT_EXCHANGE_H

#include "exchange_blocks.h"
#include "exchange_layout.h"

/* ---- arguments and waiting (exchange_common.c) ---------------------------------------------------- */

/* Check arguments: false with an IndexError. */
bool ext_is_slot(const struct exchange *self, long k);
bool ext_is_worker(const struct exchange *self, long k);

void ext_wake(_Atomic uint32_t *word);
/* Sleeps while *word is `seen`; false if the deadline has passed or a signal arrived. */
bool ext_sleep_on(_Atomic uint32_t *word, uint32_t seen, uint64_t deadline);
/* The deadline for waiting this many seconds, at most a day. */
uint64_t ext_deadline_in(double seconds);

/* ---- methods of the loader and of workers -------------------------------------------------------- */

PyObject *ext_exchange_free(PyObject *object, PyObject *args);
PyObject *ext_exchange_lent(PyObject *object, PyObject *args);
PyObject *ext_exchange_send(PyObject *object, PyObject *args);
PyObject *ext_exchange_wait(PyObject *object, PyObject *args);
PyObject *ext_exchange_release(PyObject *object, PyObject *args);
PyObject *ext_exchange_collect(PyObject *object, PyObject *args);
PyObject *ext_exchange_stop(PyObject *object, PyObject *args);
PyObject *ext_exchange_doing(PyObject *object, PyObject *args);
PyObject *ext_exchange_empty(PyObject *object, PyObject *args);
PyObject *ext_exchange_reset(PyObject *object, PyObject *args);
PyObject *ext_exchange_take(PyObject *object, PyObject *args);
PyObject *ext_exchange_progress(PyObject *object, PyObject *args);
PyObject *ext_exchange_room(PyObject *object, PyObject *args);
PyObject *ext_exchange_address(PyObject *object, PyObject *args);
PyObject *ext_exchange_post(PyObject *object, PyObject *args);

#endif
