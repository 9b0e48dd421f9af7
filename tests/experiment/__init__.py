# SPDX-License-Identifier: Apache-2.0
"""Experiments that are broken on purpose: whatever fails, the bench is as it was."""
