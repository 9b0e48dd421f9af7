# SPDX-License-Identifier: Apache-2.0
"""A virtual ARM board: provisioned and given back, and made to boot wrongly."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from hw.errors import BenchError
from hw.provisioning import Provisioner
from hw.session import Bench, open_bench
from hw.tools import BUILD
from hw.virtual import image
from reports.rejudge.applied import applied_discrepancies
from tests.turns import in_turn

pytestmark = [pytest.mark.simulated, pytest.mark.slow]

BENCH = Path(__file__).with_name("one_board.yaml")
BOARD = "board"
CMAC = "/run/bw-test-cmac"
U_BOOT = "/usr/lib/u-boot/qemu_arm/u-boot.bin"


@pytest.fixture(scope="module")
def bench() -> Generator[Bench]:
    """Boot the board."""
    with in_turn("one-board"), open_bench(BENCH) as opened:
        opened.power_on([BOARD])
        yield opened


def provisioner(bench: Bench) -> Provisioner:
    """Return what provisions the board; the scripts are copied to it at the first verb."""
    return Provisioner(bench.node(BOARD), bench.spec.targets["embedded"])


def test_provisioning_twice_changes_nothing_and_restore_gives_the_facts_back(
    bench: Bench, tmp_path: Path
) -> None:
    work = provisioner(bench)
    folder = tmp_path / "evidence" / "provisioning" / "embedded"
    folder.mkdir(parents=True)
    done = work.prepare(folder)
    assert applied_discrepancies(tmp_path, []) == ([], 0)
    assert done.changed > 0
    before = json.loads((folder / "facts-before.json").read_text())
    assert done.facts["settings"] != before["settings"]
    script = ["sh", "/run/benchwright/provision/provision.sh", "--interface", "test0"]
    *_, summary = (json.loads(line) for line in bench.node(BOARD).run([*script, "apply"]).stdout.splitlines())
    assert (summary["changed"], summary["wrong"]) == (0, 0)
    work.restore()
    facts = work.facts()
    assert facts == before
    assert_arm_facts(facts)


def assert_arm_facts(facts: dict[str, Any]) -> None:
    """Hold facts against what QEMU's ARM board is."""
    release = image.build_or_get("target", kind="embedded").kernel_release
    kernel, cpu, clock = facts["kernel"], facts["cpu"], facts["clock"]
    assert (kernel["machine"], kernel["release"], kernel["preempt_rt"]) == ("armv7l", release, True)
    model = ("ARMv7 Processor rev 0 (v7l)", "linux,dummy-virt", 1)
    assert (cpu["model"], cpu["hardware"], cpu["count"]) == model
    assert (clock["source"], clock["available"]) == ("arch_sys_counter", "arch_sys_counter")
    assert facts["hypervisor"] == {"present": True, "vendor": "", "product": ""}
    board = {"maker": "", "model": "linux,dummy-virt", "serial": "", "firmware": ""}
    assert facts["machine"] == board
    assert all(facts["versions"].values()), facts["versions"]
    assert {nic["name"] for nic in facts["nics"]} == {"test0", "control0"}


def test_kernel_of_the_board_does_the_cipher_of_keys(bench: Bench) -> None:
    """bw-timed's build for ARM has none of its own; the kernel loads its modules by itself."""
    node = bench.node(BOARD)
    loaded = node.run(["cat", "/proc/modules"]).stdout
    node.put(BUILD / "armhf" / "tests" / "traffic_gen" / "timeservice" / "test-timeservice-cmac", CMAC)
    done = node.run([CMAC], check=False)
    assert done.exit_code == 0, done.stderr
    assert "cmac " not in loaded
    assert "cmac " in node.run(["cat", "/proc/modules"]).stdout


def fault(tmp_path: Path, attributes: str, times: str) -> Path:
    """Return a bench file whose board is not as it should be."""
    text = BENCH.read_text(encoding="utf-8")
    text = text.replace("image: embedded,", f"image: embedded, {attributes},")
    text = text.replace("name: one-board", "name: one-bad-board")
    file = tmp_path / "fault.yaml"
    file.write_text(
        text.replace("off_s: 0.1, first_output_s: 10.0, silence_s: 15.0", times), encoding="utf-8"
    )
    return file


@pytest.mark.parametrize(
    ("attributes", "times", "said"),
    [
        (
            'kernel_arguments: "rdinit=/none root=/dev/none"',
            "silence_s: 15.0",
            "kernel panic: VFS: Unable to mount root fs",
        ),
        ('kernel_arguments: "rdinit=/bin/sleep -- 3600"', "silence_s: 4.0", "hangs: silent for 4 s after"),
        ("kernel: {zeros}", "first_output_s: 3.0", "never boots: not one character in 3 s after power on"),
    ],
    ids=["panic", "hang", "wrong-kernel"],
)
def test_boot_that_goes_wrong_is_told_by_how(tmp_path: Path, attributes: str, times: str, said: str) -> None:
    zeros = tmp_path / "zeros"
    zeros.write_bytes(bytes(4_000_000))
    file = fault(tmp_path, attributes.replace("{zeros}", str(zeros)), times)
    with open_bench(file) as opened, pytest.raises(BenchError, match=f"board board: {said}"):
        opened.power_on([BOARD])


def test_board_boots_over_the_network_or_stands_at_its_bootloader(tmp_path: Path) -> None:
    """U-Boot asks for a script, and loads what that says, by TFTP."""
    with open_bench(fault(tmp_path, f"bootloader: {U_BOOT}", "silence_s: 15.0")) as opened:
        opened.power_on([BOARD])
        said = opened.console(BOARD)
        assert said.index("Filename 'boot.scr.uimg'") < said.index("Filename 'vmlinuz'")
        assert opened.node(BOARD).run(["uname", "-m"]).stdout == "armv7l\n"
    no_kernel = fault(tmp_path, f"bootloader: {U_BOOT}, kernel: /dev/null", "silence_s: 15.0")
    with open_bench(no_kernel) as opened, pytest.raises(BenchError) as error:
        opened.power_on([BOARD])
    assert "board board: stands at a wrong prompt: '=>', of a bootloader" in str(error.value)
