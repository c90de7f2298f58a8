# SPDX-License-Identifier: Apache-2.0
"""What a transform is: its base classes, the checks of its arguments, and its text in a pipeline.

Enters: arguments with torchvision's names. Leaves: the text that the engine compiles, or a `Blocker` that says why it
cannot. `stoker.transforms` and `stoker.audio` define the public classes with it.
"""
