# SPDX-License-Identifier: Apache-2.0
"""The example of a bench with a real Windows machine is one that the project and labgrid would open."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from hw.bench import load_bench
from hw.errors import ConfigError
from hw.journal import Journal
from hw.provisioning import Way, load_way
from hw.session import Bench
from resources.replay.pattern import load_pattern

EXAMPLE = "hw/benches/example-windows.yaml"
VIRTUAL = "hw/benches/virtual.yaml"


def test_the_examples_play_the_whole_pattern_into_windows(repository: Path) -> None:
    for name in (EXAMPLE, VIRTUAL):
        spec = load_bench(repository / name)
        assert spec.simulated is (name == VIRTUAL)
        assert "windows" in spec.targets
        pattern = load_pattern(repository / "traffic-gen/patterns/daq12.toml")
        assert tuple(spec.producers) == pattern.producers
        assert spec.impairment is not None
        assert "windows" in spec.clocks


@pytest.mark.simulated
@pytest.mark.slow
def test_labgrid_accepts_the_example(repository: Path, tmp_path: Path) -> None:
    """Its targets are made, with unknown attributes as errors; nothing is powered or reached."""
    spec = load_bench(repository / EXAMPLE)
    bench = Bench(spec, Journal(spec.name, {}, tmp_path))
    bench.close()


@pytest.mark.simulated
@pytest.mark.slow
def test_an_unknown_attribute_of_the_machine_is_refused(repository: Path, tmp_path: Path) -> None:
    document = yaml.safe_load((repository / EXAMPLE).read_text())
    document["targets"]["windows"]["drivers"]["WindowsSSHDriver"]["shell"] = "powershell"
    file = tmp_path / "bench.yaml"
    file.write_text(yaml.safe_dump(document, sort_keys=False))
    with pytest.raises(ConfigError, match="shell"):
        Bench(load_bench(file), Journal("example-windows", {}, tmp_path))


def test_how_windows_is_provisioned(repository: Path) -> None:
    way = load_way(repository / "targets/windows")
    assert way.command == (f"{way.folder}/provision.cmd",)
    assert (way.tools, way.machine) == (("bw-provision",), "x86_64-windows")


def test_a_kind_without_a_word_about_it_is_provisioned_as_linux(tmp_path: Path) -> None:
    assert load_way(tmp_path) == Way()
    (tmp_path / "provision.toml").write_text('folder = "/x"\ncommand = "/x/go"\ncolour = "red"\n')
    with pytest.raises(
        ConfigError, match="colour: unknown key; known here: command, files_besides, folder, machine, tools"
    ):
        load_way(tmp_path)
