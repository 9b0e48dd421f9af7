# SPDX-License-Identifier: Apache-2.0
"""Latency of streams: the evidence of replays, the verdict, and the section of the report."""
