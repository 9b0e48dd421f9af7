# SPDX-License-Identifier: Apache-2.0
"""Programs, most of them of others, unmodified, by the user-mode stack at either end and over either family.

Those that this machine lacks are skipped: set-up installs no servers on a machine of a lab. The table in
docs/user-stack.md says with which versions they were tried.
"""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.link import kernel_counts
from tests.patience import HANG_S, wait_until
from tests.targets.userstack.accel_lab import FAR, NEAR, AccelLab
from tests.targets.userstack.test_accel import COUNTED

pytestmark = pytest.mark.slow

FILE_BYTES = 3_000_000
NODE_ECHO = 'require("net").createServer(s => s.pipe(s)).listen(PORT, "HERE")'
NODE_ASK = """
const peer = require("net").connect(PORT, "HERE"); let count = 0
peer.on("data", data => { count += data.length; if (count == 1000000) { console.log(count); peer.end() } })
peer.write(Buffer.alloc(1000000))
"""


@dataclass(frozen=True)
class Case:
    """A server and a client; `says` stands in what the client prints. HERE is the server's address.

    `remark`: what the stack's library says of the server, and is no fault. `not_by_stack`: why its client
    alone is the stack's.
    """

    server: tuple[str, ...]
    client: tuple[str, ...]
    says: str
    families: tuple[int, ...] = (4, 6)
    needs: tuple[str, ...] = ()
    remark: str = ""
    not_by_stack: str = ""


URL_HERE = "http://URL_HERE:PORT/file"
CURL = ("curl", "-sS", "-o", "/dev/null", "-w", "%{http_code} %{size_download}", URL_HERE)
APACHE = ("setsid", "-w", "apache2", "-f", "FOLDER/apache-MPM.conf", "-DFOREGROUND")
ASK_APACHE = ("ab", "-q", "-s", "30", "-n", "300", "-c", "10", URL_HERE)
APACHE_PROBES = "bw-accel: apache2: option 15 of level 1 with the value 1 is not supported: "
"""SO_REUSEPORT, of a socket that it closes again."""
MQTT_ASK = (
    "mosquitto_pub -h HERE -p PORT -t topic -r -q 1 -m retained &&"
    " mosquitto_sub -h HERE -p PORT -t topic -C 1 -W 60"
)
SSHD_PROGRAM = shutil.which("sshd") or "sshd"  # it wants its whole path
SSH = (
    "ssh",
    "-F",
    "none",
    "-i",
    "FOLDER/key",
    "-o",
    "StrictHostKeyChecking=no",
    "-o",
    "UserKnownHostsFile=/dev/null",
)
AS_POSTGRES = ("setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups")
TRAFFIC = str(Path(__file__).resolve().parents[3] / ".build" / "linux" / "traffic-gen" / "bw-traffic")
CASES = {
    "bulk": Case(
        (TRAFFIC, "bulk", "--serve", "URL_HERE:PORT", "--timeout-ms", "60000"),
        (TRAFFIC, "bulk", "--peer", "URL_HERE:PORT", "--bytes", "50000000", "--timeout-ms", "60000"),
        '"valid":true',
    ),
    "sockperf-tcp": Case(
        ("sockperf", "sr", "--tcp", "-i", "HERE", "-p", "PORT"),
        ("sockperf", "pp", "--tcp", "-i", "HERE", "-p", "PORT", "-t", "1"),
        "percentile 99.000",
        (4,),
    ),
    "sockperf-udp": Case(
        ("sockperf", "sr", "-i", "HERE", "-p", "PORT"),
        ("sockperf", "pp", "-i", "HERE", "-p", "PORT", "-t", "1"),
        "percentile 99.000",
        (4,),
    ),
    "nginx-curl": Case(("nginx", "-c", "FOLDER/nginx.conf", "-p", "FOLDER"), CURL, f"200 {FILE_BYTES}"),
    "python-http-curl": Case(
        (sys.executable, "-m", "http.server", "PORT", "--bind", "HERE", "-d", "FOLDER"),
        CURL,
        f"200 {FILE_BYTES}",
    ),
    **{
        f"apache-{mpm}": Case(
            tuple(word.replace("MPM", mpm) for word in APACHE),
            ASK_APACHE,
            "Failed requests:        0",
            needs=("apache2",),
            remark=APACHE_PROBES,
        )
        for mpm in ("event", "prefork")
    },
    "redis": Case(
        ("redis-server", "--port", "PORT", "--bind", "HERE", "--save", "", "--protected-mode", "no"),
        ("redis-benchmark", "-h", "HERE", "-p", "PORT", "-n", "2000", "-q", "-t", "set,get,lpush"),
        "requests per second",
    ),
    "postgresql": Case(
        (*AS_POSTGRES, "postgres", "-D", "FOLDER/pg", "-h", "HERE", "-p", "PORT", "-k", "FOLDER/pg"),
        (
            "psql",
            "-h",
            "HERE",
            "-p",
            "PORT",
            "-U",
            "postgres",
            "-Atc",
            "select sum(x) from generate_series(1, 1000) x",
        ),
        "500500",
        needs=("postgres", "initdb"),
    ),
    "vsftpd-curl": Case(
        ("vsftpd", "FOLDER/vsftpd.conf"),
        ("curl", "-sS", "-o", "/dev/null", "-w", "%{http_code} %{size_download}", "ftp://URL_HERE:PORT/file"),
        f"226 {FILE_BYTES}",
        not_by_stack="vsftpd fails in each of its ways; not traced (docs/user-stack.md)",
    ),
    "haproxy-curl": Case(
        ("haproxy", "-db", "-f", "FOLDER/haproxy.conf"),
        ("curl", "-sS", "http://URL_HERE:PORT/"),
        "by haproxy",
    ),
    "mosquitto": Case(
        ("mosquitto", "-c", "FOLDER/mosquitto.conf"),
        ("sh", "-c", MQTT_ASK),
        "retained",
        needs=("mosquitto_pub", "mosquitto_sub"),
    ),
    "sshd": Case(
        (SSHD_PROGRAM, "-D", "-e", "-r", "-f", "FOLDER/sshd.conf"),
        (*SSH, "-p", "PORT", "root@HERE", "head -c 1000000 /dev/zero | wc -c"),
        "1000000",
        needs=("ssh-keygen",),
    ),
    "libuv": Case(("node", "-e", NODE_ECHO), ("node", "-e", NODE_ASK), "1000000"),
}


NGINX = """
daemon off; worker_processes 2; user nobody nogroup;
error_log FOLDER/error.log; pid FOLDER/nginx.pid; events {}
http { access_log off; server { listen URL_HERE:PORT; root FOLDER; } }
"""
APACHE_CONFIGURATION = """
ServerRoot FOLDER
ServerName localhost
PidFile apache-MPM.pid
ErrorLog apache-MPM.log
Mutex flock:FOLDER
Listen URL_HERE:PORT
User nobody
Group nogroup
LoadModule mpm_MPM_module MODULES/mod_mpm_MPM.so
LoadModule authz_core_module MODULES/mod_authz_core.so
DocumentRoot FOLDER
<Directory FOLDER>
Require all granted
</Directory>
"""


VSFTPD = """
background=NO
LISTEN
listen_port=PORT
LISTEN_ADDRESS
anonymous_enable=YES
anon_root=FOLDER
no_anon_password=YES
ftp_username=daemon
secure_chroot_dir=FOLDER/empty
connect_from_port_20=NO
"""
HAPROXY = """
global
  noreuseport
defaults
  mode http
  timeout client 60s
  timeout server 60s
  timeout connect 60s
frontend all
  bind HERE:PORT
  http-request return status 200 content-type text/plain string "by haproxy"
"""
MOSQUITTO = """
listener PORT HERE
allow_anonymous true
user root
persistence false
"""
SSHD = """
Port PORT
ListenAddress HERE
HostKey FOLDER/host-key
AuthorizedKeysFile FOLDER/key.pub
StrictModes no
PidFile none
UsePAM no
PermitRootLogin yes
"""


def write_configurations(address: str, port: int, folder: Path) -> None:
    texts = {"nginx": NGINX, "haproxy": HAPROXY, "mosquitto": MOSQUITTO, "sshd": SSHD}
    for name, text in texts.items():
        (folder / f"{name}.conf").write_text(fill(text, address, port, folder))
    six = ":" in address
    listen = f"listen={'NO' if six else 'YES'}\nlisten_ipv6={'YES' if six else 'NO'}"
    ftp = VSFTPD.replace("LISTEN_ADDRESS", f"listen_address{'6' if six else ''}=HERE").replace(
        "LISTEN", listen
    )
    (folder / "vsftpd.conf").write_text(fill(ftp, address, port, folder))
    (folder / "empty").mkdir(exist_ok=True)
    if shutil.which("ssh-keygen") is not None:
        Path("/run/sshd").mkdir(exist_ok=True)  # it has an empty folder to itself
        for key in ("key", "host-key"):
            if not (folder / key).exists():
                argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key)]
                subprocess.run(argv, check=True)
    apache = shutil.which("apache2")
    if apache is not None:
        modules = Path(apache).parent.parent / "lib/apache2/modules"
        text = fill(APACHE_CONFIGURATION, address, port, folder).replace("MODULES", str(modules))
        for mpm in ("event", "prefork"):
            (folder / f"apache-{mpm}.conf").write_text(text.replace("MPM", mpm))


@pytest.fixture(scope="module")
def ports() -> Iterator[int]:
    """Give each test a port of its own: the kernel's end of one before may be in TIME_WAIT."""
    return itertools.count(7001)


@pytest.fixture(scope="module")
def lab(repository: Path) -> Iterator[AccelLab]:
    """Servers have users of their own, which reach the folder and may use the service."""
    options: list[str] = []
    with tempfile.TemporaryDirectory(prefix="bw-programs-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "file").write_bytes(os.urandom(FILE_BYTES))
        if shutil.which("initdb") is not None:
            options = ["--group", str(pwd.getpwnam("postgres").pw_gid)]
            make_database(folder / "pg")
        with AccelLab(repository / ".build/linux", folder, 1500, *options) as made:
            yield made


def make_database(folder: Path) -> None:
    folder.mkdir()
    shutil.chown(folder, "postgres", "postgres")
    argv = [*AS_POSTGRES, "initdb", "-D", str(folder), "-A", "trust", "-U", "postgres", "--no-sync"]
    subprocess.run(argv, check=True, capture_output=True, cwd=folder)
    with (folder / "pg_hba.conf").open("a") as file:
        file.write("host all all 0.0.0.0/0 trust\nhost all all ::/0 trust\n")


def fill(text: str, address: str, port: int, folder: Path) -> str:
    url = f"[{address}]" if ":" in address else address
    for name, value in {"URL_HERE": url, "HERE": address, "PORT": str(port), "FOLDER": str(folder)}.items():
        text = text.replace(name, value)
    return text


def listens(lab: AccelLab, namespace: str, transport: str, port: int) -> bool:
    argv = ["ip", "netns", "exec", namespace, "ss", "-Hln", transport, f"sport = :{port}"]
    by_kernel = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    return bool(by_kernel) or any(each["port"] == port for each in lab.show()["ports"])


@pytest.mark.parametrize("near_serves", [True, False], ids=["server", "client"])
@pytest.mark.parametrize("name", CASES)
def test_a_program_of_others(
    lab: AccelLab, ports: Iterator[int], name: str, near_serves: bool, family: int
) -> None:
    case = CASES[name]
    if family not in case.families:
        pytest.skip(f"{case.client[0]} knows no IPv{family}")
    if near_serves and case.not_by_stack:
        pytest.skip(case.not_by_stack)
    for program in (case.server[0], case.client[0], *case.needs):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    address = (NEAR if near_serves else FAR)[family]
    ends = (lab.near, lab.far) if near_serves else (lab.far, lab.near)
    port = next(ports)
    server_words, client_words = (
        [fill(word, address, port, lab.folder) for word in argv] for argv in (case.server, case.client)
    )
    write_configurations(address, port, lab.folder)
    before = kernel_counts(lab.near)
    server = lab.start(ends[0], *server_words)
    transport = "-u" if name.endswith("udp") and name.startswith("sockperf") else "-t"
    wait_until(
        lambda: listens(lab, ends[0], transport, port) or server.poll() is not None, f"{name} to listen"
    )
    client = lab.start(ends[1], *client_words)
    out, err = client.communicate(timeout=HANG_S)
    after = kernel_counts(lab.near)  # while it ends Apache connects to itself
    server.send_signal(signal.SIGTERM)
    said = "".join(server.communicate(timeout=HANG_S))
    assert client.returncode == 0, f"{out}{err}{said}"
    assert case.says in out, f"{out}{err}{said}"
    heard = [line for line in (err + said).splitlines() if not case.remark or case.remark not in line]
    assert "bw-accel" not in "".join(heard)
    carried = {each: after[each] - before[each] for each in COUNTED if after[each] != before[each]}
    assert not carried
    wait_until(lambda: not lab.show()["programs"], "the program to end")
