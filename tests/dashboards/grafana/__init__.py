# SPDX-License-Identifier: Apache-2.0
"""What Grafana would do with the files of dashboards/grafana, as far as it can be tried without one."""
