# SPDX-License-Identifier: Apache-2.0
"""Tests of bw-traffic: unit tests in C, runs over real sockets in Python."""
