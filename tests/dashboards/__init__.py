# SPDX-License-Identifier: Apache-2.0
"""Tests of the store, of delivery and of what is made from the history."""
