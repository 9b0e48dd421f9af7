# SPDX-License-Identifier: Apache-2.0
"""FastFrame of a 5 Series MSO: frames, their time stamps, their sub-sample times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hw.virtual.oscilloscope.recorder import Segment
from hw.virtual.oscilloscope.scpi_errors import ScpiError
from hw.virtual.oscilloscope.scpi_message import Parameters
from hw.virtual.oscilloscope.scpi_tree import Suffixes
from hw.virtual.oscilloscope.tektronix.front_panel import FrontPanel
from hw.virtual.oscilloscope.tektronix.replies import QuotedString, engineering
from hw.virtual.oscilloscope.tektronix.settings import frames_max

PS_PER_SECOND = 10**12
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def sub_sample_s(segment: Segment) -> float:
    """Return the time from the trigger to the sample next after it, which PT_OFF counts."""
    return segment.first_sample_s + segment.setup.trigger_index * segment.setup.sample_interval_s


def time_stamp(segment: Segment) -> str:
    """Return when a frame's trigger was, to the picosecond: `DD.MM.YYYY HH:MM:SS.xxxxxxxxxxxx`."""
    seconds, fraction_ps = divmod(segment.stamp_ps, PS_PER_SECOND)
    return f"{_EPOCH + timedelta(seconds=seconds):%d.%m.%Y %H:%M:%S}.{fraction_ps:012d}"


def add_commands(scope: FrontPanel) -> None:
    """Add the commands of HORizontal:FASTframe."""
    settings = scope.settings_of

    def set_count(_: Suffixes, p: Parameters) -> None:
        wanted = p.integer_within(1, 1_000_000)
        most = frames_max(settings(), scope.hardware)
        if wanted > most:
            scope.warn(528, p.texts[0][:40])
        settings().frame_count = min(wanted, most)

    def frame_number(p: Parameters) -> int:
        return min(p.integer_within(1, 1_000_000), max(1, len(scope.acquisition.segments)))

    def frame(number: int) -> Segment:
        segments = scope.acquisition.segments
        if not segments:
            raise ScpiError(2244)
        return segments[min(number, len(segments)) - 1]

    def listing(texts: list[str]) -> object:
        if not texts:
            raise ScpiError(2244)
        return scope.listing(",".join(f"{number}:{text}" for number, text in enumerate(texts, start=1)))

    def delta() -> QuotedString:
        selected, reference = frame(settings().frame_selected), frame(settings().frame_reference)
        difference_ps = selected.stamp_ps - reference.stamp_ps
        seconds, fraction_ps = divmod(abs(difference_ps), PS_PER_SECOND)
        return QuotedString(f"{'-' if difference_ps < 0 else ''}{seconds}.{fraction_ps:012d}")

    group = "HORizontal:FASTframe"
    scope.add_field(f"{group}:STATE", settings, "fast_frame", Parameters.boolean)
    scope.add_setting(f"{group}:COUNt", lambda _: settings().frame_count, set_count)
    scope.add_query(f"{group}:MAXFRames", lambda _: frames_max(settings(), scope.hardware))
    scope.add_field(f"{group}:SELECTED", settings, "frame_selected", frame_number)
    scope.add_field(f"{group}:REF:FRAme", settings, "frame_reference", frame_number)
    stamps = f"{group}:TIMEStamp"
    scope.add_query(f"{stamps}:ALL", lambda _: listing([time_stamp(s) for s in scope.acquisition.segments]))
    scope.add_query(
        f"{stamps}:SELECTED", lambda _: QuotedString(time_stamp(frame(settings().frame_selected)))
    )
    scope.add_query(
        f"{stamps}:REFerence", lambda _: QuotedString(time_stamp(frame(settings().frame_reference)))
    )
    scope.add_query(f"{stamps}:DELTa", lambda _: delta())
    zeros = f"{group}:XZEro"
    scope.add_query(
        f"{zeros}:ALL",
        lambda _: listing([engineering(sub_sample_s(s), 4) for s in scope.acquisition.segments]),
    )
    scope.add_query(f"{zeros}:SELECTED", lambda _: sub_sample_s(frame(settings().frame_selected)))
    scope.add_query(f"{zeros}:REF", lambda _: sub_sample_s(frame(settings().frame_reference)))
