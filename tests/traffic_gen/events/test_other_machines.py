# SPDX-License-Identifier: Apache-2.0
"""Points in programs for other machines: found in their files; recorded under Wine and in emulated ARM."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from hw.errors import CapabilityError
from hw.virtual.windows_prefix import WINE_FOLDER, prefix_or_make, wine_environment
from reports.timeline.event_stream_file import read_event_streams
from tests.patience import HANG_S
from tests.traffic_gen.events.recording import recorder

PROBE = Path("tests/traffic_gen/events-probe")
TOOL = Path("traffic-gen/bw-events")


def _built(repository: Path, variant: str, name: Path) -> Path:
    program = repository / ".build" / variant / name
    if not program.exists():
        pytest.skip(f"{name} is not built for {variant}: make test-all")
    return program


def _as_windows(path: Path) -> str:
    """Return a path of this machine as Wine names it."""
    return "\\\\?\\unix" + str(path).replace("/", "\\")


@pytest.mark.parametrize("variant", ["static", "armhf", "armhf-dynamic", "win"])
def test_points_are_found_in_programs_for_all_machines(repository: Path, tool: str, variant: str) -> None:
    name = "traffic-gen/bw-traffic"
    ours = subprocess.check_output(
        [tool, "list", "--json", str(repository / ".build/linux" / name)], text=True
    )
    program = _built(repository, variant, Path(f"{name}.exe" if variant == "win" else name))
    theirs = subprocess.check_output([tool, "list", "--json", str(program)], text=True)
    assert ours
    assert sorted(theirs.splitlines()) == sorted(ours.splitlines())


@pytest.mark.slow
@pytest.mark.parametrize("mode", [("count", "100000"), ("threads", "3", "20000"), ("values",)])
def test_under_wine_each_event_is_there_once(repository: Path, tmp_path: Path, mode: tuple[str, ...]) -> None:
    try:
        prefix = prefix_or_make()
    except CapabilityError as error:
        pytest.skip(str(error))
    tool = _built(repository, "win", TOOL.with_suffix(".exe"))
    probe = _built(repository, "win", PROBE.with_suffix(".exe"))
    disk = tmp_path / "windows"
    shutil.copytree(prefix, disk, symlinks=True)
    shutil.copy(probe, disk / "drive_c" / "probe.exe")
    memory, output = tmp_path / "memory", tmp_path / "output"
    memory.mkdir()
    environment = {**os.environ, **wine_environment(disk), "BW_EVENTS_MEMORY": _as_windows(memory)}
    command = [str(WINE_FOLDER / "wine64"), str(tool), "record", "--output", _as_windows(output)]
    done = subprocess.run(
        [*command, "--ring-kib", "16384", "--", "C:\\probe.exe", *mode],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_S,
    )
    assert done.returncode == 0, done.stderr
    (stream,) = read_event_streams(output)
    assert (stream.lost, stream.incomplete, stream.counter) == (0, 0, "tsc")
    assert {each.clock for each in stream.clocks} == {"realtime", "monotonic", "monotonic-raw"}
    if mode[0] == "values":
        assert stream.totals[stream.number("values.spread")].total == sum(range(-20, 100))
    else:
        writers = int(mode[1]) if mode[0] == "threads" else 1
        tags = np.sort(stream.tag[stream.of("probe.number")])
        expected = [np.arange(int(mode[-1])) + (writer << 32) for writer in range(writers)]
        assert np.array_equal(tags, np.concatenate(expected))
    assert not list(memory.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["armhf-dynamic"])
def test_an_arm_program_writes_the_same_rings(
    repository: Path, tool: str, tmp_path: Path, variant: str
) -> None:
    probe = _built(repository, variant, PROBE)
    emulator = ["qemu-arm", "-L", "/usr/arm-linux-gnueabihf"]
    with recorder(tool, tmp_path, "--ring-kib", "16384") as (_, environment):
        for mode in (("data", "1000"), ("count", "50000")):
            command = [*emulator, "-E", f"BW_EVENTS={environment['BW_EVENTS']}", str(probe), *mode]
            answer = subprocess.check_output(command, env=environment, text=True, timeout=HANG_S)
            assert json.loads(answer)["handled"] == 0
    streams = read_event_streams(tmp_path)
    # Emulation has no counter: ticks are ns of the clock that the recorder reads, too.
    assert [stream.counter for stream in streams] == ["none", "none"]
    for stream in streams:
        first, last = stream.clocks[0].before_ticks, stream.clocks[-1].after_ticks
        assert (stream.ticks <= last).all()
        assert first < last
    by_size = sorted(streams, key=lambda stream: stream.tag.size)
    assert np.array_equal(np.sort(by_size[1].tag), np.arange(50_000))
    numbers = by_size[0].of("probe.bytes")
    assert np.array_equal(by_size[0].tag[numbers], np.arange(1000))
    assert np.array_equal(by_size[0].size_bytes[numbers], np.arange(1000) % 150)
