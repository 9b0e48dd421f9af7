# SPDX-License-Identifier: Apache-2.0
"""The qualification page."""
