# SPDX-License-Identifier: Apache-2.0
"""Kinds of settings that no guest has: what is read and written for them, without the machine."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

SYSTEM = "/sys/devices/system/cpu/cpu1/cpuidle/state2"


def _shell(repository: Path, script: str) -> str:
    """Run a script with the functions of the kinds; return what it prints."""
    kinds = repository / "targets" / "linux-rt" / "provision" / "kinds.sh"
    done = subprocess.run(
        ["dash", "-c", f'set -eu; . "{kinds}"; {script}'], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.mark.parametrize(("wanted", "written"), [("off", "1"), ("133", "0")])
def test_a_sleep_state_is_disabled_where_it_is_to_be_off(repository: Path, wanted: str, written: str) -> None:
    script = f'write_text() {{ echo "$1 $2"; }}; idle_write cpu1/state2 {wanted}'
    assert _shell(repository, script) == f"{SYSTEM}/disable {written}"


@pytest.mark.parametrize(("disabled", "said"), [("0", "133"), ("1", "off")])
def test_a_sleep_state_is_read_as_it_is_written(repository: Path, disabled: str, said: str) -> None:
    files = (
        f"case $1 in {SYSTEM}/disable) value={disabled} ;; {SYSTEM}/latency) value=133 ;; *) return 1 ;; esac"
    )
    script = f"value=; read_words() {{ {files}; }}; idle_read cpu1/state2; echo $value"
    assert _shell(repository, script) == said
