# SPDX-License-Identifier: Apache-2.0
"""Patterns in series of latency: ramps, grids, gaps, outliers, changes of level, warm-up."""
