# SPDX-License-Identifier: Apache-2.0
"""Faults of instruments: errors name instrument, command and reason; what was acquired is kept."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

from scope.drivers.identity import Dialect
from scope.drivers.oscilloscope import open_oscilloscope
from scope.errors import InstrumentError
from scope.incomplete import IncompleteAcquisitionError
from scope.settings import ChannelSettings
from tests.scope.driver_bench import SETTINGS, SINGLE, TIMEOUT_S, oscilloscope, transcript
from tests.scope.transcript import TranscriptServer

pytestmark = pytest.mark.timed

DIALECTS = ["keysight", "tektronix"]
FRAMES = {"keysight": "keysight-segments", "tektronix": "tektronix-frames"}
DATA = {"keysight": ":WAVeform:DATA?", "tektronix": "CURVe?"}


def _acquire(dialect: str, changes: str, timeout_s: float = 0.3) -> IncompleteAcquisitionError:
    """Acquire three segments of two channels, which has to fail."""
    with oscilloscope(transcript(FRAMES[dialect], changes), TIMEOUT_S) as (scope, _):
        scope.configure(SETTINGS)
        scope.arm()
        with pytest.raises(IncompleteAcquisitionError) as refused:
            scope.collect(timeout_s)
    error = refused.value
    assert error.instrument.startswith("scope-a (TCPIP::127.0.0.1::")
    assert str(error).startswith(f"{error.instrument}: {error.command}: {error.reason}")
    assert error.acquired.wanted == 3
    return error


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("KEYSIGHT TECHNOLOGIES,34465A,MY1,A.03", "is neither a Keysight InfiniiVision nor a Tektronix"),
        ("> TEKTRONIX,MSO58,C012345,CF:91.1CT FV:1.30.5", "set the protocol of the socket server to None"),
        (
            r"\xff\xfb\x03\xff\xfb\x01> TEKTRONIX,MSO58,C012345,x",
            "set the protocol of the socket server to None",
        ),
        (r"\xff\xfd\x18", "set the protocol of the socket server to None"),
        ("Welcome to Keysight telnet", "not four fields but 'Welcome to Keysight telnet'"),
        (r"\xff\xfe\x00", "garbage in place of text"),
    ],
)
def test_a_wrong_identity(reply: str, reason: str) -> None:
    with TranscriptServer(f"> *IDN?\n< {reply}") as server:
        with pytest.raises(InstrumentError) as refused:
            open_oscilloscope("scope-a", server.resource, timeout_s=TIMEOUT_S)
        assert reason in refused.value.reason
        assert refused.value.command == "*IDN?"


def test_another_dialect_than_the_bench_says() -> None:
    dialect = Dialect.KEYSIGHT_INFINIIVISION
    with (
        TranscriptServer(transcript("tektronix-setup")) as server,
        pytest.raises(InstrumentError, match="does not speak keysight-infiniivision"),
    ):
        open_oscilloscope("scope-a", server.resource, dialect, timeout_s=TIMEOUT_S)


def test_a_late_reply_to_somebody_else_is_thrown_away() -> None:
    changes = "> *IDN?\n< +1.0E+00\n< KEYSIGHT TECHNOLOGIES,MSO-X 3054T,MY55100001,07.40"
    with oscilloscope(transcript("keysight-setup", changes), TIMEOUT_S) as (scope, _):
        assert scope.identity.model == "MSO-X 3054T"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_trigger(dialect: str) -> None:
    """Nothing hangs: the acquisition is stopped at the deadline, and it says so."""
    changes = {
        "keysight": "> :OPERegister:CONDition?\n< +8\n> :WAVeform:SEGMented:COUNt?\n< +0",
        "tektronix": "> ACQuire:STATE?\n< 1\n> ACQuire:NUMFRAMESACQuired?\n< 0",
    }[dialect]
    start_s = time.monotonic()
    error = _acquire(dialect, changes)
    assert time.monotonic() - start_s < 10
    assert error.reason == "no trigger within 0.3 s: 0 of 3 segments; kept: 0 of 3 segments"
    assert error.command == "trigger"
    assert error.acquired.frames == ()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_trigger_of_a_single_record(dialect: str) -> None:
    changes = {
        "keysight": "> :OPERegister:CONDition?\n< +8",
        "tektronix": "> ACQuire:STATE?\n< 1",
    }[dialect]
    with oscilloscope(transcript(FRAMES[dialect], changes), TIMEOUT_S) as (scope, _):
        scope.configure(SINGLE)
        with pytest.raises(IncompleteAcquisitionError, match=r"no trigger within 0\.2 s: 0 of 1 segments"):
            scope.acquire(0.2)


def test_keysight_that_was_stopped_is_no_acquisition() -> None:
    """The RUN bit is set, then clear, and no trigger has come: Stop at the front."""
    changes = "> :OPERegister:CONDition?\n< +8\n< +0\n> :TER?\n< +0"
    with oscilloscope(transcript(FRAMES["keysight"], changes), TIMEOUT_S) as (scope, _):
        scope.configure(SINGLE)
        with pytest.raises(
            IncompleteAcquisitionError, match="0 segments were acquired, 1 asked for: it was stopped"
        ):
            scope.acquire(5.0)


def test_keysight_that_has_not_armed_yet_is_waited_for() -> None:
    """A clear RUN bit at the first look: then it arms, and no trigger comes."""
    changes = "> :OPERegister:CONDition?\n< +0\n< +0\n< +8\n> :TER?\n< +0"
    with oscilloscope(transcript(FRAMES["keysight"], changes), TIMEOUT_S) as (scope, _):
        scope.configure(SINGLE)
        with pytest.raises(IncompleteAcquisitionError, match=r"no trigger within 0\.3 s: 0 of 1 segments"):
            scope.acquire(0.3)


def test_keysight_whose_trigger_came_before_the_first_look_has_acquired() -> None:
    changes = "> :OPERegister:CONDition?\n< +0\n> :TER?\n< +1\n< +0"
    with oscilloscope(transcript(FRAMES["keysight"], changes), TIMEOUT_S) as (scope, _):
        scope.configure(SINGLE)
        scope.arm()
        commands = scope._commands  # pyright: ignore[reportPrivateUsage]
        assert commands is not None
        assert not commands.running()
        assert commands.acquired(1, True) == 1, "the register is cleared as it is read: it was noted"


TWO = {
    "keysight": r"""
> :WAVeform:SEGMented:COUNt?
< +2
> :WAVeform:SEGMented:XLISt? RELXorigin
< #800000033-4.00000000E-010,-3.50000000E-010
> :WAVeform:SEGMented:XLISt? TTAG
< #800000026+0.0E+000,+1.00000001E-003
> :WAVeform:DATA?
< #800000016\x00\x78\x00\x79\x00\x80\x0a\x88\x01\x78\x01\x79\x01\x80\x0b\x88
""",
    "tektronix": r"""
> ACQuire:NUMFRAMESACQuired?
< 2
> DATa:FRAMESTOP 2
> CURVe?
< #18\x00\xf8\x00\xf9\x00\x00\x0a\x08;#18\x01\xf8\x01\xf9\x01\x00\x0b\x08
""",
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_fewer_segments_than_asked_for(dialect: str) -> None:
    error = _acquire(dialect, TWO[dialect])
    assert error.reason == "2 segments were acquired, 3 asked for; kept: 2 of 3 segments"
    assert [(frame.channel, frame.index) for frame in error.acquired.frames] == [
        (1, 0),
        (1, 1),
        (2, 0),
        (2, 1),
    ]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_triggers_that_stop_coming(dialect: str) -> None:
    running = {"keysight": "> :OPERegister:CONDition?\n< +8", "tektronix": "> ACQuire:STATE?\n< 1"}[dialect]
    error = _acquire(dialect, TWO[dialect] + running)
    assert error.reason == "no trigger within 0.3 s: 2 of 3 segments; kept: 2 of 3 segments"
    assert len(error.acquired.frames) == 4


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("end", ["close", "raw"])
def test_stops_answering_in_mid_transfer(dialect: str, end: str) -> None:
    """Whole frames before the break are kept."""
    changes = {
        "keysight": r"#800000024\x00\x78\x00\x79\x00\x80\x0a\x88\x01\x78\x01\x79\x01\x80\x0b\x88\x02\x78",
        "tektronix": r"#18\x00\xf8\x00\xf9\x00\x00\x0a\x08;#18\x01\xf8\x01\xf9\x01\x00\x0b\x08;#18\x02\xf8",
    }[dialect]
    error = _acquire(dialect, f"> {DATA[dialect]}\n<{end} {changes}")
    assert ("the connection was lost" if end == "close" else "stopped answering") in error.reason
    assert error.command == DATA[dialect]
    assert [(frame.channel, frame.index) for frame in error.acquired.frames] == [(1, 0), (1, 1)]
    assert error.acquired.frames[1].codes.size == 4


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_second_channel_breaks_off(dialect: str) -> None:
    whole = transcript(FRAMES[dialect]).partition(f"> {DATA[dialect]}\n")[2].partition("\n")[0]
    error = _acquire(dialect, f"> {DATA[dialect]}\n{whole}\n<close #18\n")
    assert [(frame.channel, frame.index) for frame in error.acquired.frames] == [(1, 0), (1, 1), (1, 2)]
    assert error.reason.endswith("kept: 3 of 3 segments")


@pytest.mark.parametrize(
    ("dialect", "changes", "reason"),
    [
        ("keysight", "> :WAVeform:DATA?\n< #800000023aaaaaaaaaaaaaaaaaaaaaaa", "of 23 bytes, must have 24"),
        ("keysight", "> :WAVeform:DATA?\n< ?!", "no block but b'?'"),
        ("keysight", "> :WAVeform:PREamble?\n< +1,+0,+4", "preamble of 3 fields, must have 10"),
        ("keysight", "> :WAVeform:PREamble?\n< a,b,c,d,e,f,g,h,i,j", "'a' in place of a number"),
        ("keysight", "> :WAVeform:PREamble?\n< +1,+0,+0,+1,+2E-10,+0,+0,+1E-4,+0,+32768", "no samples"),
        ("keysight", "> :WAVeform:PREamble?\n< +1,+1,+4,+1,+2E-10,+0,+0,+1E-4,+0,+32768", "peak detect"),
        ("keysight", "> :WAVeform:PREamble?\n< +4,+0,+4,+1,+2E-10,+0,+0,+1E-4,+0,+32768", "format 4 is"),
        ("keysight", "> :WAVeform:UNSigned?\n< +0", "was not taken"),
        ("keysight", "> :WAVeform:SEGMented:XLISt? TTAG\n< #10", "in place of a number"),
        ("keysight", "> :WAVeform:SEGMented:XLISt? TTAG\n< #15+0,+1", "2 numbers for 3 segments"),
        ("keysight", "> :WAVeform:SEGMented:XLISt? RELXorigin\n< #205+0,+1", "2 numbers for 3 segments"),
        ("keysight", "> :WAVeform:SEGMented:XLISt? RELXorigin\n< #18+1,+0,+0", "contradicts the preamble"),
        ("keysight", "> :SINGle\n> :OPERegister:CONDition?\n< what", "'what' in place of a number"),
        ("tektronix", "> CURVe?\n< #18aaaaaaaa;#17aaaaaaa", "block of 7 bytes, must have 8"),
        ("tektronix", "> CURVe?\n< #18aaaaaaaa;#18aaaaaaaa", "sent 2 of 3 frames"),
        ("tektronix", "> CURVe?\n< #18aaaaaaaa;#18aaaaaaaa;#18aaaaaaaa;#18aaaaaaaa", "more than 3 frames"),
        ("tektronix", "> CURVe?\n< 61,62,63", "no block but b'61,'"),
        ("tektronix", "> WFMOutpre:BN_Fmt?\n< FP", "samples of FP, LSB first cannot be read"),
        ("tektronix", "> WFMOutpre:BYT_Nr?\n< 4", "4 bytes a sample"),
        ("tektronix", "> WFMOutpre:XINcr?\n< 9.91E+37", "has no value"),
        ("tektronix", "> WFMOutpre:NR_Pt?\n< 0", "0 samples"),
        ("tektronix", "> HORizontal:FASTframe:XZEro:ALL?\n< 1:0.0E+0,3:0.0E+0", "frame 2 is missing"),
        ("tektronix", "> HORizontal:FASTframe:XZEro:ALL?\n< 1:0,2:0,3:-20.0E-6", "frame 3 contradicts"),
    ],
)  # fmt: skip
def test_garbage(dialect: str, changes: str, reason: str) -> None:
    assert reason in _acquire(dialect, changes).reason


def _clipped(dialect: str, high: str, low: str) -> IncompleteAcquisitionError:
    last = {"keysight": r"\x02\x78\x02\x79\x02\x80\x0c\x88", "tektronix": r"\x02\xf8\x02\xf9\x02\x00\x0c\x08"}
    curve = {
        "keysight": rf"#800000024{high}\x00\x79\x00\x80\x0a\x88\x01\x78\x01\x79\x01\x80{low}",
        "tektronix": rf"#18{high}\x00\xf9\x00\x00\x0a\x08;#18\x01\xf8\x01\xf9\x01\x00{low};#18",
    }[dialect] + last[dialect]
    return _acquire(dialect, f"> {DATA[dialect]}\n< {curve}")


@pytest.mark.parametrize(
    ("dialect", "high", "low", "segment"),
    [
        ("keysight", r"\xff\xff", r"\x0b\x88", 1),
        ("keysight", r"\x00\xff", r"\x0b\x88", 1),  # an 8-bit code, left-shifted
        ("keysight", r"\x00\x78", r"\x01\x00", 2),
        ("keysight", r"\x00\x78", r"\x00\x01", 2),
        ("tektronix", r"\xff\x7f", r"\x0b\x08", 1),
        ("tektronix", r"\x00\xf8", r"\x00\x80", 2),
    ],
)
def test_a_clipped_signal(dialect: str, high: str, low: str, segment: int) -> None:
    error = _clipped(dialect, high, low)
    assert error.reason.startswith(
        f"channel 1, segment {segment}: 1 of 4 samples are clipped; choose a larger"
    )
    assert len(error.acquired.frames) == 6
    assert error.command == DATA[dialect]


def test_a_clipped_signal_may_be_allowed() -> None:
    changes = "> CURVe?\n< " + ";".join([r"#18\xff\x7f\x00\xf9\x00\x00\x0a\x08"] * 3)
    with oscilloscope(transcript("tektronix-frames", changes), TIMEOUT_S) as (scope, _):
        scope.configure(replace(SETTINGS, allow_clipped=True))
        assert int(np.max(scope.acquire(5).frames[0].codes)) == 0x7FFF


def test_tektronix_says_that_it_clips() -> None:
    error = _acquire("tektronix", "> CH2:CLIPping?\n< 1")
    assert "channel 2 is clipped, says the instrument" in error.reason


def test_keysight_samples_that_were_not_acquired() -> None:
    error = _clipped("keysight", r"\x00\x00", r"\x0b\x88")
    assert "channel 1, segment 1: 1 samples were not acquired" in error.reason


@pytest.mark.parametrize(
    ("dialect", "changes", "command", "reason"),
    [
        ("keysight", "> :SYSTem:ERRor?\n< +0,\"\"\n< -222,\"Data out of range\"\n< +0,\"No error\"",
         ":STOP", "refused: -222 Data out of range"),
        ("keysight", "> :SYSTem:ERRor?\n< -350,\"Queue overflow\"", ":SYSTem:ERRor?", "does not end"),
        ("keysight", "> :SYSTem:ERRor?\n< what", ":SYSTem:ERRor?", "in place of an error number"),
        ("keysight", "> :CHANnel2:PROBe:SKEW?\n< +1.0E-09", "deskew of channel 2", "1e-09 s was set"),
        ("keysight", "> :ACQuire:SEGMented:COUNt?\n< +2", ":ACQuire:SEGMented:COUNt 3", "set 2 segments"),
        ("keysight", "> :ACQuire:SRATe?\n< +1.0E+009", "time base", "at least 5e+09 are needed"),
        ("keysight", "> :TIMebase:RANGe?\n< +5.0E-007", "time base", "a window of 5e-07 s was set"),
        ("keysight", "> :CHANnel1:SCALe?\n< +1.0E+000", "scale of channel 1", "1 V/div was set, 0.5 V/div"),
        ("tektronix", "> CH1:OFFSet?\n< 0.0E+0", "offset of channel 1", "0 V was set, 1.5 V asked for"),
        ("tektronix", "> HORizontal:FASTframe:MAXFRames?\n< 2", "HORizontal:FASTframe:COUNt 3", "at most 2"),
        ("tektronix", "> *ESR?\n< 0\n< 0\n< 32\n< 0\n> ALLEv?\n< 113,\"Undefined header; ACQUIRE, OFF\"",
         "ACQuire:STATE OFF", "refused: 113 Undefined header; ACQUIRE, OFF"),
        ("tektronix", "> *ESR?\n< 0\n< 0\n< 16\n< 0\n> ALLEv?\n< 0,\"queue empty\"", "ACQuire:STATE OFF",
         "event status 16, and no event that explains it"),
        ("tektronix", "> *ESR?\n< what", "*ESR?", "no number in reply"),
    ],
)  # fmt: skip
def test_a_set_up_that_is_refused(dialect: str, changes: str, command: str, reason: str) -> None:
    with TranscriptServer(transcript(f"{dialect}-setup", changes)) as server:
        with pytest.raises(InstrumentError) as refused:
            open_oscilloscope("scope-a", server.resource, timeout_s=TIMEOUT_S).configure(SETTINGS)
        assert reason in refused.value.reason
        assert refused.value.command == command
        assert refused.value.instrument.startswith("scope-a (")


def test_tektronix_warnings_are_remarks() -> None:
    changes = '> *ESR?\n< 0\n< 0\n< 16\n< 0\n> ALLEv?\n< 540,"Measurement warning; rounded"'
    with oscilloscope(transcript("tektronix-setup", changes), TIMEOUT_S) as (scope, _):
        assert scope.configure(SETTINGS).remarks == ("540 Measurement warning; rounded",)


def test_an_unknown_question_is_explained_by_the_error_queue() -> None:
    """No reply at all; the reason is in the queue, which another connection can read."""
    changes = """
> :ACQuire:SRATe?
<silent
> :ACQuire:SEGMented:COUNt?
< +3
"""
    with TranscriptServer(transcript("keysight-setup", changes)) as server:
        scope = open_oscilloscope("scope-a", server.resource, timeout_s=TIMEOUT_S)
        plain = server.entries[":SYSTem:ERRor?"].replies[0]
        answers = iter([b'-113,"Undefined header"\n', b'+0,"No error"\n'])

        def answer() -> object:
            return plain if server.connections == 1 else replace(plain, data=next(answers))

        server.entries[":SYSTem:ERRor?"].next = answer  # type: ignore[method-assign, assignment]
        with pytest.raises(InstrumentError, match=r"SRATe\?: no answer within 0\.6 s: -113 Undefined header"):
            scope.configure(SETTINGS)
        scope.close()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_reconnects_and_sets_up_anew(dialect: str) -> None:
    whole = transcript(FRAMES[dialect]).partition(f"> {DATA[dialect]}\n")[2].partition("\n")[0]
    with oscilloscope(transcript(FRAMES[dialect], f"> {DATA[dialect]}\n<close #1\n{whole}\n"), TIMEOUT_S) as (
        scope,
        server,
    ):
        scope.configure(SETTINGS)
        with pytest.raises(IncompleteAcquisitionError):
            scope.acquire(5)
        first = ":ACQuire:TYPE NORMal" if dialect == "keysight" else "ACQuire:MODe SAMple"
        assert server.requests.count(first) == 1
        assert len(scope.acquire(5).frames) == 6
        assert server.connections == 2
        assert server.requests.count(first) == 2


def test_another_instrument_at_the_same_address() -> None:
    changes = (
        "> *IDN?\n< KEYSIGHT TECHNOLOGIES,MSO-X 3054T,MY55100001,07.40\n"
        "< KEYSIGHT TECHNOLOGIES,MSO-X 3054T,MY55100002,07.40\n> :ACQuire:SRATe?\n<close "
    )
    with oscilloscope(transcript("keysight-setup", changes), TIMEOUT_S) as (scope, _):
        with pytest.raises(InstrumentError, match="connection was lost"):
            scope.configure(SETTINGS)
        with pytest.raises(InstrumentError, match=r"another instrument than before: .*MY55100002"):
            scope.configure(SETTINGS)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_order_of_use(dialect: str) -> None:
    with oscilloscope(transcript(f"{dialect}-setup"), TIMEOUT_S) as (scope, _):
        with pytest.raises(InstrumentError, match="is not set up: configure first"):
            scope.arm()
        with pytest.raises(InstrumentError, match="is not armed: arm first"):
            scope.collect(1.0)
        wrong = replace(SETTINGS, channels=(*SETTINGS.channels, ChannelSettings(8, 1.0)))
        with pytest.raises(InstrumentError, match="channels, not 8"):
            scope.configure(wrong)


def test_keysight_has_one_bandwidth_limit() -> None:
    wrong = replace(SETTINGS, channels=(replace(SETTINGS.channels[0], bandwidth_limit_hz=200e6),))
    with (
        oscilloscope(transcript("keysight-setup"), TIMEOUT_S) as (scope, _),
        pytest.raises(InstrumentError, match="CHANnel1:BWLimit: limits to 20 or 25 MHz by model"),
    ):
        scope.configure(wrong)
