# SPDX-License-Identifier: Apache-2.0
"""Loads of a node beside a measurement: what was asked for, and what they achieved."""
