# SPDX-License-Identifier: Apache-2.0
"""bw-setclock refuses what adjtimex(2) would misunderstand.

What it sets is tested in a guest (test_guest_boot.py), whose clock may be wrong.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def setclock(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile it with the sanitizers."""
    program = tmp_path_factory.mktemp("setclock") / "bw-setclock"
    source = repository / "targets" / "linux-rt" / "src" / "bw-setclock.c"
    flags = ["-std=gnu11", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    subprocess.run(["gcc", *flags, "-o", str(program), str(source)], check=True)
    return program


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--step-ns", "1s"], "--step-ns: 1s"),
        (["--step-ns", ""], "--step-ns:"),
        (["--step-ns"], "(nothing)"),
        (["--step-ns", "99999999999999999999"], "within -34560000000000000..34560000000000000"),
        (["--frequency-ppb", "500001"], "within -500000..500000"),
        (["--frequency-ppb", "-500001"], "within -500000..500000"),
        (["--tai-utc-s", "-1"], "within 0..1000"),
        (["--tick-us", "8999"], "within 9000..11000"),
        (["--tick-us", "11001"], "within 9000..11000"),
        (["--status", "256"], "within 0..255"),
        (["--offset", "1"], "unknown option --offset"),
        (["1"], "unknown option 1"),
    ],
)
def test_bad_argument_changes_nothing(setclock: Path, arguments: list[str], said: str) -> None:
    done = subprocess.run([str(setclock), *arguments], check=False, capture_output=True, text=True)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stdout == ""


def test_without_options_it_prints_what_the_kernel_holds(setclock: Path) -> None:
    done = subprocess.run([str(setclock)], check=True, capture_output=True, text=True)
    held = json.loads(done.stdout)
    assert set(held) == {"frequency_ppb", "tick_us", "tai_utc_s", "status"}
    assert abs(held["frequency_ppb"]) <= 500_000
