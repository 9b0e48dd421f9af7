# SPDX-License-Identifier: Apache-2.0
"""The account of what targets on this machine's own CPUs take: it is there, whatever version of groups is."""

from __future__ import annotations

import os
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest

from hw.errors import CapabilityError
from hw.virtual import cpu_account
from tests.patience import HANG_S


@pytest.mark.simulated
def test_what_runs_inside_is_counted(tmp_path: Path) -> None:
    read = ["sh", "-c", "grep -o '[^:]*$' /proc/self/cgroup"]
    done = subprocess.run(
        [*cpu_account.inside(), *read], capture_output=True, text=True, check=True, timeout=HANG_S
    )
    assert f"/{cpu_account.GROUP}" in done.stdout.splitlines()
    assert sum(map(int, cpu_account.usage_file().read_text().split())) > 0


@pytest.mark.simulated
def test_what_runs_in_a_namespace_counts_from_then_on_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cpu_account, "GROUP", f"{cpu_account.GROUP}-test-{os.getpid()}")
    namespace = f"bw-account-{os.getpid()}"
    group = cpu_account.usage_file().parent
    with ExitStack() as undo:
        subprocess.run(["ip", "netns", "add", namespace], check=True, timeout=HANG_S)
        undo.callback(subprocess.run, ["ip", "netns", "del", namespace], check=True, timeout=HANG_S)
        undo.callback(group.rmdir)
        says = ["sh", "-c", "echo there; read on; echo more; read end"]
        for argv in (["ip", "netns", "exec", namespace, *says], says):
            process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            undo.enter_context(process)
            undo.callback(process.kill)
            assert process.stdout is not None
            process.stdout.readline()
            groups = Path(f"/proc/{process.pid}/cgroup")
            assert cpu_account.GROUP not in groups.read_text()
            assert process.stdin is not None
            with cpu_account.counted("end", [namespace]) as account:
                assert (f"{cpu_account.GROUP}/end" in groups.read_text()) == (argv is not says)
                process.stdin.write(b"on\n")
                process.stdin.flush()
                assert process.stdout.readline() == b"more\n"
                if argv is not says:
                    assert 0 < int(account.read_text()) <= int((group / "cpuacct.usage").read_text())
            assert cpu_account.GROUP not in groups.read_text()
            assert not account.parent.exists()
            process.stdin.close()
            process.wait(HANG_S)


@pytest.mark.simulated
def test_the_account_is_there_before_anything_has_run_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    """As after a boot: the witness opens it while no target that shares the CPUs has been on yet."""
    monkeypatch.setattr(cpu_account, "GROUP", f"{cpu_account.GROUP}-test-{os.getpid()}")
    account = cpu_account.usage_file()
    try:
        assert set(map(int, account.read_text().split())) == {0}
    finally:
        if account.parent.exists():
            account.parent.rmdir()


@pytest.mark.simulated
def test_a_group_that_cannot_be_made_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "mounts").write_text(f"cgroup {tmp_path}/file cgroup rw,cpuacct 0 0\n")
    monkeypatch.setattr(cpu_account, "MOUNTS", tmp_path / "mounts")
    with pytest.raises(CapabilityError, match=f"no account .*{tmp_path}/file"):
        cpu_account.usage_file()


@pytest.mark.simulated
def test_a_machine_without_the_account_gets_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One with version 2 of control groups alone has no mount of it."""
    subprocess.run([*cpu_account.inside(), "true"], check=True, timeout=HANG_S)
    (tmp_path / "mounts").write_text("cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n")
    monkeypatch.setattr(cpu_account, "MOUNTS", tmp_path / "mounts")
    monkeypatch.setattr(cpu_account, "OWN_MOUNT", tmp_path / "cpuacct")
    found = cpu_account.usage_file()
    try:
        assert found.is_relative_to(Path(f"/proc/{Path('/proc/self').readlink()}/root{tmp_path}"))
        assert found.read_text().split()
    finally:
        subprocess.run(["umount", tmp_path / "cpuacct"], check=True, timeout=HANG_S)


@pytest.mark.simulated
def test_a_kernel_that_keeps_no_account_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mounts").write_text("")
    monkeypatch.setattr(cpu_account, "MOUNTS", tmp_path / "mounts")
    monkeypatch.setattr(cpu_account, "OWN_MOUNT", tmp_path / "cpuacct")
    monkeypatch.setattr(cpu_account, "CONTROLLER", "no-such-controller")
    with pytest.raises(CapabilityError, match="no account of what a target takes of this machine's CPUs"):
        cpu_account.usage_file()
