# SPDX-License-Identifier: Apache-2.0
"""Tests against a real InfluxDB 2.7: `make test-influxdb2`."""
