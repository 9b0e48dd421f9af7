# SPDX-License-Identifier: Apache-2.0
"""Patterns in series of latencies, and who had the time."""
