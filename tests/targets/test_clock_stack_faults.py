# SPDX-License-Identifier: Apache-2.0
"""Clock stacks between two guests: what goes wrong is named, and everything is put back."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hw.bench import TargetSpec
from hw.errors import BenchError, MeasurementError
from hw.provisioning import Provisioner
from reports.clock_sync.server_replies import longest_silence_ns
from reports.clock_sync.trial import FILTERED, ClockTrial, TrialFacts, load_trial, write_trial
from reports.clock_sync.verdict import judge_sync
from reports.record.measurement import Limit
from resources.clock_sync.config import Place, client_files
from resources.clock_sync.lab import ClockLab as MeasuringLab
from resources.clock_sync.lock import is_locked
from resources.clock_sync.refused_answers import failed_chrony_tests
from resources.clock_sync.role import ClockRole
from resources.clock_sync.settings import ClockSettings, load_stack
from resources.clock_sync.trial import TrialSettings
from resources.profiles import load_profile
from tests.patience import wait_until
from tests.targets.clock_lab import LOCK_S, TARGET_ERROR, TOOLS, ClockLab, daemons, kernel, stack_of

pytestmark = [pytest.mark.simulated, pytest.mark.slow]

TEMPLATES = Path(__file__).resolve().parents[2] / "targets" / "linux-rt" / "clock"
HOUR_NS = 3_600_000_000_000


def test_dead_daemon_is_named_with_its_end(lab: ClockLab, target: TargetSpec, tmp_path: Path) -> None:
    with stack_of(lab, target, "ptp-software", tmp_path) as stack:
        stack.require_running()
        lab.node(target.node).run(["pkill", "-KILL", "ptp4l"])
        with pytest.raises(MeasurementError, match="ptp4l on linux-rt was killed by signal 9"):
            stack.wait_locked(LOCK_S)


def test_server_with_a_wrong_time_is_not_followed(lab: ClockLab, target: TargetSpec, tmp_path: Path) -> None:
    server = lab.spec.time_server
    assert server is not None
    lab.node(server.node).run(["bw-setclock", "--step-ns", str(HOUR_NS)])
    try:
        with (
            stack_of(lab, target, "chrony", tmp_path / "chrony") as stack,
            pytest.raises(
                MeasurementError,
                match=r"chronyd on linux-rt ended with exit code 1: .*exceeds the allowed maximum",
            ),
        ):
            stack.wait_locked(LOCK_S)
        with (
            stack_of(lab, target, "ntp-user", tmp_path / "ntp-user") as stack,
            pytest.raises(
                MeasurementError, match=r"bw-ntp-user on linux-rt ended with exit code 4: .*--panic-ms"
            ),
        ):
            stack.wait_locked(LOCK_S)
    finally:
        lab.node(server.node).run(["bw-setclock", "--step-ns", str(-HOUR_NS)])


def test_absent_server_is_told_from_a_servo_that_does_not_settle(
    lab: ClockLab, target: TargetSpec, tmp_path: Path
) -> None:
    with stack_of(lab, target, "ntp-user", tmp_path) as stack:
        stack.silence_server()
        with pytest.raises(MeasurementError, match=r"not locked within 4 s: .*answers rejected: no-answer"):
            stack.wait_locked(4)


MEASURED_S = 14


@pytest.mark.parametrize("stack_name", ["chrony", "ptp-software"])
def test_server_that_vanishes_while_its_clock_is_measured_leaves_no_pass(
    lab: ClockLab, target: TargetSpec, tmp_path: Path, stack_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both daemons of the target run on, and the clock is as good as before: only the log knows."""

    def measure(
        _bench: object, _target: object, facts: TrialFacts, _how: object, folder: Path, *_: object
    ) -> ClockTrial:
        argv = [lab.tool(target.node, "bw-clock"), "compare", "--device", "realtime", "--reference", "tai"]
        answer = lab.node(target.node).run([*argv, "--duration-ms", str(MEASURED_S * 1000)]).stdout
        folder.mkdir()
        (folder / FILTERED).write_text(answer)
        write_trial(folder, facts)
        return load_trial(folder)

    monkeypatch.setattr("resources.clock_sync.lab.measure_trial", measure)
    bench: Any = lab
    measuring = MeasuringLab(bench, target, load_profile("ci"), tmp_path, print)
    with stack_of(lab, target, stack_name, tmp_path / "stack") as stack:
        stack.wait_locked(LOCK_S)
        facts = measuring.facts(stack, "sync", None)
        how = TrialSettings(MEASURED_S)
        heard = measuring.measured(stack, facts, how, tmp_path / "heard")
        stack.silence_server()
        silent = measuring.measured(stack, facts, how, tmp_path / "silent")
        stack.bring_back_server()
    assert longest_silence_ns(heard) < heard.filtered.elapsed_ns
    limit = Limit(1_000_000_000, -1_000_000_000, "none that matters")
    verdict, _ = judge_sync(silent, limit, 1)
    assert verdict.outcome == "inconclusive"
    assert f"{stack_name}: no answer of its server for 1" in verdict.reason


LIAR = "10.77.0.60"


@contextmanager
def liar(lab: ClockLab, lie: str) -> Generator[None]:
    """Serve lies to the target from this machine."""
    namespace = lab.node("linux-rt").guest.namespace
    program = str(Path(__file__).with_name("lying_server.py"))
    argv = ["ip", "netns", "exec", namespace, sys.executable, program, LIAR, "123", lie]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as server:
        try:
            assert server.stdout is not None
            assert server.stdout.readline() == b"ready\n"
            yield
        finally:
            server.kill()


@pytest.mark.parametrize(
    ("lie", "said"),
    [
        ("stratum-16", "failed the test of a synchronised server (leap and stratum)"),
        ("origin", "failed the test of the origin stamp"),
        ("kiss-deny", "failed the test of a synchronised server (leap and stratum)"),
    ],
)
def test_chronyd_says_which_lie_it_refuses(
    lab: ClockLab, target: TargetSpec, tmp_path: Path, lie: str, said: str
) -> None:
    spec = load_stack("chrony", simulated=True)
    place = Place(LIAR, target.test_interface, "", simulated=True)
    files = client_files(TEMPLATES, spec, ClockSettings().effective(spec), place)
    client = ClockRole(lab.node(target.node), "client", TEMPLATES.parent)
    namespace = lab.node(target.node).guest.namespace
    subprocess.run(["ip", "-n", namespace, "address", "replace", f"{LIAR}/24", "dev", "br0"], check=True)
    with liar(lab, lie):
        client.start("chrony", files)
        try:
            wait_until(
                lambda: said in failed_chrony_tests(client.lines("chrony/measurements.log")), "its refusal"
            )
            (log,) = load_stack("chrony", simulated=True).logs
            assert spec.lock is not None
            assert not is_locked(client.lines(log.file), log, spec.lock)
        finally:
            client.stop()


def test_missing_phc_is_named(lab: ClockLab, target: TargetSpec, tmp_path: Path) -> None:
    without = replace(target, ptp_clock="/dev/ptp7")
    with pytest.raises(MeasurementError, match="no PHC: there is no device /dev/ptp7"):
        stack_of(lab, without, "phc2sys", tmp_path).start()
    stack_of(lab, without, "phc2sys", tmp_path).stop()


def test_another_program_that_steers_the_clock_is_not_fought(
    lab: ClockLab, target: TargetSpec, tmp_path: Path
) -> None:
    node = lab.node(target.node)
    node.run(["sh", "-c", "chronyd -n -x >/dev/null 2>&1 </dev/null & sleep 0.5"])
    try:
        with pytest.raises(MeasurementError, match=r"another program steers the clock.*chronyd"):
            stack_of(lab, target, "chrony", tmp_path).start()
    finally:
        node.run(["pkill", "chronyd"])
    stack_of(lab, target, "chrony", tmp_path).stop()


def test_killed_run_is_undone_by_the_next_provisioning(
    lab: ClockLab, target: TargetSpec, tmp_path: Path
) -> None:
    node = lab.node(target.node)
    # A service manager of three verbs, with one service that runs.
    fake = tmp_path / "systemctl"
    fake.write_text(
        '#!/bin/sh\nstate=/run/fake-timesyncd\ncase "$*" in\n'
        "*LoadState*systemd-timesyncd.service) echo loaded ;;\n"
        "*is-active*systemd-timesyncd.service) [ -e $state ] ;;\n"
        "stop*systemd-timesyncd.service) rm $state ;;\nstart*systemd-timesyncd.service) : >$state ;;\nesac\n"
    )
    fake.chmod(0o755)
    node.put(fake, f"{TOOLS}/systemctl")
    node.run(["sh", "-c", "mkdir -p /run/systemd/system && : >/run/fake-timesyncd"])
    try:
        stack = stack_of(lab, target, "free-run", tmp_path)
        stack.start()
        stack_of(lab, target, "chrony", tmp_path).start()
        node.run(["bw-setclock", "--frequency-ppb", "-77000", "--tai-utc-s", "12"])
        assert "chronyd" in daemons(lab, target.node)
        assert node.run(["test", "-e", "/run/fake-timesyncd"], check=False).exit_code == 1
        # This run is killed now; the next one begins with a provisioning.
        Provisioner(node, target).restore()
        assert daemons(lab, target.node) == ""
        assert kernel(lab, target.node)["tai_utc_s"] == 37
        assert node.run(["test", "-e", "/run/fake-timesyncd"], check=False).exit_code == 0
        stack.stop()
        assert kernel(lab, target.node)["frequency_ppb"] == TARGET_ERROR.frequency_ppb
    finally:
        node.run(["rm", "-rf", "/run/systemd", f"{TOOLS}/systemctl"])


def test_nodes_with_another_tai_are_refused_unless_a_killed_run_has_left_it(
    lab: ClockLab, target: TargetSpec, tmp_path: Path
) -> None:
    """Seconds between two kernels' TAI would be seconds between stamps, however well the clocks agree."""
    node = lab.node(target.node)
    node.run(["bw-setclock", "--tai-utc-s", "36"])
    try:
        with pytest.raises(BenchError, match=f"TAI - UTC is not the same on every node: {target.node} 36 s"):
            stack_of(lab, target, "free-run", tmp_path).start()
        node.run(["bw-setclock", "--tai-utc-s", "37"])
        stack_of(lab, target, "free-run", tmp_path).start()  # this run is killed
        node.run(["bw-setclock", "--tai-utc-s", "12"])
        with stack_of(lab, target, "free-run", tmp_path):
            assert kernel(lab, target.node)["tai_utc_s"] == 37
    finally:
        node.run(["bw-setclock", "--tai-utc-s", "37"])


def test_wander_is_taken_back_when_its_program_is_killed(
    lab: ClockLab, target: TargetSpec, tmp_path: Path
) -> None:
    server = lab.spec.time_server
    assert server is not None
    with stack_of(lab, target, "free-run", tmp_path):
        assert abs(kernel(lab, server.node)["frequency_ppb"]) > 1
        lab.node(server.node).run(["pkill", "-KILL", "bw-wander"])
        assert abs(kernel(lab, server.node)["frequency_ppb"]) > 1
    assert kernel(lab, server.node)["frequency_ppb"] == 0
