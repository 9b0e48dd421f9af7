# SPDX-License-Identifier: Apache-2.0
"""A clock stack on a target: provisioned, started, watched, cut off, and undone.

Use:
    with ClockStack(bench, target, "chrony", ClockSettings(sync_interval_s=30), folder, say) as stack:
        lock = stack.wait_locked(120)
        …
        stack.require_running()

What is at fault with a clock (no PHC, no permission, a daemon that dies, a server that lies, a grandmaster
that vanishes) is a MeasurementError with the cause: the measurement is inconclusive, never a pass.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import TracebackType

from hw.bench import TargetSpec
from hw.errors import BenchError, CapabilityError, MeasurementError
from hw.open_bench import Nodes
from hw.provisioning import TARGETS
from reports.clock_sync.tai_utc import TaiUtc
from reports.clock_sync.trial import Lock
from reports.units import NS_PER_S
from resources.clock_sync.config import Place, client_files, server_files
from resources.clock_sync.kind import ClockKind, load_clock_kind
from resources.clock_sync.lock import RateGoal, farthest_offset_ns, is_locked, why_not_locked
from resources.clock_sync.refused_answers import ANSWER_READERS
from resources.clock_sync.role import ClockRole, Daemon
from resources.clock_sync.servo_log import ServoLog
from resources.clock_sync.settings import STACKS, ClockSettings, StackSpec, load_stack
from resources.clock_sync.tai_utc import agreed_s, read_tai_utc

Progress = Callable[[str], None]

SERVER_KIND = "linux-rt"
"""What every time server is, whatever its targets are: folder below `targets/` with its scripts."""
LOOK_S = 1.0
"""Time between two looks at a servo's log: how finely the time to a lock is known."""
LOOKS_A_CHECK = 4
"""Every so many looks it is checked that the daemons run: that costs the target some work."""
KEEP_LOOK_S = 10.0


class ClockStack:
    """A clock stack on one target, with its time server. As a context manager it stops what it started."""

    def __init__(
        self,
        bench: Nodes,
        target: TargetSpec,
        name: str,
        settings: ClockSettings,
        folder: Path,
        progress: Progress,
    ) -> None:
        """Describe the stack; nothing is done yet.

        Args:
            bench: An open bench; target and time server are on.
            target: Whose clock is synchronised.
            name: A stack of the target's kind, such as `chrony` (docs/clocks.md).
            settings: What is chosen of it.
            folder: Logs go here.
            progress: Called with a line of text now and then.

        Raises:
            ConfigError: The stack cannot do what is chosen.
            CapabilityError: The kind has no such stack, the bench no time server, or the target no PHC.
        """
        self._bench = bench
        self._target = target
        self.name = name
        folder_of_kind = TARGETS / target.provisioning
        kind = load_clock_kind(folder_of_kind)
        kind.require_offered(name)
        self._spec = load_stack(name, bench.spec.simulated, folder_of_kind / STACKS)
        self._served = load_stack(self._spec.served, bench.spec.simulated, TARGETS / SERVER_KIND / STACKS)
        self._logs = tuple(_placed(log, kind) for log in self._spec.logs)
        self.settings = settings.effective(self._spec)
        """What was chosen, with the sync interval that the stack really has."""
        self.folder = folder
        self._progress = progress
        self._held = False
        self._server_held = False
        self._started_s = 0.0
        self._waited = False
        server = bench.spec.time_server
        if server is None and self._spec.needs_server:
            raise CapabilityError(
                f"bench {bench.spec.name}: no time server; add benchwright.time_server to {bench.spec.path}"
            )
        if self._spec.needs_phc and not target.ptp_clock:
            raise CapabilityError(
                f"target {target.kind}: no PHC: add benchwright.targets.{target.kind}.ptp_clock to"
                f" {bench.spec.path}"
            )
        self._templates = folder_of_kind / "clock"
        self._client = ClockRole(bench.node(target.node), "client", folder_of_kind)
        self._server = (
            None if server is None else ClockRole(bench.node(server.node), "server", TARGETS / SERVER_KIND)
        )

    # -- life

    def __enter__(self) -> ClockStack:
        """Start; what was started is stopped again when that fails."""
        try:
            self.start()
        except BaseException:
            with suppress(BenchError, MeasurementError):
                self.fetch_logs()
            with suppress(BenchError, MeasurementError):
                self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Fetch the logs, then stop; an error of the run is not hidden by one of the end."""
        try:
            self.fetch_logs()
            self.stop()
        except (BenchError, MeasurementError) as fault:
            with suppress(BenchError, MeasurementError):
                self.stop()
            if error is None:
                raise
            self._progress(f"{self.name}: {fault}")

    def start(self) -> None:
        """Put back what an earlier run has left on both nodes, stop other time services, start the daemons.

        Raises:
            MeasurementError: A node lacks something (a PHC, a program, a permission); the text says what.
            BenchError: A node cannot be reached, what an earlier run has left cannot be put back, or target
                and time server do not have the same TAI - UTC.
        """
        self._held = self._server_held = self._waited = False
        server = self._bench.spec.time_server
        tai_utc_s = self._tai_utc_s()
        if self._server is not None:
            assert server is not None
            self._bench.tool(server.node, "bw-wander")
            place = self._place(server.interface, tai_utc_s)
            templates = TARGETS / SERVER_KIND / "clock"
            files = server_files(templates, self._served, self.settings, place)
            self._server.start(self._served.name, files)
        for tool in self._spec.tools:
            self._bench.tool(self._target.node, tool)
        place = self._place(self._target.test_interface, tai_utc_s)
        files = client_files(self._templates, self._spec, self.settings, place)
        self._client.start(self.name, files)
        self._started_s = time.monotonic()

    def stop(self) -> None:
        """End the daemons; put back clocks and time services on both nodes. Harmless twice.

        Raises:
            BenchError: Something could not be put back; the other node is seen to all the same.
        """
        faults: list[str] = []
        for role in (self._client, self._server):
            if role is None:
                continue
            try:
                role.stop()
            except (BenchError, MeasurementError) as error:
                faults.append(str(error))
        if faults:
            raise BenchError("; ".join(faults))

    # -- watching

    def wait_locked(self, deadline_s: float, goal: RateGoal | None = None) -> Lock:
        """Return once the servo has locked, by the rule of its `stack.toml`.

        Called again on a running stack, it counts only what the servo has said since this call.

        Args:
            deadline_s: From now on.
            goal: What the servo that steers the system's clock has to have found besides.

        Raises:
            MeasurementError: It did not lock in time, a daemon died, or the server is too far off.
        """
        rule = self._spec.lock
        logs = self._logs
        if rule is None or not logs:
            return Lock(0.0, "nothing to lock")
        began_s = time.monotonic() if self._waited else self._started_s
        end_s = time.monotonic() + deadline_s
        first = {log.file: self._client.count_lines(log.file) + 1 if self._waited else 1 for log in logs}
        self._waited = True
        looked_s = began_s
        for look in count():
            looked_before_s, looked_s = looked_s, time.monotonic()
            texts = {log.file: self._client.lines(log.file, first[log.file]) for log in logs}
            for log in logs:
                self._require_plausible(texts[log.file], log)
            goals = {log.file: goal if log is logs[-1] else None for log in logs}
            if all(is_locked(texts[log.file], log, rule, goals[log.file]) for log in logs):
                now_s = time.monotonic()
                criterion = rule.text() if goal is None else f"{rule.text()}, {goal.text()}"
                return Lock(round(now_s - began_s, 1), criterion, round(now_s - looked_before_s, 1))
            late = time.monotonic() > end_s
            if late or look % LOOKS_A_CHECK == 0:
                self.require_running()
            if late:
                why = "; ".join(why_not_locked(texts[log.file], log, rule) for log in logs)
                why += "" if goal is None else f", {goal.text()}"
                why += self._rejected()
                raise MeasurementError(f"{self.name}: not locked within {deadline_s:g} s: {why}")
            time.sleep(LOOK_S)
        raise AssertionError("unreachable")

    def require_running(self) -> None:
        """Check that the daemons of both nodes run.

        Raises:
            MeasurementError: One has ended; names it, its exit code and its last words.
        """
        dead = [daemon for daemon in self._daemons() if not daemon.running]
        if dead:
            raise MeasurementError(f"{self.name}: " + "; ".join(daemon.death() for daemon in dead))

    @property
    def own_interval_s(self) -> float:
        """Return the time between synchronisations that it has where nothing else is chosen."""
        return self._spec.sync_interval_s

    @property
    def spec(self) -> StackSpec:
        """Return what is known of it."""
        return self._spec

    @property
    def device(self) -> str:
        """Return the clock that it keeps, as `bw-clock` names it."""
        return self._spec.device

    def servo_text(self) -> str:
        """Return all that the servo which steers the system's clock has said; empty: there is none."""
        logs = self._logs
        return self._client.lines(logs[-1].file) if logs else ""

    def keep_running(self, duration_s: float) -> None:
        """Let the stack run for a while and watch its daemons.

        Raises:
            MeasurementError: One has ended.
        """
        end_s = time.monotonic() + duration_s
        while (left_s := end_s - time.monotonic()) > 0:
            time.sleep(min(KEEP_LOOK_S, left_s))
            self.require_running()

    # -- disturbing

    def cut_off(self) -> None:
        """Stop listening to the server and keep the frequency: holdover (docs/clocks.md says how)."""
        self._client.hold()
        self._held = True

    def resume(self) -> None:
        """Let the target listen again.

        Raises:
            MeasurementError: This stack's daemons end at `cut_off`; it has to be started again.
        """
        self._client.resume()
        self._held = False

    def silence_server(self) -> None:
        """Let the time server vanish; its clock goes on wandering."""
        if self._server is None:
            raise MeasurementError(f"{self.name}: there is no time server that could vanish")
        self._server.hold()
        self._server_held = True

    def bring_back_server(self) -> None:
        """Let the time server serve again."""
        if self._server is not None:
            self._server.resume()
            self._server_held = False

    # -- evidence

    def fetch_logs(self) -> list[Path]:
        """Copy the logs and configurations of both nodes to the folder: `target/…`, `server/…`.

        Returns:
            The copies.
        """
        copies = self._client.fetch_logs(self.folder / "target")
        if self._server is not None:
            copies += self._server.fetch_logs(self.folder / "server")
        return copies

    @property
    def servo_log(self) -> tuple[str, str]:
        """Return file (below `folder`, once fetched) and format of the servo's series; ("", ""): none."""
        return _fetched(self._logs[-1]) if self._logs else ("", "")

    @property
    def answers_log(self) -> tuple[str, str]:
        """Return file and format, as of `servo_log`, of the servo that hears the server; ("", ""): none.

        It is another one where a second servo carries on from clock to clock: that one goes on unheard.
        """
        return _fetched(self._logs[0]) if self._logs else ("", "")

    # -- inside

    def _tai_utc_s(self) -> int:
        """Return TAI - UTC of target and time server; what a killed run has left there is put back first."""
        server = self._bench.spec.time_server
        nodes = [self._target.node, *([] if server is None else [server.node])]
        found = TaiUtc(tuple(read_tai_utc(self._bench, node) for node in nodes))
        if found.agreed_s is None:
            self.stop()
            found = TaiUtc(tuple(read_tai_utc(self._bench, node) for node in nodes))
        return agreed_s(found)

    def _place(self, interface: str, tai_utc_s: int) -> Place:
        server = self._bench.spec.time_server
        return Place(
            server=self.settings.server_address or ("" if server is None else server.address),
            interface=interface,
            phc=self._target.ptp_clock,
            simulated=self._bench.spec.simulated,
            tai_utc_s=tai_utc_s,
        )

    def _daemons(self) -> list[Daemon]:
        """Return the daemons that have to run now."""
        daemons: list[Daemon] = []
        if self._spec.can_resume or not self._held:
            daemons += self._client.daemons()
        if self._server is not None:
            found = self._server.daemons()
            daemons += [one for one in found if not (self._server_held and one.name == self._served.leader)]
        return daemons

    def _require_plausible(self, text: str, log: ServoLog) -> None:
        """Refuse a server whose time is further off than any clock of the bench can be."""
        offset_ns = farthest_offset_ns(text, log)
        if abs(offset_ns) > self.settings.max_change_s * NS_PER_S:
            raise MeasurementError(
                f"{self.name}: target and time server differ by {offset_ns / NS_PER_S:+.3f} s (at most"
                f" {self.settings.max_change_s} s are plausible): the server's time is wrong"
            )

    def _rejected(self) -> str:
        """Return what a stack's log says of the server's answers, for the end of a message."""
        file, form = self._spec.answers
        if not file:
            return ""
        failed = ANSWER_READERS[form](self._client.lines(file))
        return f"; {failed}" if failed else ""


def _fetched(log: ServoLog) -> tuple[str, str]:
    """Return the file of a servo's log that a report reads, below the stack's folder, and its format."""
    file, form = log.kept
    return f"target/{file.replace('/', '-')}", form


def _placed(log: ServoLog, kind: ClockKind) -> ServoLog:
    """Return a servo's log as targets of a kind have it."""
    file, form = log.kept
    return replace(log, file=kind.log_file(log.file), kept=(kind.log_file(file), form))
