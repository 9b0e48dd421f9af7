# SPDX-License-Identifier: Apache-2.0
"""What is loaded on a Windows machine: a plug-in of the bench file, and nothing before a program's own."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Generator
from pathlib import Path

import pytest

from hw.drivers.windows_ssh import HOME
from hw.errors import BenchError
from hw.preload import start_program
from hw.session import Bench, open_bench
from resources.clock_sync.command import clock_command
from tests.targets.windows.conftest import BENCH_FILE, TARGET
from tests.traffic_gen.clock.test_compare import EARLIER_TABLE
from tests.turns import in_turn

pytestmark = pytest.mark.simulated

COMPILER = "x86_64-w64-mingw32-gcc"


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Generator[Bench]:
    """Open a bench with a plug-in beside its file; the machine is on."""
    folder = tmp_path_factory.mktemp("bench")
    shutil.copy(BENCH_FILE, folder)
    source = folder / "card.c"
    source.write_text(
        EARLIER_TABLE.replace("SIZE_BYTES", "sizeof(table)").replace(
            "const struct bw_clock_plugin *bw_clock_plugin(uint32_t version)\n",
            "__declspec(dllexport) const struct bw_clock_plugin *bw_clock_plugin(uint32_t version)\n",
        )
    )
    library = ["-shared", "-static", "-I", repository / "traffic-gen", "-o", folder / "card.dll", source]
    subprocess.run([COMPILER, *library], check=True)
    with in_turn("one-windows"), open_bench(folder / BENCH_FILE.name) as opened:
        opened.power_on([TARGET])
        yield opened


def test_a_plug_in_is_brought_and_read(bench: Bench) -> None:
    argv = clock_command(bench, TARGET, "compare", device="plugin:card.dll", reference="realtime")
    done = bench.node(TARGET).run([*argv, "--iterations", "100"], check=False)
    assert done.exit_code == 0, done.stderr
    device = json.loads(done.stdout.splitlines()[-1])["device"]
    assert (device["name"], device["plugin"]) == (f"plugin:{HOME}/bin/dynamic/card.dll", "other")


def test_nothing_can_be_preloaded(bench: Bench, tmp_path: Path) -> None:
    library = bench.library(TARGET, bench.spec.path.parent / "card.dll").replace(HOME, "/x")
    with pytest.raises(
        BenchError, match=r"windows: bw-traffic\.exe cannot be started with .*card\.dll loaded"
    ):
        start_program(bench.node(TARGET), [bench.tool(TARGET), "witness"], tmp_path / "x", preload=[library])
