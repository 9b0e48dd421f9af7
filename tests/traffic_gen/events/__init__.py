# SPDX-License-Identifier: Apache-2.0
"""Tests of bw-events and the points in programs."""
