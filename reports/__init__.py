# SPDX-License-Identifier: Apache-2.0
"""Measurement records, verdicts, the run folder, and the reports that are made from it.

`current_run()` is the run folder that the listener has opened: keyword libraries write to it.
"""

from reports.current import current_run, set_current_run
from reports.errors import RecordError, ReportError, RunFolderError
from reports.latency import Replay, Requirement, judge_latency, latency_measurement
from reports.record import (
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
from reports.run_folder import RunFolder
from reports.verdict import Verdict, judge

__all__ = [
    "RULE",
    "SCHEMA",
    "Conditions",
    "Evidence",
    "Limit",
    "Measurement",
    "RecordError",
    "Replay",
    "ReportError",
    "Requirement",
    "RunFolder",
    "RunFolderError",
    "Subject",
    "Uncertainty",
    "UncertaintyPart",
    "Verdict",
    "current_run",
    "judge",
    "judge_latency",
    "latency_measurement",
    "set_current_run",
]
