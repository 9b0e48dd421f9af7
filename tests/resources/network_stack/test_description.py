# SPDX-License-Identifier: Apache-2.0
"""The description of a network stack: what a file may say, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from hw.errors import CapabilityError, ConfigError
from resources.daq_replay.pattern import load_pattern
from resources.network_stack import load_network_stack, stack_names
from tests.resources.network_stack.machine import DAQ12, IN_BYTES, PROOF, PROOF_TOOL, SPEC, TARGETS


def test_every_kind_of_target_that_is_provisioned_has_the_kernels_stack() -> None:
    kinds = {target.provisioning for target in SPEC.targets.values()}
    assert kinds == {"linux", "linux-rt", "windows"}
    for kind in kinds:
        stack = load_network_stack(TARGETS / kind, "kernel")
        assert (stack.arguments, stack.environment, stack.transports) == ((), {}, None)
        assert stack.preload == ()
        pattern = load_pattern(DAQ12)
        assert stack.carried(pattern) == pattern


def test_the_user_mode_stack_is_that_of_both_ends_each_with_a_service_of_its_own() -> None:
    stack = load_network_stack(TARGETS / "linux", "user")
    assert (stack.endpoints, stack.install, stack.preload) == ("both", None, ("libbw-accel.so",))
    assert stack.carried(load_pattern(DAQ12)) == load_pattern(DAQ12)
    assert stack.service is not None
    assert stack.proof is not None
    assert stack.proof.frame_bytes is None, "segments of TCP join and split messages"
    for node in ("linux", "p01"):
        socket = stack.words([stack.environment["BW_ACCEL_SOCKET"]], node, "")
        assert socket == [f"{stack.folder_on(node)}/stackd.sock"]
        serving = stack.words(stack.service.arguments, node, "test0")
        assert serving == ["serve", "--interface", "test0", "--socket", *socket]
        assert stack.words(stack.proof.arguments, node, "") == ["show", "--socket", *socket]


def test_the_tuned_stack_of_windows_starts_its_programs_by_another() -> None:
    stack = load_network_stack(TARGETS / "windows", "kernel-tuned")
    assert stack.install is not None
    assert stack.install.libraries == ("bw-watch.dll",)
    launcher = stack.words(stack.launcher, "windows", "test0")
    assert launcher[0] == f"{stack.install.folder}/bw-accel.exe"
    assert launcher[1::2] == ["--set"] * 7
    assert "multimedia_class=Pro Audio" in launcher


def test_a_file_of_version_0_2_1_describes_the_same_stack(targets: Path) -> None:
    path = targets / "linux-rt" / "stack" / "rtdip.toml"
    now, text = load_network_stack(targets / "linux-rt", "rtdip"), path.read_text()
    older = text.replace("[install]", "[put_on]").replace("\nendpoints =", "\nends =")
    assert older.count("put_on") == older.count("\nends") == 1
    path.write_text(older)
    assert load_network_stack(targets / "linux-rt", "rtdip") == now


def test_a_stack_of_another_kind_is_skipped_and_one_of_none_is_bad_input(targets: Path) -> None:
    assert stack_names(targets / "linux-rt") == ("kernel", "kernel-tuned", "rtdip", "user")
    with pytest.raises(
        CapabilityError, match=r"windows/stack/user\.toml: .* there are: kernel, kernel-tuned$"
    ):
        load_network_stack(targets / "windows", "user")
    there = r"other\.toml: no network stack 'other' .* there are: kernel, kernel-tuned, rtdip, user$"
    with pytest.raises(ConfigError, match=there):
        load_network_stack(targets / "linux-rt", "other")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("message_max_bytes = 50000", "message_max_bytes = 0", "message_max_bytes: must be"),
        ('transports = "tcp"', 'transport = "tcp"', "transport"),
        ('command = "sh /stack/user.sh"\n', "", r"install\.command"),
        ("benchwright.network_stack/1", "benchwright.network_stack/2", "schema"),
        ('USER_STACK = "test0"', 'USER_STACK = ""', r"environment\.USER_STACK"),
        ('USER_STACK = "test0"', 'LD_PRELOAD = "/x.so"', r"environment\.LD_PRELOAD: .* `preload`"),
    ],
)
def test_a_wrong_file_is_refused_with_its_field(targets: Path, old: str, new: str, said: str) -> None:
    path = targets / "linux-rt" / "stack" / "user.toml"
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(ConfigError, match=rf"user\.toml.*{said}"):
        load_network_stack(targets / "linux-rt", "user")


@pytest.mark.parametrize(
    ("proof", "said"),
    [
        (PROOF, "proof.frame_bytes: missing"),
        (f"{PROOF}frame_bytes = 0", "proof.frame_bytes: must be"),
        (f'{PROOF}frame_bytes = 1\nframe_bytes_field = "a"', "proof.frame_bytes: unknown key"),
        (PROOF_TOOL, "proof.delivered: missing, and so is delivered_bytes"),
        (f"{PROOF_TOOL}frame_bytes = 1", "proof.delivered: missing, and so is delivered_bytes"),
        (f"{PROOF}{IN_BYTES}", "proof.delivered: unknown key"),
        (f"{PROOF_TOOL}{IN_BYTES}frame_bytes = 1", "proof.frame_bytes: unknown key"),
        (f'{PROOF_TOOL}{IN_BYTES}frame_bytes_field = "a"', "proof.frame_bytes_field: unknown key"),
        (f"{PROOF_TOOL}delivered_bytes = 7", "proof.delivered_bytes: must be a string"),
    ],
)
def test_a_proof_says_in_one_way_what_is_counted(targets: Path, proof: str, said: str) -> None:
    path = targets / "linux-rt" / "stack" / "user.toml"
    path.write_text(f"{path.read_text()}{proof}\n")
    with pytest.raises(ConfigError, match=rf"user\.toml: {said}"):
        load_network_stack(targets / "linux-rt", "user")
