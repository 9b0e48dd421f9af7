# SPDX-License-Identifier: Apache-2.0
"""The sections of the report, in their order: one row a capability.

With `reports/quantities.py` it is all that a page, the dossier, the store, trends and Grafana know of one.
"""

from __future__ import annotations

from reports.clock_read.section import gather_read_latency, read_latency_samples
from reports.clock_sync.section import clock_samples, gather_clocks
from reports.largest_pattern.section import gather_largest_pattern
from reports.latency.section import gather_latency, latency_samples
from reports.realtime_ethernet.section import gather_messages
from reports.section import Section
from reports.software_latency.section import gather_software_latency
from reports.timed_edges.section import edge_samples, gather_timed_edges

SECTIONS: tuple[Section, ...] = (
    Section(
        (
            ("streams", "Latency by stream"),
            ("distributions", "Distributions"),
            ("instrument", "Instrument"),
        ),
        "latency/section.html.j2",
        gather_latency,
        latency_samples,
    ),
    Section(
        (("largest-pattern", "Largest pattern"),), "largest_pattern/section.html.j2", gather_largest_pattern
    ),
    Section((("clocks", "Clocks"),), "clock_sync/section.html.j2", gather_clocks, clock_samples),
    Section(
        (("read-latency", "Reading a clock"),),
        "clock_read/section.html.j2",
        gather_read_latency,
        read_latency_samples,
    ),
    Section(
        (("software-latency", "Software latency"),),
        "software_latency/section.html.j2",
        gather_software_latency,
    ),
    Section(
        (("single-messages", "Single messages"),),
        "realtime_ethernet/section.html.j2",
        gather_messages,
    ),
    Section(
        (("timed-edges", "Timed edges"),), "timed_edges/section.html.j2", gather_timed_edges, edge_samples
    ),
)
