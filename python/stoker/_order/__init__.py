# SPDX-License-Identifier: Apache-2.0
"""Which sample comes next: samplers, the draws that torch would make, ranks, and positions that can be saved.

Enters: samplers, generators, a rank, a saved state. Leaves: indices, and a position as plain values. It serves the
engine's loader and worker processes alike, and knows neither.
"""
