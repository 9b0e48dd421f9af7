# SPDX-License-Identifier: Apache-2.0
"""The real-time baseline: how late a target wakes up, whatever else is asked of it."""
