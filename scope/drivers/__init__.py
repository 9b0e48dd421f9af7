# SPDX-License-Identifier: Apache-2.0
"""Drivers of oscilloscopes: one link through PyVISA, one procedure, a dialect for each maker's commands."""
