# SPDX-License-Identifier: Apache-2.0
"""Results over time: the local store and spool, delivery to InfluxDB, trends and regressions."""
