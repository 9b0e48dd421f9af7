# SPDX-License-Identifier: Apache-2.0
"""An acceptance over hours or days, cut into parts that are runs of their own: docs/acceptance.md."""
