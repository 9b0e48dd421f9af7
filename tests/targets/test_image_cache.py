# SPDX-License-Identifier: Apache-2.0
"""The cache of images: named by content, found again, pruned; its recipe is read strictly."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from hw.errors import BenchError, CapabilityError, ConfigError
from hw.virtual import accel, image, image_build, image_recipe, kernel_modules
from hw.virtual.kernel_modules import ModuleTree, select_boot, select_kept


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Use an empty cache."""
    monkeypatch.setenv("BENCHWRIGHT_CACHE", str(tmp_path))
    folder = tmp_path / "images"
    folder.mkdir()
    return folder


def put(cache: Path, digest: str, unused_s: float = 0) -> Path:
    """Put the smallest set into the cache that counts as one."""
    folder = cache / digest
    folder.mkdir()
    manifest = folder / "manifest.json"
    manifest.write_text(json.dumps({"kernels": {"rt": "6.12-rt", "cloud": "6.12-cloud"}}), encoding="utf-8")
    when_s = time.time() - unused_s
    os.utime(manifest, (when_s, when_s))
    return folder


def test_empty_cache_has_nothing(cache: Path) -> None:
    assert image.find("target") is None


def test_set_without_a_manifest_is_none(cache: Path) -> None:
    (cache / image_recipe.digest()).mkdir()
    assert image.find("target") is None


@pytest.mark.parametrize(("role", "kernel"), [("target", "rt"), ("producer", "rt"), ("impair", "cloud")])
def test_role_gets_its_kernel(cache: Path, role: str, kernel: str) -> None:
    folder = put(cache, image_recipe.digest())
    found = image.build_or_get(role)
    assert (found.kernel, found.initrd) == (folder / f"vmlinuz-{kernel}", folder / f"initrd-{kernel}")
    assert found.kernel_release == f"6.12-{kernel}"


def test_kinds_have_images_of_their_own(cache: Path) -> None:
    put(cache, image_recipe.digest())
    assert image.find("target", "embedded") is None
    folder = put(cache, image_recipe.digest("embedded"))
    found = image.build_or_get("target", kind="embedded")
    assert (found.kind, found.root.parent) == ("embedded", folder)
    assert "ttyAMA0" in found.command_line


def test_unknown_role_is_refused(cache: Path) -> None:
    with pytest.raises(ConfigError, match="target, producer, impair"):
        image.build_or_get("gateway")
    with pytest.raises(ConfigError, match="embedded, linux-rt"):
        image.build_or_get("target", kind="riscv64")


def test_missing_compiler_is_named_by_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(CapabilityError, match=r"\bgcc-arm-linux-gnueabihf\b.*\bmmdebstrap\b"):
        image_build.require_programs(image_recipe.recipe_of("embedded"))


def test_use_makes_a_set_young(cache: Path) -> None:
    folder = put(cache, image_recipe.digest(), unused_s=1_000_000)
    image.build_or_get("target")
    assert time.time() - (folder / "manifest.json").stat().st_mtime < 500_000


def test_prune_keeps_the_current_and_the_used(cache: Path) -> None:
    current = put(cache, image_recipe.digest(), unused_s=90 * 86_400)
    used = put(cache, "used", unused_s=86_400)
    old = put(cache, "old", unused_s=90 * 86_400)
    arm = put(cache, image_recipe.digest("embedded"), unused_s=90 * 86_400)
    said: list[str] = []
    assert image.prune(progress=said.append) == ["old"]
    assert (current.exists(), arm.exists(), used.exists(), old.exists()) == (True, True, True, False)
    assert len(said) == 1


def test_second_builder_waits_for_the_first(cache: Path) -> None:
    said: list[str] = []
    waiting = threading.Event()

    def hear(line: str) -> None:
        said.append(line)
        waiting.set()

    with (cache / ".lock-linux-rt").open("a") as first:
        fcntl.flock(first, fcntl.LOCK_EX)
        second = threading.Thread(target=image.build_or_get, args=("target", hear))
        second.start()
        assert waiting.wait(timeout=60)
        put(cache, image_recipe.digest())
    second.join(timeout=60)
    assert not second.is_alive()
    assert said == ["guest image: waiting for another build …"]


def test_digest_follows_the_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = tmp_path / "image"
    copy.mkdir()
    for file in image_recipe.SCRIPT_FOLDER.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    recipes = image_recipe.RECIPES | {"linux-rt": copy / image_recipe.RECIPE_FILE}
    monkeypatch.setattr(image_recipe, "SCRIPT_FOLDER", copy)
    monkeypatch.setattr(image_recipe, "RECIPES", recipes)
    monkeypatch.setattr(image_recipe, "REPOSITORY", Path("/"))
    before = image_recipe.digest(), image_recipe.digest("embedded")
    assert (image_recipe.digest(), image_recipe.digest("embedded")) == before
    with recipes["linux-rt"].open("a", encoding="utf-8") as recipe:
        recipe.write("# one more line\n")
    assert image_recipe.digest() != before[0]
    assert image_recipe.digest("embedded") == before[1]
    with (copy / "boot.sh").open("a", encoding="utf-8") as script:
        script.write("# one more line\n")
    assert image_recipe.digest("embedded") != before[1]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[root]", "[root]\nflavour = 1", "root.flavour: unknown key"),
        ("[modules]", "[modules]\nall = true", "modules.all: unknown key"),
        ('target = "rt"', 'target = "slow"', "roles.target"),
        ('producer = "rt"', "", "roles.producer: missing"),
        ('modules = ["virtio_blk", "squashfs", "overlay"]', "modules = []", "initramfs.modules"),
        ('suite = "bookworm"', "suite = 12", "root.suite"),
        ('architecture = "amd64"', 'architecture = "arm"', "root.architecture"),
        ('cpu_tcg = "Nehalem,+rdtscp,+invtsc"', "", "machine.cpu_tcg: missing"),
        ('board = "q35"', 'board = "q35"\ncpus = 2', "machine.cpus: unknown key"),
        ("updates = true", 'updates = true\naccounts = ["sshd"]', "root.accounts: must hold two words each"),
        ("updates = true", 'updates = true\naccounts = ["sshd 12"]', "a number in 100..999"),
        ("[command_line]", "[command_line", "recipe.toml"),
    ],
)
def test_bad_recipe_is_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    text = image_recipe.RECIPES["linux-rt"].read_text(encoding="utf-8")
    assert old in text
    path = tmp_path / "recipe.toml"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(ConfigError) as error:
        image_recipe.read_recipe(path)
    assert said in str(error.value)


TREE = ModuleTree(
    Path("6.12-rt"),
    {
        "kernel/net/sched/sch_netem.ko.xz": (),
        "kernel/net/bridge/bridge.ko.xz": ("kernel/net/802/stp.ko.xz", "kernel/net/llc/llc.ko.xz"),
        "kernel/net/bridge/bridge_filter.ko.xz": (),
        "kernel/net/802/stp.ko.xz": ("kernel/net/llc/llc.ko.xz",),
        "kernel/net/llc/llc.ko.xz": (),
    },
)


def test_kept_modules_bring_what_they_need() -> None:
    assert select_kept(TREE, ("net/bridge/bridge", "drivers/absent")) == (
        "kernel/net/802/stp.ko.xz",
        "kernel/net/bridge/bridge.ko.xz",
        "kernel/net/llc/llc.ko.xz",
    )


def test_boot_modules_follow_what_they_need() -> None:
    assert [Path(m).name for m in select_boot(TREE, ("bridge", "stp"))] == [
        "llc.ko.xz",
        "stp.ko.xz",
        "bridge.ko.xz",
    ]


def test_absent_boot_module_is_named() -> None:
    with pytest.raises(BenchError, match="no module squashfs"):
        select_boot(TREE, ("squashfs",))


def test_plain_name_drops_the_compression() -> None:
    assert kernel_modules.plain_name("kernel/net/llc/llc.ko.xz") == "kernel/net/llc/llc.ko"
    assert kernel_modules.plain_name("kernel/net/llc/llc.ko") == "kernel/net/llc/llc.ko"


def test_command_line_reports_what_is_wrong(repository: Path) -> None:
    argv = [sys.executable, "-m", "hw.virtual.image", "gateway"]
    done = subprocess.run(argv, check=False, capture_output=True, text=True, cwd=repository)
    assert done.returncode == 2
    assert "guest role" in done.stderr


@pytest.mark.simulated
@pytest.mark.slow
def test_accelerator_is_found_once_a_boot() -> None:
    first = accel.find()
    assert first.accelerator in ("kvm", "tcg")
    assert first.reason
    assert accel.find() == first
    assert accel.probe() == first.accelerator


@pytest.mark.parametrize("remembered", ["another boot", "torn"])
def test_finding_of_another_boot_is_not_believed(
    cache: Path, monkeypatch: pytest.MonkeyPatch, remembered: str
) -> None:
    """Nor is a torn one: the probe is made again, and what it shows is remembered."""
    put(cache, image_recipe.digest())
    probes: list[str] = []

    def boots(_image: image.ImageSet, basis: str) -> accel.Finding:
        probes.append(basis)
        return accel.Finding("kvm", "a probe guest booted under KVM", basis)

    monkeypatch.setattr(accel, "_probe", boots)
    monkeypatch.setattr(accel, "KVM_DEVICE", Path("/dev/null"))
    monkeypatch.setattr(accel, "_qemu_version", lambda: "QEMU 7.2")
    stale = {"accelerator": "tcg", "reason": "stale", "basis": "another boot"}
    text = "torn {" if remembered == "torn" else json.dumps(stale)
    (cache.parent / "accelerator.json").write_text(text, encoding="utf-8")
    assert accel.find().accelerator == "kvm"
    assert len(probes) == 1
    assert accel.find() == accel.Finding("kvm", "a probe guest booted under KVM", probes[0])
    assert len(probes) == 1
    (cache.parent / "accelerator.json").write_text(json.dumps(stale | {"basis": probes[0]}), encoding="utf-8")
    assert accel.find().reason == "stale", "the finding of this boot is believed"
