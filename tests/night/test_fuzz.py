# SPDX-License-Identifier: Apache-2.0
"""What the part `fuzz` says of a target, and that a campaign keeps what it finds."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.campaign import SUMMARY, Campaign, folder_name
from tests.night.fuzz import Result, main, run_target
from tests.patience import HANG_S, wait_until

LOG = """INFO: Loaded 1 modules   (3702 inline 8-bit counters): 3702 [0x1, 0x2),
#2 INITED cov: 163 ft: 164 corp: 1/1b exec/s: 0 rss: 39Mb
#65536 pulse  cov: 608 ft: 2466 corp: 526/14162b lim: 80 exec/s: 32768 rss: 353Mb
"""
ENDED = "stat::number_of_executed_units: 70000\n"


def target(folder: Path, then: str) -> Result:
    """Run a script in the place of fuzz.sh."""
    script = folder / "fuzz.sh"
    script.write_text(f'#!/bin/sh\ncat >"$FUZZ_KEEP/log" <<EOF\n{LOG}EOF\n{then}\n')
    script.chmod(0o755)
    return run_target("fuzz-x", [str(script), "4", "seeds"], 1, folder / "kept")


def test_a_target_that_finds_nothing(tmp_path: Path) -> None:
    result = target(tmp_path, f'printf "{ENDED}" >>"$FUZZ_KEEP/log"')
    assert result == Result("fuzz-x", 70000, "608 of 3702 edges", ())
    assert "nothing found" in result.line()


def test_a_target_that_finds_something(tmp_path: Path) -> None:
    result = target(tmp_path, '[ "$1" = 1 ] && : >"$FUZZ_KEEP/found/crash-1"; exit 77000')
    assert result.findings == (str(tmp_path / "kept" / "found" / "crash-1"),)
    assert result.executions == 65536
    assert "1 found" in result.line()
    again = target(tmp_path, "exit 0")
    assert again.findings == ()
    assert not again.failed


def test_a_target_that_cannot_be_built_has_failed(tmp_path: Path) -> None:
    assert "FAILED" in target(tmp_path, "exit 1").line()
    assert not target(tmp_path, "echo skipped: no clang; exit 77").failed


@pytest.mark.parametrize("seconds", ["", "0", "-1", "1.5", "604801", "x", "$(true)"])
def test_seconds_that_are_none_are_refused(
    seconds: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--to", str(tmp_path), "--", seconds]) == 2
    assert "allowed: seconds, 1 to 604800" in capsys.readouterr().err


def test_a_campaign_keeps_what_it_finds(tmp_path: Path) -> None:
    campaign = Campaign("c", tmp_path / "c", first=7)
    drawn = [random.random() for random in campaign.rounds(3)]
    assert drawn == [random.random() for random in campaign.rounds(3)]
    with pytest.raises(ZeroDivisionError) as caught, campaign.trying(b"input"):
        _ = 1 / 0
    campaign.close()
    (found,) = json.loads((tmp_path / "c" / SUMMARY).read_text())["findings"]
    assert Path(found).read_bytes() == b"input"
    assert found in caught.value.__notes__[0]


INTERRUPTED = """
import os, sys
from tests.night import fuzz
os.cpu_count = lambda: 1
script, folder = sys.argv[1:]
fuzz.fuzz_commands = lambda: {f"fuzz-{number}": [script, "4"] for number in range(8)}
fuzz.main(["1", "--to", folder])
"""


def test_no_target_is_begun_after_an_interrupt(tmp_path: Path) -> None:
    script, kept = tmp_path / "fuzz.sh", tmp_path / "kept"
    script.write_text('#!/bin/sh\n: >"$FUZZ_KEEP/began"\nexec sleep 86400\n')
    script.chmod(0o755)
    command = [sys.executable, "-c", INTERRUPTED, str(script), str(kept)]
    process = subprocess.Popen(command, cwd=Path(__file__).parents[2], start_new_session=True)
    try:
        wait_until(lambda: any(kept.glob("*/began")), "the first target")
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(HANG_S) != 0
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert len(list(kept.glob("*/began"))) == 1


def test_folders_of_campaigns() -> None:
    assert (
        folder_name("test_damaged_evidence[evidence/a/**/x-1/*.json]")
        == "damaged-evidence-evidence-a-x-1-.json"
    )
