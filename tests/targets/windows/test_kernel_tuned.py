# SPDX-License-Identifier: Apache-2.0
"""The stack `kernel-tuned` on Windows: each setting is read back, given back, or told where there is none."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from hw.drivers.windows_ssh import HOME, WindowsSshNode
from hw.provisioning import Provisioner
from hw.session import Bench
from hw.tools import BUILD
from resources.network_stack import NetworkStack, network_stack_of
from resources.network_stack_ends import FOUND, network_stack_on
from tests.patience import HANG_S
from tests.targets.windows.conftest import TARGET

pytestmark = [pytest.mark.simulated, pytest.mark.slow]

STACK_FOLDER = f"{HOME}/stack"
TEMPLATES = f"{STACK_FOLDER}/templates.txt"
AS_FOUND = {"MinRtoMs": 300, "DelayedAckTimeoutMs": 40, "DelayedAckFrequency": 2}
TUNED = {"MinRtoMs": 20, "DelayedAckTimeoutMs": 10, "DelayedAckFrequency": 1}
STAND_IN = BUILD / "win" / "tests" / "targets" / "windows" / "tcp-templates.exe"
STAND_INS = ("powershell", "netsh")


@pytest.fixture(scope="module")
def stack(bench: Bench) -> NetworkStack:
    """Return the stack of the machine's kind."""
    return network_stack_of(bench.spec.targets[TARGET], "kernel-tuned")


@pytest.fixture
def templates(node: WindowsSshNode) -> Generator[WindowsSshNode]:
    """Return the machine with templates of TCP, beside the program that asks, where Windows looks first."""
    for name in STAND_INS:
        node.put(STAND_IN, f"{STACK_FOLDER}/{name}.exe")
    yield node
    for file in (*(f"{name}.exe" for name in STAND_INS), "templates.txt"):
        node.run(["del", f"{STACK_FOLDER}/{file}".replace("/", "\\")], check=False)


def held(node: WindowsSshNode) -> dict[str, int]:
    """Return what the templates hold."""
    return {words[0]: int(words[1]) for words in map(str.split, node.read(TEMPLATES).stdout.splitlines())}


def items(folder: Path) -> dict[str, dict[str, Any]]:
    """Return what `apply` has said, by the last word of each setting."""
    lines = [json.loads(line) for line in (folder / FOUND).read_text().splitlines()]
    return {line["item"].rsplit("\\", 1)[-1].split()[-1]: line for line in lines if line["type"] == "item"}


def test_what_wine_has_not_is_not_applicable_and_nothing_is_left(
    bench: Bench, node: WindowsSshNode, provisioner: Provisioner, stack: NetworkStack, tmp_path: Path
) -> None:
    before = provisioner.facts()
    with network_stack_on(stack, bench, TARGET, {TARGET: "test0"}, tmp_path):
        said = items(tmp_path)
        assert {name: item["status"] for name, item in said.items()} == dict.fromkeys(said, "not applicable")
        assert "does not say its Internet.MinRtoMs" in said["Internet.MinRtoMs"]["note"]
        assert all(item["why"] for item in said.values())
    assert provisioner.facts() == before


def test_each_setting_is_read_back_and_given_back(
    bench: Bench, templates: WindowsSshNode, stack: NetworkStack, tmp_path: Path
) -> None:
    with network_stack_on(stack, bench, TARGET, {TARGET: "test0"}, tmp_path):
        assert held(templates) == TUNED
        said = items(tmp_path)
        for name, value in TUNED.items():
            item = said[f"Internet.{name}"]
            assert (item["status"], item["changed"], item["wanted"]) == ("ok", True, str(value))
            assert item["found"] == str(AS_FOUND[name])
    assert held(templates) == AS_FOUND


@pytest.mark.parametrize("who", ["the next start of the stack", "provisioning"])
def test_what_a_killed_run_has_left_is_given_back(
    bench: Bench,
    templates: WindowsSshNode,
    provisioner: Provisioner,
    stack: NetworkStack,
    tmp_path: Path,
    who: str,
) -> None:
    killed = network_stack_on(stack, bench, TARGET, {TARGET: "test0"}, tmp_path)
    killed.__enter__()  # and never left
    assert held(templates) == TUNED
    assert "tcp_template\tInternet.MinRtoMs\t300\tend" in templates.read(f"{HOME}/state/stack.undo").stdout
    if who == "provisioning":
        for name in STAND_INS:  # it asks by a program of its own
            templates.put(STAND_IN, f"{HOME}/provision/{name}.exe")
        templates.run(["copy", "/y", TEMPLATES.replace("/", "\\"), f"{HOME}/provision/".replace("/", "\\")])
        try:
            provisioner.restore()
            place = f"{HOME}/provision/templates.txt"
            lines = templates.read(place).stdout.splitlines()
            assert {words[0]: int(words[1]) for words in map(str.split, lines)} == AS_FOUND
        finally:
            for file in (*(f"{name}.exe" for name in STAND_INS), "templates.txt"):
                templates.run(["del", f"{HOME}/provision/{file}".replace("/", "\\")], check=False)
    else:
        with network_stack_on(stack, bench, TARGET, {TARGET: "test0"}, tmp_path):
            assert held(templates) == TUNED
        assert held(templates) == AS_FOUND
    assert not templates.read(f"{HOME}/state/stack.undo").stdout


def test_a_value_that_windows_refuses_is_wrong_by_its_name(
    templates: WindowsSshNode, stack: NetworkStack, tmp_path: Path
) -> None:
    settings = tmp_path / "low.conf"
    settings.write_text("tcp_template Internet.MinRtoMs 5\ntcp_template Internet.Colour 1\n")
    argv = [
        f"{STACK_FOLDER}/bw-provision.exe",
        "--undo",
        "stack.undo",
        "--settings",
        templates.bring(settings),
    ]
    done = templates.run([*argv, "apply"], check=False)
    assert done.exit_code == 1
    found = [json.loads(line) for line in done.stdout.splitlines()][:2]
    assert [(item["status"], item["note"]) for item in found] == [
        ("wrong", "netsh refuses minrto=5"),
        ("wrong", "must be TEMPLATE.MinRtoMs, .DelayedAckTimeoutMs or .DelayedAckFrequency"),
    ]
    templates.run([*argv, "restore"])
    assert not templates.read(TEMPLATES).stdout, "nothing was set"
    refused = templates.run([*argv[:2], "other.undo", "check"], check=False)
    assert (refused.exit_code, "must be undo or stack.undo, found other.undo" in refused.stderr) == (2, True)


def test_a_program_that_bw_accel_has_started_ends_when_it_is_asked(
    bench: Bench, node: WindowsSshNode, stack: NetworkStack, tmp_path: Path
) -> None:
    ends: list[tuple[int, str]] = []
    as_found = network_stack_of(bench.spec.targets[TARGET], "kernel")
    for each in (as_found, stack):
        with network_stack_on(each, bench, TARGET, {TARGET: "test0"}, tmp_path):
            job, program = each.start(
                bench, TARGET, ["bulk", "--serve", "127.0.0.1:9641"], tmp_path / each.name
            )
            job.wait_ready()
            job.stop()
            ends.append((job.wait(HANG_S), json.loads(job.fetch().read_text().splitlines()[-1])["type"]))
        assert program.command[-3:] == ("bulk", "--serve", "127.0.0.1:9641")
    assert ends[0] == ends[1]
