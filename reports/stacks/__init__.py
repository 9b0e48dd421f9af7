# SPDX-License-Identifier: Apache-2.0
"""Network stacks compared by turns: which one should be deployed."""
