# SPDX-License-Identifier: Apache-2.0
"""Tests of the documentation: that it is complete, and that what it says exists."""
