# SPDX-License-Identifier: Apache-2.0
"""Timed edges of a target, made and seen."""
