# SPDX-License-Identifier: Apache-2.0
"""Lines of a GPIO chip in a real guest: the PL061 of QEMU's ARM machine; line 3 is its power button."""

from __future__ import annotations

import json
import socket
from collections.abc import Generator
from pathlib import Path

import pytest

from hw.protocols import READY_S
from hw.session import Bench, open_bench
from resources.tools.jobs import end_and_fetch
from tests.patience import HANG_S
from tests.traffic_gen.edge.lab import Json

pytestmark = [pytest.mark.simulated, pytest.mark.slow]

BENCH = Path(__file__).with_name("one_guest.yaml")
GUEST = "guest"
CHIP = "gpio:/dev/gpiochip0"
BUTTON = f"{CHIP},line=3"
TAI_UTC_NS = 37_000_000_000


@pytest.fixture(scope="module")
def bench() -> Generator[Bench]:
    """Boot the ARM guest."""
    with open_bench(BENCH) as opened:
        opened.power_on([GUEST])
        yield opened


def tool(bench: Bench, *arguments: str) -> tuple[int, Json, str]:
    """Run bw-edge in the guest; return its exit code, its result ({}: none) and what it complains of."""
    argv = [bench.tool(GUEST, "bw-edge"), *arguments]
    done = bench.node(GUEST).run(argv, timeout_s=HANG_S, check=False)
    lines = done.stdout.splitlines()
    return done.exit_code, json.loads(lines[-1]) if lines else {}, done.stderr


def press_power_button(bench: Bench) -> None:
    """Let QEMU pulse the line."""
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(HANG_S)
        link.connect(str(bench.folder / GUEST / "qmp.sock"))
        stream = link.makefile("rw", encoding="utf-8")
        stream.readline()
        for command in ("qmp_capabilities", "system_powerdown"):
            stream.write(json.dumps({"execute": command}) + "\n")
            stream.flush()
            while "return" not in (answer := json.loads(stream.readline())):
                assert "error" not in answer, answer


def test_software_sets_a_line(bench: Bench, tmp_path: Path) -> None:
    argv = [bench.tool(GUEST, "bw-edge"), "output", "--pin", f"{CHIP},line=1", "--periodic"]
    job = bench.node(GUEST).start(
        [*argv, "--period-ns", "20000000", "--duration-ms", "5000"], tmp_path / "output"
    )
    try:
        job.wait_ready()
        lines = bench.node(GUEST).run(["cat", "/sys/kernel/debug/gpio"])
        assert "bw-edge" in lines.stdout
        assert job.wait(READY_S) == 0
    finally:
        end_and_fetch(job)
    result = json.loads(job.fetch().read_text(encoding="utf-8").splitlines()[-1])
    assert result["valid"]
    assert result["fired"] > 0, result


def test_a_line_that_the_kernel_has_is_refused(bench: Bench) -> None:
    code, _, complaint = tool(bench, "capture", "--pin", BUTTON, "--count", "1")
    assert code == 3
    assert "busy" in complaint


def test_edges_of_a_line_are_stamped_by_the_kernel(bench: Bench, tmp_path: Path) -> None:
    node = bench.node(GUEST)
    node.run(["sh", "-c", "echo gpio-keys > /sys/bus/platform/drivers/gpio-keys/unbind"])
    argv = [
        bench.tool(GUEST, "bw-edge"),
        "capture",
        "--pin",
        BUTTON,
        "--count",
        "2",
        "--duration-ms",
        "20000",
    ]
    job = node.start(argv, tmp_path / "capture")
    try:
        job.wait_ready()
        before_ns = int(node.run(["date", "+%s%N"]).stdout) + TAI_UTC_NS
        for _ in range(2):
            press_power_button(bench)
            node.run(["sleep", "0.5"])
        after_ns = int(node.run(["date", "+%s%N"]).stdout) + TAI_UTC_NS
        assert job.wait(READY_S) == 0
    finally:
        end_and_fetch(job)
    result = json.loads(job.fetch().read_text(encoding="utf-8").splitlines()[-1])
    assert (result["axis"], result["count"], result["missed"]) == ("clock-ns", 2, 0)
    assert [sequence for sequence, _ in result["captures"]] == [0, 1]
    first_ns, second_ns = (instant for _, instant in result["captures"])
    assert before_ns < first_ns < second_ns < after_ns


@pytest.mark.parametrize(
    ("pin", "complaint"),
    [
        (f"{CHIP},line=8", "the chip has no such line"),
        ("gpio:/dev/null,line=1", "not a GPIO chip"),
    ],
)
def test_what_a_chip_has_not_is_said(bench: Bench, pin: str, complaint: str) -> None:
    code, _, said = tool(bench, "output", "--pin", pin, "--at-ns", "1")
    assert code == 3
    assert complaint in said
