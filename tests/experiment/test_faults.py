# SPDX-License-Identifier: Apache-2.0
"""Every way of breaking in every phase: nothing is left, data is there, the message says who, where, when.

In the gate each way breaks one phase, drawn by a seed that is printed; all of them do by night.
"""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.experiment.lab import PHASES, Fault, bench_file, experiment_file, left_soon, run, run_and_signal
from tests.turns import in_turn

pytestmark = pytest.mark.simulated

NAME = "breaks"
OF_COMPONENTS = {
    "killed": "was ended by signal 9",
    "hangs": "not done after",
    "exits": "ended with exit code 1",
    "floods": "wrote more than 1048576 bytes",
    "disk-full": "No space left on device",
}
OF_THE_CONTROLLER = {
    "ctrl-c": signal.SIGINT,
    "terminal-closed": signal.SIGHUP,
    "controller-killed": signal.SIGKILL,
}
SEED = int(os.environ.get("BENCHWRIGHT_SEED", "0")) or random.SystemRandom().randrange(1, 2**32)
ALL = [(how, phase) for how in (*OF_COMPONENTS, *OF_THE_CONTROLLER) for phase in PHASES]
DRAWN = random.Random(SEED)
TONIGHT = [(how, DRAWN.choice(PHASES)) for how in (*OF_COMPONENTS, *OF_THE_CONTROLLER)]
HANGING_S = 3.0


@pytest.fixture
def bench(tmp_path: Path) -> Generator[Path]:
    """Give the file of a bench that no other test has meanwhile."""
    with in_turn(NAME):
        yield bench_file(tmp_path, NAME)


def broken(bench: Path, tmp_path: Path, how: str, phase: str) -> None:
    """Break an experiment, look for what is left, and have the same one run to its end."""
    fault = Fault(how, phase) if how in OF_COMPONENTS else None
    file = experiment_file(tmp_path, bench, fault, HANGING_S if how == "hangs" else 60)
    output = tmp_path / "broken"
    words = ("run", file, "--output", output)
    if fault is not None:
        done = run(*words, small_disk=how == "disk-full")
        code, said = done.returncode, done.stdout + done.stderr
        assert code == 4, said
        assert f"first on p01, phase {phase}: " in said
        assert OF_COMPONENTS[how] in said
    else:
        code, said = run_and_signal(OF_THE_CONTROLLER[how], phase, *words)
        assert code == (-signal.SIGKILL if how == "controller-killed" else 4), said
        if how == "controller-killed":
            assert run("reset", file).returncode == 0
    assert left_soon(NAME, output) == []
    points = list((output / "points").iterdir())
    assert len(points) == 1
    assert not points[0].name.isdecimal(), "a point that broke is not complete"
    if how != "controller-killed" and phase != PHASES[0]:
        for name in ("first", "second"):
            reached = (points[0] / f"{name}-data").read_bytes().split(b"x")[0].decode().split()
            assert [*PHASES[: PHASES.index(phase)]] == reached[: PHASES.index(phase)]
    sound = run("run", experiment_file(tmp_path, bench, None), "--output", tmp_path / "sound")
    assert sound.returncode == 0, sound.stdout + sound.stderr
    assert (tmp_path / "sound/points/0001/first-data").read_text().split() == list(PHASES)
    assert left_soon(NAME, output, tmp_path / "sound") == []


@pytest.mark.parametrize(("how", "phase"), TONIGHT, ids=[how for how, _ in TONIGHT])
def test_a_fault_of_each_kind_leaves_nothing(bench: Path, tmp_path: Path, how: str, phase: str) -> None:
    print(f"BENCHWRIGHT_SEED={SEED}: {how} in phase {phase}")
    broken(bench, tmp_path, how, phase)


@pytest.mark.slow
@pytest.mark.parametrize(("how", "phase"), ALL)
def test_every_fault_in_every_phase_leaves_nothing(bench: Path, tmp_path: Path, how: str, phase: str) -> None:
    broken(bench, tmp_path, how, phase)
