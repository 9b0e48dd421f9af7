# SPDX-License-Identifier: Apache-2.0
"""What the doctor says where root has not all rights: capabilities by their names, folders by theirs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hw.capability import State
from hw.errors import CapabilityError
from hw.probes import host, network, privileges
from hw.virtual import image

PROBES = """
import json
from dataclasses import asdict
from hw.probes import cpu, host, network
probes = [network.root, network.namespaces, network.tap, network.impairment]
probes += [cpu.real_time_scheduling, host.locked_memory]
print(json.dumps({found.key: asdict(found) for found in (probe() for probe in probes)}))
"""


def probed(*dropped: str) -> dict[str, dict[str, str]]:
    """Return what the probes find as root without some capabilities, as in a container."""
    bounds = "--bounding-set=" + ",".join(f"-{name}" for name in dropped)
    command = ["setpriv", "--inh-caps=-all", bounds, sys.executable, "-c", PROBES]
    limits = ["prlimit", "--memlock=65536:65536"]
    answer = subprocess.run([*limits, *command], check=True, capture_output=True, text=True).stdout
    found: dict[str, dict[str, str]] = json.loads(answer)
    return found


@pytest.mark.simulated
def test_root_with_all_capabilities_lacks_none() -> None:
    found = probed("sys_boot")
    assert {each["state"] for key, each in found.items() if key != "tun"} == {"OK"}, found


@pytest.mark.simulated
@pytest.mark.parametrize(
    ("dropped", "keys"),
    [
        ("CAP_SYS_ADMIN", {"root", "namespaces", "qdisc"}),
        ("CAP_NET_ADMIN", {"root", "namespaces", "tun", "qdisc"}),
        ("CAP_SYS_NICE", {"root", "realtime"}),
        ("CAP_IPC_LOCK", {"memlock"}),
    ],
)
def test_a_capability_that_root_lacks_is_named_and_nothing_else_is_blamed(
    dropped: str, keys: set[str]
) -> None:
    name = dropped.removeprefix("CAP_")
    found = probed(name.lower())
    assert {key for key, each in found.items() if each["state"] != "OK"} - {"tun"} == keys - {"tun"}
    for key in keys:
        told = found[key]
        assert f"--cap-add={name}" in told["remedy"], told
        assert "CONFIG_" not in told["remedy"]
        if key != "memlock":
            assert f"without {dropped}" in told["found"], told


def test_a_refusal_of_another_cause_keeps_its_remedy() -> None:
    lacks = ("CAP_SYS_ADMIN",)
    found = network.judge_impairment("", "Specified qdisc kind is unknown.", lacks)
    assert "CONFIG_NET_SCH_TBF" in found.remedy
    assert "CAP_" not in found.found
    assert "seccomp" in network.judge_namespaces("unshare failed: Operation not permitted").remedy


def test_capabilities_are_read_from_the_kernels_text() -> None:
    status = "Name:\tx\nCapEff:\t0000000000801000\n"
    assert privileges.not_in(status, "CAP_SYS_NICE", "CAP_NET_ADMIN", "CAP_SYS_ADMIN") == ("CAP_SYS_ADMIN",)


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "home"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "ro,size=64k", "tmpfs", str(folder)], check=True)
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.simulated
@pytest.mark.parametrize("variable", ["HOME", "BENCHWRIGHT_CACHE"])
def test_a_read_only_folder_has_room_and_no_right_to_write(
    read_only: Path, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BENCHWRIGHT_CACHE", raising=False)
    monkeypatch.setenv(variable, str(read_only))
    found = host.disk()
    assert found.state is State.MISSING
    assert (
        f"guest images: no right to write in {read_only}, which is on a read-only file system" in found.found
    )
    assert "BENCHWRIGHT_CACHE" in found.remedy
    with pytest.raises(CapabilityError, match=rf"{read_only}.*: no right to write .*BENCHWRIGHT_CACHE"):
        image.build_or_get("target")


def test_a_file_in_the_place_of_the_cache_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cache").write_text("")
    monkeypatch.setenv("BENCHWRIGHT_CACHE", str(tmp_path / "cache"))
    assert f"{tmp_path}/cache is no folder" in host.disk().found
    with pytest.raises(CapabilityError, match=f"{tmp_path}/cache/images: no right to write"):
        image.build_or_get("target")


def test_a_user_without_a_home_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("BENCHWRIGHT_CACHE", raising=False)
    monkeypatch.setattr("pathlib.Path.home", none)
    found = host.disk()
    assert (found.state, "HOME" in found.remedy) == (State.MISSING, True)


@pytest.mark.simulated
def test_an_image_in_a_read_only_cache_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENCHWRIGHT_CACHE", str(tmp_path))
    folder = tmp_path / "images" / image.image_recipe.digest()
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text(json.dumps({"kernels": {"rt": "6.12-rt", "cloud": "6.12-cloud"}}))

    def refuse(_path: Path) -> None:
        raise OSError(30, os.strerror(30))

    monkeypatch.setattr(os, "utime", refuse)
    assert image.build_or_get("target").kernel_release == "6.12-rt"
