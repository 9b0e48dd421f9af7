# SPDX-License-Identifier: Apache-2.0
"""The seam of network stacks: the kernel's goes through it, and a made-up one shows each part of it."""
