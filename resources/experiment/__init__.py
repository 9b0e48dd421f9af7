# SPDX-License-Identifier: Apache-2.0
"""Experiments of many machines in one file: components on nodes, phases, axes. See docs/experiments.md."""
