# SPDX-License-Identifier: Apache-2.0
"""Grafana dashboards as plain Python: one row a panel; see docs/grafana.md."""
