# SPDX-License-Identifier: Apache-2.0
"""Tests of patterns in series of latencies."""
