# SPDX-License-Identifier: Apache-2.0
"""The forms in which labgrid takes a file: the doctor asks what labgrid has made of it."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from hw.bench import load_bench
from hw.capability import State
from hw.drivers.labgrid_api import in_list_form, parts_of, power_driver
from hw.errors import ConfigError
from hw.labgrid_file import open_labgrid
from hw.probes import bench

SECTION = """
benchwright:
  schema: benchwright.bench/1
  name: lab
  simulated: false
  reference_clock: host
  nodes:
    host: {kind: local, clock: host}
    main: {kind: labgrid, clock: main}
  clocks:
    host: {node: host, address: 127.0.0.1}
    main: {node: main, address: 127.0.0.1}
  targets:
    linux-rt: {node: main, test_address: 127.0.0.1, test_interface: eth0}
  producers:
    1: {node: host, address: 127.0.0.1}
"""
SSH = "    drivers: [SSHDriver: {}]\n"
TABLE = "    resources:\n      NetworkService: {address: 127.0.0.1, port: PORT, username: root}\n"
SERVICE = "address: 127.0.0.1, port: PORT, username: root"
FORMS = {
    "table": TABLE + SSH,
    "list": "    resources:\n      - NetworkService: {address: 127.0.0.1, port: PORT, username: root}\n"
    + SSH,
    "list with cls": f"    resources: [{{cls: NetworkService, {SERVICE}}}]\n" + SSH,
    "name and cls": f"    resources:\n      ssh: {{cls: NetworkService, {SERVICE}}}\n"
    "    drivers:\n      shell: {cls: SSHDriver, keyfile: key}\n",
    "bound by name": "    resources:\n"
    "      - NetworkService: {name: other, address: 127.0.0.1, port: 9, username: root}\n"
    "      - NetworkService: {name: ssh, address: 127.0.0.1, port: PORT, username: root}\n"
    "    drivers:\n      SSHDriver: {bindings: {networkservice: ssh}}\n",
    "nothing behind a driver": TABLE + "    drivers:\n      SSHDriver:\n",
    "template": TABLE.replace("127.0.0.1", "!template $LG_BOARD") + SSH,
}
POWER = """
import attr
from labgrid import target_factory
from labgrid.driver.common import Driver
from labgrid.protocol import PowerProtocol

@target_factory.reg_driver
@attr.s(eq=False)
class NAME(Driver, PowerProtocol):
    outlet = attr.ib(default=1, validator=attr.validators.instance_of(int))
    def on(self): pass
    def off(self): pass
    def cycle(self): pass
"""


@pytest.fixture
def closed_port() -> Iterator[int]:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # bound, not listening: connections are refused
        yield bound.getsockname()[1]


def write(folder: Path, target: str, more: str = "") -> Path:
    file = folder / "bench.yaml"
    file.write_text(f"targets:\n  main:\n{target}{more}{SECTION}")
    return file


@pytest.mark.parametrize("form", FORMS)
def test_a_closed_port_is_found_in_every_form(
    tmp_path: Path, closed_port: int, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LG_BOARD", "127.0.0.1")
    file = write(tmp_path, FORMS[form].replace("PORT", str(closed_port)))
    (found, targets, *_), *_ = bench.bench(file)
    assert found.state is State.LIMITED
    assert f"main does not answer: 127.0.0.1 port {closed_port}: Connection refused" in found.found
    assert targets.state is State.MISSING


@pytest.mark.parametrize("form", FORMS)
def test_an_open_port_is_found_in_every_form_and_ssh_is_silent(
    tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LG_BOARD", "127.0.0.1")
    with socket.create_server(("127.0.0.1", 0)) as server:
        file = write(tmp_path, FORMS[form].replace("PORT", str(server.getsockname()[1])))
        (found, targets, *_), *_ = bench.bench(file)
    assert (found.state, targets.state) == (State.OK, State.OK), found
    environment = open_labgrid(load_bench(file), tmp_path)
    assert [type(each).__name__ for each in environment.targets["main"].drivers] == ["NamespaceSSHDriver"]


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("$LG_NOWHERE", r"bench.yaml:5: !template: \$LG_NOWHERE is not set"),
        ("$HOME/key", r"\$HOME is not set in the environment; must be \$BASE or a \$LG_"),
        ("100$", r"bench.yaml:5: !template: Invalid placeholder"),
    ],
)
def test_a_template_that_cannot_be_filled_in_is_named(tmp_path: Path, template: str, said: str) -> None:
    drivers = f"    drivers:\n      SSHDriver: {{keyfile: !template {template}}}\n"
    with pytest.raises(ConfigError, match=said):
        load_bench(write(tmp_path, "    resources: {}\n" + drivers))


def test_a_templates_base_is_the_files_folder(tmp_path: Path) -> None:
    drivers = "    drivers:\n      SSHDriver: {keyfile: !template $BASE/key}\n"
    spec = load_bench(write(tmp_path, "    resources: {}\n" + drivers))
    assert spec.labgrid_targets["main"]["drivers"]["SSHDriver"]["keyfile"] == f"{tmp_path}/key"


def test_a_sites_own_power_driver_switches_its_machine(tmp_path: Path) -> None:
    """In two benches of one process, too: labgrid takes the name of a driver once."""
    (tmp_path / "power.py").write_text(POWER.replace("NAME", "PowerOfThisTest"))
    drivers = "    drivers:\n      - SSHDriver: {}\n      - PowerOfThisTest: {outlet: 3}\n"
    file = write(tmp_path, TABLE.replace("PORT", "22") + drivers, "imports: [power.py]\n")
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        environment = open_labgrid(load_bench(file), tmp_path / name)
        assert power_driver(environment.targets["main"]).outlet == 3


@pytest.mark.parametrize(
    ("imports", "said"),
    [
        ("[nowhere.py]", "imports: nowhere.py: no such file"),
        ("power.py", "imports: must be a list of texts"),
        ("[3]", "imports: must be a list of texts"),
        ("[no_module_of_this_name]", "imports: No module named 'no_module_of_this_name'"),
        ("[broken.py]", "imports: invalid syntax"),
    ],
)
def test_an_import_that_cannot_be_made_is_named(tmp_path: Path, imports: str, said: str) -> None:
    (tmp_path / "broken.py").write_text("class (\n")
    file = write(tmp_path, TABLE.replace("PORT", "22") + SSH, f"imports: {imports}\n")
    (found, *_), *_ = bench.bench(file)
    assert found.state is State.MISSING
    assert said in found.found


def test_a_remote_place_without_a_coordinator_is_named(
    tmp_path: Path, closed_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LG_COORDINATOR", f"127.0.0.1:{closed_port}")
    file = write(tmp_path, "    resources:\n      RemotePlace: {name: desk}\n" + SSH)
    (found, *_), *_ = bench.bench(file)
    assert found.state is State.MISSING
    assert (
        f"main: RemotePlace: no coordinator answers at 127.0.0.1:{closed_port}: LG_COORDINATOR" in found.found
    )
    assert "LG_COORDINATOR" in found.remedy


@pytest.mark.parametrize("section", ["NetworkService", ["NetworkService"], {"NetworkService": "127.0.0.1"}])
def test_what_is_no_form_of_labgrids_is_refused(section: object) -> None:
    with pytest.raises(ValueError, match="must be a table"):
        parts_of(section)


def test_a_part_is_changed_where_it_stands_and_its_name_is_kept() -> None:
    section = [{"A": None}, {"cls": "B", "name": "b"}]
    for _name, attributes in parts_of(section):
        attributes["x"] = 1
    assert section == [{"A": {"x": 1}}, {"cls": "B", "name": "b", "x": 1}]
    assert in_list_form(section) == [{"cls": "A", "x": 1}, {"cls": "B", "name": "b", "x": 1}]
