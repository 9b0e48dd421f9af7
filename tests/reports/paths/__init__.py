# SPDX-License-Identifier: Apache-2.0
"""Tests of what a path did to datagrams."""
