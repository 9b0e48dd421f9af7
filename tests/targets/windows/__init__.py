# SPDX-License-Identifier: Apache-2.0
"""Tests of a Windows machine as a node of a bench."""
