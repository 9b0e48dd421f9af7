# SPDX-License-Identifier: Apache-2.0
"""Tests of experiments of many machines in one file."""
