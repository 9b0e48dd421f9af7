# SPDX-License-Identifier: Apache-2.0
"""Tests of Benchwright, by the folder that they test."""
