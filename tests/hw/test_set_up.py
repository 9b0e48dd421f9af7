# SPDX-License-Identifier: Apache-2.0
"""Set-up: the backports entry that it derives, what it says when something is missing, and its second run."""

from __future__ import annotations

import hashlib
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

ONE_LINE = """# comment
deb-src http://mirror.example/debian bookworm main
deb [arch=amd64 signed-by=/usr/share/keyrings/k.gpg] http://mirror.example/debian bookworm main contrib
"""

DEB822 = """Types: deb
URIs: http://mirror.example/security
Suites: bookworm-security
Components: main

Types: deb deb-src
# a snapshot
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 mDMEY865UxYJKwYBBAHaRw8BAQdAd7Z0srwuhlB6JKFkcf4HU4SSS
 -----END PGP PUBLIC KEY BLOCK-----
"""


def bash(repository: Path, script: str, *arguments: str) -> str:
    """Run a piece of bash with the set-up's functions at hand; return its output."""
    head = "set -euo pipefail; . hw/host/progress.sh; . hw/host/apt.sh; . hw/host/packages.sh; "
    done = subprocess.run(
        ["bash", "-c", head + script, "bash", *arguments],
        cwd=repository,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout


@pytest.mark.parametrize(("kind", "suite"), [("deb", "bookworm-backports"), ("deb-src", "bookworm")])
def test_an_entry_from_a_one_line_source(repository: Path, tmp_path: Path, kind: str, suite: str) -> None:
    source = tmp_path / "sources.list"
    source.write_text(ONE_LINE)
    entry = bash(repository, 'apt_entry "$1" bookworm "$2" "$3"', kind, suite, f"{source}:3")
    options = "[arch=amd64 signed-by=/usr/share/keyrings/k.gpg]"
    assert entry.split() == f"{kind} {options} http://mirror.example/debian {suite} main".split()


SOURCE = """set -euo pipefail; cd "$1"
. "$2/hw/host/progress.sh"; . "$2/hw/host/apt.sh"; . "$2/hw/host/sources.sh"
apt_place() { echo none:1; }; apt_entry() { :; }
sources_ensure_one made bookworm 1.0 made_1.0.tar "$3" patches"""


@pytest.fixture
def made_source(tmp_path: Path) -> Path:
    """Return a project with a source package in the cache and two patches of it."""
    made = tmp_path / "made-1.0"
    made.mkdir()
    (made / "one.c").write_bytes(b"int one;\r\nint two;\r\n")
    kept = tmp_path / "cache" / "sources"
    kept.mkdir(parents=True)
    subprocess.run(["tar", "-cf", kept / "made_1.0.tar", "-C", tmp_path, "made-1.0"], check=True)
    (tmp_path / "patches").mkdir()
    for name, old, new in (("0001-a", "int one;", "int three;"), ("0002-b", "int three;", "int four;")):
        change = f"--- a/one.c\n+++ b/one.c\n@@ -1,2 +1,2 @@\n-{old}\n+{new}\n int two;\n"
        (tmp_path / "patches" / f"{name}.patch").write_text(change)
    return tmp_path


def unpack(repository: Path, project: Path, sha256: str) -> subprocess.CompletedProcess[str]:
    """Unpack the made-up source, with an apt that has none."""
    command = ["bash", "-c", SOURCE, "bash", project, repository, sha256]
    environment = {"PATH": f"{project}/bin:/usr/bin:/bin", "BENCHWRIGHT_CACHE": str(project / "cache")}
    return subprocess.run(command, check=False, capture_output=True, text=True, env=environment)


def test_a_source_is_unpacked_and_patched_once(repository: Path, made_source: Path) -> None:
    sha256 = hashlib.sha256((made_source / "cache" / "sources" / "made_1.0.tar").read_bytes()).hexdigest()
    assert unpack(repository, made_source, sha256).returncode == 0
    built = made_source / ".build" / "sources" / "made" / "one.c"
    assert built.read_text() == "int four;\nint two;\n"
    built.write_text("left alone")
    again = unpack(repository, made_source, sha256)
    assert (again.returncode, again.stdout, built.read_text()) == (0, "", "left alone")
    (made_source / "patches" / "0002-b.patch").unlink()
    assert unpack(repository, made_source, sha256).returncode == 0
    assert built.read_text() == "int three;\nint two;\n"


def test_a_source_with_another_hash_is_not_unpacked(repository: Path, made_source: Path) -> None:
    (made_source / "bin").mkdir()
    fetched = made_source / "bin" / "apt-get"
    fetched.write_text(
        "#!/bin/sh\nfor each; do :; done\ncase $each in *=*) echo other >made_1.0.tar ;; esac\n"
    )
    fetched.chmod(0o755)
    done = unpack(repository, made_source, "0" * 64)
    assert done.returncode == 3
    assert "made_1.0.tar has another SHA-256 than hw/host/sources.txt says" in done.stderr
    assert not (made_source / ".build" / "stamp" / "source-made").exists()


def test_backports_from_a_deb822_source(repository: Path, tmp_path: Path) -> None:
    source = tmp_path / "debian.sources"
    source.write_text(DEB822)
    entry = bash(repository, 'apt_entry deb bookworm bookworm-backports "$1"', f"{source}:6")
    assert entry.splitlines() == [
        "Types: deb",
        "URIs: http://mirror.example/debian",
        "Suites: bookworm-backports",
        "Components: main",
        *DEB822.splitlines()[10:],
    ]


def test_backports_from_a_source_without_the_suite(repository: Path, tmp_path: Path) -> None:
    source = tmp_path / "other.sources"
    source.write_text(DEB822.replace("bookworm bookworm-updates", "bookworm-updates"))
    assert bash(repository, 'apt_entry deb bookworm bookworm-backports "$1"', f"{source}:6") == ""


UBUNTU = {
    "jammy": ("Ubuntu 22.04.5 LTS", "3.10.6-1~22.04.1", "1:6.2+dfsg-2ubuntu6.27"),
    "noble": ("Ubuntu 24.04.3 LTS", "3.12.3-0ubuntu2", "1:8.2.2+ds-0ubuntu1.10"),
}


def set_up_elsewhere(
    repository: Path, folder: Path, release: dict[str, str], versions: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """Install packages as on another system that has none; apt's calls go to `calls` of a folder."""
    table = " ".join(f"[{key}]={shlex.quote(value)}" for key, value in release.items())
    (folder / "madison").write_text(
        "".join(
            f"  {name} | {version} | http://mirror.example x/main amd64 Packages\n"
            for name, version in versions.items()
        )
        + "  python3 | 99 | http://mirror.example x/main Sources\n"
    )
    script = f"""set -euo pipefail
        . hw/host/progress.sh; . hw/host/apt.sh; . hw/host/packages.sh
        os_release() {{ local -A values=({table}); printf '%s' "${{values[$1]:-}}"; }}
        package_lists() {{
            printf '%s bench %s\\n' python3 'main 3.11' qemu-system-x86 'backports 1:10.0' gcc 'main -'
        }}
        dpkg-query() {{ :; }}
        apt-cache() {{
            if [[ $1 != policy ]]; then cat {shlex.quote(str(folder))}/madison
            else awk -v name="$2" '$1 == name {{ print "Candidate: " $3 }}' {shlex.quote(str(folder))}/madison
            fi
        }}
        step_run() {{ shift; printf '%s\\n' "$*" >>{shlex.quote(str(folder))}/calls; }}
        backports_enable() {{ echo enabled >>{shlex.quote(str(folder))}/calls; }}
        services_ban() {{ :; }}; services_unban() {{ :; }}; services_disable_new() {{ :; }}
        packages_ensure bench"""
    return subprocess.run(["bash", "-c", script], cwd=repository, capture_output=True, text=True, check=False)


@pytest.mark.simulated
@pytest.mark.parametrize("codename", UBUNTU)
def test_ubuntu_is_told_what_it_lacks_before_anything_is_installed(
    repository: Path, tmp_path: Path, codename: str
) -> None:
    name, python, qemu = UBUNTU[codename]
    release = {"ID": "ubuntu", "PRETTY_NAME": name, "VERSION_CODENAME": codename}
    versions = {"python3": python, "qemu-system-x86": qemu, "gcc": "4:13.2.0-7ubuntu1"}
    done = set_up_elsewhere(repository, tmp_path, release, versions)
    assert done.returncode == 3
    assert done.stdout.startswith(f"packages  this is {name}; Benchwright's host is Debian 12 or 13")
    assert f"nothing was installed: this is {name}, Benchwright's host is Debian 12 or 13" in done.stderr
    assert f"  qemu-system-x86: needs 1:10.0, apt has {qemu}\n" in done.stderr
    assert ("python3: needs 3.11" in done.stderr) == (codename == "jammy")
    assert "gcc" not in done.stderr
    calls = (tmp_path / "calls").read_text()
    assert "update" in calls
    assert "install" not in calls
    assert "enabled" not in calls


@pytest.mark.simulated
def test_a_system_whose_apt_has_all_is_installed_on_and_named(repository: Path, tmp_path: Path) -> None:
    release = {"ID": "ubuntu", "PRETTY_NAME": "Ubuntu 26.04 LTS", "VERSION_CODENAME": "x"}
    versions = {"python3": "3.14.0", "qemu-system-x86": "1:10.2.0", "gcc": "4:15"}
    done = set_up_elsewhere(repository, tmp_path, release, versions)
    assert "this is Ubuntu 26.04 LTS" in done.stdout
    assert "nothing was installed" not in done.stderr
    assert "install --no-install-recommends" in (tmp_path / "calls").read_text()


@pytest.mark.simulated
@pytest.mark.parametrize(("qemu", "backports"), [("1:7.2", True), ("1:10.0.2", False)])
def test_backports_are_taken_where_the_release_itself_is_older(
    repository: Path, tmp_path: Path, qemu: str, *, backports: bool
) -> None:
    release = {"ID": "debian", "PRETTY_NAME": "Debian GNU/Linux", "VERSION_CODENAME": "x"}
    versions = {"python3": "3.13", "qemu-system-x86": qemu, "gcc": "4:14"}
    set_up_elsewhere(repository, tmp_path, release, versions)
    assert ("enabled" in (tmp_path / "calls").read_text()) == backports


@pytest.mark.simulated
def test_a_package_that_apt_does_not_know_is_named_on_debian_too(repository: Path, tmp_path: Path) -> None:
    release = {
        "ID": "debian",
        "PRETTY_NAME": "Debian GNU/Linux 12 (bookworm)",
        "VERSION_CODENAME": "bookworm",
    }
    done = set_up_elsewhere(
        repository, tmp_path, release, {"python3": "3.11.2", "qemu-system-x86": "1:10.0.2"}
    )
    assert done.returncode == 3
    assert "  gcc: needs any version, apt has none\n" in done.stderr
    assert "python3" not in done.stderr
    assert "enabled" not in (tmp_path / "calls").read_text()


@pytest.fixture
def set_up_copy(repository: Path, open_folder: Path) -> Path:
    """A copy of the set-up scripts that an ordinary user may run."""
    tree = open_folder / "tree"
    shutil.copytree(repository / "hw" / "host", tree / "hw" / "host")
    tree.chmod(0o777)
    return tree


@pytest.mark.simulated
def test_without_root_says_what_is_missing(set_up_copy: Path) -> None:
    listing = set_up_copy / "hw" / "host" / "packages.txt"
    listing.write_text(
        listing.read_text()
        + "benchwright-absent  bench  main       -\n"
        + "dpkg                bench  backports  99:1\n"
        + "benchwright-tests   dev    main       -\n"
    )
    done = subprocess.run(
        ["setpriv", "--reuid=65534", "--clear-groups", "hw/host/setup.sh"],
        cwd=set_up_copy,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 3
    assert "  benchwright-absent\n" in done.stderr
    assert "  dpkg  (from backports)\n" in done.stderr
    assert "benchwright-tests" not in done.stderr
    assert "as root: hw/host/setup.sh" in done.stderr


@pytest.mark.simulated
def test_without_a_python_says_which_is_needed(set_up_copy: Path) -> None:
    done = subprocess.run(
        [
            "setpriv",
            "--reuid=65534",
            "--clear-groups",
            "env",
            "BENCHWRIGHT_PYTHON=/bin/false",
            "hw/host/setup.sh",
        ],
        cwd=set_up_copy,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 3
    assert "/bin/false is not Python 3.11" in done.stderr


def test_refuses_unknown_arguments(repository: Path) -> None:
    done = subprocess.run([str(repository / "hw/host/setup.sh"), "--fast"], capture_output=True, text=True)
    assert done.returncode == 2
    assert '"--fast"' in done.stderr


@pytest.mark.parametrize("name", ["uv.lock", "requirements.lock", "requirements-dev.lock"])
def test_locks_have_hashes_and_no_addresses(repository: Path, name: str) -> None:
    text = (repository / "hw" / "host" / name).read_text()
    assert "://" not in text
    assert "--find-links" not in text
    assert "--index" not in text
    requirements = text.replace("\\\n", " ").splitlines()
    pinned = [line for line in requirements if line and not line.lstrip().startswith("#")]
    assert pinned
    assert all("==" in line and "--hash=sha256:" in line for line in pinned)


def test_a_version_stands_in_one_lock(repository: Path) -> None:
    """And the two together have all that is asked for."""

    def names(name: str) -> set[str]:
        text = (repository / "hw" / "host" / name).read_text()
        return {re.sub(r"[-_.]+", "-", found).lower() for found in re.findall(r"(?m)^([\w.-]+)", text)}

    runtime, tools = names("requirements.lock"), names("requirements-dev.lock")
    assert not runtime & tools
    assert names("requirements.in") <= runtime
    assert names("requirements-dev.in") - {"-r"} <= runtime | tools
