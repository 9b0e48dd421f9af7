# SPDX-License-Identifier: Apache-2.0
"""Latency and throughput of single messages by network stack, with and without a bulk receiver beside."""
