# SPDX-License-Identifier: Apache-2.0
"""Run control: acquisitions in a thread of their own, segment by segment."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from hw.virtual.oscilloscope.edges import EdgeSource
from hw.virtual.oscilloscope.faults import Fault
from hw.virtual.oscilloscope.front_end import Hardware
from hw.virtual.oscilloscope.recorder import Recorder, RecordSetup, Segment

CONTINUOUS_PAUSE_S = 0.005
"""Shortest time between acquisitions of a run without end: the screen is not updated more often."""

_WAIT_S = 0.02


class Acquisition:
    """What the RUN/STOP and SINGLE keys of an oscilloscope act upon.

    Attributes:
        segments: Records of the current or last acquisition, as far as they have come.
        count: Acquisitions completed since the last start.
    """

    def __init__(
        self, hardware: Hardware, source: EdgeSource, faults: set[Fault], completed: Callable[[], None]
    ) -> None:
        """Prepare; nothing runs yet.

        Args:
            hardware: What the instrument is made of.
            source: Edges at its inputs.
            faults: Defects, which may change at any time.
            completed: Called in the acquisition's thread after each acquisition.
        """
        self._recorder = Recorder(hardware, source)
        self._faults = faults
        self._completed = completed
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.segments: list[Segment] = []
        self.count = 0
        self.triggered = False

    @property
    def running(self) -> bool:
        """Tell whether an acquisition is going on."""
        return self._thread is not None and self._thread.is_alive()

    def start(self, setup: RecordSetup, continuous: bool) -> None:
        """Drop what was acquired and begin anew, with one acquisition or with one after the other."""
        self.stop()
        self._stop.clear()
        self.segments = []
        self.count = 0
        self.triggered = False
        self._thread = threading.Thread(
            target=self._run, args=(setup, continuous), name="acquisition", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """End; what has been acquired stays."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def wait(self, given_up: Callable[[], bool]) -> bool:
        """Wait for the end of an acquisition; False when `given_up` came first."""
        thread = self._thread
        while thread is not None and thread.is_alive():
            if given_up():
                return False
            thread.join(_WAIT_S)
        return True

    def _run(self, setup: RecordSetup, continuous: bool) -> None:
        self._recorder.rearm()
        while not self._stop.is_set():
            segments: list[Segment] = []
            if not continuous:
                self.segments = segments
            if not self._acquire(setup, segments):
                return
            self.segments = segments
            self.count += 1
            self._completed()
            if not continuous:
                return
            time.sleep(CONTINUOUS_PAUSE_S)

    def _acquire(self, setup: RecordSetup, segments: list[Segment]) -> bool:
        """Fill a list with the segments of one acquisition; False when stopped."""
        while len(segments) < setup.segments:
            if Fault.NO_TRIGGER in self._faults:
                if self._stop.wait(_WAIT_S):
                    return False
                continue
            if Fault.FEWER_FRAMES in self._faults and len(segments) >= setup.segments // 2:
                break
            segment = self._recorder.next_segment(setup, self._stop.is_set, Fault.CLIP in self._faults)
            if segment is None:
                return False
            self.triggered = self.triggered or segment.triggered
            segments.append(segment)
        return True
