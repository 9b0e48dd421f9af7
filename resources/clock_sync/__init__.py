# SPDX-License-Identifier: Apache-2.0
"""Clock stacks put on targets, and their clocks measured."""
