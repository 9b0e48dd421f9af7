# SPDX-License-Identifier: Apache-2.0
"""A pattern replayed into a target: plans, instruments, evidence, and what is measured by it."""
