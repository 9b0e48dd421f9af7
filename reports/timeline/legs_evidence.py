# SPDX-License-Identifier: Apache-2.0
"""Stimulus and response between two machines: the evidence.

The folder holds `legs.json` (this file's dataclasses), of each end the answer of `bw-traffic stimulus` and
the stream of its points, and of an end whose clock is not the bench's reference the answer of
`bw-traffic offset`, which had asked that clock all the while.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from reports.errors import RecordError
from reports.record.codec import omit_none
from reports.record.document import read_document, write_document
from reports.timeline.capability import LEGS
from reports.timeline.recorded_end import RecordedEnd, require_plain
from reports.tools.answers import Reader, last_result

SCHEMA = "benchwright.timeline_legs/1"
FOLDER = "timeline"
LEGS_FILE = "legs.json"


@dataclass(frozen=True)
class KnownDelay:
    """A delay that the programs put into one leg, in each second turn of so many messages."""

    leg: str
    delay_us: int
    turn: int


@dataclass(frozen=True)
class Card:
    """A timecard in the target that takes no part: what it says of the target's clock is held against places.

    Attributes:
        answer: File of `bw-clock compare`, of the target's clock against the card.
        bound_ns: Of the card's own error.
    """

    answer: str
    bound_ns: int


@dataclass(frozen=True)
class StimulusResponse:
    """What `legs.json` holds.

    Attributes:
        target: Its kind.
        server: Sends the stimuli; at a producer's node.
        client: Answers each; at the target.
        count: Stimuli.
        interval_us: From one to the next.
        tai_utc_s: TAI - UTC, as all tools used it.
        least_ns: What cables and switches take at least, one way.
        delay: None: nothing was delayed.
        card: None: none was read.
    """

    target: str
    server: RecordedEnd
    client: RecordedEnd
    size_bytes: int
    count: int
    interval_us: int
    tai_utc_s: int
    least_ns: int
    delay: KnownDelay | None = omit_none()  # noqa: RUF009 - a field
    card: Card | None = omit_none()  # noqa: RUF009 - a field
    schema: str = SCHEMA

    @property
    def files(self) -> tuple[str, ...]:
        """Return the names of all files beside `legs.json`."""
        card = (self.card.answer,) if self.card else ()
        return (*self.server.files, *self.client.files, *card)


@dataclass(frozen=True, slots=True)
class EndAnswer:
    """The answer of `bw-traffic stimulus`; times in ns.

    Attributes:
        negative: Messages that had come before they were sent, by the two ends' own clocks.
        sending_ns: Median of the time from a message's stamp to the call that sends it.
        sending_delayed_ns: The same of those messages whose leg has a known delay; None: none has.
    """

    complete: bool
    count: int
    size_bytes: int
    sent: int
    received: int
    negative: int
    sending_ns: int | None
    sending_delayed_ns: int | None


def write_legs(folder: Path, found: StimulusResponse) -> Path:
    """Write `legs.json` and return its path."""
    return write_document(folder / LEGS_FILE, found)


def load_legs(folder: Path) -> StimulusResponse:
    """Read `legs.json`; raises RecordError: names the key."""
    found = read_document(StimulusResponse, folder / LEGS_FILE, SCHEMA)
    require_plain(found.files, LEGS_FILE)
    if found.server.node == found.client.node:
        raise RecordError(f"{LEGS_FILE}: both ends are on {found.server.node}")
    if min(found.count, found.size_bytes, found.interval_us) < 1 or found.least_ns < 0:
        raise RecordError(f"{LEGS_FILE}: need count, size_bytes, interval_us >= 1 and least_ns >= 0")
    if found.card is not None and found.card.bound_ns < 0:
        raise RecordError(f"{LEGS_FILE}: card.bound_ns: must be 0 and more")
    if found.delay is not None and (
        found.delay.leg not in LEGS or min(found.delay.delay_us, found.delay.turn) < 1
    ):
        raise RecordError(f"{LEGS_FILE}: delay: needs leg of {', '.join(LEGS)}; delay_us, turn >= 1")
    return found


def load_end(folder: Path, end: RecordedEnd, of: StimulusResponse) -> EndAnswer:
    """Read the answer of an end; raises RecordError: names file and key."""
    reader = Reader(last_result(folder / end.answer), end.answer)
    spec: dict[str, tuple[type, ...]] = {"complete": (bool,)}
    spec |= dict.fromkeys(("count", "size_bytes", "sent", "received", "negative"), (int,))
    found = EndAnswer(
        sending_ns=_median_ns(reader, "sending"),
        sending_delayed_ns=_median_ns(reader, "sending_delayed"),
        **reader.fields(spec),
    )
    if (found.count, found.size_bytes) != (of.count, of.size_bytes):
        raise RecordError(
            f"{end.answer}: {found.count} messages of {found.size_bytes} bytes,"
            f" {LEGS_FILE} has {of.count} of {of.size_bytes}"
        )
    return found


def _median_ns(reader: Reader, key: str) -> int | None:
    found = reader.summary(key).quantile(0.5)
    return None if found is None else found.value_ns
