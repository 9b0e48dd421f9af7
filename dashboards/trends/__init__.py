# SPDX-License-Identifier: Apache-2.0
"""Trends without a server: one self-contained HTML page from the local store."""

from dashboards.trends.page import DEFAULT_PAGE, render, write_page
from dashboards.trends.selection import Selection

__all__ = ["DEFAULT_PAGE", "Selection", "render", "write_page"]
