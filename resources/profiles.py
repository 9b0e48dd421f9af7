# SPDX-License-Identifier: Apache-2.0
"""Profiles: how long a run measures and which miss probability it has to exclude."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hw.errors import ConfigError
from hw.fields import Fields
from hw.toml_file import read_toml
from resources.clock_sync.time_service_times import TimeServiceTimes, time_service_times
from resources.provisioning.settings import ProvisioningTimes, provisioning_times
from resources.realtime_ethernet.settings import MessageTimes, message_times
from resources.software_latency.settings import RoundTripTimes, round_trip_times
from resources.timed_edges.settings import EdgeTimes, edge_times

NETWORKS = ("same", "separate")
LOADS = ("cpu", "disk", "network")
PROFILES_FILE = Path(__file__).with_name("profiles.toml")


@dataclass(frozen=True)
class ClockTimes:
    """How long clocks are measured."""

    measure_s: int
    """Each trial of a clock."""
    intervals_s: tuple[int, ...]
    """Synchronisation intervals of the sweep (DAQ paper, Table 2)."""
    interval_measure_s: int
    """At each of them."""
    synchronised_s: int
    """Before the clock is cut off from its server."""
    holdover_s: int
    """After that."""
    relocks: int
    """How often the time to lock is measured."""
    loads: tuple[str, ...]
    """Loads under which clocks are measured: `cpu`, `disk`, `network`."""
    networks: tuple[str, ...]
    """Where clocks are measured under the data-acquisition pattern: `same` network as it, `separate`."""
    alternations: int
    """How often an asymmetry is put on the path and taken off again; 0: not at all."""
    latency_reads: int
    """Readings of each clock whose cost is measured."""
    latency_max_s: int
    """Of each of them: time after which fewer readings have to do."""


@dataclass(frozen=True)
class LargestPatternTimes:
    """How long and how sure the largest pattern within the budgets is looked for."""

    warmup_ms: int
    """Of each trial; the suite's own replay has warmed up the target before."""
    probe_miss_probability: float
    """What a trial on the way excludes with 95 %, of each stream."""
    excluded_miss_probability: float
    """What each trial that shows the number excludes."""
    boundary_trials: int
    """How many of them there are."""
    trial_attempts: int
    """On a simulated bench: replays of a trial at most, while it has no verdict."""


@dataclass(frozen=True)
class Profile:
    """One row of the profiles file; times in milliseconds."""

    name: str
    warmup_ms: int
    duration_ms: int
    excluded_miss_probability: float
    known_delay_ms: int
    """Of each of the three replays by which the bench finds a known delay."""
    producer_known_delay_ms: int = 0
    """The same, where the target produces; 0: the check is left to the consumer's suite."""
    replay_attempts: int = 1
    """On a simulated bench: replays at most, while streams have no verdict."""
    clocks: ClockTimes | None = None
    edges: EdgeTimes | None = None
    largest_pattern: LargestPatternTimes | None = None
    provisioning: ProvisioningTimes | None = None
    time_service: TimeServiceTimes | None = None
    round_trips: RoundTripTimes | None = None
    realtime_ethernet: MessageTimes | None = None


def load_profile(name: str, path: Path = PROFILES_FILE) -> Profile:
    """Read a profile.

    Raises:
        ConfigError: No such profile, or a value out of range.
    """
    tables = read_toml(path)
    if name not in tables:
        raise ConfigError(f"{path}: no profile {name!r}; there are: {', '.join(tables)}")
    table = Fields(tables[name], str(path), name)
    profile = Profile(
        name=name,
        warmup_ms=table.integer("warmup_ms", 0, 3_600_000),
        duration_ms=table.integer("duration_ms", 1, 7 * 86_400_000),
        excluded_miss_probability=table.number("excluded_miss_probability", 1e-9, 0.5),
        known_delay_ms=table.integer("known_delay_ms", 1000, 3_600_000),
        producer_known_delay_ms=table.integer("producer_known_delay_ms", 0, 3_600_000, default=0),
        replay_attempts=table.integer("replay_attempts", 1, 10),
        clocks=_clock_times(table.child("clocks", optional=True)),
        edges=edge_times(table.child("edges", optional=True)),
        provisioning=provisioning_times(table.child("provisioning", optional=True)),
        time_service=time_service_times(table.child("time_service", optional=True)),
        round_trips=round_trip_times(table.child("round_trips", optional=True)),
        realtime_ethernet=message_times(table.child("realtime_ethernet", optional=True)),
        largest_pattern=_largest_pattern_times(table.child("largest_pattern", optional=True)),
    )
    table.finish()
    return profile


def _largest_pattern_times(table: Fields | None) -> LargestPatternTimes | None:
    if table is None:
        return None
    times = LargestPatternTimes(
        warmup_ms=table.integer("warmup_ms", 0, 3_600_000),
        probe_miss_probability=table.number("probe_miss_probability", 1e-9, 0.5),
        excluded_miss_probability=table.number("excluded_miss_probability", 1e-9, 0.5),
        boundary_trials=table.integer("boundary_trials", 1, 100),
        trial_attempts=table.integer("trial_attempts", 1, 10),
    )
    table.finish()
    return times


def _clock_times(table: Fields | None) -> ClockTimes | None:
    if table is None:
        return None
    times = ClockTimes(
        measure_s=table.integer("measure_s", 1, 86_400),
        intervals_s=table.integers("intervals_s", 1, 86_400),
        interval_measure_s=table.integer("interval_measure_s", 1, 7 * 86_400),
        synchronised_s=table.integer("synchronised_s", 1, 86_400),
        holdover_s=table.integer("holdover_s", 1, 7 * 86_400),
        relocks=table.integer("relocks", 1, 1000),
        loads=table.texts("loads", LOADS),
        networks=table.texts("networks", NETWORKS),
        alternations=table.integer("alternations", 0, 1000),
        latency_reads=table.integer("latency_reads", 1, 10_000_000_000),
        latency_max_s=table.integer("latency_max_s", 1, 3600),
    )
    table.finish()
    return times
