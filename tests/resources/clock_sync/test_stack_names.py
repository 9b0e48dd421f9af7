# SPDX-License-Identifier: Apache-2.0
"""No program asks for a clock stack by its name: what one needs stands in its kind's folder."""

from __future__ import annotations

import ast
from pathlib import Path

from resources.clock_sync.settings import FREE_RUN, load_stack, stack_names

ROOT = Path(__file__).resolve().parents[3]
ALLOWED: dict[str, tuple[set[str], str]] = {
    "reports/clock_read/section.py": ({"timeservice"}, "a clock of bw-clock, no stack"),
    "reports/clock_sync/log_formats.py": ({"phc2sys"}, "a format: the program that writes the log"),
    "reports/clock_sync/server_replies.py": ({"phc2sys"}, "a log's format, which is that of the program"),
    "reports/clock_sync/linuxptp_logs.py": ({"phc2sys"}, "the program that writes the log"),
    "reports/rejudge/server_replies.py": ({"phc2sys"}, "a log's format, which is that of the program"),
    "reports/rejudge/servo.py": ({"phc2sys"}, "a log's format, which is that of the program"),
    "resources/clock_sync/time_service.py": ({"timeservice"}, "the stack whose own suite this is"),
    "resources/timed_edges/trials.py": (
        {"phc2sys"},
        "what the suite's method gettime-software runs by default",
    ),
    "resources/clock_sync/disturbance_keywords.py": ({"ptp-software"}, "the default of an argument"),
}
"""Names in programs, and why; FREE_RUN is that of a clock which no stack steers."""


def _names_in(file: Path, names: set[str]) -> set[str]:
    """Return which names are strings of a program; the texts of its documentation are longer."""
    constants = [
        node.value for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Constant)
    ]
    return {value for value in constants if isinstance(value, str)} & names


def test_no_program_names_a_stack() -> None:
    files = sorted((ROOT / "targets").glob("*/clock"))
    names = {name for file in files for name in stack_names(file)} - {FREE_RUN, "as-found"}
    assert {
        "chrony",
        "ntp-user",
        "timeservice",
        "ptp-software",
        "ptp-hardware",
        "phc2sys",
        "w32time",
    } <= names
    found: dict[str, set[str]] = {}
    for package in ("reports", "resources"):
        for file in sorted((ROOT / package).rglob("*.py")):
            if here := _names_in(file, names):
                found[str(file.relative_to(ROOT))] = here
    assert found == {file: allowed for file, (allowed, _why) in ALLOWED.items()}


def test_a_name_in_a_program_is_found(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text('"""About chrony."""\nif stack in ("chrony", "other"):\n    print("chrony.conf")\n')
    assert _names_in(file, {"chrony", "ntp-user"}) == {"chrony"}


def test_every_stack_that_is_served_names_its_leader() -> None:
    """It is looked up in Linux's file, where the time server's side of every kind's stacks is."""
    for file in sorted((ROOT / "targets").glob("*/clock")):
        for name in stack_names(file):
            spec = load_stack(name, simulated=True, path=file)
            served = load_stack(spec.served, simulated=True)
            assert bool(served.leader) == bool(served.server_files) == spec.needs_server, name
