# SPDX-License-Identifier: Apache-2.0
"""What every keyword that judges does with its records: they are written first, and decide then."""

from __future__ import annotations

from collections.abc import Sequence

from robot.api import logger
from robot.libraries.BuiltIn import BuiltIn

from reports import Measurement, current_run


def running_test() -> str:
    """Return the name of the test that runs."""
    return str(BuiltIn().get_variable_value("${TEST NAME}"))


def keep(records: Sequence[Measurement], passed: str = "within its limit") -> None:
    """Write records, and what came of them to the log; `passed`: what is said of one that passes."""
    for record in records:
        current_run().append(record)
        logger.info(f"{record.requirement}: {record.outcome}: {record.reason or passed}")


def require_passed(records: Sequence[Measurement]) -> None:
    """Fail the test unless there are records and all of them pass.

    Raises:
        AssertionError: Begins with `FAIL:`, `INCONCLUSIVE:` or `UNSET:`, and names each that does not.
    """
    left = [record for record in records if record.outcome != "pass"]
    if left or not records:
        texts = [f"{record.outcome.upper()}: {record.requirement}: {record.reason}" for record in left]
        raise AssertionError("; ".join(texts) or "UNSET: nothing was judged")
