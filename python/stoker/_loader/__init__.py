# SPDX-License-Identifier: Apache-2.0
"""What stoker.DataLoader is made of besides the engine and the workers: its base class without torch, what changes
between epochs, and frameworks that rebuild it.

Enters: a DataLoader. Leaves: the same DataLoader, changed. Only `stoker.dataloader` and `stoker.install` import it.
"""
