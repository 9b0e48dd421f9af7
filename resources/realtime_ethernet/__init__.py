# SPDX-License-Identifier: Apache-2.0
"""Latency and throughput of single messages by network stack: how they are measured."""
