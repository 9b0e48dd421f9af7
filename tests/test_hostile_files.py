# SPDX-License-Identifier: Apache-2.0
"""Files that people and other programs bring, damaged: refused by an error of ours, or read.

Files of a run folder: tests/reports/test_hostile_evidence.py.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from dashboards.delivery.endpoint import load_endpoint
from dashboards.regressions.run_advice import advise_run
from dashboards.run_import import import_path
from dashboards.store import Store
from dashboards.trends.content import content as trends
from dashboards.trends.selection import Selection
from hw.bench import load_bench
from hw.errors import BenchwrightError
from hw.virtual.oscilloscope.edge_lines import read_file
from reports.clock_sync.log_command import said
from reports.clock_sync.log_formats import LOG_READERS
from reports.clock_sync.mask import load_mask, mask_file, mask_names
from reports.clock_sync.transports import plain_text
from reports.control_loops.segments import read_picture_streams
from reports.dossier.earlier import SCHEMA as RUNS_SCHEMA
from reports.dossier.earlier import history_of
from reports.dossier.gather import named_file
from reports.dossier.model import Request
from reports.dossier.waivers import read_waivers
from reports.errors import ReportError
from reports.paths.datagrams import read_datagrams
from reports.paths.transits import transits
from reports.rt_baseline.cyclictest import read_cyclictest
from reports.rt_baseline.emulator import EMULATION, read_emulator
from reports.rt_baseline.evidence import CYCLICTEST
from reports.rt_baseline.rtla import read_histogram, read_noise
from reports.timeline.processing.graph_file import read_graph, read_raw
from reports.timeline.processing.known_filters import filters_here
from reports.tools.witness_series import MAGIC, read_series
from resources.tools.capture import read_packets
from scope.calibration import load_calibration
from scope.errors import ScopeError
from tests.campaign import Campaign
from tests.dashboards.test_endpoint import TWO
from tests.dashboards.test_rtc_testbench import message
from tests.reports.clock_sync.test_log_command import WRAPPED
from tests.reports.clock_sync.test_logs import STRIPCHART, poll
from tests.reports.control_loops.picture_capture import Wire
from tests.reports.dossier.test_waivers import HEAD, ONE
from tests.reports.hostile import damaged
from tests.reports.rt_baseline.sample import write_case
from tests.reports.rt_baseline.trace_sample import write_histogram, write_table
from tests.reports.timeline.processing.test_graph_file import WHOLE
from tests.scope.test_calibration import CABLE, SKEW, write

pytestmark = pytest.mark.slow

GOLDEN = Path(__file__).parent / "reports" / "clock_sync" / "golden"
BENCHES = Path(__file__).resolve().parents[1] / "hw" / "benches"
STORED_RUN = {
    "run_id": "20261122T040556Z-3f7cd7e4",
    "start_utc": "2026-11-22T04:05:56.000000Z",
    "bench": "hall-7",
    "outcome": "fail",
    "targets": {"linux-rt": "host.kernel: 6.1 -> 6.12"},
}
Read = Callable[[Path], object]


@dataclass(frozen=True)
class Kind:
    """A kind of file: a whole one, and who reads it."""

    whole: Callable[[Path], bytes]
    read: Read


def _noise_table(folder: Path) -> bytes:
    write_table(folder / "table", 55, 35, 2)
    return (folder / "table").read_bytes()


def _timerlat_histogram(folder: Path) -> bytes:
    write_histogram(folder / "histogram", {40: 1, 3970: 1}, {60: 1, 4000: 1}, 3)
    return (folder / "histogram").read_bytes()


def _log(name: str, form: str) -> Kind:
    return Kind(
        lambda _: (GOLDEN / f"{name}.log").read_bytes()[:6000],
        lambda file: list(said(LOG_READERS[form](file.read_text(encoding="utf-8", errors="replace"), 37))),
    )


def _statistics(file: Path) -> None:
    with Store(file.with_suffix(".sqlite")) as store:
        points, _ = import_path(store, file, None)
        for point in points.points:
            assert point.line()


def _store(folder: Path) -> bytes:
    file = folder / "made.sqlite"
    statistics = folder / "statistics.json"
    statistics.write_text(message())
    with Store(file) as store:
        import_path(store, statistics, None)
    return file.read_bytes()


def _use_store(file: Path) -> None:
    for suffix in ("-wal", "-shm"):
        file.with_name(file.name + suffix).unlink(missing_ok=True)
    statistics = file.with_name("other.json")
    statistics.write_text(message(bench="other"))
    with Store(file) as store:
        store.status()
        trends(store, Selection())
        run, _ = import_path(store, statistics, None)
        advise_run(store, run.run_id, file.parent)


def _packets(folder: Path) -> bytes:
    ip = struct.pack(
        ">BBHHHBBH4s4s", 0x45, 0, 48, 7, 0, 64, 17, 0, bytes((10, 0, 0, 1)), bytes((10, 0, 0, 2))
    )
    frame = bytes(12) + b"\x08\x00" + ip + struct.pack(">HHHH", 1000, 2000, 28, 0) + b"payload of twenty by"
    head = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1)
    return head + b"".join(struct.pack("<IIII", n, 5, len(frame), len(frame)) + frame for n in range(1, 5))


def _matched(file: Path) -> None:
    found = read_datagrams(file)
    assert len(transits(found, found).count) <= len(found.time_ns)


def _series(folder: Path) -> bytes:
    rows = b"".join(struct.pack("<qii2i", n * 1000, 5, 0, 10, 20) for n in range(5))
    return MAGIC + struct.pack("<IIq", 2, 2, 1000) + struct.pack("<4i", 0, 1, 7, 8) + rows


def _picture_packets(folder: Path) -> bytes:
    wire = Wire().syn().in_pieces(0, 900, 300).window(0).sent(900, 901).window(512)
    return wire.sent(900, 2000).sent(1500, 3960).written(folder / "whole.pcap").read_bytes()


def _graph(file: Path) -> None:
    read_graph(read_raw(file.read_bytes(), file.name), filters_here())


def _calibration(folder: Path) -> bytes:
    return write(folder, SKEW, CABLE).read_bytes()


KINDS: dict[str, Kind] = {
    "ptp4l": _log("ptp4l", "ptp4l"),
    "ptp4l-rms": _log("ptp4l-rms", "ptp4l"),
    "phc2sys": _log("ptp4l", "phc2sys"),
    "chrony-measurements": _log("chrony-measurements", "chrony-measurements"),
    "chrony-statistics": _log("chrony-statistics", "chrony-statistics"),
    "chrony-tracking": _log("chrony-tracking", "chrony-tracking"),
    "ntp-user": Kind(
        lambda _: poll().encode() * 3,
        lambda f: list(said(LOG_READERS["bw-ntp-user"](f.read_text(errors="replace"), 37))),
    ),
    "stripchart": Kind(
        lambda _: STRIPCHART.encode(),
        lambda f: list(said(LOG_READERS["w32tm"](f.read_text(errors="replace"), 37))),
    ),
    "docker": Kind(lambda _: WRAPPED["docker"], lambda file: plain_text(file.read_bytes())),
    "gzip": Kind(lambda _: WRAPPED["gzip of docker"], lambda file: plain_text(file.read_bytes())),
    "mask": Kind(lambda _: mask_file(mask_names()[0], Path()).read_bytes(), lambda file: load_mask(file)),
    "rtc-testbench": Kind(lambda _: (message() * 2).encode(), _statistics),
    "store": Kind(_store, _use_store),
    "endpoint": Kind(lambda _: f"[influxdb]\n{TWO}\n".encode(), lambda file: load_endpoint(file, {})),
    "bench": Kind(lambda _: (BENCHES / "example-hardware.yaml").read_bytes(), load_bench),
    "waivers": Kind(lambda _: (HEAD + ONE).encode(), lambda file: read_waivers(file.read_bytes(), file.name)),
    "stored-runs": Kind(
        lambda _: json.dumps({"schema": RUNS_SCHEMA, "runs": [STORED_RUN] * 2}).encode(),
        lambda file: history_of(Request(None, None, None, None, (named_file("history", file),))),
    ),
    "calibration": Kind(_calibration, load_calibration),
    "edges": Kind(
        lambda _: b'{"channel":1,"time_ns":10,"fraction_ps":5,"rising":true}\n{"until_ns":20}\n' * 3,
        lambda file: list(read_file(file)),
    ),
    "capture": Kind(_packets, lambda file: list(read_packets(file))),
    "path-capture": Kind(_packets, _matched),
    "picture-capture": Kind(_picture_packets, read_picture_streams),
    "witness-series": Kind(_series, read_series),
    "cyclictest": Kind(
        lambda folder: (write_case(folder / "case") / CYCLICTEST).read_bytes(), read_cyclictest
    ),
    "emulator": Kind(
        lambda folder: (write_case(folder / "case", emulator=[(1, 9), (1, 7)]) / EMULATION).read_bytes(),
        read_emulator,
    ),
    "hwnoise": Kind(_noise_table, read_noise),
    "timerlat": Kind(_timerlat_histogram, read_histogram),
    "graph": Kind(lambda _: WHOLE.encode(), _graph),
}


@pytest.mark.parametrize("kind", KINDS)
def test_hostile_file(kind: str, campaign: Campaign, tmp_path: Path) -> None:
    whole = KINDS[kind].whole(tmp_path)
    file = tmp_path / f"file-{kind}.csv"  # a mask without .csv is one of the project's
    file.write_bytes(whole)
    KINDS[kind].read(file)
    for random in campaign.rounds(40):
        data = _damaged(whole, random)
        file.write_bytes(data)
        with campaign.trying(data):
            try:
                KINDS[kind].read(file)
            except (BenchwrightError, ReportError, ScopeError):
                campaign.reached.add("refused")
            else:
                campaign.reached.add("read")


def _damaged(data: bytes, random: Random) -> bytes:
    """Return a file with one thing wrong, seldom more."""
    for _ in range(random.choice((1, 1, 1, 2, 5))):
        data = damaged(data, random)
    return data


FOUND: dict[str, Callable[[bytes], bytes]] = {
    "a number beyond any float: calibration": lambda whole: whole.replace(b"12.5", b"1" * 400),
    "two milliards of threads: witness-series": lambda whole: (
        whole[:12] + struct.pack("<I", 2_000_000_002) + whole[16:]
    ),
    "a table's own text: store": lambda whole: whole.replace(b"CREATE TABLE", b"CREATE\xf9TABLE"),
    "a row's text: store": lambda whole: whole.replace(b'{"bench"', b'["bench"'),
}


@pytest.mark.parametrize("found", FOUND)
def test_what_a_campaign_has_found_is_refused(found: str, tmp_path: Path) -> None:
    kind = found.rpartition(": ")[2]
    whole = KINDS[kind].whole(tmp_path)
    file = tmp_path / "file.csv"
    file.write_bytes(FOUND[found](whole))
    assert file.read_bytes() != whole
    with pytest.raises((BenchwrightError, ReportError, ScopeError)):
        KINDS[kind].read(file)
