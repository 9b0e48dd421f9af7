# SPDX-License-Identifier: Apache-2.0
"""Every way of breaking in every phase: nothing is left, data is there, the message says who, where, when.

In the gate each way breaks one phase, drawn by a seed that is printed; all of them do by night.
"""

from __future__ import annotations

import os
import random
import re
import signal
from dataclasses import dataclass
from pathlib import Path

import pytest

from hw.bench import SWITCH
from hw.virtual.bench_network import namespace_of
from hw.virtual.guest_faults import cut_control_link
from resources.experiment.toml_text import toml_text
from tests.experiment.lab import (
    PHASES,
    ROOT,
    Fault,
    bench_file,
    experiment_file,
    left_soon,
    run,
    run_and_disturb,
)
from tests.patience import wait_until
from tests.turns import in_turn

pytestmark = pytest.mark.simulated

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


@dataclass(frozen=True)
class Place:
    """Where the component that breaks runs.

    Attributes:
        name: Of a bench that no other test has meanwhile.
        node: On it.
        bench: Its file; None: of two namespaces.
    """

    name: str
    node: str
    bench: Path | None = None

    def file(self, folder: Path) -> Path:
        """Write the file of the bench."""
        if self.bench is None:
            return bench_file(folder, self.name)
        text = re.sub(
            r"^  name: .*$", f"  name: {self.name}", self.bench.read_text(), count=1, flags=re.MULTILINE
        )
        (folder / "bench.yaml").write_text(text)
        return folder / "bench.yaml"

    def cut(self, _process: object) -> None:
        """Pull the plug of the node's control network."""
        cut_control_link(namespace_of(self.name, SWITCH), self.node)


NAMESPACE = Place("breaks", "p01")
BEHIND_SSH = Place("breaks-l", "linux", ROOT / "tests/targets/one_linux.yaml")
GUEST = Place("breaks-g", "linux-rt", ROOT / "hw/benches/virtual.yaml")


def broken(place: Place, tmp_path: Path, how: str, phase: str) -> None:
    """Break an experiment, look for what is left, and have the same one run to its end."""
    with in_turn(place.name):
        bench = place.file(tmp_path)
        output = tmp_path / "broken"
        _break(place, bench, output, tmp_path, how, phase)
        assert left_soon(place.name, output) == []
        points = list((output / "points").iterdir())
        assert len(points) == 1
        assert not points[0].name.isdecimal(), "a point that broke is not complete"
        _require_data(points[0], how, phase)
        sound = experiment_file(tmp_path, bench, None, first=place.node)
        done = run("run", sound, "--output", tmp_path / "sound")
        assert done.returncode == 0, done.stdout + done.stderr
        assert (tmp_path / "sound/points/0001/first-data").read_text().split() == list(PHASES)
        assert left_soon(place.name, output, tmp_path / "sound") == []


def _break(place: Place, bench: Path, output: Path, tmp_path: Path, how: str, phase: str) -> None:
    fault = Fault(how, phase) if how in OF_COMPONENTS else None
    if how == "unreachable":
        fault = Fault("waits", phase)
    deadline_s = HANGING_S if how in ("hangs", "unreachable") else 60.0
    file = experiment_file(tmp_path, bench, fault, deadline_s, place.node)
    words = ("run", file, "--output", output)
    if how == "unreachable":
        code, said = run_and_disturb(place.cut, phase, *words)
        assert code == 5, said
        assert f"first on {place.node}, phase {phase}: " in said
        assert "does not answer" in said
    elif fault is not None:
        done = run(*words, small_disk=how == "disk-full" and place == NAMESPACE)
        code, said = done.returncode, done.stdout + done.stderr
        assert code == 4, said
        assert f"first on {place.node}, phase {phase}: " in said
        assert OF_COMPONENTS[how] in said
    else:
        number = OF_THE_CONTROLLER[how]
        code, said = run_and_disturb(lambda process: process.send_signal(number), phase, *words)
        assert code == (-signal.SIGKILL if how == "controller-killed" else 4), said
        if how == "controller-killed":
            assert run("reset", file).returncode == 0


def _require_data(point: Path, how: str, phase: str) -> None:
    """Require what was written before the phase that broke; of a node that is gone nothing."""
    if how == "controller-killed" or phase == PHASES[0]:
        return
    before = [*PHASES[: PHASES.index(phase)]]
    for name in ("second",) if how == "unreachable" else ("first", "second"):
        reached = (point / f"{name}-data").read_bytes().split(b"\0")[0].decode().split()
        assert reached[: len(before)] == before


@pytest.mark.parametrize(("how", "phase"), TONIGHT, ids=[how for how, _ in TONIGHT])
def test_a_fault_of_each_kind_leaves_nothing(tmp_path: Path, how: str, phase: str) -> None:
    print(f"BENCHWRIGHT_SEED={SEED}: {how} in phase {phase}")
    broken(NAMESPACE, tmp_path, how, phase)


@pytest.mark.slow
@pytest.mark.parametrize(("how", "phase"), ALL)
def test_every_fault_in_every_phase_leaves_nothing(tmp_path: Path, how: str, phase: str) -> None:
    broken(NAMESPACE, tmp_path, how, phase)


OTHERS = [
    (place, how, phase)
    for place in (BEHIND_SSH, GUEST)
    for how, phase in (*ALL, *(("unreachable", phase) for phase in PHASES[1:]))
    if not (place == BEHIND_SSH and how == "disk-full")  # its disk is this machine's
]


@pytest.mark.slow
@pytest.mark.parametrize(("place", "how", "phase"), OTHERS, ids=[f"{p.node}-{h}-{f}" for p, h, f in OTHERS])
def test_every_fault_on_other_nodes_leaves_nothing(
    tmp_path: Path, place: Place, how: str, phase: str
) -> None:
    broken(place, tmp_path, how, phase)


DISAPPEARS = """
trap 'for each in /sys/class/net/*; do ip link set $(basename $each) down; done' TERM
echo on; while :; do sleep 0.01; done
"""


@pytest.mark.slow
def test_a_node_that_is_gone_when_it_is_asked_to_end_is_given_up(tmp_path: Path) -> None:
    """Its network ends with the last phase; the other's data is there."""
    with in_turn(BEHIND_SSH.name):
        table = {
            "schema": "benchwright.experiment/1",
            "name": "gone",
            "bench": str(BEHIND_SSH.file(tmp_path)),
            "nodes": {"one": {"node": BEHIND_SSH.node}, "other": {"node": "p02"}},
            "components": {
                "first": {"node": "one", "command": ["sh", "-c", DISAPPEARS], "ready": "line:on"},
                "second": {"node": "other", "command": ["sh", "-c", "echo 1 >data"], "files": ["data"]},
            },
            "phases": [{"name": "all", "deadline_s": 60, "tasks": {"first": "start", "second": "run"}}],
        }
        file = tmp_path / "gone.toml"
        file.write_text(toml_text(table))
        done = run("run", file, "--output", tmp_path / "output")
        assert done.returncode == 5, done.stdout + done.stderr
        assert (
            "first on linux, phase collect: no answer to stop within 12 s: its node does not answer"
            in done.stderr
        )
        assert "first on linux: what it wrote could not be fetched" in done.stderr
        assert "node one (linux): does not answer any more: not reset" in done.stderr
        assert (tmp_path / "output/points/0001.1/second-data").read_text() == "1\n"
        assert left_soon(BEHIND_SSH.name, tmp_path / "output") == []


@pytest.mark.slow
def test_a_node_that_is_gone_while_its_files_are_fetched_is_given_up(tmp_path: Path) -> None:
    """Its plug is pulled once the first bytes of a large file are here."""
    output = tmp_path / "output"

    def pull(_process: object) -> None:
        wait_until(lambda: any(output.glob("points/*/first-data")), "a file that is fetched")
        BEHIND_SSH.cut(_process)

    with in_turn(BEHIND_SSH.name):
        component = {"command": ["truncate", "--size", "4G", "data"], "files": ["data"]}
        table = {
            "schema": "benchwright.experiment/1",
            "name": "gone",
            "bench": str(BEHIND_SSH.file(tmp_path)),
            "nodes": {"one": {"node": "p02"}, "other": {"node": BEHIND_SSH.node}},
            "components": {
                "second": {"node": "one", "command": ["sh", "-c", "echo 1 >data"], "files": ["data"]},
                "first": {"node": "other", **component},
                "third": {"node": "other", "command": ["true"]},
            },
            "phases": [
                {"name": "all", "deadline_s": 60, "tasks": {"first": "run", "second": "run", "third": "run"}}
            ],
        }
        file = tmp_path / "gone.toml"
        file.write_text(toml_text(table))
        code, said = run_and_disturb(pull, "all", "run", file, "--output", output)
        next(output.glob("points/*/first-data")).unlink()
        assert code == 5, said
        assert "first on linux: what it wrote could not be fetched: linux: cannot copy " in said
        assert "/experiment-linux-first/data: " in said
        assert ", 30 s after " in said
        assert "third on linux: what it wrote could not be fetched\n" in said
        assert "node other (linux): does not answer any more: not reset" in said
        assert (output / "points/0001.1/second-data").read_text() == "1\n"
        assert left_soon(BEHIND_SSH.name, output) == []
