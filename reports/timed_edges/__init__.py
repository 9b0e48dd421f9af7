# SPDX-License-Identifier: Apache-2.0
"""Timed edges: their trials, the verdicts on them, and the section of the report."""
