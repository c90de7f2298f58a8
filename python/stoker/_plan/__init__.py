# SPDX-License-Identifier: Apache-2.0
"""Who does what: the dataset, transforms and arguments of a loader become the engine's work, or Python's.

Enters: a dataset of torch, torchvision or Stoker as it is now, and the arguments of a DataLoader. Leaves: a `Compiled`,
or the blockers, each with its remedy; and the table that `explain()` prints. Loaders import it; transforms and datasets
do not know it.
"""
