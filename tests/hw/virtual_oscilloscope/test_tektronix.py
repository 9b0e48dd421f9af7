# SPDX-License-Identifier: Apache-2.0
"""The 5 Series MSO's port, byte by byte, as the vendor's text has it (docs/virtual-oscilloscope.md)."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager

import numpy as np
import pytest

from hw.virtual.oscilloscope.edges import Edge, EdgeSource, ReplayedEdges
from hw.virtual.oscilloscope.faults import Fault
from hw.virtual.oscilloscope.front_end import Hardware
from hw.virtual.oscilloscope.server import Server
from hw.virtual.oscilloscope.tektronix.instrument import FiveSeries
from hw.virtual.oscilloscope.tektronix.replies import engineering, statistic
from tests.hw.virtual_oscilloscope.controller import Controller, crossing_s, hardware, pulses
from tests.patience import wait_until

# A thread of the instrument that dies is a failure too.
pytestmark = pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")

SET_UP = (
    "HEADer 0;VERBose 1",
    "DISplay:GLObal:CH2:STATE 1;:CH1:SCAle 0.5;OFFSet 1.65;:CH2:SCAle 0.5;OFFSet 1.65",
    "HORizontal:MODe MANual;RECOrdlength 1000;SAMPLERate 5E9;DELay:MODe ON;TIMe 0",
    "TRIGger:A:TYPe EDGE;MODe NORMal;EDGE:SOUrce CH1;SLOpe RISe;:TRIGger:A:LEVel:CH1 1.65",
    "ACQuire:STOPAfter SEQuence;:DATa:WIDth 2;ENCdg RIBinary;SOUrce CH1;STARt 1;STOP 1000",
)
NOTHING = '0,"No events to report - queue empty"'


@contextmanager
def scope(
    machine: Hardware | None = None,
    source: EdgeSource | None = None,
    faults: set[Fault] | None = None,
    quoted_lists: bool = True,
) -> Generator[Controller]:
    """Switch an instrument on, set it up, and connect; events of that are read already."""
    instrument = FiveSeries(
        machine or hardware(), source or ReplayedEdges(pulses()), faults or set(), quoted_lists
    )
    with Server(instrument) as server, Controller(server.port) as controller:
        controller.write(*SET_UP)
        controller.query("*ESR?")
        assert controller.query("ALLEv?") == '401,"Power on; "'
        yield controller
        assert controller.query("*IDN?")


def acquire(c: Controller) -> None:
    c.write("ACQuire:STATE ON")
    assert c.query("*OPC?") == "1"


def volts(c: Controller, block: bytes, kind: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    zero, multiplier, offset = (float(c.query(f"WFMOutpre:{name}?")) for name in ("YZEro", "YMUlt", "YOFf"))
    return (np.frombuffer(block, kind).astype(float) - offset) * multiplier + zero


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (4e-9, "4.0000E-9"),
        (5e8, "500.0000E+6"),
        (0.0, "0.0E+0"),
        (139.9999e-12, "139.9999E-12"),
        (-1.3, "-1.3000E+0"),
        (999.99999, "1.0000E+3"),
        (float("nan"), "9.91E+37"),
    ],
)
def test_numbers_are_written_as_in_the_manuals(value: float, text: str):
    assert engineering(value, 4) == text


def test_results_have_all_their_digits():
    assert statistic(2.2807617754647) == "2.2807617754647"
    assert statistic(23.5741246494459e-3) == "23.5741246494459E-3"
    assert statistic(float("nan")) == "9.91E+37"


@pytest.mark.parametrize(
    ("header", "verbose", "reply"),
    [
        (1, 1, ":ACQUIRE:MODE SAMPLE"),
        (1, 0, ":ACQ:MOD SAM"),
        (0, 1, "SAMPLE"),
        (0, 0, "SAM"),
    ],
)
def test_headers_and_long_words_are_switched(header: int, verbose: int, reply: str):
    with scope() as c:
        c.write(f"HEADer {header};VERBose {verbose}")
        assert c.query("ACQuire:MODe?") == reply
        assert c.query("*OPC?") == "1"


def test_queries_of_one_message_have_one_reply():
    with scope() as c:
        c.write("HEADer 1")
        assert c.query("CH2:SCAle?;:ACQuire:STATE?") == ":CH2:SCALE 500.0000E-3;:ACQUIRE:STATE 0"


def test_reset_changes_no_form_of_reply_and_no_transfer_setting():
    with scope() as c:
        c.write("*RST")
        assert c.query("HEADer?;:DATa?") == "0;REF1;RIBINARY;CH1;1;1000;1;1000000"
        assert c.query("CH1:SCAle?;:ACQuire:STOPAfter?") == "100.0000E-3;RUNSTOP"


def test_events_are_read_in_two_steps():
    with scope() as c:
        assert c.query("EVMsg?") == NOTHING
        c.write("EXAMPLE_COMMAND", "CH1:COUPling AC")
        assert c.query("EVMsg?") == '1,"No events to report - new events pending *ESR?"'
        assert c.query("EVENT?") == "1"
        assert c.query("*ESR?") == "48"
        assert c.query("EVQty?") == "2"
        assert c.query("EVMsg?") == '113,"Undefined header; Command not found; EXAMPLE_COMMAND"'
        assert c.query("EVENT?") == "221"
        assert c.query("ALLEv?") == NOTHING


def test_reading_the_status_again_erases_events_not_read():
    with scope() as c:
        c.write("NO:SUCH 1")
        c.query("*ESR?")
        c.write("CH9:SCAle 1")
        c.query("*ESR?")
        assert c.query("ALLEv?").startswith("114,")


def test_the_queue_says_that_it_was_full():
    with scope() as c:
        c.write(*(["NO"] * 50))
        c.query("*ESR?")
        events = re.findall(r'(\d+),"[^"]*"', c.query("ALLEv?"))
        assert events == ["113"] * 32 + ["350"]
        c.write("NO", "*CLS")
        assert c.query("*ESR?") == "0"
        assert c.query("ALLEv?") == NOTHING


def test_a_message_before_the_reply_was_taken_drops_the_reply():
    with scope() as c:
        assert c.query("CH1:SCAle?\nCH1:OFFSet?") == "1.6500E+0"
        assert int(c.query("*ESR?")) == 4
        assert c.query("EVENT?") == "410"


def test_a_transfer_is_cut_off_by_the_next_message():
    instrument = FiveSeries(hardware(memory_samples=4_000_000), ReplayedEdges(pulses()), set())
    with Server(instrument) as server, Controller(server.port, receive_bytes=4096) as c:
        c.write(*SET_UP, "HORizontal:RECOrdlength 2000000;:DATa:STOP 2000000;:TRIGger:A:MODe NORMal")
        acquire(c)
        c.write("CURVe?")
        received = c.socket.recv(1)  # it has begun
        c.write("*ESR?")
        while not received.endswith(b"132\n"):  # power on, query error
            received += c.socket.recv(1 << 16)
        assert received.startswith(b"#74000000")
        assert len(received) < 4_000_000


def test_no_waveform_is_an_event_and_no_reply():
    with scope() as c:
        c.write("CURVe?", "WFMOutpre:XINcr?")
        assert c.query("*ESR?") == "16"
        assert c.query("EVENT?") == "2244"


def test_a_state_query_follows_the_single_sequence():
    with scope() as c:
        c.write("ACQuire:STATE RUN")
        wait_until(lambda: c.query("ACQuire:STATE?") != "1", "the end of the acquisition")
        assert c.query("ACQuire:NUMACq?") == "1"


def test_completion_is_waited_for_only_in_a_single_sequence():
    with scope(source=ReplayedEdges([])) as c:
        c.write("ACQuire:STOPAfter RUNSTop", "ACQuire:STATE ON")
        assert c.query("*OPC?;:ACQuire:STATE?") == "1;1"
        c.write("ACQuire:STATE STOP", "ACQuire:STOPAfter SEQuence", "ACQuire:STATE ON", "*OPC")
        assert c.query("*ESR?;:BUSY?") == "0;1"
        c.write("ACQuire:STATE OFF")
        assert c.query("*ESR?") == "1"


def test_the_record_length_is_set_in_manual_mode_only():
    with scope() as c:
        assert c.query("HORizontal:RECOrdlength?;SAMPLERate?;SCAle?") == "1000;5.0000E+9;20.0000E-9"
        c.write("HORizontal:MODe AUTO", "HORizontal:RECOrdlength 5000")
        c.query("*ESR?")
        assert c.query("EVENT?") == "221"
        c.write("HORizontal:SCAle 100E-9")
        assert c.query("HORizontal:RECOrdlength?;SAMPLERate?") == "5000;5.0000E+9"


def test_deskew_is_clipped_in_silence_and_has_steps():
    with scope() as c:
        c.write("CH2:DESKew 1E-6")
        assert c.query("CH2:DESKew?") == "125.0000E-9"
        c.write("CH2:DESKew 0.05E-9")
        assert c.query("CH2:DESKew?;:EVQty?") == "40.0000E-12;0"
        assert c.query("*ESR?") == "0"
        c.write("CH2:SCAle 100")
        assert c.query("CH2:SCAle?") == "10.0000E+0"
        assert c.query("*ESR?;:EVENT?") == "16;528"


def test_bandwidth_is_rounded_to_what_there_is():
    with scope() as c:
        c.write("CH1:BANdwidth 30E6")
        assert c.query("CH1:BANdwidth?") == "20.0000E+6"
        c.write("CH1:BANdwidth FULl")
        assert c.query("CH1:BANdwidth?") == "1.0000E+9"


def test_the_preamble_by_name_and_by_field():
    with scope() as c:
        acquire(c)
        c.write("HEADer 1;:DATa:WIDth 1")
        text = c.query("WFMOutpre?")
        assert text.startswith(":WFMOUTPRE:BYT_NR 1;BIT_NR 8;ENCDG BINARY;BN_FMT RI;")
        assert ';WFID "Ch1, DC coupling, 500.0mV/div' in text
        assert ";NR_PT 1000;PT_FMT Y;PT_ORDER LINEAR;" in text
        assert ";PT_OFF 500;" in text
        assert ";YMULT 20.0000E-3;YOFF 0.0E+0;YZERO 1.6500E+0;" in text
        c.write("HEADer 0;:DATa:WIDth 2")
        assert c.query("WFMOutpre:YMUlt?") == "78.1250E-6"
        assert 0 <= float(c.query("WFMOutpre:XZEro?")) < 200e-12
        c.write("DATa:STARt 401;STOP 600")
        assert c.query("WFMOutpre:NR_Pt?;PT_Off?") == "200;100"
        c.write("DATa:STOP 5000")
        assert c.query("WFMOutpre:NR_Pt?") == "600"


@pytest.mark.parametrize("width", [1, 2])
@pytest.mark.parametrize("encoding", ["RIBinary", "RPBinary", "SRIbinary", "SRPbinary", "ASCIi"])
def test_every_form_of_the_data_gives_the_same_voltages(encoding: str, width: int):
    with scope() as c:
        acquire(c)
        expected_v = volts(c, c.blocks("CURVe?")[0], ">i2")
        c.write(f"DATa:ENCdg {encoding};WIDth {width}")
        if encoding == "ASCIi":
            codes = np.array([int(code) for code in c.query("CURVe?").split(",")], f"i{width}")
            found_v = volts(c, codes.tobytes(), f"i{width}")
        else:
            order = "<" if encoding.startswith("S") else ">"
            kind = f"{order}{'u' if 'P' in encoding else 'i'}{width}"
            found_v = volts(c, c.blocks("CURVe?")[0], kind)
        assert found_v == pytest.approx(expected_v, abs=1e-4 if width == 2 else 0.02)


def test_position_and_offset_are_both_in_the_zero():
    with scope() as c:
        c.write("CH1:POSition -2;OFFSet 1.0")
        acquire(c)
        assert c.query("WFMOutpre:YZEro?") == "2.0000E+0"
        found_v = volts(c, c.blocks("CURVe?")[0], ">i2")
        assert (found_v[0], found_v[-1]) == (pytest.approx(0, abs=2e-3), pytest.approx(3.3, abs=2e-3))


def test_clipping_is_told_by_a_query_and_the_codes_are_the_ends():
    with scope(faults={Fault.CLIP}) as c:
        acquire(c)
        assert c.query("CH1:CLIPping?") == "1"
        codes = np.frombuffer(c.blocks("CURVe?")[0], ">i2")
        assert (codes.min(), codes.max()) == (-32768, 32767)
    with scope() as c:
        acquire(c)
        assert c.query("CH1:CLIPping?") == "0"


def test_each_frame_is_a_block_with_a_time_of_its_own():
    with scope() as c:
        c.write("HORizontal:FASTframe:STATE ON;COUNt 30")
        acquire(c)
        assert c.query("ACQuire:NUMFRAMESACQuired?") == "30"
        assert c.query("WFMOutpre:NR_Pt?;NR_FR?") == "1000;30"
        zeros = [part.split(":") for part in c.query("HORizontal:FASTframe:XZEro:ALL?").strip('"').split(",")]
        assert [int(number) for number, _ in zeros] == list(range(1, 31))
        assert len({zero for _, zero in zeros}) == 30
        offset = int(c.query("WFMOutpre:PT_Off?"))
        places: list[list[float]] = []
        for channel in (1, 2):
            c.write(f"DATa:SOUrce CH{channel}")
            blocks = c.blocks("CURVe?")
            assert len(blocks) == 30
            places.append(
                [
                    crossing_s(volts(c, block, ">i2"), float(zero) - offset * 200e-12, 200e-12)
                    for block, (_, zero) in zip(blocks, zeros, strict=True)
                ]
            )
        assert places[0] == pytest.approx([0.0] * 30, abs=3e-12)
        delays_s = [b - a for a, b in zip(*places, strict=True)]
        assert delays_s == pytest.approx([37.5e-9] * 30, abs=3e-12)


@pytest.mark.parametrize("quoted", [True, False])
def test_time_stamps_have_picoseconds(quoted: bool):
    with scope(quoted_lists=quoted) as c:
        c.write("HORizontal:FASTframe:STATE ON;COUNt 3")
        acquire(c)
        text = c.query("HORizontal:FASTframe:TIMEStamp:ALL?")
        assert text.startswith('"') == quoted
        stamps = [part.partition(":")[2] for part in text.strip('"').split(",")]
        assert all(re.fullmatch(r"\d\d\.\d\d\.\d{4} \d\d:\d\d:\d\d\.\d{12}", stamp) for stamp in stamps)
        fractions_ps = [int(stamp[-12:]) for stamp in stamps]
        assert np.diff(fractions_ps) == pytest.approx(1_000_000_000, abs=2)
        c.write("HORizontal:FASTframe:SELECTED 3")
        assert c.query("HORizontal:FASTframe:TIMEStamp:SELECTED?").strip('"') == stamps[2]
        delta_s = float(c.query("HORizontal:FASTframe:TIMEStamp:DELTa?").strip('"'))
        assert delta_s == pytest.approx(2e-3, abs=3e-12)


@pytest.mark.parametrize(("start", "stop", "count"), [(2, 4, 3), (4, 2, 1), (9, 9, 1), (3, "MAX", 3)])
def test_some_frames_are_chosen(start: int, stop: int | str, count: int):
    with scope() as c:
        c.write("HORizontal:FASTframe:STATE ON;COUNt 5", f"DATa:FRAMESTARt {start};FRAMESTOP {stop}")
        acquire(c)
        assert len(c.blocks("CURVe?")) == count


def test_frames_share_the_memory():
    with scope(hardware(memory_samples=20_000)) as c:
        c.write("HORizontal:FASTframe:STATE ON;COUNt 100")
        assert c.query("HORizontal:FASTframe:MAXFRames?;COUNt?") == "10;10"


def test_it_measures_the_delay_and_its_statistics():
    with scope(hardware(noise_v=0.01), ReplayedEdges(pulses(jitter_ps=200))) as c:
        c.write("MEASUrement:ADDMEAS DELAY", "MEASUrement:MEAS1:SOUrce1 CH1;SOUrce2 CH2")
        c.write("HORizontal:FASTframe:STATE ON;COUNt 200")
        results = "MEASUrement:MEAS1:RESUlts:ALLAcqs"
        assert c.query(f"{results}:POPUlation?;MEAN?") == "0;9.91E+37"
        acquire(c)
        acquire(c)
        assert c.query(f"{results}:POPUlation?") == "400"
        assert c.query("MEASUrement:MEAS1:RESUlts:CURRentacq:POPUlation?") == "200"
        assert float(c.query(f"{results}:MEAN?")) == pytest.approx(37.5e-9, abs=50e-12)
        assert float(c.query(f"{results}:STDDev?")) == pytest.approx(200e-12, rel=0.2)
        span_s = float(c.query(f"{results}:MAXimum?")) - float(c.query(f"{results}:MINimum?"))
        assert float(c.query(f"{results}:PK2PK?")) == pytest.approx(span_s, abs=1e-15)


def test_the_second_edge_is_searched_forwards_or_backwards():
    with scope() as c:
        c.write("MEASUrement:ADDMEAS DELAY", "MEASUrement:MEAS1:SOUrce1 CH2;SOUrce2 CH1")
        acquire(c)
        assert c.query("MEASUrement:MEAS1:RESUlts:CURRentacq:MEAN?") == "9.91E+37"
        c.write("MEASUrement:MEAS1:TOEDGESEARCHDIRect BACKWard")
        acquire(c)
        mean_s = float(c.query("MEASUrement:MEAS1:RESUlts:CURRentacq:MEAN?"))
        assert mean_s == pytest.approx(-37.5e-9, abs=3e-12)


def test_the_first_setting_is_the_edge_that_the_delay_goes_to():
    edges = [
        Edge(1_000_000, 1, True),
        Edge(1_020_000, 1, False),
        Edge(1_037_500, 2, True),
        Edge(1_060_000, 2, False),
    ]
    with scope(source=ReplayedEdges(edges)) as c:
        c.write("MEASUrement:ADDMEAS DELAY", "MEASUrement:MEAS1:DELay:EDGE1 FALL;EDGE2 RISe")
        acquire(c)
        mean_s = float(c.query("MEASUrement:MEAS1:RESUlts:CURRentacq:MEAN?"))
        assert mean_s == pytest.approx(60e-9, abs=5e-12)


def test_asking_for_a_measurement_makes_it():
    with scope() as c:
        assert c.query("MEASUrement:LIST?") == "NONE"
        c.query("MEASUrement:MEAS3:TYPe?")
        c.write("MEASUrement:ADDMEAS DELAY")
        assert c.query("MEASUrement:LIST?") == "MEAS3,MEAS4"


def test_positive_deskew_shows_a_channel_earlier():
    with scope() as c:
        c.write("CH2:DESKew 10E-9", "MEASUrement:ADDMEAS DELAY")
        acquire(c)
        mean_s = float(c.query("MEASUrement:MEAS1:RESUlts:CURRentacq:MEAN?"))
        assert mean_s == pytest.approx(27.5e-9, abs=3e-12)


def test_what_a_lost_connection_left_goes_to_the_next():
    instrument = FiveSeries(hardware(), ReplayedEdges(pulses()), {Fault.STALLED_TRANSFER})
    with Server(instrument) as server:
        with Controller(server.port) as first:
            first.write(*SET_UP)
            acquire(first)
            first.write("CURVe?")
            assert first.read(6) == b"#42000"
        with Controller(server.port) as second:
            assert second.read(1004).endswith(b"\n")
            assert second.query("*OPC?") == "1"
