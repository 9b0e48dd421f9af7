# SPDX-License-Identifier: Apache-2.0
"""Clocks: their trials, the verdicts on them, masks, and the section of the report."""
