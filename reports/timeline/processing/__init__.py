# SPDX-License-Identifier: Apache-2.0
"""Post-processing of timelines: a file describes a graph of filters over arrays."""
