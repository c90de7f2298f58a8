# SPDX-License-Identifier: Apache-2.0
"""Helpers that know nothing of datasets and loaders: tensors of torch and NumPy, tables, warnings, locks.

Enters: values of any kind. Leaves: text, arrays, warnings. Everyone may import it; it imports only the engine (`_ext`).
"""
