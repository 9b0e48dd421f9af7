# SPDX-License-Identifier: Apache-2.0
"""Network stacks against each other on one target, by turns: docs/stacks.md."""
