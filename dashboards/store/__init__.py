# SPDX-License-Identifier: Apache-2.0
"""The local store: one SQLite file, both the history and the durable spool of what InfluxDB has to get."""

from dashboards.store.store import DEFAULT_STORE, Change, PointReceipt, Status, Store, Waiting

__all__ = [
    "DEFAULT_STORE",
    "Change",
    "PointReceipt",
    "Status",
    "Store",
    "Waiting",
]
