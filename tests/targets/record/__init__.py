# SPDX-License-Identifier: Apache-2.0
"""Tests of what records a program's calls, and of what is read from the record."""
