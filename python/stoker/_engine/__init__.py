# SPDX-License-Identifier: Apache-2.0
"""The engine's loader: a compiled dataset in C threads.

Enters: a `Compiled` and the options of a DataLoader. Leaves: batches as tensors, and counters. Copies to the GPU that
worker processes share with it are here, too. `stoker.dataloader` opens it.
"""
