# SPDX-License-Identifier: Apache-2.0
"""Variables of the Robot Framework that runs in this process."""

from __future__ import annotations

from robot.libraries.BuiltIn import BuiltIn, RobotNotRunningError


def robot_variable(name: str) -> str:
    """Return a variable, named without `${}`, as text; empty where there is none, or Robot does not run."""
    try:
        return str(BuiltIn().get_variable_value(f"${{{name}}}") or "")
    except RobotNotRunningError:
        return ""
