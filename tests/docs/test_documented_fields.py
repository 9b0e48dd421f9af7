# SPDX-License-Identifier: Apache-2.0
"""Tables of fields in the documentation name exactly the fields that the code reads; examples are valid."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import attr
import pytest
import yaml

from hw.bench import load_bench
from hw.drivers.board import BoardStrategy
from hw.drivers.virtual_board import VirtualBoard
from hw.drivers.virtual_guest import VirtualGuest
from hw.drivers.virtual_linux import VirtualLinux
from hw.drivers.virtual_windows import VirtualWindows
from hw.errors import ConfigError
from hw.oscilloscopes import VIRTUAL_OPTIONS
from hw.tools import local_tool
from hw.virtual.oscilloscope.__main__ import make_parser
from reports.requirement_forms import TAKEN, read_set
from resources.daq_replay.pattern import load_pattern
from resources.daq_replay.requirements import load_requirements
from resources.profiles import load_profile

ROOT = Path(__file__).resolve().parent.parent.parent
BENCH_FILES = ROOT / "docs" / "bench-files.md"
EMBEDDED = ROOT / "docs" / "embedded.md"
WINDOWS = ROOT / "docs" / "windows.md"
NATIVE = ROOT / "docs" / "native-target.md"
REQUIREMENTS = ROOT / "docs" / "requirements.md"
LATENCY = ROOT / "docs" / "latency.md"
NATIVE_TOOLS = ROOT / "docs" / "native-tools.md"
UNKNOWN = "nobody_asks_for_this"

FIRST = "*"
OSCILLOSCOPE = ("oscilloscopes", "mso")


def documented(document: Path, heading: str) -> set[str]:
    """Return the fields in the first column of the tables below a heading, up to the next one."""
    _, _, behind = document.read_text().partition(f"\n{heading}\n")
    section = re.split(r"^#+ ", behind, maxsplit=1, flags=re.MULTILINE)[0]
    return set(re.findall(r"^\| `(\w+)`", section, re.MULTILINE))


def known_keys(tmp_path: Path, path: tuple[str, ...]) -> set[str]:
    """Return the keys that the reader of bench files knows in a table of the project's part."""
    document = yaml.safe_load((ROOT / "hw/benches/virtual.yaml").read_text())
    table = document["benchwright"]
    for key in path:
        table = table[next(iter(table)) if key == FIRST else key]
    table[UNKNOWN] = 1
    file = tmp_path / "bench.yaml"
    file.write_text(yaml.safe_dump(document))
    with pytest.raises(ConfigError, match="known here: ") as caught:
        load_bench(file)
    return set(str(caught.value).partition("known here: ")[2].split(", "))


@pytest.mark.parametrize(
    ("heading", "path"),
    [
        ("## `benchwright`: the project's part", ()),
        *((f"### `{part}`", (part, FIRST)) for part in ["nodes", "clocks", "targets", "producers"]),
        *((f"### `{part}`", (part,)) for part in ["capture", "witness", "virtual"]),
        ("### `router`", ("topology", "router")),
        ("### `oscilloscopes`", OSCILLOSCOPE),
        ("### `signals`", (*OSCILLOSCOPE, "signals", "edge")),
        ("### `limits`", (*OSCILLOSCOPE, "limits")),
        ("### `virtual` of an oscilloscope", (*OSCILLOSCOPE, "virtual")),
        ("### `edges`", ("targets", "linux-rt", "edges")),
    ],
)
def test_bench_file_tables(tmp_path: Path, heading: str, path: tuple[str, ...]) -> None:
    assert documented(BENCH_FILES, heading) == known_keys(tmp_path, path)


def test_defaults_of_a_virtual_oscilloscope() -> None:
    """What the document says is what the program does without the option."""
    said = re.findall(r"^\| `(\w+)` \| .*; default ([\d.]+) \|$", BENCH_FILES.read_text(), re.MULTILINE)
    defaults = {name: float(value) for name, value in said if name in VIRTUAL_OPTIONS}
    assert set(defaults) == set(VIRTUAL_OPTIONS)
    parsed = vars(make_parser().parse_args(["--dialect=keysight"]))
    for name, (option, factor, _low, _high) in VIRTUAL_OPTIONS.items():
        assert parsed[option.removeprefix("--").replace("-", "_")] == pytest.approx(defaults[name] * factor)


def own_fields(part: type) -> set[str]:
    """Return the attributes of a labgrid resource or driver that are its own."""
    names = {field.name for field in attr.fields(part)}
    labgrid = {"target", "name", "state", "avail", "displayname"}
    return {name for name in names - labgrid if not name.startswith("_")}


def test_virtual_guest() -> None:
    assert documented(BENCH_FILES, "### `VirtualGuest`") == own_fields(VirtualGuest)


def test_virtual_board() -> None:
    own = own_fields(VirtualBoard) - own_fields(VirtualGuest)
    assert documented(EMBEDDED, "### `VirtualBoard`") == own


def test_virtual_linux() -> None:
    assert documented(NATIVE, "### `VirtualLinux`") == own_fields(VirtualLinux)


def test_virtual_windows() -> None:
    assert documented(WINDOWS, "### `VirtualWindows`") == own_fields(VirtualWindows)


def test_board_strategy() -> None:
    assert documented(EMBEDDED, "### `BoardStrategy`") == own_fields(BoardStrategy)


def test_defaults_of_a_boot() -> None:
    said = re.findall(r"^\| `(\w+_s)` \| .*; default (\d+)", EMBEDDED.read_text(), re.MULTILINE)
    known = {field.name: field.default for field in attr.fields(BoardStrategy) if field.name.endswith("_s")}
    assert {name: float(value) for name, value in said} == known


def example(document: Path, heading: str) -> str:
    """Return the first TOML block that holds a heading of a table."""
    blocks = re.findall(r"```toml\n(.*?)```", document.read_text(), re.DOTALL)
    return next(block for block in blocks if heading in block)


def test_example_of_a_site(tmp_path: Path) -> None:
    """The site's pattern and requirements are accepted, and belong together."""
    pattern_file, requirements_file = tmp_path / "site.toml", tmp_path / "site-requirements.toml"
    pattern_file.write_text(example(LATENCY, "[pattern]"))
    requirements_file.write_text(example(LATENCY, "[requirements]"))
    pattern, requirements = load_pattern(pattern_file), load_requirements(requirements_file)
    assert requirements.pattern == pattern.name
    assert set(requirements.by_stream) == {stream.id for stream in pattern.streams}


def test_requirement_fields(tmp_path: Path) -> None:
    file = tmp_path / "requirements.toml"
    text = example(LATENCY, "[requirements]")
    file.write_text(text.replace('id = "SITE-010"', f'id = "SITE-010"\n{UNKNOWN} = 1'))
    with pytest.raises(ConfigError, match="known here: ") as caught:
        load_requirements(file)
    known = set(str(caught.value).partition("known here: ")[2].split(", "))
    assert documented(LATENCY, "## Patterns and requirements of your own") == known


def test_quantities_of_requirements() -> None:
    text = example(REQUIREMENTS, "[requirements]")
    assert read_set(text.encode(), "site.toml").requirements
    assert documented(REQUIREMENTS, "# Requirements files") == set(TAKEN)


def test_profiles() -> None:
    """The table of profiles says what their file says."""
    rows = re.findall(
        r"^\| `(\w+)` \| (\d+) s \| (\d+) (s|h) \| ([\d.]+) % \| ([\d,]+) \|$",
        LATENCY.read_text(),
        re.MULTILINE,
    )
    assert [row[0] for row in rows] == ["quick", "ci", "acceptance", "soak"]
    for name, warmup_s, duration, unit, percent, _samples in rows:
        profile = load_profile(name)
        assert profile.warmup_ms == int(warmup_s) * 1000
        assert profile.duration_ms == int(duration) * {"s": 1000, "h": 3_600_000}[unit]
        assert profile.excluded_miss_probability == pytest.approx(float(percent) / 100)


def test_pattern_and_plan_examples(tmp_path: Path) -> None:
    """The tool takes the examples as they are, and misses every key but the optional ones."""
    pattern_file, plan_file = tmp_path / "pattern.toml", tmp_path / "plan.toml"
    pattern_file.write_text(example(NATIVE_TOOLS, "[pattern]"))
    tool = str(local_tool("bw-traffic"))
    assert (
        subprocess.run([tool, "check", str(pattern_file)], capture_output=True, check=False).returncode == 0
    )
    plan_file.write_text(
        example(NATIVE_TOOLS, "[run]") + pattern_file.read_text().replace("id = 31", "id = 11")
    )
    # A producer that the plan does not have: the plan itself has been read by then.
    argv = [tool, "send", str(plan_file), "--producer", "2"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (done.returncode, "the plan has no producer 2" in done.stderr) == (2, True), done.stderr
    for line in plan_file.read_text().splitlines():
        key = re.match(r"(\w+) = ", line)
        if key is None:
            continue
        plan_file.with_name("short.toml").write_text(plan_file.read_text().replace(f"{line}\n", "", 1))
        argv[2] = str(plan_file.with_name("short.toml"))
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        optional = key[1] == "low_latency" or line.startswith('clock = "realtime"')
        assert ("the plan has no producer 2" in done.stderr) is optional, f"{key[1]}: {done.stderr}"
