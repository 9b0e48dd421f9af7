# SPDX-License-Identifier: Apache-2.0
"""Drivers: the code that acts on the nodes of a bench."""
