# SPDX-License-Identifier: Apache-2.0
"""Native tools that run beside a measurement: how they end."""

from __future__ import annotations

from contextlib import suppress

from hw.errors import BenchError
from hw.protocols import Job

ENDING_S = 5.0
"""How long a tool may take to end when it is asked to."""


def end_job(job: Job) -> None:
    """End a tool, where its node still answers; the ports that it held are free afterwards."""
    with suppress(BenchError):
        job.stop()
        job.wait(ENDING_S)


def end_and_fetch(job: Job) -> None:
    """End a tool and keep what it has said until then."""
    end_job(job)
    with suppress(BenchError):
        job.fetch()
