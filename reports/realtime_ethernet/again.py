# SPDX-License-Identifier: Apache-2.0
"""Single messages, as the second judge knows them."""

from __future__ import annotations

from reports.rejudge.again import Again, Kind
from reports.rejudge.realtime_ethernet import message_discrepancies

MESSAGES = ("messages.json",)
QUANTILES = ("median", "p99")

AGAIN = Again(
    quantities={
        "message_latency": Kind("ns", QUANTILES, MESSAGES),
        "bulk_rise": Kind("%", QUANTILES, MESSAGES),
        "receive_rise": Kind("%", QUANTILES, MESSAGES),
        "message_throughput": Kind("bytes/s", ("mean",), MESSAGES),
    },
    judges=(message_discrepancies,),
    schemas={"messages.json": "benchwright.realtime_ethernet/1"},
    loose=MESSAGES,
)
