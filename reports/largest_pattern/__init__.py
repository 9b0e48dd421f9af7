# SPDX-License-Identifier: Apache-2.0
"""The largest pattern that a target takes within its budgets."""
