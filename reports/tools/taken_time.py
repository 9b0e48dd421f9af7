# SPDX-License-Identifier: Apache-2.0
"""How much time the bench's machine took from a message: an amount, and never more than was measured.

The witness wakes up on each CPU at fixed intervals; where it wakes up late, the CPU was not at the bench's
disposal. Where the target is emulated, its emulator may not run it though it has to
(reports/daq_replay/emulation.py): a pause like the others. A pause takes from a message

- the part of it that falls into the message's way, and
- what the bench, while it works off what has piled up in the pause, still keeps the message waiting.

The second is bounded by the pause and by the share of the machine that the bench uses at all (utilisation):
in a pause work piles up at that share, afterwards it is worked off with the rest. It never depends on what
the target does. docs/latency.md, `What the machine took`, has the rule in full.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from reports.tools.answers import WitnessResult

UTILISATION_MAX_PERMILLE = 500
"""A bench that uses more of its machine than this gets no longer to work off what has piled up."""
_WHOLE = 1000


@dataclass(frozen=True, slots=True)
class TakenTime:
    """Pauses of a machine and of an emulator on it, joined, and the work that each has left.

    Times are TAI of the witness, in ns.

    Attributes:
        starts_ns: Of each pause; ascending.
        ends_ns: Of each; before the next one's start.
        before_ns: Sum of the lengths of all pauses before each.
        piled_up: Work left over when each begins, in ns times 1000.
        utilisation_permille: Of the machine by the bench, at most `UTILISATION_MAX_PERMILLE`.
    """

    starts_ns: tuple[int, ...]
    ends_ns: tuple[int, ...]
    before_ns: tuple[int, ...]
    piled_up: tuple[int, ...]
    utilisation_permille: int

    @classmethod
    def of(
        cls,
        witness: WitnessResult,
        emulator_pauses: Sequence[tuple[int, int]] = (),
        *,
        known: bool = False,
    ) -> TakenTime:
        """Return what a witness saw, and what an emulator did not run.

        A pause may have begun as long as one wake-up interval before the wake-up that it delayed: so much
        earlier it is taken to begin, and to be shorter by what the target itself ran since then; those of an
        emulator are as long as they are given. Without a measured
        utilisation nothing is put down to working off.

        Args:
            witness: Its result.
            emulator_pauses: (start, end) of each, in ns.
            known: Without what nobody claims: it may have been the target's, by interrupts.
        """
        utilisation = min(witness.utilisation_permille or 0, UTILISATION_MAX_PERMILLE)
        return cls.between([*witness.pauses(known=known), *emulator_pauses], utilisation)

    @classmethod
    def between(cls, pauses: Iterable[tuple[int, int]], utilisation: int = 0) -> TakenTime:
        """Return what pauses took, and what a bench that uses so many ‰ works off behind them."""
        starts: list[int] = []
        ends: list[int] = []
        for begun, end in sorted(pauses):
            if ends and begun <= ends[-1]:
                ends[-1] = max(ends[-1], end)
            elif end > begun:
                starts.append(begun)
                ends.append(end)
        before: list[int] = []
        piled_up: list[int] = []
        total_ns = left = 0
        for number, (start, end) in enumerate(zip(starts, ends, strict=True)):
            if number:
                left = max(0, left - (_WHOLE - utilisation) * (start - ends[number - 1]))
            before.append(total_ns)
            piled_up.append(left)
            total_ns += end - start
            left += utilisation * (end - start)
        return cls(tuple(starts), tuple(ends), tuple(before), tuple(piled_up), utilisation)

    def most_ns(self, begin_ns: int, end_ns: int) -> int:
        """Return the most that the machine can have taken between two instants, in ns.

        Args:
            begin_ns: From then on the message was under way; widened by what the clocks are unsure of.
            end_ns: Until then; widened likewise.
        """
        if end_ns <= begin_ns:
            return 0
        paused_ns = self._paused_until(end_ns) - self._paused_until(begin_ns)
        waiting = self._piled_up_at(begin_ns) + self.utilisation_permille * paused_ns
        return min(end_ns - begin_ns, paused_ns + -(-waiting // _WHOLE))

    def paused_ns(self, begin_ns: int, end_ns: int) -> int:
        """Return how long pauses lasted between two instants, in ns."""
        return self._paused_until(end_ns) - self._paused_until(begin_ns)

    def _paused_until(self, time_ns: int) -> int:
        index = bisect_right(self.starts_ns, time_ns) - 1
        if index < 0:
            return 0
        return self.before_ns[index] + min(time_ns, self.ends_ns[index]) - self.starts_ns[index]

    def _piled_up_at(self, time_ns: int) -> int:
        index = bisect_right(self.starts_ns, time_ns) - 1
        if index < 0:
            return 0
        start_ns, end_ns = self.starts_ns[index], self.ends_ns[index]
        piled_up = self.piled_up[index] + self.utilisation_permille * (min(time_ns, end_ns) - start_ns)
        return max(0, piled_up - (_WHOLE - self.utilisation_permille) * max(0, time_ns - end_ns))
