# SPDX-License-Identifier: Apache-2.0
"""Tests of who had the time of late messages."""
