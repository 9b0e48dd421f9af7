# SPDX-License-Identifier: Apache-2.0
"""The real-time baseline: how it is measured."""
