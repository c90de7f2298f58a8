# SPDX-License-Identifier: Apache-2.0
"""What a dataset of the engine is: its base classes, fields, compounds, archives, and samples left to Pillow.

Enters: paths, options, transforms. Leaves: an `EngineDataset`, which holds the engine's handle. `stoker.datasets` shows
the public classes.
"""
