# SPDX-License-Identifier: Apache-2.0
"""Delivery of the spool to an InfluxDB of version 1, 2 or 3."""

from dashboards.delivery.deliver import DeliveryResult, Pace, deliver
from dashboards.delivery.endpoint import Endpoint, load_endpoint

__all__ = ["DeliveryResult", "Endpoint", "Pace", "deliver", "load_endpoint"]
