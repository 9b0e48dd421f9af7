# SPDX-License-Identifier: Apache-2.0
"""Recorders of what machines did: tests."""
