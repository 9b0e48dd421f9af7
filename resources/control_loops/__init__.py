# SPDX-License-Identifier: Apache-2.0
"""Control loops: a ring of programs on target and producers, measured."""
