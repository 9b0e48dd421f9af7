# SPDX-License-Identifier: Apache-2.0
"""The replays that records were judged from, each read once."""

from __future__ import annotations

from pathlib import Path

from reports.daq_replay.evidence import ReplayEvidence, load_replay
from reports.record.measurement import Measurement
from reports.tools.answers import StreamResult


def replay_folder(folder: Path, record: Measurement) -> Path | None:
    """Return the folder of the replay that a record was judged from."""
    for evidence in record.evidence:
        if evidence.path.endswith("/recv.ndjson"):
            return (folder / evidence.path).parent
    return None


class RecordReplays:
    """The replays of a run, by the records that were judged from them."""

    def __init__(self, folder: Path) -> None:
        """Read nothing yet from a run folder."""
        self._folder = folder
        self._read: dict[Path, ReplayEvidence] = {}

    def at(self, place: Path) -> ReplayEvidence:
        """Return the evidence of a folder of `replay_folder`."""
        if place not in self._read:
            self._read[place] = load_replay(place)
        return self._read[place]

    def of(self, record: Measurement) -> ReplayEvidence | None:
        """Return the evidence of a record's replay; None where it names none."""
        place = replay_folder(self._folder, record)
        return None if place is None else self.at(place)

    def stream_of(self, record: Measurement) -> StreamResult | None:
        """Return what the consumer saw of a record's stream; None where no evidence says it."""
        replay = self.of(record)
        streams = replay.recv.streams if replay and replay.recv else ()
        return next((stream for stream in streams if str(stream.id) == record.subject.stream), None)
