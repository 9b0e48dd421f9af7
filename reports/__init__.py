# SPDX-License-Identifier: Apache-2.0
"""Measurement records, verdicts, the run folder, and the reports that are made from it.

`current_run()` is the run folder that the listener has opened: keyword libraries write to it.
"""

from reports.daq_replay.evidence import ReplayEvidence, load_replay
from reports.daq_replay.known_delay import KnownDelay, judge_known_delay
from reports.daq_replay.verdict import ReplayResults, StreamRequirement, judge_latency, latency_measurement
from reports.errors import RecordError, ReportError, RunFolderError
from reports.record.measurement import (
    RULE,
    SCHEMA,
    Conditions,
    Evidence,
    Limit,
    Measurement,
    Subject,
    Uncertainty,
    UncertaintyPart,
)
from reports.record.sampling import miss_probability_upper_95, required_samples
from reports.record.verdict import Verdict, judge
from reports.run.current import current_run, set_current_run
from reports.run.folder import RunFolder
from reports.run.tally import effective, overall

__all__ = [
    "RULE",
    "SCHEMA",
    "Conditions",
    "Evidence",
    "KnownDelay",
    "Limit",
    "Measurement",
    "RecordError",
    "ReplayEvidence",
    "ReplayResults",
    "ReportError",
    "RunFolder",
    "RunFolderError",
    "StreamRequirement",
    "Subject",
    "Uncertainty",
    "UncertaintyPart",
    "Verdict",
    "current_run",
    "effective",
    "judge",
    "judge_known_delay",
    "judge_latency",
    "latency_measurement",
    "load_replay",
    "miss_probability_upper_95",
    "overall",
    "required_samples",
    "set_current_run",
]
