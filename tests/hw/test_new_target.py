# SPDX-License-Identifier: Apache-2.0
"""A new kind of target is one folder, one driver and one bench file: those that docs/new-target.md prints.

The page's files go into a copy of the tree, where nothing else is changed; what works with targets runs
there.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

KIND = "raspberry-pi"
PAGE = "docs/new-target.md"
PARTS = (f"targets/{KIND}/", "hw/drivers/", "hw/benches/")
COPIED = (
    "dashboards",
    "hw",
    "meson.build",
    "reports",
    "resources",
    "robot",
    "scope",
    "targets",
    "traffic-gen",
)
FILE = re.compile(r"^\*\*`([^`]+)`\*\*\n```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def page_files(repository: Path) -> dict[str, str]:
    """Return the files of the page, by their paths."""
    return dict(FILE.findall((repository / PAGE).read_text()))


def digests(tree: Path, names: list[str]) -> dict[str, str]:
    """Return the SHA-256 of files."""
    return {name: hashlib.sha256((tree / name).read_bytes()).hexdigest() for name in names}


class Tree:
    """A copy of the tree with the new kind in it."""

    def __init__(self, repository: Path, root: Path) -> None:
        """Copy what belongs to the tree, and add the page's files."""
        listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *COPIED]
        names = subprocess.run(listed, cwd=repository, check=True, capture_output=True, text=True).stdout
        self.root = root
        self.there = sorted(name for name in set(names.split("\0")) if name and (repository / name).is_file())
        for name in self.there:
            target = root / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((repository / name).read_bytes())
            target.chmod((repository / name).stat().st_mode)
        self.before = digests(root, self.there)
        self.added = page_files(repository)
        for name, text in self.added.items():
            assert not (root / name).exists(), f"{name} is there already"
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        (root / ".build").symlink_to(repository / ".build")

    def python(self, code: str, *arguments: str) -> str:
        """Run Python in the copy; return what it prints."""
        argv = [sys.executable, "-c", textwrap.dedent(code), *arguments]
        return self.run(*argv)

    def run(self, *argv: str, code: int = 0) -> str:
        """Run a program in the copy; return what it prints."""
        done = subprocess.run(
            argv,
            cwd=self.root,
            check=False,
            capture_output=True,
            text=True,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(self.root), "LC_ALL": "C.UTF-8"},
        )
        assert done.returncode == code, done.stderr[-2000:]
        return done.stdout


@pytest.fixture(scope="module")
def tree(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Tree:
    """A copy of the tree with the new kind."""
    return Tree(repository, tmp_path_factory.mktemp("new-target") / "tree")


def test_the_page_adds_one_folder_one_driver_and_one_bench_file(repository: Path) -> None:
    names = page_files(repository)
    assert {next(part for part in PARTS if name.startswith(part)) for name in names} == set(PARTS)
    assert len([name for name in names if name.startswith("hw/drivers/")]) == 1
    assert len([name for name in names if name.startswith("hw/benches/")]) == 1


def test_bench_is_loaded_and_labgrid_knows_the_driver(tree: Tree) -> None:
    bench = next(name for name in tree.added if name.startswith("hw/benches/"))
    said = tree.python(
        """
        import sys
        from pathlib import Path
        from hw.bench import load_bench
        from hw.journal import Journal
        from hw import session
        session.RUN_FOLDER = Path(sys.argv[2])
        spec = load_bench(Path(sys.argv[1]))
        bench = session.Bench(spec, Journal(spec.name, {}, Path(sys.argv[2])))
        target = bench._environment.get_target(sys.argv[3])
        print([type(driver).__name__ for driver in target.drivers])
        bench.close()
        """,
        bench,
        str(tree.root / "run"),
        KIND,
    )
    assert said.strip() == "['UsbRelayPowerDriver', 'SerialDriver', 'BoardStrategy', 'NamespaceSSHDriver']"


def test_driver_switches_the_relay(tree: Tree) -> None:
    said = tree.python(
        """
        import os, pty
        from hw.drivers import labgrid_api
        from labgrid import Target
        labgrid_api.register_all()
        from hw.drivers.usb_relay import UsbRelay, UsbRelayPowerDriver
        ours, port = pty.openpty()
        import tty
        tty.setraw(port)
        target = Target("t")
        UsbRelay(target, "relay", path=os.ttyname(port), channel=2)
        driver = UsbRelayPowerDriver(target, "power", off_s=0.0)
        target.activate(driver)
        driver.on()
        driver.cycle()
        said = b""
        while len(said) < 12:
            said += os.read(ours, 12)
        print(said.hex(" ", 4))
        """
    )
    assert said.split() == ["a00201a3", "a00200a2", "a00201a3"]


def test_doctor_lists_the_target(tree: Tree) -> None:
    said = tree.python(
        """
        import sys
        from pathlib import Path
        from hw.probes import bench, host
        bench.REACH_TIMEOUT_S = 0.1
        bench.reach = lambda addresses, timeout_s=0.1: {}  # nobody is asked
        for found in [*bench.bench(Path(sys.argv[1]))[0], host.packages()[0], host.native_tools()]:
            print(found.key, found.state.value, found.found)
        """,
        "hw/benches/raspberry-pi.yaml",
    )
    lines = {line.split()[0]: line for line in said.splitlines()}
    assert lines["targets"].split()[1:3] == ["OK", f"{KIND}:"]
    # Set-up has not been run in the copy: what the kind needs is missed, or there already.
    assert "gcc-aarch64-linux-gnu" in lines["packages"] or " OK " in lines["packages"]
    assert "arm64" in lines["native"]


def test_every_target_keeps_its_suites(tree: Tree) -> None:
    said = tree.python(
        """
        from robot.api import TestSuite
        from resources.every_target import EveryTarget
        suite = TestSuite.from_file_system("robot")
        suite.visit(EveryTarget("linux-rt", "raspberry-pi"))
        for target in suite.suites:
            print(target.name, *[child.source.name for child in target.suites])
        """
    )
    suites = {line.split()[0]: line.split()[1:] for line in said.splitlines()}
    assert suites["raspberry-pi"] == ["clock_sync", "daq_replay", "provisioning"]
    assert set(suites["raspberry-pi"]) < set(suites["linux-rt"])


def test_provisioner_takes_the_scripts_that_the_bench_names(tree: Tree) -> None:
    said = tree.python(
        """
        from pathlib import Path
        from types import SimpleNamespace
        from hw.bench import load_bench
        from hw.provisioning import Provisioner

        class Node:
            def put(self, file, remote):
                print("put", file.relative_to(Path.cwd()), remote)
            def run(self, argv, timeout_s, check):
                print("run", *argv)
                return SimpleNamespace(exit_code=0, stdout='{"type": "facts", "hostname": "pi"}', stderr="")

        spec = load_bench(Path("hw/benches/raspberry-pi.yaml"))
        print("facts", Provisioner(Node(), spec.targets["raspberry-pi"]).facts())
        """
    )
    folder = "/run/benchwright/provision"
    assert f"put targets/linux-rt/provision/provision.sh {folder}/provision.sh\n" in said
    assert f"run sh {folder}/provision.sh --interface end0 facts\n" in said
    assert said.endswith("facts {'hostname': 'pi'}\n")


def test_tools_are_built_and_found_for_its_machine(tree: Tree) -> None:
    said = tree.python(
        """
        from hw import tools
        print(tools.BUILDS["aarch64"])
        try:
            print(tools.local_tool("bw-traffic", "aarch64").parts[-3:])
        except Exception as error:
            print(error)
        """
    )
    assert said.splitlines()[0] == "arm64"
    assert "arm64" in said.splitlines()[1]
    head = "set -eu; . hw/host/progress.sh; . hw/host/native.sh; . hw/host/packages.sh; "
    variants = tree.run("bash", "-c", head + "native_cross_variants")
    assert "arm64" in variants.split()
    arguments = tree.run(
        "bash", "-c", head + 'native_arguments arm64; printf "%s\\n" "${MESON_ARGUMENTS[@]}"'
    )
    assert arguments.split()[-2:] == ["--cross-file", f"targets/{KIND}/cross/arm64.ini"]
    assert "gcc-aarch64-linux-gnu" in tree.run("bash", "-c", head + "package_lists")


def test_reports_and_store_take_its_records(tree: Tree, repository: Path, tmp_path: Path) -> None:
    said = tree.python(
        """
        import dataclasses, json, sys
        from pathlib import Path
        sys.path.append(sys.argv[2])
        from dashboards.points import run_points
        from reports.page.render import render_pages
        from tests.dashboards.runs import SUBJECT, make_run, record
        kinds = ("linux-rt", "raspberry-pi")
        run = make_run(
            Path(sys.argv[1]), [record(subject=dataclasses.replace(SUBJECT, target=kind)) for kind in kinds]
        )
        run.close()
        tags = [dict(point.tags).get("target") for point in run_points(run, "main").points]
        print(json.dumps({"pages": render_pages(run.path), "tags": sorted({tag for tag in tags if tag})}))
        """,
        str(tmp_path / "results"),
        str(repository),
    )
    answer = json.loads(said.splitlines()[-1])
    assert answer["tags"] == ["linux-rt", KIND]
    assert f"qualification-{KIND}.html" in answer["pages"]
    assert all(KIND in answer["pages"][name] for name in ("qualification.html", f"qualification-{KIND}.html"))


def test_no_existing_file_was_changed(tree: Tree) -> None:
    assert digests(tree.root, tree.there) == tree.before


def test_no_program_names_a_kind(repository: Path) -> None:
    """What one kind needs stands in its folder or its driver: no other program asks which kind it is."""
    kinds = [path.name for path in (repository / "targets").iterdir() if path.is_dir()]
    names = "|".join(re.escape(kind) for kind in kinds)
    asks = re.compile(
        rf"""(==|!=|\bin\b|case|startswith\()\s*[(\[{{]*["']({names})["']|["']({names})["']\s*(==|!=|:)"""
    )
    found: list[str] = []
    for package in ("dashboards", "hw", "reports", "resources", "scope"):
        for file in sorted((repository / package).rglob("*.py")):
            for number, line in enumerate(file.read_text().splitlines(), start=1):
                if asks.search(line):
                    found.append(f"{file.relative_to(repository)}:{number}: {line.strip()}")
    assert found == []
