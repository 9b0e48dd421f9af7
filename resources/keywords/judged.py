# SPDX-License-Identifier: Apache-2.0
"""What every keyword that judges does with its records: they are written first, and decide then."""

from __future__ import annotations

from collections.abc import Sequence

from robot.api import logger
from robot.libraries.BuiltIn import BuiltIn

from hw.errors import CapabilityError
from reports import Measurement, current_run


def running_test() -> str:
    """Return the name of the test that runs."""
    return str(BuiltIn().get_variable_value("${TEST NAME}"))


def keep(records: Sequence[Measurement], passed: str = "within its limit") -> None:
    """Write records, and what came of them to the log; `passed`: what is said of one that passes."""
    for record in records:
        current_run().append(record)
        logger.info(f"{record.requirement}: {record.outcome}: {record.reason or passed}")


def require_passed(records: Sequence[Measurement], unmeasured: Sequence[str] = ()) -> None:
    """Fail the test unless there are records and all of them pass.

    Args:
        records: What was judged.
        unmeasured: Of requirements without a record, each with why; they leave the test unset.

    Raises:
        AssertionError: Begins with `FAIL:`, `INCONCLUSIVE:` or `UNSET:`, and names each that does not.
    """
    left = [record for record in records if record.outcome != "pass"]
    if left or unmeasured or not records:
        texts = [f"{record.outcome.upper()}: {record.requirement}: {record.reason}" for record in left]
        texts += [f"UNSET: {each}" for each in unmeasured]
        raise AssertionError("; ".join(texts) or "UNSET: nothing was judged")


def keep_judged(found: Sequence[Measurement | str], profile: str) -> None:
    """Write the records of requirements, and fail the test unless each has one and all pass.

    Args:
        found: Of each requirement its record, or why there is none: one that could not be measured costs the
            others nothing.
        profile: Which was asked for.

    Raises:
        CapabilityError: The profile measures none of the file.
        AssertionError: As of `require_passed`.
    """
    if not found:
        raise CapabilityError(f"profile {profile} measures nothing that the requirements are on")
    records = [each for each in found if isinstance(each, Measurement)]
    keep(records)
    require_passed(records, [each for each in found if isinstance(each, str)])
