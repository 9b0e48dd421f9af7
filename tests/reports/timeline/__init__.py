# SPDX-License-Identifier: Apache-2.0
"""Events of machines on one axis of time: tests."""
