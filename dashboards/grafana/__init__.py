# SPDX-License-Identifier: Apache-2.0
"""Grafana dashboards as plain Python: one file a dashboard, one function a panel; see docs/grafana.md."""
