# SPDX-License-Identifier: Apache-2.0
"""Whole qualifications, each a process of its own, as a user starts them."""
