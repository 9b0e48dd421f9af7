# SPDX-License-Identifier: Apache-2.0
"""The InfiniiVision's port, byte by byte, as the vendor's text has it (docs/virtual-oscilloscope.md)."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager

import numpy as np
import pytest

from hw.virtual.oscilloscope.edges import EdgeSource, ReplayedEdges
from hw.virtual.oscilloscope.faults import Fault
from hw.virtual.oscilloscope.front_end import Hardware
from hw.virtual.oscilloscope.keysight.instrument import InfiniiVision
from hw.virtual.oscilloscope.server import Server
from tests.hw.virtual_oscilloscope.controller import Controller, crossing_s, hardware, pulses
from tests.patience import wait_until

# A thread of the instrument that dies is a failure too.
pytestmark = pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")

SET_UP = (
    ":CHANnel1:DISPlay ON;SCALe 0.5;OFFSet 1.65",
    ":CHANnel2:DISPlay ON;SCALe 0.5;OFFSet 1.65",
    ":TIMebase:SCALe 20E-9",
    ":TRIGger:MODE EDGE;SWEep NORMal;EDGE:SOURce CHANnel1;SLOPe POSitive;LEVel 1.65",
    ":WAVeform:FORMat WORD;UNSigned 1;POINts 5000;POINts:MODE RAW",
)
NO_ERROR = '+0,"No error"'


@contextmanager
def scope(
    machine: Hardware | None = None,
    source: EdgeSource | None = None,
    faults: set[Fault] | None = None,
    skew_sign: int = 1,
) -> Generator[Controller]:
    """Switch an instrument on, set it up, and connect."""
    instrument = InfiniiVision(
        machine or hardware(), source or ReplayedEdges(pulses()), faults or set(), skew_sign
    )
    with Server(instrument) as server, Controller(server.port) as controller:
        controller.write(*SET_UP)
        yield controller
        assert controller.query("*IDN?")


def numbers(text: str) -> list[float]:
    return [float(field) for field in text.split(",")]


def test_it_says_who_it_is():
    with scope() as c:
        maker, model, serial, firmware = c.query("*IDN?").split(",")
        assert (maker, model[-2]) == ("KEYSIGHT TECHNOLOGIES", "2")
        assert serial
        assert firmware


def test_replies_are_short_signed_and_without_header():
    with scope() as c:
        assert c.query(":TRIGger:EDGE:SLOPe?") == "POS"
        assert c.query("trig:edge:sour?") == "CHAN1"
        assert c.query(":CHANnel1:DISPlay?") == "1"
        assert c.query(":ACQuire:SEGMented:COUNt?") == "+2"
        assert c.query(":TIMebase:SCALe?") == "+2.00000000E-008"
        assert c.query("*OPC?") == "1"
        assert c.query(":TIM:REF?;:CHAN2:SCAL?;OFFS?") == "CENT;+5.00000000E-001;+1.65000000E+000"


def test_the_groups_answer_with_headers_after_reset():
    with scope() as c:
        c.write("*RST")
        expected = ":WAV:UNS 1;VIEW MAIN;BYT MSBF;FORM BYTE;POIN +1000;SOUR CHAN1;SOUR:SUBS NONE"
        assert c.query(":WAVeform?") == expected
        assert c.query(":MEASure?") == ":MEAS:SOUR CHAN1,CHAN2;STAT ON"


@pytest.mark.parametrize(
    ("message", "error"),
    [
        (":NOSUCH:THING 1", '-113,"Undefined header"'),
        (":CHANnel9:SCALe 1", '-114,"Header suffix out of range"'),
        (":CHANnel1:SCALe", '-109,"Missing parameter"'),
        (":CHANnel1:SCALe 1,2", '-108,"Parameter not allowed"'),
        (":CHANnel1:SCALe ABC", '-104,"Data type error"'),
        (":CHANnel1:SCALe 1 parsec", '-131,"Invalid suffix"'),
        (":CHANnel1:SCALe 1E99", '-222,"Data out of range"'),
        (":WAVeform:POINts 99", '-222,"Data out of range"'),
        (":WAVeform:POINts 1000.5", '-222,"Data out of range"'),
        (":TRIGger:EDGE:SLOPe SIDEways", '-224,"Illegal parameter value"'),
        (":TRIGger:EDGE:COUPling AC", '-221,"Settings conflict"'),
        (":SYSTem:ERRor", '-113,"Undefined header"'),
        (':CHANnel1:LABel "x', '-151,"Invalid string data"'),
        ("1:2:3", '-102,"Syntax error"'),
        (":WAVeform:DATA?", '-230,"Data corrupt or stale"'),
        ("\x01\x02", '-101,"Invalid character"'),
    ],
)
def test_what_cannot_be_done_is_in_the_error_queue(message: str, error: str):
    with scope() as c:
        c.write(message)
        assert c.query(":SYSTem:ERRor?") == error
        assert c.query(":SYSTem:ERRor?") == NO_ERROR
        assert int(c.query("*ESR?")) & 0x30


def test_the_queue_keeps_the_oldest_errors_and_says_that_it_was_full():
    with scope() as c:
        c.write(":CHANnel1:SCALe", *([":NO"] * 40))
        errors = [c.query(":SYSTem:ERRor?") for _ in range(31)]
        assert errors[0] == '-109,"Missing parameter"'
        assert errors[28] == '-113,"Undefined header"'
        assert errors[29] == '-350,"Queue overflow"'
        assert errors[30] == NO_ERROR
        c.write(":NO", "*RST")
        assert c.query(":SYSTem:ERRor?").startswith("-113")
        c.write(":NO", "*CLS")
        assert c.query(":SYSTem:ERRor?") == NO_ERROR


def test_after_a_command_error_the_rest_of_the_message_is_dropped():
    with scope() as c:
        c.write(":CHANnel1:SCALe 1;NOSUCH 1;OFFSet 0.5")
        assert float(c.query(":CHANnel1:SCALe?")) == 1
        assert float(c.query(":CHANnel1:OFFSet?")) == 1.65
        c.write(":CHANnel1:SCALe 99;OFFSet 0.5")
        assert float(c.query(":CHANnel1:OFFSet?")) == 0.5


def test_a_message_before_the_reply_was_taken_drops_the_reply():
    with scope() as c:
        assert c.query(":CHANnel1:SCALe?\n:CHANnel1:OFFSet?") == "+1.65000000E+000"
        assert c.query(":SYSTem:ERRor?") == '-410,"Query INTERRUPTED"'
        assert int(c.query("*ESR?")) & 0x04


def test_a_message_of_any_length_is_survived():
    with scope() as c:
        c.write(":CHANnel1:SCALe " + "1" * 300_000)
        assert c.query(":SYSTem:ERRor?") == '-223,"Too much data"'


def test_a_single_acquisition_is_polled_and_forces_the_normal_sweep():
    with scope() as c:
        c.write(":TRIGger:SWEep AUTO", ":SINGle")
        assert c.query("*OPC?") == "1"
        wait_until(lambda: not int(c.query(":OPERegister:CONDition?")) & 8, "the end of the acquisition")
        assert c.query(":TRIGger:SWEep?") == "NORM"
        assert c.query(":TER?;:TER?") == "1;0"
        assert c.query(":RSTate?") == "STOP"


def test_runs_until_stopped():
    with scope() as c:
        c.write(":RUN")
        assert int(c.query(":OPERegister:CONDition?")) == 8
        c.write(":STOP")
        assert int(c.query(":OPERegister:CONDition?")) == 0


def test_a_digitize_without_trigger_ends_with_its_connection():
    instrument = InfiniiVision(hardware(), ReplayedEdges([]), set())
    with Server(instrument) as server:
        with Controller(server.port) as first:
            first.write(*SET_UP, ":DIGitize", "*OPC?")
            first.expect_fewer(1)
        with Controller(server.port) as second:
            assert int(second.query(":OPERegister:CONDition?")) == 0
            assert second.query(":WAVeform:SEGMented:COUNt?") == "+0"


def test_the_preamble_has_ten_fields_that_follow_format_and_sign():
    with scope() as c:
        c.write(":DIGitize")
        word = c.query(":WAVeform:PREamble?")
        assert re.fullmatch(
            r"\+1,\+0,\+1000,\+1,\+2\.00000000E-010,-[\d.]+E-\d{3},\+0,[-+.\dE]+,\+1\.65000000E\+000,\+32768",
            word,
        )
        assert numbers(word)[7] == pytest.approx(4.0 / 65536)
        c.write(":WAVeform:FORMat BYTE")
        fields = numbers(c.query(":WAVeform:PREamble?"))
        assert (fields[0], fields[7], fields[9]) == (0, 4.0 / 256, 128)
        c.write(":WAVeform:UNSigned 0")
        assert numbers(c.query(":WAVeform:PREamble?"))[9] == 0
        c.write(":WAVeform:FORMat ASCii")
        assert numbers(c.query(":WAVeform:PREamble?"))[0] == 4


@pytest.mark.parametrize("form", ["BYTE", "WORD"])
@pytest.mark.parametrize("unsigned", [True, False])
@pytest.mark.parametrize("order", ["MSBFirst", "LSBFirst"])
def test_every_form_of_the_data_gives_the_same_voltages(form: str, unsigned: bool, order: str):
    with scope() as c:
        c.write(":DIGitize", ":WAVeform:FORMat ASCii")
        ascii_v = np.array(numbers(c.blocks(":WAVeform:DATA?")[0].decode()))
        c.write(f":WAVeform:FORMat {form};UNSigned {int(unsigned)};BYTeorder {order}")
        fields = numbers(c.query(":WAVeform:PREamble?"))
        kind = f"{'>' if order == 'MSBFirst' else '<'}{'u' if unsigned else 'i'}{2 if form == 'WORD' else 1}"
        codes = np.frombuffer(c.blocks(":WAVeform:DATA?")[0], kind).astype(float)
        volts = (codes - fields[9]) * fields[7] + fields[8]
        assert volts == pytest.approx(ascii_v, abs=1e-8 if form == "WORD" else fields[7])


def test_the_block_says_its_bytes_in_eight_digits():
    with scope() as c:
        c.write(":DIGitize", ":WAVeform:SOURce CHANnel1;DATA?")
        assert c.read(10) == b"#800002000"
        c.read(2001)
        assert c.query(":WAVeform:POINts?") == "+1000"


def test_what_is_clipped_has_codes_of_its_own():
    with scope(faults={Fault.CLIP}) as c:
        c.write(":DIGitize")
        assert set(np.frombuffer(c.blocks(":WAVeform:DATA?")[0], ">u2")) >= {1, 0xFFFF}
        c.write(":WAVeform:FORMat BYTE")
        codes = np.frombuffer(c.blocks(":WAVeform:DATA?")[0], "u1")
        assert {1, 255} <= set(codes)
        assert 0 not in codes


def test_fewer_points_are_every_so_many_samples():
    with scope() as c:
        c.write(":DIGitize")
        whole = np.frombuffer(c.blocks(":WAVeform:DATA?")[0], ">u2")
        c.write(":WAVeform:POINts 250")
        fields = numbers(c.query(":WAVeform:PREamble?"))
        assert (fields[2], fields[4]) == (250, pytest.approx(800e-12))
        assert np.array_equal(np.frombuffer(c.blocks(":WAVeform:DATA?")[0], ">u2"), whole[::4])
        c.write(":WAVeform:POINts MAX")
        assert c.query(":WAVeform:POINts:MODE?") == "MAX"


@pytest.mark.parametrize(
    ("reference", "begin_s"), [("LEFT", -20e-9), ("CENTer", -100e-9), ("RIGHt", -180e-9)]
)
def test_the_record_lies_where_reference_and_position_put_it(reference: str, begin_s: float):
    with scope() as c:
        c.write(f":TIMebase:REFerence {reference};POSition 5E-9", ":DIGitize")
        assert float(c.query(":WAVeform:XORigin?")) == pytest.approx(begin_s + 5e-9, abs=201e-12)


def test_a_source_becomes_visible_and_one_not_acquired_has_no_data():
    with scope() as c:
        c.write(":CHANnel2:DISPlay OFF", ":DIGitize CHANnel1", ":WAVeform:SOURce CHANnel2")
        assert c.query(":CHANnel2:DISPlay?") == "1"
        c.write(":WAVeform:DATA?")
        assert c.query(":SYSTem:ERRor?").startswith("-230")


def test_the_probe_ratio_scales_everything():
    with scope() as c:
        c.write(":CHANnel1:PROBe 10")
        assert numbers(c.query(":CHANnel1:SCALe?;OFFSet?").replace(";", ",")) == [5, 16.5]
        c.write(":DIGitize")
        fields = numbers(c.query(":WAVeform:PREamble?"))
        codes = np.frombuffer(c.blocks(":WAVeform:DATA?")[0], ">u2").astype(float)
        volts = (codes - fields[9]) * fields[7] + fields[8]
        assert (volts.min(), volts.max()) == (pytest.approx(0, abs=0.1), pytest.approx(33, abs=0.1))


def test_all_segments_with_their_times():
    with scope() as c:
        c.write(":ACQuire:MODE SEGMented;SEGMented:COUNt 40", ":DIGitize")
        assert c.query(":WAVeform:SEGMented:COUNt?") == "+40"
        c.write(":WAVeform:SEGMented:ALL ON")
        fields = numbers(c.query(":WAVeform:PREamble?"))
        assert fields[2] == 1000
        relative = numbers(c.blocks(":WAVeform:SEGMented:XLISt? RELXorigin")[0].decode())
        tags = numbers(c.blocks(":WAVeform:SEGMented:XLISt? TTAG")[0].decode())
        absolute = numbers(c.blocks(":WAVeform:SEGMented:XLISt? ABSXorigin")[0].decode())
        assert absolute == pytest.approx([r + t for r, t in zip(relative, tags, strict=True)], rel=1e-8)
        assert tags == pytest.approx([n * 1e-3 for n in range(40)], rel=1e-8)
        assert len(set(relative)) == 40
        places: list[list[float]] = []
        for channel in (1, 2):
            c.write(f":WAVeform:SOURce CHANnel{channel}")
            codes = np.frombuffer(c.blocks(":WAVeform:DATA?")[0], ">u2").reshape(40, 1000).astype(float)
            volts = (codes - fields[9]) * fields[7] + fields[8]
            places.append([crossing_s(v, r, fields[4]) for v, r in zip(volts, relative, strict=True)])
        assert places[0] == pytest.approx([0.0] * 40, abs=3e-12)
        delays_s = [b - a for a, b in zip(*places, strict=True)]
        assert delays_s == pytest.approx([37.5e-9] * 40, abs=3e-12)
        c.write(":WAVeform:SEGMented:ALL OFF", ":ACQuire:SEGMented:INDex 3")
        assert float(c.query(":WAVeform:SEGMented:TTAG?")) == pytest.approx(2e-3)
        assert numbers(c.query(":WAVeform:PREamble?"))[5] == pytest.approx(relative[2], rel=1e-8)
        assert len(c.blocks(":WAVeform:DATA?")[0]) == 2000


def test_segments_share_the_memory():
    with scope(hardware(memory_samples=40_000)) as c:
        c.write(":ACQuire:MODE SEGMented;SEGMented:COUNt 100")
        assert c.query(":ACQuire:SRATe?;POINts?") == "+1.00000000E+009;+200"
        c.write(":ACQuire:SEGMented:COUNt 1001")
        assert c.query(":SYSTem:ERRor?").startswith("-222")


def test_it_measures_the_delay_and_its_statistics():
    with scope(hardware(noise_v=0.01), ReplayedEdges(pulses(jitter_ps=200))) as c:
        assert c.query(":MEASure:RESults?") == ""
        c.write(
            ":MEASure:DELay CHANnel1,CHANnel2", ":ACQuire:MODE SEGMented;SEGMented:COUNt 300", ":DIGitize"
        )
        assert float(c.query(":MEASure:DELay? CHANnel1,CHANnel2")) == pytest.approx(37.5e-9, abs=2e-9)
        assert float(c.query(":MEASure:DELay? CHANnel2,CHANnel1")) == pytest.approx(-37.5e-9, abs=2e-9)
        assert c.query(":MEASure:RESults?").split(",")[-1] == "1"
        c.write(":ACQuire:SEGMented:ANALyze")
        label, current, low, high, mean, deviation, count = c.query(":MEASure:RESults?").split(",")
        assert label
        assert int(count) == 300
        assert float(low) <= float(current) <= float(high)
        assert float(mean) == pytest.approx(37.5e-9, abs=50e-12)
        assert float(deviation) == pytest.approx(200e-12, rel=0.2)
        c.write(":MEASure:STATistics MEAN")
        assert c.query(":MEASure:RESults?") == mean
        c.write(":MEASure:STATistics ON;STATistics:RESet")
        assert c.query(":MEASure:RESults?").split(",")[1:] == ["+9.9E+37"] * 5 + ["0"]


def test_what_cannot_be_measured_says_so():
    with scope() as c:
        assert c.query(":MEASure:DELay? CHANnel1,CHANnel2") == "+9.9E+37"
        c.write(":DIGitize", ":MEASure:DEFine DELay,+1,-1")
        assert c.query(":MEASure:DEFine? DELay") == "DEL,+1,-1"
        assert c.query(":MEASure:DELay? CHANnel1,CHANnel2") == "+9.9E+37"


@pytest.mark.parametrize("sign", [1, -1])
def test_skew_moves_a_channel_in_the_direction_of_this_instrument(sign: int):
    with scope(skew_sign=sign) as c:
        c.write(":CHANnel2:PROBe:SKEW 10E-9", ":DIGitize")
        assert float(c.query(":MEASure:DELay? CHANnel1,CHANnel2")) == pytest.approx(
            (37.5 - sign * 10) * 1e-9, abs=3e-12
        )
        c.write(":CHANnel2:PROBe:SKEW 101E-9")
        assert c.query(":SYSTem:ERRor?").startswith("-222")
        assert float(c.query(":CHANnel2:PROBe:SKEW?")) == 10e-9
