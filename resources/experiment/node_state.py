# SPDX-License-Identifier: Apache-2.0
"""What there is on a node that an experiment could leave behind, before it and after."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hw.protocols import Node

SETTLE_S = 5.0
LOOK_S = 0.2
MARK = "BENCHWRIGHT_EXPERIMENT"
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
"""Of this machine: a node that has it is a part of it."""
KINDS = ("addresses", "links", "routes", "rules", "neighbours", "qdiscs", "namespaces", "traces", "files")
_SECTION = "#section "
_BY_ITSELF = (" fe80::", "fe80::/", "ff00::/8")
"""In addresses and routes of IPv6's links, which a kernel makes and completes seconds after its boot."""
_SCRIPT = r"""
own=$$
say() { echo "#section $1"; }
say boot; cat /proc/sys/kernel/random/boot_id
say namespace; readlink /proc/self/ns/net
say networks; ls -l /proc/[0-9]*/ns/net 2>/dev/null
say programs; ls -l /proc/[0-9]*/exe 2>/dev/null
say processes; cat /proc/[0-9]*/stat 2>/dev/null
say own; echo $own
say addresses; ip -o address show 2>/dev/null
say links; ip -o link show 2>/dev/null
say routes; ip route show table all 2>/dev/null
say rules; ip rule show 2>/dev/null
say neighbours; ip neighbour show nud permanent 2>/dev/null
say qdiscs; tc qdisc show 2>/dev/null
say namespaces; ls /run/netns 2>/dev/null
say traces; ls /sys/kernel/tracing/instances 2>/dev/null
say files; ls -d "$1"/experiment-* /tmp/* /var/tmp/* /dev/shm/* 2>/dev/null
true
"""
_KILL = r"""
for each in $(grep -laF "$1" /proc/[0-9]*/environ 2>/dev/null); do
  each=${each%/environ}
  tr '\0' '\n' <$each/environ 2>/dev/null | grep -q "^$1" && kill -KILL ${each#/proc/}
done
if [ -n "$2" ]; then rm -rf "$2"/experiment-*; fi
true
"""
_CHANGES = re.compile(r"\s*(valid_lft|preferred_lft|direct_packets_stat) \S+|\\|\bexpires \S+")
"""What changes by itself, in the words of `ip` and `tc`."""


@dataclass(frozen=True)
class NodeState:
    """What was found, by kind: one of KINDS, or processes."""

    found: Mapping[str, frozenset[str]]

    def differences(self, before: NodeState) -> list[str]:
        """Return in words what is there that was not, and what was there that is not."""
        said: list[str] = []
        for kind, now in self.found.items():
            old = before.found.get(kind, frozenset())
            said += [f"{kind}: {each} was not there" for each in sorted(now - old)]
            if kind != "processes":  # one that has ended by itself is not missed
                said += [f"{kind}: {each} is gone" for each in sorted(old - now)]
        return said


def state_of(node: Node) -> NodeState:
    """Ask a node what there is.

    Namespaces, traces and files of a node that is a part of this machine are others', too: they are left out.

    Raises:
        BenchError: It does not answer.
    """
    sections: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in node.run(["sh", "-c", _SCRIPT, "sh", node.work_folder]).stdout.splitlines():
        if line.startswith(_SECTION):
            lines = sections.setdefault(line.removeprefix(_SECTION), [])
        else:
            lines.append(line)
    found = {
        kind: frozenset(
            _CHANGES.sub("", line).strip()
            for line in sections.get(kind, ())
            if not any(prefix in line for prefix in _BY_ITSELF)
        )
        for kind in KINDS
    }
    if sections.get("boot") == [BOOT_ID.read_text().strip()]:
        del found["namespaces"], found["traces"]
        own = f"{node.work_folder}/experiment-{node.name}-"
        found["files"] = frozenset(each for each in found["files"] if each.startswith(own))
    found["processes"] = _processes(sections)
    return NodeState(found)


def _processes(sections: Mapping[str, list[str]]) -> frozenset[str]:
    """Return processes with a program of their own, in the node's network, without those that look."""
    network = "".join(sections.get("namespace", ()))
    in_network = {
        found[1] for line in sections.get("networks", ()) if (found := _proc(line)) and found[2] == network
    }
    programs = {found[1]: found[2] for line in sections.get("programs", ()) if (found := _proc(line))}
    parents: dict[str, str] = {}
    started: dict[str, str] = {}
    for line in sections.get("processes", ()):
        head, _, rest = line.rpartition(")")
        words = rest.split()
        if len(words) > 19:
            pid = head.split(" ", 1)[0]
            parents[pid], started[pid] = words[1], words[19]
    looks = set(sections.get("own", ()))
    above = next(iter(looks), "")
    while (above := parents.get(above, "")) and above not in ("0", "1") and above not in looks:
        looks.add(above)
    return frozenset(
        f"{pid} of {started[pid]}: {programs[pid]}"
        for pid in started
        if pid in programs and pid in in_network and pid not in looks and parents[pid] not in looks
    )


def _proc(line: str) -> re.Match[str] | None:
    return re.search(r"/proc/(\d+)/\S+ -> (.+)$", line)


def end_marked(node: Node, mark: str) -> None:
    """End all processes of a node that an experiment has started, by their environment.

    Args:
        node: It is on.
        mark: Of the experiment; empty: of all, of a machine that nobody else uses, and their folders.
    """
    node.run(["sh", "-c", _KILL, "sh", f"{MARK}={mark}", "" if mark else node.work_folder])


def left_behind(node: Node, before: NodeState) -> list[str]:
    """Return what a node has that it had not, once what ends by itself has had the time; nothing is undone.

    Raises:
        BenchError: It does not answer.
    """
    deadline = time.monotonic() + SETTLE_S
    while True:
        found = state_of(node).differences(before)
        if not found or time.monotonic() > deadline:
            return found
        time.sleep(LOOK_S)
