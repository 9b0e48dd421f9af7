# SPDX-License-Identifier: Apache-2.0
"""Clock stacks between two guests: they lock, what goes wrong is named, and everything is put back.

Deadlines are those of a busy machine. How well a clock is kept is for suites to measure, against a timecard.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hw.bench import TargetSpec
from hw.errors import BenchError, MeasurementError
from hw.provisioning import Provisioner
from resources.clocks.config import REMOTE_RUN, STANDBY, Place, client_files
from resources.clocks.lock import SERVO_LOGS, failed_chrony_tests, is_locked, selected_grandmaster
from resources.clocks.role import ClockRole
from resources.clocks.servo_watch import wait_grandmaster
from resources.clocks.settings import ClockSettings, Wander, load_stack
from resources.clocks.stack import ClockStack
from tests.targets.clock_lab import TARGET_ERROR, TOOLS, ClockLab, clock_lab

pytestmark = [pytest.mark.simulated, pytest.mark.shared_cpu]

TEMPLATES = Path(__file__).resolve().parents[2] / "targets" / "linux-rt" / "clock" / "config"
LOCK_S = 90.0
WANDER = Wander(seed=3)
RATE_TOLERANCE_PPB = 30_000
"""Half of what the target's clock is off at first: 25 ppm fast against a server that is 39 ppm slow."""
HOUR_NS = 3_600_000_000_000


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Generator[ClockLab]:
    """Boot target and time server once: every test leaves them as it found them, which is tested, too."""
    with clock_lab(tmp_path_factory.mktemp("clocks")) as made:
        yield made


@pytest.fixture
def target(lab: ClockLab) -> TargetSpec:
    """Return the target, and require that the last test has put its clock back."""
    target = lab.spec.targets["linux-rt"]
    assert kernel(lab, target.node)["frequency_ppb"] == TARGET_ERROR.frequency_ppb
    assert daemons(lab, target.node) == ""
    return target


def kernel(lab: ClockLab, node: str) -> dict[str, Any]:
    """Return what the kernel of a node holds."""
    return json.loads(lab.node(node).run(["bw-setclock"]).stdout)


def daemons(lab: ClockLab, node: str) -> str:
    """Return the names of all programs that steer a clock there."""
    names = ("chronyd", "ptp4l", "phc2sys", "bw-ntp-user", "bw-wander")
    return lab.node(node).run(["pgrep", "-l", "|".join(names)], check=False).stdout


def stack_of(lab: ClockLab, target: TargetSpec, name: str, folder: Path, standby: bool = False) -> ClockStack:
    """Return a stack whose time server wanders, always in the same way."""
    settings = ClockSettings(server_wander=WANDER, standby=standby)
    return ClockStack(lab, target, name, settings, folder, print)


def servo_rate_ppb(lab: ClockLab, stack: ClockStack) -> float:
    """Return the rate that a servo gives the target's clock: the middle of its last ten seconds or so."""
    log = SERVO_LOGS[stack.name][-1]
    text = lab.node("linux-rt").run(["cat", f"{REMOTE_RUN}/{log.file}"]).stdout
    (series,) = log.read(text).series
    tail = round(10 / (stack.settings.sync_interval_s or 1.0))
    # Logs say by how much the oscillator is fast, so that the clock is slowed down.
    return -float(np.median(series.freq_ppb[-tail:]))


def require_rate(lab: ClockLab, stack: ClockStack) -> None:
    """Wait until the target's clock goes as the server's does, which only who has heard it can know."""
    end_s = time.monotonic() + LOCK_S
    while True:
        rate_ppb, server_ppb = servo_rate_ppb(lab, stack), kernel(lab, "grandmaster")["frequency_ppb"]
        if abs(rate_ppb - server_ppb) < RATE_TOLERANCE_PPB:
            return
        assert time.monotonic() < end_s, f"{stack.name}: {rate_ppb} ppb, the server {server_ppb} ppb"
        time.sleep(2.0)


@contextmanager
def locked(
    lab: ClockLab, target: TargetSpec, name: str, folder: Path, standby: bool = False
) -> Generator[ClockStack]:
    """Give a stack that has locked, and require afterwards that nothing of it is left on either node."""
    before = kernel(lab, target.node), kernel(lab, "grandmaster")
    with stack_of(lab, target, name, folder, standby) as stack:
        lock = stack.wait_locked(LOCK_S)
        assert 0 < lock.after_s < LOCK_S + 30
        require_rate(lab, stack)
        yield stack
    after = kernel(lab, target.node), kernel(lab, "grandmaster")
    for found, was in zip(after, before, strict=True):
        assert {**found, "status": found["status"] & 255} == {**was, "status": was["status"] & 255}
    assert daemons(lab, target.node) + daemons(lab, "grandmaster") == ""
    file, form = stack.servo_log
    assert (folder / file).stat().st_size > 0
    assert form in ("chrony-statistics", "bw-ntp-user", "ptp4l")


def test_chrony_locks_by_kernel_stamps_at_both_ends_and_holds_over(
    lab: ClockLab, target: TargetSpec, tmp_path: Path
) -> None:
    with locked(lab, target, "chrony", tmp_path) as stack:
        stack.cut_off()
        with pytest.raises(MeasurementError, match="has not heard its server for 10 s"):
            stack.require_synchronised()
        stack.require_running()
        # It goes on as it went, but for the rest of a slew.
        require_rate(lab, stack)
        stack.resume()
        stack.require_synchronised()
    rows = (tmp_path / "target" / "chrony-measurements.log").read_text().splitlines()
    stamps = [row.split()[-3:] for row in rows if row.startswith("20")]
    # 4I: interleaved; K K: both of the server's packets and this client's were stamped by the kernel.
    assert sum(found == ["4I", "K", "K"] for found in stamps) > len(stamps) / 2


def test_ntp_user_locks_and_listens_again(lab: ClockLab, target: TargetSpec, tmp_path: Path) -> None:
    with locked(lab, target, "ntp-user", tmp_path) as stack:
        stack.cut_off()
        stack.require_running()
        stack.resume()
        # What counts is what it says from now on.
        again = stack.wait_locked(LOCK_S)
        assert again.after_s >= 4


def test_a_standby_grandmaster_takes_over_and_ends_with_the_rest(
    lab: ClockLab, target: TargetSpec, tmp_path: Path
) -> None:
    with locked(lab, target, "ptp-software", tmp_path, standby=True) as stack:
        leader = selected_grandmaster(stack.servo_text())
        stack.silence_server()
        wait_grandmaster(stack, STANDBY["clock_identity"], LOCK_S)
        stack.require_synchronised()
        stack.bring_back_server()
        wait_grandmaster(stack, leader, LOCK_S)
        stack.require_running()
    assert leader not in ("", STANDBY["clock_identity"])


def test_ptp_software_locks_and_notices_that_its_grandmaster_vanishes(
    lab: ClockLab, target: TargetSpec, tmp_path: Path
) -> None:
    with locked(lab, target, "ptp-software", tmp_path) as stack:
        stack.silence_server()
        with pytest.raises(MeasurementError, match="ptp4l has not heard its server for 10 s"):
            stack.require_synchronised()
        stack.bring_back_server()
        stack.cut_off()
        stack.require_running()
        with pytest.raises(MeasurementError, match="ptp-software is not resumed: start it again"):
            stack.resume()


def test_phc2sys_follows_a_card_that_wanders(lab: ClockLab, target: TargetSpec, tmp_path: Path) -> None:
    settings = ClockSettings(phc_wander=WANDER)
    with ClockStack(lab, target, "phc2sys", settings, tmp_path, print) as stack:
        stack.wait_locked(LOCK_S)
        stack.require_synchronised()
    lines = (tmp_path / "target" / "bw-wander.log").read_text().splitlines()
    assert json.loads(lines[0])["clock"] == target.ptp_clock
    said = lab.node(target.node).run(["sh", "-c", f"phc_ctl {target.ptp_clock} freq 2>&1"]).stdout
    assert float(said.split()[-1].removesuffix("ppb")) == 0.0
    # The card shows TAI, and the target's clock UTC.
    seconds = lab.node(target.node).run(["sh", "-c", f"phc_ctl {target.ptp_clock} cmp 2>&1"]).stdout
    assert abs(int(seconds.split()[-1].removesuffix("ns")) + 37_000_000_000) < 50_000_000


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
    client = ClockRole(lab.node(target.node), "client", TEMPLATES.parent.parent)
    namespace = lab.node(target.node).guest.namespace
    subprocess.run(["ip", "-n", namespace, "address", "replace", f"{LIAR}/24", "dev", "br0"], check=True)
    with liar(lab, lie):
        client.start("chrony", files)
        try:
            end_s = time.monotonic() + 30
            while said not in (found := failed_chrony_tests(client.lines("chrony/measurements.log"))):
                assert time.monotonic() < end_s, found
                time.sleep(0.5)
            (log,) = SERVO_LOGS["chrony"]
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
