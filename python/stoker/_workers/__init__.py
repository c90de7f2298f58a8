# SPDX-License-Identifier: Apache-2.0
"""Datasets written in Python, in this process or in worker processes, as torch runs them.

Enters: a map-style or iterable dataset, a sampler, a collate function. Leaves: batches, through memory that the
processes share. `iterator` runs the loader's side, `process` the worker's, `pool` starts and stops the workers.
"""
