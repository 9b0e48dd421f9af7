# SPDX-License-Identifier: Apache-2.0
"""bw-accel starts real programs with a library in them, and refuses what would run without it.

Any shared library stands for that of the stack: what it does is no matter of the launcher.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import struct
import subprocess
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from hw.tools import local_library
from tests.patience import HANG_S

DONE, BAD_INPUT, CAPABILITY = 0, 2, 3
NAME = "libbw-accel.so"
ECHO = '#!/bin/sh\necho "$0" "$@"\n'


@dataclass
class Accel:
    """The launcher, a library, a service, and a folder of programs that comes before all others."""

    program: Path
    library: Path
    socket: Path
    folder: Path
    environment: dict[str, str] = field(default_factory=dict[str, str])

    def run(self, *words: object, bare: bool = False) -> subprocess.CompletedProcess[str]:
        """Start it; bare: without library and socket."""
        options = () if bare else ("--library", self.library, "--socket", self.socket)
        return subprocess.run(
            [str(each) for each in (self.program, *options, *words)],
            env={"PATH": f"{self.folder}:/usr/bin:/bin", **self.environment},
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=HANG_S,
        )

    def refused(self, *words: object, code: int = BAD_INPUT, bare: bool = False) -> str:
        """Start it with what it refuses; return its line."""
        done = self.run(*words, bare=bare)
        assert (done.returncode, done.stdout) == (code, ""), done.stderr
        assert done.stderr.startswith("bw-accel: ")
        assert done.stderr.count("\n") == 1
        return done.stderr.removeprefix("bw-accel: ").rstrip("\n")

    def make(self, name: str, text: str | bytes, mode: int = 0o755) -> Path:
        """Make a program."""
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        file.chmod(mode)
        return file

    def copy_of_true(self, name: str, change: Callable[[bytes], bytes] = bytes, mode: int = 0o755) -> Path:
        """Make a copy of /bin/true, changed."""
        return self.make(name, change(Path("/bin/true").read_bytes()), mode)


@pytest.fixture
def serving(tmp_path: Path) -> Generator[socket.socket]:
    """Serve, as bw-stackd does."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as service:
        service.bind(str(tmp_path / "stackd.sock"))
        service.listen(1)
        yield service


@pytest.fixture
def accel(repository: Path, tmp_path: Path, serving: socket.socket) -> Accel:
    assert serving.getsockname()
    (tmp_path / "programs").mkdir()
    program = repository / ".build/linux/targets/linux/userstack/accel/bw-accel"
    return Accel(program, local_library("libbwtime.so"), tmp_path / "stackd.sock", tmp_path / "programs")


@pytest.fixture(scope="module", params=["-static", "-static-pie"])
def static_program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("static")
    (folder / "main.c").write_text("int main(void) { return 0; }\n")
    command = ["cc", request.param, *(["-fPIE"] if "pie" in request.param else []), "-o", "fixed", "main.c"]
    subprocess.run(command, cwd=folder, check=True)
    assert subprocess.run([folder / "fixed"], check=False).returncode == 0
    return folder / "fixed"


# -- what it starts


def test_a_program_has_the_library_and_no_parent_but_ours(accel: Accel) -> None:
    maps = accel.run("cat", "/proc/self/maps")
    assert (maps.returncode, maps.stderr) == (DONE, "")
    assert str(accel.library.resolve()) in maps.stdout
    words = [
        accel.program,
        "--library",
        accel.library,
        "--socket",
        accel.socket,
        "/bin/sh",
        "-c",
        "echo $$; exit 7",
    ]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        said, _ = process.communicate(timeout=HANG_S)
        assert (int(said), process.returncode) == (process.pid, 7)


def test_what_it_is_told_is_passed_on(accel: Accel) -> None:
    other = local_library("libbw-stack.so")
    accel.environment = {"LD_PRELOAD": str(other), "KEPT": "as it was", "BW_ACCEL_ONLY": "7"}
    done = accel.run(
        "--only", "tcp:5000-5100,10.77.0.0/24", "--busy-poll-us=50", "--congestion", "bbr", "env"
    )
    variables = dict(line.split("=", 1) for line in done.stdout.splitlines())
    assert variables["LD_PRELOAD"] == f"{accel.library.resolve()}:{other}"
    assert variables["BW_ACCEL_SOCKET"] == str(accel.socket)
    assert variables["BW_ACCEL_ONLY"] == "tcp:5000-5100,10.77.0.0/24"
    assert variables["BW_ACCEL_BUSY_POLL_US"] == "50"
    assert variables["BW_ACCEL_CONGESTION"] == "bbr"
    assert variables["KEPT"] == "as it was"
    accel.environment = {}
    variables = dict(line.split("=", 1) for line in accel.run("env").stdout.splitlines())
    assert {name for name in variables if name.startswith("BW_")} == {"BW_ACCEL_SOCKET"}
    assert variables["LD_PRELOAD"] == str(accel.library.resolve())


def test_a_path_of_here_is_one_from_everywhere(accel: Accel) -> None:
    """A program may change its folder."""
    accel.socket = Path("../stackd.sock")
    accel.library = Path("lib.so")
    shutil.copy(local_library("libbwtime.so"), accel.folder / "lib.so")
    variables = dict(line.split("=", 1) for line in accel.run("env").stdout.splitlines())
    assert variables["BW_ACCEL_SOCKET"] == str(accel.folder.parent / "stackd.sock")
    assert variables["LD_PRELOAD"] == str(accel.folder / "lib.so")


def test_options_end_where_the_program_begins(accel: Accel) -> None:
    script = accel.make("--odd", ECHO)
    assert accel.run("--", "--odd", "--only", "x").stdout == f"{script} --only x\n"
    accel.make("told", ECHO)
    for words in (["told", "--help", "--", "-x"], ["--", "told", "--help", "--", "-x"]):
        assert accel.run(*words).stdout.split()[1:] == ["--help", "--", "-x"]
    assert accel.run("--only", "--", "told").returncode == BAD_INPUT, "a value of --only"


@pytest.mark.parametrize(
    "folders", ["first:second", "second:first", ":first", "first/a-file:second", "second:", "none:"]
)
@pytest.mark.parametrize(
    "name", ["there", "twice", "text", "hidden", "folder", "nowhere", "./twice", "second/there", ""]
)
def test_a_program_is_found_as_execvp_finds_it(accel: Accel, folders: str, name: str) -> None:
    """By the measure of env, which calls it: what runs is the same, and so is that nothing does."""
    accel.make("first/twice", ECHO)
    accel.make("second/twice", ECHO)
    accel.make("second/there", ECHO)
    accel.make("twice", ECHO)
    accel.make("first/text", 'echo text "$0" "$@"\n')
    accel.make("first/hidden", ECHO, mode=0o644)
    accel.make("second/hidden", ECHO)
    accel.make("first/a-file", ECHO)
    (accel.folder / "first/folder").mkdir()
    found = subprocess.run(
        ["/usr/bin/env", "--", name, "a word", "--only"],
        env={"PATH": folders},
        cwd=accel.folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_S,
    )
    accel.environment = {"PATH": folders}
    if found.returncode == DONE:
        done = accel.run(name, "a word", "--only")
        assert (done.returncode, done.stdout) == (DONE, found.stdout), done.stderr
    else:
        assert accel.refused("--", name, "a word", "--only").startswith(f"{name}: ")


def test_a_script_runs_by_its_interpreter(accel: Accel) -> None:
    script = accel.make("script", '#! /bin/sh -e\ncat /proc/self/maps\necho "$0" "$@"\n')
    done = accel.run("script", "one", "two three")
    assert str(accel.library.resolve()) in done.stdout
    assert done.stdout.endswith(f"{script} one two three\n")
    python = accel.make("python", "#!/usr/bin/env -S python3 -I\nimport sys\nprint(sys.argv[1:])\n")
    assert accel.run(python, "one").stdout == "['one']\n"


def test_scripts_are_followed_four_times(accel: Accel) -> None:
    before = accel.make("script1", ECHO)
    for number in range(2, 6):
        before = accel.make(f"script{number}", f"#!{before}\n")
    done = accel.run("script4", "word")
    assert (done.returncode, done.stdout.split()[0]) == (DONE, str(accel.folder / "script1"))
    assert "script1: more than 4 scripts, each the interpreter of the one before" in accel.refused("script5")


def test_the_library_lies_beside_it_or_in_lib(accel: Accel) -> None:
    place = accel.folder.parent / "installed"
    (place / "bin").mkdir(parents=True)
    (place / "lib").mkdir()
    accel.program = Path(shutil.copy(accel.program, place / "bin"))
    options = ("--socket", accel.socket, "env")
    said = accel.refused(*options, bare=True, code=CAPABILITY)
    both = f"{place}/bin/{NAME} nor {place}/bin/../lib/{NAME}"
    assert said == f"no library: neither {both} is there; name it by --library"
    for folder in ("lib", "bin"):
        shutil.copy(accel.library, place / folder / NAME)
        done = accel.run(*options, bare=True)
        assert f"LD_PRELOAD={place}/{folder}/{NAME}\n" in done.stdout


def test_a_service_that_has_much_to_do_is_one(accel: Accel, serving: socket.socket) -> None:
    """Its queue is full: who asks would wait for ever."""
    serving.listen(0)
    waiting: list[socket.socket] = []
    while True:
        client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        waiting.append(client)
        client.setblocking(False)
        try:
            client.connect(str(accel.socket))
        except BlockingIOError:
            break
    assert accel.run("/bin/true").returncode == DONE
    for client in waiting:
        client.close()


# -- what it refuses


def test_a_static_program_is_refused(accel: Accel, static_program: Path) -> None:
    assert accel.refused(static_program) == (
        f"{static_program}: is linked statically: nothing can be loaded into it"
    )
    script = accel.make("script", f"#!{static_program}\n")
    said = accel.refused("script")
    assert (
        said == f"{static_program}, which runs {script}: is linked statically: nothing can be loaded into it"
    )
    shutil.copy(static_program, accel.folder / "fixed")
    for line in ("#!/usr/bin/env fixed", "#! /usr/bin/env -S fixed -x"):
        accel.make("by-env", f"{line}\n")
        assert "fixed, which runs" in accel.refused("by-env")


@pytest.mark.parametrize(("mode", "said"), [(0o4755, "is set-user-ID"), (0o2755, "is set-group-ID")])
def test_a_program_with_another_users_rights_is_refused(accel: Accel, mode: int, said: str) -> None:
    program = accel.copy_of_true("other", mode=mode)
    assert accel.refused("other") == f"{program}: {said}: its loader ignores libraries of who starts it"
    script = accel.make("script", f"#!{program}\n")
    assert accel.refused("script").startswith(f"{program}, which runs {script}: {said}")
    assert accel.run(accel.make("own", ECHO, mode=mode)).returncode == DONE, "Linux ignores it of scripts"


def test_a_bit_without_the_right_to_execute_is_none(accel: Accel) -> None:
    """It was about locks of the file."""
    assert accel.run(accel.copy_of_true("locked", mode=0o2705)).returncode == DONE


def test_a_program_with_capabilities_is_refused(accel: Accel) -> None:
    program = accel.copy_of_true("able")
    net_raw = 1 << 13
    try:
        os.setxattr(program, "security.capability", struct.pack("<IIIII", 0x02000000, net_raw, 0, 0, 0))
    except OSError as error:
        pytest.skip(f"no capabilities of files here: {error}")
    assert "able: has capabilities of its own (setcap)" in accel.refused("able")


def _machine(program: bytes) -> bytes:
    """Return one for RISC-V."""
    return program[:18] + struct.pack("<H", 243) + program[20:]


def _musl(program: bytes) -> bytes:
    [loader] = re.findall(rb"/lib\S*/ld-linux[^\0]*\0", program)
    return program.replace(loader, b"/lib/ld-musl.so.1\0".ljust(len(loader), b"\0"))


def _of_no_class(program: bytes) -> bytes:
    return program[:4] + b"\7" + program[5:]


def _cut_off(program: bytes) -> bytes:
    return program[:50]


NEITHER = "is neither a program of this system nor a script"
ODD: list[tuple[bytes | Callable[[bytes], bytes], str]] = [
    (_machine, "is for another machine than the library"),
    (_musl, "is of another C library (musl) than the library"),
    (_of_no_class, NEITHER),
    (_cut_off, NEITHER),
    (b"MZ\0\0", NEITHER),
    (b"#!\n", NEITHER),
    (b"#!/" + 300 * b"x" + b"\n", NEITHER),
    (b"#!/none/such -x\n", "its interpreter /none/such: No such file or directory"),
    (b"#!sh\n", "its interpreter sh: No such file or directory"),
    (b"#!/usr/bin/env none-such\n", "no program none-such, which its first line names to env"),
]


@pytest.mark.parametrize(("made", "said"), ODD)
def test_what_would_not_start_or_not_with_the_library_is_refused(
    accel: Accel, made: bytes | Callable[[bytes], bytes], said: str
) -> None:
    program = accel.make("odd", made) if isinstance(made, bytes) else accel.copy_of_true("odd", made)
    assert accel.refused("odd") == f"{program}: {said}"


def test_nothing_starts_without_a_service(accel: Accel, serving: socket.socket) -> None:
    program = accel.make("program", "#!/bin/sh\ntouch here\n")
    serving.close()
    said = accel.refused(program, code=CAPABILITY)
    assert said.startswith(f"{accel.socket}: nobody serves it (Connection refused): start `bw-stackd serve`")
    accel.socket.unlink()
    assert "nobody serves it (No such file or directory)" in accel.refused(program, code=CAPABILITY)
    accel.socket = Path("/" + 200 * "x")
    accel.refused(program, code=CAPABILITY)
    assert not (accel.folder / "here").exists()


def test_a_socket_named_by_the_environment_is_asked(accel: Accel) -> None:
    accel.environment = {"BW_ACCEL_SOCKET": "/none/such.sock"}
    library = ("--library", accel.library)
    assert accel.refused(*library, "/bin/true", bare=True, code=CAPABILITY).startswith(
        "/none/such.sock: nobody"
    )
    accel.environment = {"BW_ACCEL_SOCKET": str(accel.socket)}
    assert accel.run(*library, "/bin/true", bare=True).returncode == DONE


def test_a_library_that_is_none_is_refused(accel: Accel, tmp_path: Path) -> None:
    right, accel.library = accel.library, tmp_path / "none.so"
    assert accel.refused("/bin/true") == f"--library: {accel.library}: No such file or directory"
    for file in (__file__, "/bin/sh"):
        accel.library = Path(shutil.copy(file, tmp_path / "lib.so"))
        assert accel.refused("/bin/true") == f"{accel.library}: is no shared library"
    for name in ("a b.so", "a:b.so", "$LIB.so"):
        accel.library = Path(shutil.copy(right, tmp_path / name))
        said = "cannot be preloaded: its path has a colon, a blank or a dollar sign"
        assert accel.refused("/bin/true") == f"{accel.library}: {said}"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "no PROGRAM is named (see --help)"),
        (["--"], "no PROGRAM is named (see --help)"),
        (["--unknown", "x", "/bin/true"], 'unknown option "--unknown" (see --help)'),
        (["-x", "/bin/true"], 'surplus argument "-x" (see --help)'),
        (["--busy-poll-us", "x", "/bin/true"], '--busy-poll-us: "x" is not a number; allowed: 0..1000000'),
        (["--busy-poll-us", "1000001", "/bin/true"], "is out of range; allowed: 0..1000000"),
        (["--congestion", "reno", "/bin/true"], '--congestion: "reno" is unknown; allowed: cubic, bbr'),
        (["--busy-poll-us"], "--busy-poll-us needs a value: N"),
        (
            ["--only", "80,http,90", "/bin/true"],
            '--only: "http" is no entry; allowed: PORT, PORT-PORT or ADDRESS[/BITS]',
        ),
        (["--only", "80,70000", "/bin/true"], '--only: "70000" is out of range (ports 1..65535'),
        (["--only", ",".join(65 * "1"), "/bin/true"], "--only: more than 64 entries"),
        (["--only", "", "/bin/true"], "--only: names nothing; all sockets are taken without it"),
    ],
)
def test_what_is_wrong_with_the_command_line_is_said(accel: Accel, words: list[str], said: str) -> None:
    assert said in accel.refused(*words)


def test_a_wrong_list_of_the_environment_is_named(accel: Accel) -> None:
    accel.environment = {"BW_ACCEL_ONLY": "80;90"}
    assert accel.refused("/bin/true").startswith('BW_ACCEL_ONLY: "80;90" is no entry')
    assert accel.run("--only", "80", "/bin/true").returncode == DONE


def test_help_has_the_grammar(accel: Accel) -> None:
    done = accel.run("--help", bare=True)
    assert (done.returncode, done.stderr) == (DONE, "")
    assert "ENTRY: [tcp:|udp:] and PORT, PORT-PORT or ADDRESS[/BITS]" in done.stdout
    for option in (
        "--socket PATH",
        "--busy-poll-us N",
        "--only LIST",
        "--congestion cubic|bbr",
        "--library PATH",
    ):
        assert option in done.stdout
