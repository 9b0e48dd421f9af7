# SPDX-License-Identifier: Apache-2.0
"""Tests of the comparison of network stacks by turns."""
