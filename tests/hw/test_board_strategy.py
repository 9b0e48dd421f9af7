# SPDX-License-Identifier: Apache-2.0
"""The boot strategy over labgrid's own drivers, as for a real board: power, serial port, TFTP server."""

from __future__ import annotations

import socket
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from hw.drivers.labgrid_api import open_environment, power_driver, register_all
from hw.errors import BenchError, ConfigError
from tests.patience import HANG_S, wait_until

register_all()

KERNEL = b"U-Boot 2023.01\r\nStarting kernel ...\r\n[    0.000000] Booting Linux on physical CPU 0x0\r\n"
UP = KERNEL + b"Debian GNU/Linux 12 embedded ttyAMA0\r\n\r\nembedded login: "

LIMITS = ("first_output_s", "silence_s", "prompt_s")


class Exporter:
    """A serial port behind raw TCP, as ser2net gives it, and a board on it that speaks when it gets power."""

    def __init__(self, power: Path) -> None:
        """Listen; nobody is connected yet."""
        self.power = power
        """What power was told, a line each: however late that is read, no boot is missed."""
        self.says = b""
        self.boots = 0
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        link, _ = self._server.accept()
        with link:
            while not self._ended.wait(0.01):  # how often it looks
                told = self.power.read_text()
                for _ in range(self.boots, told.count("off\non\n")):
                    self.boots += 1
                    link.sendall(self.says)

    def is_on(self) -> bool:
        """Tell whether the board has power."""
        return self.power.read_text().endswith("on\n")

    def close(self) -> None:
        """Go away, whether somebody has connected or not; harmless when it has."""
        if self._ended.is_set():
            return
        self._ended.set()
        socket.create_connection(("127.0.0.1", self.port)).close()
        self._thread.join()
        self._server.close()


@pytest.fixture
def exporter(tmp_path: Path) -> Generator[Exporter]:
    """Return a board that is on and does not speak: a run before this one has left it so."""
    power = tmp_path / "power"
    power.write_text("on\n")
    exporter = Exporter(power)
    try:
        yield exporter
    finally:
        exporter.close()


def environment(exporter: Exporter, folder: Path, attributes: str = "", server: str = "") -> Any:
    """Return a labgrid environment with the board; it is waited for patiently where nothing else is said."""
    patient = "".join(f"        {limit}: {HANG_S}\n" for limit in LIMITS if limit not in attributes)
    file = folder / "labgrid.yaml"
    file.write_text(f"""
targets:
  board:
    resources:
      NetworkSerialPort: {{host: 127.0.0.1, port: {exporter.port}, protocol: raw}}
      TFTPProvider: {{internal: {folder}/tftp/, external: /}}
    drivers:
      ExternalPowerDriver:
        cmd_on: sh -c 'echo on >>{exporter.power}'
        cmd_off: sh -c 'echo off >>{exporter.power}'
        delay: 0.0
      SerialDriver: {{}}
      {server}
      BoardStrategy:
        ready: "embedded login: $"
        off_s: 0.1
        log: {folder}/run/console.log
{patient}
        {attributes}
""")
    return open_environment(str(file))


def boot(exporter: Exporter, folder: Path, attributes: str = "", server: str = "") -> None:
    """Boot the board once."""
    opened = environment(exporter, folder, attributes, server)
    try:
        power_driver(opened.get_target("board")).on()
    finally:
        opened.cleanup()


def test_board_is_booted_from_the_off_state_and_heard(exporter: Exporter, tmp_path: Path) -> None:
    exporter.says = UP
    opened = environment(exporter, tmp_path)
    try:
        power = power_driver(opened.get_target("board"))
        power.on()
        assert exporter.boots == 1
        power.on()  # it is up: nothing happens
        assert exporter.boots == 1
        power.cycle()
        assert exporter.boots == 2
        power.off()
        assert not exporter.is_on()
        opened.get_target("board").get_strategy().transition("on")
        assert exporter.boots == 3
    finally:
        opened.cleanup()
    log = (tmp_path / "run" / "console.log").read_bytes()
    assert log.count(b"Booting Linux") == 3
    assert log.count(b"--- benchwright: power on ") == 3
    assert exporter.is_on(), "a real board is left on"


@pytest.mark.parametrize(
    ("says", "limit", "said"),
    [
        (KERNEL + b"Kernel panic - not syncing: No working init found.\r\n", "",
         "kernel panic: No working init"),
        (KERNEL, "silence_s: 1.0", "hangs: silent for 1 s"),
        (b"U-Boot 2023.01\r\n=> ", "prompt_s: 0.3", "stands at a wrong prompt: '=>', of a bootloader"),
        (KERNEL + b"raspberrypi login: ", "prompt_s: 0.3",
         "stands at a wrong prompt: 'raspberrypi login:', of a login"),
        (b"", "first_output_s: 1.0", "never boots: not one character in 1 s"),
        (b"\x80\xfe\xf8" * 40, "silence_s: 1.0", "is the speed of the serial port right?"),
    ],
)  # fmt: skip
def test_what_goes_wrong_is_told_apart(
    exporter: Exporter, tmp_path: Path, says: bytes, limit: str, said: str
) -> None:
    """What the board says comes in one piece: nothing has to come within the limit that is short."""
    exporter.says = says
    with pytest.raises(BenchError) as error:
        boot(exporter, tmp_path, limit)
    assert said in str(error.value)
    assert "console: " in str(error.value)


def test_lost_serial_port_is_told(exporter: Exporter, tmp_path: Path) -> None:
    exporter.close()
    with pytest.raises(BenchError, match=r"its serial console cannot be opened: .*Connection refused"):
        boot(exporter, tmp_path)


def test_boot_files_are_put_on_the_server_before_each_boot(exporter: Exporter, tmp_path: Path) -> None:
    exporter.says = UP
    (tmp_path / "vmlinuz").write_text("kernel")
    boot(exporter, tmp_path, "boot_files: [vmlinuz]", "TFTPProviderDriver: {}")
    assert (tmp_path / "tftp" / "vmlinuz").read_text() == "kernel"


@pytest.mark.parametrize(
    ("attributes", "server", "said"),
    [
        ("boot_files: [vmlinuz]", "", "there is no TFTPProviderDriver"),
        ("boot_files: [absent]", "TFTPProviderDriver: {}", "absent cannot be put on the server: .*not found"),
    ],
)
def test_boot_file_that_is_nowhere_is_told(
    exporter: Exporter, tmp_path: Path, attributes: str, server: str, said: str
) -> None:
    (tmp_path / "vmlinuz").write_text("kernel")
    with pytest.raises(BenchError, match=said):
        boot(exporter, tmp_path, attributes, server)
    assert exporter.boots == 0


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        ("boot_deadline_s: -1", "boot_deadline_s: -1; must be a number of seconds in 0..3600"),
        ("boot_files: vmlinuz", "must be a list of names of files"),
    ],
)
def test_bad_attribute_is_refused(exporter: Exporter, tmp_path: Path, attributes: str, said: str) -> None:
    with pytest.raises(Exception, match=said):
        boot(exporter, tmp_path, attributes)


def test_unknown_state_is_refused(exporter: Exporter, tmp_path: Path) -> None:
    opened = environment(exporter, tmp_path)
    try:
        with pytest.raises(ConfigError, match="must be off or on, found 'shell'"):
            opened.get_target("board").get_strategy().transition("shell")
    finally:
        opened.cleanup()


def test_console_that_ends_is_told(exporter: Exporter, tmp_path: Path) -> None:
    """The exporter goes away while the board boots."""
    opened = environment(exporter, tmp_path)
    try:
        power = power_driver(opened.get_target("board"))
        failures: list[BaseException] = []

        def on() -> None:
            try:
                power.on()
            except BenchError as error:
                failures.append(error)

        booting = threading.Thread(target=on)
        booting.start()
        wait_until(lambda: exporter.boots > 0, "the first boot")
        exporter.close()
        booting.join(HANG_S)
        assert failures
        assert "its serial console cannot be read" in str(failures[0])
    finally:
        opened.cleanup()
