# SPDX-License-Identifier: Apache-2.0
"""Provisioning of a Windows machine: it holds, is told, and is given back whatever has happened."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hw.drivers.windows_ssh import HOME, WindowsSshNode
from hw.provisioning import Provisioner
from reports.rejudge.applied import applied_discrepancies
from tests.patience import HANG_S

pytestmark = [pytest.mark.simulated, pytest.mark.slow]
UNDO = f"{HOME}/state/undo"
MULTIMEDIA = r"HKLM\SOFTWARE\Microsoft\Windows NT\CurrentVersion\Multimedia\SystemProfile"


def test_provisioning_is_stable_and_gives_back_what_it_found(
    provisioner: Provisioner, node: WindowsSshNode, tmp_path: Path
) -> None:
    before = provisioner.facts()
    folder = tmp_path / "evidence" / "provisioning" / "windows"
    folder.mkdir(parents=True)
    first = provisioner.prepare(folder)
    assert applied_discrepancies(tmp_path, []) == ([], 0)
    assert first.changed == 2, "NetworkThrottlingIndex and SystemResponsiveness"
    assert first.facts["settings"][f"registry {MULTIMEDIA}\\NetworkThrottlingIndex"] == "4294967295"
    assert first.facts["versions"]["wine"]
    assert provisioner.check() == []
    again = node.run([f"{HOME}/provision/provision.cmd", "--interface", "test0", "apply"])
    assert json.loads(again.stdout.splitlines()[-1])["changed"] == 0
    provisioner.restore()
    assert provisioner.facts() == before
    assert len(provisioner.check()) == 2
    assert not node.read(UNDO).stdout
    absent = " ".join(first.remarks)
    for what in ("W32Time", "power scheme", "firewall", "*InterruptModeration", "TcpAckFrequency"):
        assert f"{what}" in absent


def test_a_value_that_was_not_there_goes_again_and_a_torn_record_is_no_harm(
    provisioner: Provisioner, node: WindowsSshNode, tmp_path: Path
) -> None:
    before = provisioner.facts()
    value = f"{MULTIMEDIA}\\SystemResponsiveness"
    node.run(["reg", "delete", MULTIMEDIA, "/v", "SystemResponsiveness", "/f"])
    try:
        provisioner.prepare(tmp_path)
        assert f"registry\t{value}\tabsent\tend" in node.read(UNDO).stdout
        undo = tmp_path / "undo"
        undo.write_text(node.read(UNDO).stdout + f"registry\t{value}\t77")  # cut off before its end
        node.put(undo, UNDO)
        provisioner.restore()
        assert (
            node.run(["reg", "query", MULTIMEDIA, "/v", "SystemResponsiveness"], check=False).exit_code == 1
        )
    finally:
        node.run(
            ["reg", "add", MULTIMEDIA, "/v", "SystemResponsiveness", "/t", "REG_DWORD", "/d", "20", "/f"]
        )
    assert provisioner.facts() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--interface", "no such card", "check"], "there is no interface no such card"),
        (["--colour", "red", "check"], "unknown option --colour"),
        (["frob"], "unknown verb frob"),
        ([], "one verb is needed"),
    ],
)
def test_wrong_arguments_of_provisioning(
    provisioner: Provisioner, node: WindowsSshNode, arguments: list[str], message: str
) -> None:
    provisioner.facts()  # the files are there
    done = node.run([f"{HOME}/provision/provision.cmd", *arguments], check=False)
    assert (done.exit_code, message in done.stderr) == (2, True), done.stderr


def test_settings_of_a_site_are_read_and_wrong_ones_named(
    provisioner: Provisioner, node: WindowsSshNode, tmp_path: Path
) -> None:
    """A driver with standardised keywords is found by its adapter; `check` tells, and changes nothing."""
    facts = provisioner.facts()
    guid = node.run(
        ["reg", "query", r"HKLM\Software\Microsoft\Windows NT\CurrentVersion\NetworkCards", "/s"]
    ).stdout
    cards = [line.split()[-1] for line in guid.splitlines() if "Description" in line or "ServiceName" in line]
    key = r"HKLM\SYSTEM\CurrentControlSet\Control\Class\{4D36E972-E325-11CE-BFC1-08002BE10318}\0001"
    test_guid = cards[cards.index("test0") + 1]
    node.run(["reg", "add", key, "/v", "NetCfgInstanceId", "/d", test_guid, "/f"])
    node.run(["reg", "add", key, "/v", "*InterruptModeration", "/d", "1", "/f"])
    node.run(["reg", "add", rf"{key}\Ndi\Params\*EEE", "/f"])
    try:
        found = {item["item"].rsplit("\\", 1)[-1]: item for item in provisioner.check()}
        assert found["*InterruptModeration"]["found"] == "1"
        assert found["*EEE"]["found"] == "absent"
        assert "*FlowControl" not in found, "this driver has no such keyword"
    finally:
        node.run(["reg", "delete", key, "/f"])
    assert provisioner.facts() == facts
    wrong = tmp_path / "wrong.conf"
    wrong.write_text("system build >=17134\ncolour red 1\n")
    done = node.run(
        [f"{HOME}/provision/provision.cmd", "--settings", node.bring(wrong), "check"], check=False
    )
    assert (done.exit_code, "wrong.conf:2: unknown kind" in done.stderr) == (2, True)


def test_names_of_every_language(provisioner: Provisioner, node: WindowsSshNode, tmp_path: Path) -> None:
    """A registry key, a file and an argument of a job outside ASCII, and outside any one code page."""
    provisioner.facts()
    key, name = r"HKLM\SOFTWARE\Benchwright Prüfung 測試", "Größe 大小"
    node.run(["reg", "add", key, "/v", name, "/t", "REG_DWORD", "/d", "7", "/f"])
    settings = tmp_path / "Einstellungen 設定.conf"
    settings.write_text(f'registry "{key}\\{name}" 5\n')
    program = f"{HOME}/provision/bw-provision.exe"
    remote = node.bring(settings)
    try:
        done = node.run([program, "--settings", remote, "apply"])
        assert json.loads(done.stdout.splitlines()[0])["found"] == "7"
        assert node.run(["reg", "query", key, "/v", name]).stdout.split()[-1] == "0x5"
        node.run([program, "restore"])
        assert node.run(["reg", "query", key, "/v", name]).stdout.split()[-1] == "0x7"
    finally:
        node.run(["reg", "delete", key, "/f"])
    job = node.start([program, "--interface", "Überall 網路", "check"], tmp_path / "job")
    assert job.wait(HANG_S) == 2
    job.fetch()
    assert "there is no interface Überall 網路" in (tmp_path / "job.err").read_text()


@pytest.mark.parametrize(
    ("kind", "data"), [("REG_SZ", "a text that is longer than a number"), ("REG_BINARY", "0102")]
)
def test_a_value_that_cannot_be_read_is_not_taken_for_none(
    provisioner: Provisioner, node: WindowsSshNode, tmp_path: Path, kind: str, data: str
) -> None:
    """Provisioning once took it for absent, wrote over it, and its restore deleted it."""
    provisioner.facts()
    key = r"HKLM\SOFTWARE\BenchwrightUnreadable"
    node.run(["reg", "add", key, "/v", "Value", "/t", kind, "/d", data, "/f"])
    before = node.run(["reg", "query", key, "/v", "Value"]).stdout
    settings = tmp_path / "settings.conf"
    settings.write_text(f'registry "{key}\\Value" 5\n')
    program = f"{HOME}/provision/bw-provision.exe"
    try:
        done = node.run([program, "--settings", node.bring(settings), "apply"], check=False)
        item = json.loads(done.stdout.splitlines()[0])
        assert (done.exit_code, item["status"], item["changed"]) == (1, "wrong", False), item
        assert "may not be read" in item["note"]
        node.run([program, "restore"])
        assert node.run(["reg", "query", key, "/v", "Value"]).stdout == before
    finally:
        node.run(["reg", "delete", key, "/f"])


def test_an_undo_file_that_is_none_stays_and_is_told(
    provisioner: Provisioner, node: WindowsSshNode, tmp_path: Path
) -> None:
    provisioner.facts()
    other = tmp_path / "undo"
    other.write_text("what somebody else has put here\n")
    node.put(other, UNDO)
    try:
        done = node.run([f"{HOME}/provision/bw-provision.exe", "restore"], check=False)
        assert done.exit_code == 1
        assert "it is no undo file" in done.stderr
        assert node.read(UNDO).stdout == other.read_text()
    finally:
        node.run(["del", UNDO.replace("/", "\\")])
