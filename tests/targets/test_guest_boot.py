# SPDX-License-Identifier: Apache-2.0
"""A guest comes up as it was configured, ends in every way, and never changes its image."""

from __future__ import annotations

import hashlib
import json
import subprocess
import time
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import pytest

from hw.virtual.guest_config import GuestClock, GuestInterface
from tests.targets.scratch_guest import GUEST_ADDRESS, ScratchGuest, boot, plain_config

pytestmark = [pytest.mark.simulated, pytest.mark.slow]

READY = "benchwright: ready"
FAILED = "benchwright: boot failed"
NS_PER_S = 1_000_000_000
STEP_NS = 3_600 * NS_PER_S
RTC_STEP_NS = NS_PER_S
"""Resolution of the real-time clock that QEMU gives a guest."""
UPTIME_STEP_NS = 10_000_000
TEST_CARD = GuestInterface("52:54:00:00:00:02", "test0", "10.77.0.100/24", mtu=1400)


@pytest.fixture(scope="module")
def booted_ns() -> list[int]:
    """Give room for this machine's time before the boot of the target and after it."""
    return []


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory, booted_ns: list[int]) -> Generator[ScratchGuest]:
    """Boot a target whose clock is an hour ahead and 100 ppm fast."""
    clock = GuestClock(step_ns=STEP_NS, frequency_ppb=100_000, tai_utc_s=37)
    config = replace(plain_config(TEST_CARD), clock=clock)
    booted_ns.append(time.time_ns())
    with boot(tmp_path_factory.mktemp("target"), "target", config) as guest:
        assert guest.wait_console(READY, FAILED) == READY
        booted_ns.append(time.time_ns())
        yield guest


def test_kernel_is_preempt_rt(target: ScratchGuest) -> None:
    assert target.output("uname -r") == target.image.kernel_release
    assert target.output("cat /sys/kernel/realtime") == "1"


def test_interfaces_are_as_configured(target: ScratchGuest) -> None:
    listed = json.loads(target.output("ip -json address show test0"))[0]
    assert listed["address"] == TEST_CARD.mac
    assert listed["mtu"] == TEST_CARD.mtu
    assert [a["local"] for a in listed["addr_info"] if a["family"] == "inet"] == ["10.77.0.100"]
    assert target.output("uname -n") == "scratch"


def test_sshd_listens_on_the_control_address_alone(target: ScratchGuest) -> None:
    listeners = [line.split()[3] for line in target.output("ss -Htln").splitlines()]
    assert listeners == [f"{GUEST_ADDRESS}:22"]


def test_another_key_is_refused(target: ScratchGuest, tmp_path: Path) -> None:
    stranger = replace(target, folder=tmp_path)
    (tmp_path / "known_hosts").write_bytes((target.folder / "known_hosts").read_bytes())
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "login")], check=True)
    refused = stranger.run("true")
    assert refused.returncode == 255
    assert b"Permission denied" in refused.stderr


def test_clock_has_its_error(target: ScratchGuest, booted_ns: list[int]) -> None:
    # A guest gets no time while the machine has none for it, and its clock stalls. What its kernel began
    # with, its clock less its uptime, which stalls with it, lies within the boot.
    read_uptime = "cut -d ' ' -f 1 /proc/uptime"
    said = target.output(f"{read_uptime}; date +%s%N; {read_uptime}").splitlines()
    guest_ns = int(said[1])
    before_ns, after_ns = booted_ns
    assert guest_ns - round(float(said[0]) * NS_PER_S) >= before_ns + STEP_NS - RTC_STEP_NS
    assert guest_ns - round(float(said[2]) * NS_PER_S) - UPTIME_STEP_NS <= after_ns + STEP_NS
    kernel = json.loads(target.output("bw-setclock"))
    assert kernel["tai_utc_s"] == 37
    assert kernel["frequency_ppb"] == pytest.approx(100_000, abs=0.01)  # pyright: ignore[reportUnknownMemberType]


def test_guest_changes_nothing_of_the_image(target: ScratchGuest, tmp_path: Path) -> None:
    digest = hashlib.sha256(target.image.root.read_bytes()).hexdigest()
    target.output("echo changed >/etc/hostname && rm /usr/bin/ssh && sync")
    with boot(tmp_path, "producer", plain_config()) as second:
        second.wait_console(READY)
        assert second.output("cat /etc/hostname; ls /usr/bin/ssh") == "benchwright\n/usr/bin/ssh"
        second.process.kill()  # a power cut
        second.process.wait()
    assert hashlib.sha256(target.image.root.read_bytes()).hexdigest() == digest


@pytest.mark.parametrize("way", ["poweroff", "poweroff -f", "reboot", "qmp"])
def test_guest_ends_by_itself(way: str, tmp_path: Path) -> None:
    with boot(tmp_path, "impair", plain_config()) as guest:
        guest.wait_console(READY)
        if way == "qmp":
            guest.qmp("system_powerdown")
        else:
            guest.run(way)
        assert guest.ended_by_itself()
        assert guest.process.returncode == 0


def test_missing_card_is_named(tmp_path: Path) -> None:
    with boot(tmp_path, "impair", plain_config(), macs=["52:54:00:00:00:99"]) as guest:
        assert guest.wait_console(READY, FAILED) == FAILED
        assert "no interface with MAC 52:54:00:00:00:01" in guest.console()
