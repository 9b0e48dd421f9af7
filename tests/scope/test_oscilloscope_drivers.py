# SPDX-License-Identifier: Apache-2.0
"""Both dialects on their transcripts: set-up, all frames, statistics."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from scope.drivers.identity import Dialect, parse_identity
from scope.settings import (
    ChannelSettings,
    Coupling,
    OscilloscopeSettings,
    SettingsError,
    TimebaseSettings,
    TriggerSettings,
)
from scope.waveform import Frame
from tests.patience import HANG_S
from tests.scope.driver_bench import SETTINGS, SINGLE, oscilloscope, transcript

DIALECTS = ["keysight", "tektronix"]


def _volts(frame: Frame) -> list[float]:
    scaling = frame.scaling
    volts = (frame.codes.astype(float) - scaling.code_reference) * scaling.volts_per_code + scaling.offset_v
    return [round(float(volt), 6) for volt in volts]


@pytest.mark.parametrize(
    ("reply", "dialect", "channels"),
    [
        ("KEYSIGHT TECHNOLOGIES,MSO-X 3054T,MY55100001,07.40", Dialect.KEYSIGHT_INFINIIVISION, 4),
        ("AGILENT TECHNOLOGIES,DSO-X 2022A,MY51000001,02.35", Dialect.KEYSIGHT_INFINIIVISION, 2),
        ("KEYSIGHT TECHNOLOGIES,DSOX6004A,MY55100001,07.40", Dialect.KEYSIGHT_INFINIIVISION, 4),
        ("KEYSIGHT TECHNOLOGIES,HD304MSO,MY60000001,1.0", Dialect.KEYSIGHT_INFINIIVISION, 4),
        ("TEKTRONIX,MSO56,C012345,CF:91.1CT FV:1.99", Dialect.TEKTRONIX_MSO, 6),
        ("TEKTRONIX,MSO64B,B012345,CF:91.1CT FV:2.0", Dialect.TEKTRONIX_MSO, 4),
        ("TEKTRONIX,MSO58LP,B012345,CF:91.1CT FV:2.0", Dialect.TEKTRONIX_MSO, 8),
    ],
)
def test_knows_its_instruments(reply: str, dialect: Dialect, channels: int) -> None:
    identity = parse_identity(reply)
    assert (identity.dialect, identity.channels) == (dialect, channels)
    assert str(identity) == reply


@pytest.mark.parametrize(
    "reply",
    [
        "KEYSIGHT TECHNOLOGIES,DSOS804A,MY1,06.0",  # Infiniium: other commands
        "KEYSIGHT TECHNOLOGIES,34465A,MY1,A.03",  # a multimeter
        "TEKTRONIX,MDO4104,C1,CF:91.1CT",
        "TEKTRONIX,MSO2024B,C1,CF:91.1CT",
        "RIGOL TECHNOLOGIES,DS1104Z,DS1,00.04",
        "SSH-2.0-OpenSSH_9.2p1",
        "a,b,c",
        "",
    ],
)
def test_refuses_other_instruments(reply: str) -> None:
    with pytest.raises(ValueError, match=r"neither|not four fields"):
        parse_identity(reply)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_sets_up_and_reads_back(dialect: str) -> None:
    with oscilloscope(transcript(f"{dialect}-setup")) as (scope, server):
        realised = scope.configure(SETTINGS)
        assert scope.identity.dialect.value.startswith(dialect)
        assert [channel.scale_v_per_div for channel in realised.channels] == [0.5, 0.2]
        assert [channel.offset_v for channel in realised.channels] == [1.5, 0.0]
        assert [channel.deskew_s for channel in realised.channels] == [0.0, 1.68e-9]
        assert realised.window_s == pytest.approx(1e-6)
        assert realised.sample_rate_hz >= 5e9
        assert realised.segments == 3
        name = ":CHANnel{}" if dialect == "keysight" else "CH{}"
        assert {f"{name.format(number)}:INVert OFF" for number in (1, 2)} <= set(server.requests)
        coupling = ":TRIGger:EDGE:COUPling DC" if dialect == "keysight" else "TRIGger:A:EDGE:COUPling DC"
        assert coupling in server.requests
        probe = ":CHANnel1:PROBe 10" if dialect == "keysight" else "CH1:PROBEFunc:EXTAtten 1"
        scale = ":CHANnel1:SCALe 0.5" if dialect == "keysight" else "CH1:SCAle 0.5"
        assert server.requests.index(probe) < server.requests.index(scale)


def test_a_bandwidth_limit_is_told_where_the_instrument_tells_it() -> None:
    with oscilloscope(transcript("tektronix-setup")) as (scope, _):
        assert [channel.bandwidth_hz for channel in scope.configure(SETTINGS).channels] == [500e6, 20e6]


def test_keysight_reads_all_segments_of_all_channels() -> None:
    with oscilloscope(transcript("keysight-segments")) as (scope, _):
        scope.configure(SETTINGS)
        acquisition = scope.acquire(timeout_s=HANG_S)
    assert acquisition.instrument == "KEYSIGHT TECHNOLOGIES,MSO-X 3054T,MY55100001,07.40.2021031200"
    assert acquisition.wanted == 3
    assert [(frame.channel, frame.index) for frame in acquisition.frames] == [
        (1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (2, 2),
    ]  # fmt: skip
    frames = acquisition.frames[:3]
    assert [frame.codes.tolist() for frame in frames] == [
        [0x7800, 0x7900, 0x8000, 0x880A],
        [0x7801, 0x7901, 0x8001, 0x880B],
        [0x7802, 0x7902, 0x8002, 0x880C],
    ]
    assert all(frame.codes.dtype == np.uint16 for frame in frames)
    assert _volts(frames[0]) == [1.2952, 1.3208, 1.5, 1.7058]
    assert [frame.scaling.first_sample_s for frame in frames] == [-4e-10, -3.5e-10, -4.2e-10]
    assert [frame.time_tag_s for frame in frames] == [0.0, 1.00000001e-3, 2e-3]
    assert frames[0].scaling.sample_interval_s == 2e-10
    assert (frames[0].scaling.code_low, frames[0].scaling.code_high) == (0x01FF, 0xFF00)
    assert frames[0].scaling.code_hole == 0


def test_keysight_of_an_older_model_reads_segment_by_segment() -> None:
    changes = r"""
> :WAVeform:SEGMented:ALL 1
> :SYSTem:ERRor?
< +0,"No error"
> :ACQuire:SEGMented:INDex 1
> :ACQuire:SEGMented:INDex 2
> :ACQuire:SEGMented:INDex 3
> :WAVeform:SEGMented:TTAG?
< +0.0E+000
< +1.0E-003
< +2.0E-003
> :WAVeform:PREamble?
< +0
< +1,+0,+4,+1,+2.00000000E-010,-4.00000000E-010,+0,+1.00000000E-004,+1.50000000E+000,+32768
< +1,+0,+4,+1,+2.00000000E-010,-3.90000000E-010,+0,+1.00000000E-004,+1.50000000E+000,+32768
< +1,+0,+4,+1,+2.00000000E-010,-3.80000000E-010,+0,+1.00000000E-004,+1.50000000E+000,+32768
> :WAVeform:BYTeorder?
< MSBFirst
> :WAVeform:DATA?
< #800000008\x78\x00\x79\x00\x80\x00\x88\x0a
"""
    with oscilloscope(transcript("keysight-segments", changes)) as (scope, server):
        scope.configure(replace(SETTINGS, channels=SETTINGS.channels[:1]))
        refusals = iter([b'-113,"Undefined header"\n', b'+0,"No error"\n'])
        entry = server.entries[":SYSTem:ERRor?"]
        scope.arm()
        plain = entry.replies[0]

        def answers() -> object:
            if server.requests[-2] == ":WAVeform:SEGMented:ALL 1":
                return replace(plain, data=next(refusals))
            return plain

        entry.next = answers  # type: ignore[method-assign, assignment]
        frames = scope.collect(timeout_s=HANG_S).frames
    assert [frame.codes.tolist() for frame in frames] == [[0x7800, 0x7900, 0x8000, 0x880A]] * 3
    assert [frame.scaling.first_sample_s for frame in frames] == [-4e-10, -3.9e-10, -3.8e-10]
    assert [frame.time_tag_s for frame in frames] == [0.0, 1e-3, 2e-3]


def test_tektronix_reads_all_frames_of_all_channels() -> None:
    with oscilloscope(transcript("tektronix-frames")) as (scope, _):
        scope.configure(SETTINGS)
        acquisition = scope.acquire(timeout_s=HANG_S)
    assert [(frame.channel, frame.index) for frame in acquisition.frames] == [
        (1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (2, 2),
    ]  # fmt: skip
    frames = acquisition.frames[:3]
    assert [frame.codes.tolist() for frame in frames] == [
        [-2048, -1792, 0, 2058],
        [-2047, -1791, 1, 2059],
        [-2046, -1790, 2, 2060],
    ]
    assert all(frame.codes.dtype == np.int16 for frame in frames)
    assert _volts(frames[0]) == [1.34, 1.36, 1.5, 1.660781]
    first_s = [frame.scaling.first_sample_s for frame in frames]
    assert first_s == pytest.approx([-300e-12, -180.0001e-12, -320e-12], abs=1e-17)
    assert [frame.time_tag_s for frame in frames] == [0.0, 1.000123456e-3, 2e-3]
    assert (frames[0].scaling.code_low, frames[0].scaling.code_high) == (-0x7F01, 0x7F00)


FIRST, SECOND, THIRD = (rf"\x0{n}\xf8\x0{n}\xf9\x0{n}\x00\x0{'abc'[n]}\x08" for n in range(3))


@pytest.mark.parametrize(
    "curve",
    [
        f"< #224{FIRST}{SECOND}{THIRD}",
        f"< :CURVE #18{FIRST};#18{SECOND};#18{THIRD}",
        f"<raw #18{FIRST};#18{SECOND};#18{THIRD}",
    ],
    ids=["one block", "with header", "without newline"],
)
def test_tektronix_frames_in_other_forms(curve: str) -> None:
    with oscilloscope(transcript("tektronix-frames", f"> CURVe?\n{curve}")) as (scope, _):
        scope.configure(SETTINGS)
        frames = scope.acquire(timeout_s=HANG_S).frames
    assert [frame.codes[3] for frame in frames] == [2058, 2059, 2060] * 2


@pytest.mark.parametrize(
    ("stamps", "tags_s"),
    [
        # as TDS5000B prints them, and one that is not understood
        (
            '"1: 02 Mar 2000 23:59:59.999 999 000 000,2:03 Mar 2000 00:00:00.001 000 000 001,3:x"',
            [0.0, 0.001001000001, None],
        ),
        ("what is this", [None, None, None]),
    ],
)
def test_tektronix_time_stamps_in_other_forms(stamps: str, tags_s: list[float | None]) -> None:
    changes = f"> HORizontal:FASTframe:TIMEStamp:ALL?\n< {stamps}"
    with oscilloscope(transcript("tektronix-frames", changes)) as (scope, _):
        scope.configure(SETTINGS)
        frames = scope.acquire(timeout_s=HANG_S).frames
    assert [frame.time_tag_s for frame in frames[:3]] == tags_s


def test_tektronix_replies_with_headers_are_read_too() -> None:
    changes = "> WFMOutpre:XINcr?\n< :WFMOUTPRE:XINCR 160.0000E-12\n> ACQuire:STATE?\n< :ACQUIRE:STATE 0"
    with oscilloscope(transcript("tektronix-frames", changes)) as (scope, _):
        scope.configure(SETTINGS)
        assert scope.acquire(timeout_s=HANG_S).frames[0].scaling.sample_interval_s == 160e-12


def test_a_single_record_of_one_byte() -> None:
    keysight = r"""
> :WAVeform:FORMat BYTE
> :WAVeform:PREamble?
< +0,+0,+4,+1,+2.00000000E-010,-4.00000000E-010,+0,+1.00000000E-002,+1.50000000E+000,+128
> :WAVeform:DATA?
< #800000004\x0a\x7f\x80\xfe
"""
    tektronix = r"""
> ACQuire:NUMACq?
< 1
> DATa:WIDth 1
> WFMOutpre:BYT_Nr?
< 1
> CURVe?
< #14\x8a\xff\x00\x7e
"""
    settings = replace(SINGLE, sample_bytes=1, channels=SINGLE.channels[:1])
    for name, changes in (("keysight-segments", keysight), ("tektronix-frames", tektronix)):
        with oscilloscope(transcript(name, changes)) as (scope, _):
            scope.configure(settings)
            (frame,) = scope.acquire(timeout_s=HANG_S).frames
        assert (frame.index, frame.time_tag_s) == (0, 0.0)
        expected = [10, 127, 128, 254] if name == "keysight-segments" else [-118, -1, 0, 126]
        assert frame.codes.tolist() == expected


@pytest.mark.parametrize("dialect", DIALECTS)
def test_sets_a_deskew(dialect: str) -> None:
    with oscilloscope(transcript(f"{dialect}-setup")) as (scope, _):
        assert scope.set_deskew(2, 1.68e-9) == 1.68e-9


def test_settings_that_no_instrument_can_do() -> None:
    channel = ChannelSettings(1, 0.5)
    base, trigger = TimebaseSettings(1e-6), TriggerSettings(1, 0.0)
    for wrong in (
        lambda: ChannelSettings(0, 0.5),
        lambda: ChannelSettings(1, 0.0),
        lambda: ChannelSettings(1, float("nan")),
        lambda: ChannelSettings(1, 0.5, termination_ohm=75),
        lambda: ChannelSettings(1, 0.5, deskew_s=1e-6),
        lambda: ChannelSettings(1, 0.5, coupling=Coupling.AC, bandwidth_limit_hz=0.0),
        lambda: TimebaseSettings(0.0),
        lambda: OscilloscopeSettings((), base, trigger),
        lambda: OscilloscopeSettings((channel, channel), base, trigger),
        lambda: OscilloscopeSettings((channel,), base, TriggerSettings(2, 0.0)),
        lambda: OscilloscopeSettings((channel,), base, trigger, segments=0),
        lambda: OscilloscopeSettings((channel,), base, trigger, sample_bytes=3),
    ):
        with pytest.raises(SettingsError):
            wrong()
