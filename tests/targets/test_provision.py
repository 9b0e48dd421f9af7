# SPDX-License-Identifier: Apache-2.0
"""Provisioning in a guest: what is wrong is found, what is changed is put back."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from hw.virtual.guest_config import GuestInterface
from tests.targets.scratch_guest import ScratchGuest, boot, plain_config

pytestmark = [pytest.mark.simulated, pytest.mark.slow]

FOLDER = "/run/provision"
SCRIPT = f"{FOLDER}/provision.sh"
ON_TEST_CARD = f"{SCRIPT} --interface test0"
UNDO = "/var/lib/benchwright/undo"
TEST_CARD = GuestInterface("52:54:00:00:00:02", "test0", "10.77.0.100/24")


@pytest.fixture(scope="module")
def machine(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Generator[ScratchGuest]:
    """Boot a target with the scripts on it."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        tar.add(repository / "targets" / "linux-rt" / "provision", arcname=".")
    with boot(tmp_path_factory.mktemp("provision"), "target", plain_config(TEST_CARD), cpus=2) as guest:
        guest.wait_console("benchwright: ready")
        copied = guest.run(f"mkdir {FOLDER} && tar -xC {FOLDER}", stdin=archive.getvalue())
        assert copied.returncode == 0
        yield guest


@pytest.fixture
def target(machine: ScratchGuest) -> Generator[ScratchGuest]:
    """Give each test the machine as it booted."""
    yield machine
    machine.output(f"{SCRIPT} restore && [ ! -e {UNDO} ]")


def facts(guest: ScratchGuest) -> str:
    """Return the facts, byte for byte."""
    return guest.output(f"{ON_TEST_CARD} facts")


def lines(text: str) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """Return the items by name, and the summary."""
    *items, summary = [json.loads(line) for line in text.splitlines()]
    assert summary["type"] == "summary"
    return {item["item"]: item for item in items}, summary


def verb(
    guest: ScratchGuest, command: str, exit_code: int
) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """Run a verb on the test card that has to end with an exit code."""
    done = guest.run(command)
    assert done.returncode == exit_code, done.stderr.decode()
    return lines(done.stdout.decode())


def wrong(items: dict[str, dict[str, Any]]) -> set[str]:
    """Return the names of the items that are not as wanted."""
    return {name for name, item in items.items() if not item["ok"]}


def test_facts_say_what_a_report_knows_the_machine_by(target: ScratchGuest) -> None:
    machine = json.loads(facts(target))["machine"]
    assert (machine["maker"], machine["serial"]) == ("QEMU", "")
    assert machine["model"].startswith("Standard PC")
    assert machine["firmware"]


def test_check_names_what_is_wrong_and_changes_nothing(target: ScratchGuest) -> None:
    before = facts(target)
    items, summary = verb(target, f"{ON_TEST_CARD} check", 1)
    assert facts(target) == before
    assert "sysctl kernel/sched_rt_runtime_us" in wrong(items)
    assert summary["wrong"] == len(wrong(items))
    assert all(item["why"] for item in items.values())


@pytest.mark.parametrize(
    ("spoil", "item"),
    [
        ("sysctl -qw vm.swappiness=61", "sysctl vm/swappiness"),
        ("sysctl -qw net.core.rmem_max=212992", "sysctl net/core/rmem_max"),
        ("ethtool -K test0 gro off", "offload test0/gro"),
        ("echo 100 >/sys/class/net/test0/gro_flush_timeout", "nic test0/gro_flush_timeout"),
        ("mv /usr/sbin/ptp4l /usr/sbin/ptp4l.away", "tool ptp4l"),
    ],
)
def test_one_spoilt_setting_fails_the_check_alone(target: ScratchGuest, spoil: str, item: str) -> None:
    verb(target, f"{ON_TEST_CARD} apply", 0)
    target.output(spoil)
    try:
        items, _ = verb(target, f"{ON_TEST_CARD} check", 1)
        assert wrong(items) == {item}
    finally:
        target.output("[ ! -e /usr/sbin/ptp4l.away ] || mv /usr/sbin/ptp4l.away /usr/sbin/ptp4l")
        target.output("ethtool -K test0 gro on; echo 0 >/sys/class/net/test0/gro_flush_timeout")


BUSY = """
(taskset -c 1 bash -c 'end=$((SECONDS+8)); while [ $SECONDS -lt $end ]; do :; done' >/dev/null 2>&1 & echo $!)
"""
REAL_TIME = """
chrt -f 10 taskset -c 1 bash -c '
ran() { local stat; read -r stat </proc/PID/stat; set -- ${stat##*) }; ticks=$((${12} + ${13})); }
ran; before=$ticks; now=${EPOCHREALTIME/./}; end=$((now + 4000000))
while [ ${EPOCHREALTIME/./} -lt $end ]; do :; done
ran; echo $((ticks - before))'
"""
"""For four seconds; prints the clock ticks (10 ms) that the process of another policy had of the same CPU."""


def test_real_time_threads_keep_their_cpu(target: ScratchGuest) -> None:
    """Before, the kernel's fair server gives others 5 % of it, though the sysctl of old says all of it."""

    def others_had() -> int:
        pid = target.output(BUSY).strip()
        return int(target.output(REAL_TIME.replace("PID", pid)))

    target.output("echo -1 >/proc/sys/kernel/sched_rt_runtime_us")
    assert others_had() > 5
    target.output("echo 950000 >/proc/sys/kernel/sched_rt_runtime_us; sleep 5")
    items, _ = verb(target, f"{ON_TEST_CARD} apply", 0)
    assert items["fair_server cpu1"]["found"] == "50000000"
    assert others_had() <= 1


def test_interrupts_of_the_test_card_alone_are_moved(target: ScratchGuest) -> None:
    def cpus() -> dict[str, str]:
        return {i["name"]: i["cpus"] for i in json.loads(facts(target))["interrupts"]}

    before = cpus()
    items, _ = verb(target, f"{ON_TEST_CARD} apply", 0)
    moved = {name for name, where in cpus().items() if where != before[name]}
    device = target.output("basename $(readlink -f /sys/class/net/test0/device)")
    assert moved == {name for name in before if name.startswith(f"{device}-")}
    assert {cpus()[name] for name in moved} == {"1"}
    assert sum(name.startswith("irq_priority ") for name in items) == len(moved)


def test_killed_apply_is_restored(target: ScratchGuest) -> None:
    before = facts(target)
    target.output(
        f"{ON_TEST_CARD} apply >/dev/null 2>&1 & pid=$!; "
        f"until [ -e {UNDO} ] && [ $(wc -l <{UNDO}) -ge 3 ]; do :; done; kill -9 $pid; wait $pid || :"
    )
    _, restored = verb(target, f"{SCRIPT} restore", 0)
    assert restored["items"] >= 2
    assert facts(target) == before


def test_apply_after_a_killed_one_keeps_the_oldest_values(target: ScratchGuest) -> None:
    before = facts(target)
    target.output(f"head -n 40 {FOLDER}/settings.conf >/run/half.conf")
    _, half = verb(target, f"{ON_TEST_CARD} --settings /run/half.conf apply", 0)
    target.output(f"printf 'sysctl\\tvm/swappin' >>{UNDO}")  # a record that a crash cut off
    _, whole = verb(target, f"{ON_TEST_CARD} apply", 0)
    assert half["changed"] > 0
    assert whole["changed"] > 0
    _, restored = verb(target, f"{SCRIPT} restore", 0)
    assert restored["changed"] == half["changed"] + whole["changed"]
    assert facts(target) == before


def test_refused_value_is_reported_and_still_restored(target: ScratchGuest) -> None:
    target.output("printf '# Out of range.\\nsysctl vm/swappiness 9999\\n' >/run/refused.conf")
    items, _ = verb(target, f"{SCRIPT} --settings /run/refused.conf apply", 1)
    assert "refuses" in items["sysctl vm/swappiness"]["note"]


def test_nothing_is_changed_whose_old_value_cannot_be_written_down(target: ScratchGuest) -> None:
    before = facts(target)
    state = "/run/full"
    target.output(f"mkdir {state} && mount -t tmpfs -o size=64k tmpfs {state}")
    target.run(f"dd if=/dev/zero of={state}/filler bs=4k")
    items, summary = verb(target, f"BENCHWRIGHT_STATE={state} {ON_TEST_CARD} apply", 1)
    assert summary["changed"] == 0
    notes = {items[name]["note"] for name in wrong(items)}
    assert notes == {f"the old value cannot be written to {state}/undo: is its disk full?"}
    assert facts(target) == before
    target.output(f"umount {state}")


def test_without_an_interface_no_card_is_touched(target: ScratchGuest) -> None:
    items, _ = verb(target, f"{SCRIPT} apply", 0)
    cards = {
        name: item for name, item in items.items() if name.split()[0] in ("offload", "coalesce", "irq_cpu")
    }
    assert cards
    assert {item["status"] for item in cards.values()} == {"not applicable"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--settings /run/bad.conf check", '/run/bad.conf:2: unknown kind "sysctll"'),
        ("--settings /run/absent.conf check", "/run/absent.conf cannot be read"),
        ("--interface none0 check", "there is no interface none0"),
        ("improve", "unknown verb improve"),
        ("", "one verb is needed"),
        ("--fast check", "unknown option --fast"),
    ],
)
def test_bad_input_is_refused(machine: ScratchGuest, arguments: str, said: str) -> None:
    machine.output("printf '# Wrong.\\nsysctll vm/swappiness 0\\n' >/run/bad.conf")
    done = machine.run(f"{SCRIPT} {arguments}")
    assert done.returncode == 2
    assert said in done.stderr.decode()
