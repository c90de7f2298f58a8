# SPDX-License-Identifier: Apache-2.0
"""Lazy images: inside a user's own dataset, Pillow's images and torchvision's transforms with the engine's pixels.

Enters: what `Image.open` returns, and torchvision's own draws. Leaves: images and tensors equal to the libraries',
decoded only as far as they are used. Worker processes switch it on; nothing else imports it but `stoker.lazy_images`.
"""
