# SPDX-License-Identifier: Apache-2.0
"""Tests of rings: places, verdicts and pages, from evidence whose truth is known."""
