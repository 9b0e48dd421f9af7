# SPDX-License-Identifier: Apache-2.0
"""Pages of a kernel's ring as a kernel of any byte order and word would write them, one event at a time."""

from __future__ import annotations

import struct

HEADER_EVENT = """# compressed entry header
\ttype_len    :    5 bits
\ttime_delta  :   27 bits
\tarray       :   32 bits

\tpadding     : type == 29
\ttime_extend : type == 30
\ttime_stamp : type == 31
\tdata max type_len  == 28
"""
COMMON = """format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;
"""
NUMBER, NAMED, SWITCH = 7, 9, 372
EVENTS = {
    "test/number": (NUMBER, "\tfield:s64 value;\toffset:8;\tsize:8;\tsigned:1;\n"),
    "test/named": (
        NAMED,
        (
            "\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
            "\tfield:u16 pair[2];\toffset:24;\tsize:4;\tsigned:0;\n"
            "\tfield:__data_loc char[] name;\toffset:28;\tsize:4;\tsigned:0;\n"
        ),
    ),
    "sched/sched_switch": (
        SWITCH,
        (
            "\tfield:char next_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
            "\tfield:pid_t next_pid;\toffset:24;\tsize:4;\tsigned:1;\n"
        ),
    ),
}


class Machine:
    """What its ring looks like: `<` or `>`, and 4 or 8 bytes of a `long`."""

    def __init__(self, order: str = "<", long_bytes: int = 8, page_bytes: int = 4096) -> None:
        self.order = order
        self.long = {4: "i", 8: "q"}[long_bytes]
        self.long_bytes = long_bytes
        self.head_bytes = 8 + long_bytes
        self.page_bytes = page_bytes

    def description(self, dropped: int = 0) -> str:
        """Return what it says of its ring."""
        n = self.long_bytes
        page = (
            "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
            f"\tfield: local_t commit;\toffset:8;\tsize:{n};\tsigned:1;\n"
            "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
            f"\tfield: char data;\toffset:{8 + n};\tsize:{self.page_bytes - 8 - n};\tsigned:1;\n"
        )
        files = {"events/header_page": page, "events/header_event": HEADER_EVENT}
        for name, (number, fields) in EVENTS.items():
            short = name.rpartition("/")[2]
            files[f"events/{name}/format"] = (
                f'name: {short}\nID: {number}\n{COMMON}\n{fields}\nprint fmt: "x"\n'
            )
        files["per_cpu/cpu3/stats"] = f"entries: 0\ndropped events: {dropped}\nread events: 0\n"
        order = "little" if self.order == "<" else "big"
        return f"byte order: {order}\n" + "".join(f"file: {name}\n{text}" for name, text in files.items())

    def word(self, kind: int, delta: int) -> bytes:
        """Return an event's head: its bit fields begin at the low end, or by the order at the high one."""
        value = kind | delta << 5 if self.order == "<" else kind << 27 | delta
        return struct.pack(f"{self.order}I", value)

    def common(self, number: int, pid: int) -> bytes:
        """Return what all events begin with."""
        return struct.pack(f"{self.order}HBBi", number, 1, 2, pid)

    def number(self, value: int, pid: int = 5) -> bytes:
        """Return an event test/number."""
        return self.common(NUMBER, pid) + struct.pack(f"{self.order}q", value)

    def named(self, comm: bytes, pair: tuple[int, int], name: bytes) -> bytes:
        """Return an event test/named, its name behind its fields."""
        place = 32 | (len(name) + 1) << 16
        rest = struct.pack(f"{self.order}16sHHI", comm, *pair, place)
        text = name + b"\0"
        return self.common(NAMED, -1) + rest + text + b"\0" * (-len(text) % 4)

    def switch(self, comm: bytes, pid: int) -> bytes:
        """Return an event sched/sched_switch, of as many fields as a filter needs."""
        return self.common(SWITCH, 1) + struct.pack(f"{self.order}16si", comm, pid)


class Page:
    """One page; events are added behind each other."""

    def __init__(self, machine: Machine, stamp_ns: int) -> None:
        self.machine = machine
        self.stamp_ns = stamp_ns
        self.data = b""

    def _word(self, value: int) -> bytes:
        return struct.pack(f"{self.machine.order}I", value)

    def event(self, delta_ns: int, payload: bytes) -> Page:
        """Add an event, its length in its head."""
        assert len(payload) % 4 == 0
        assert 0 < len(payload) <= 112
        self.data += self.machine.word(len(payload) // 4, delta_ns) + payload
        return self

    def long_event(self, delta_ns: int, payload: bytes) -> Page:
        """Add an event with its length in a word of its own."""
        self.data += self.machine.word(0, delta_ns) + self._word(len(payload) + 4) + payload
        return self

    def extend(self, delta_ns: int) -> Page:
        """Add a time of more than 27 bits since the event before."""
        self.data += self.machine.word(30, delta_ns & (1 << 27) - 1) + self._word(delta_ns >> 27)
        return self

    def absolute(self, time_ns: int) -> Page:
        """Add a time since the clock's begin, of 59 bits."""
        low = time_ns & (1 << 59) - 1
        self.data += self.machine.word(31, low & (1 << 27) - 1) + self._word(low >> 27)
        return self

    def thrown_away(self, delta_ns: int, payload_bytes: int) -> Page:
        """Add an event that was thrown away after its place was taken."""
        self.data += (
            self.machine.word(29, delta_ns) + self._word(payload_bytes) + b"\xa5" * (payload_bytes - 4)
        )
        return self

    def end_padding(self) -> Page:
        """Add what says that the rest of the page is empty."""
        self.data += self.machine.word(29, 0)
        rest = self.machine.page_bytes - self.machine.head_bytes - len(self.data)
        self.data += b"\xff" * rest
        return self

    def packed(self, lost: int | None = 0) -> bytes:
        """Return the page; before it events are lost: None, the kernel does not say how many."""
        commit, data = len(self.data), self.data
        if lost != 0:
            commit -= (
                1 << 31
            )  # the flag, added to a signed number: in a long of eight bytes all above it are set
            if lost is not None:
                commit += 1 << 30
                data += struct.pack(f"{self.machine.order}{self.machine.long}", lost)
        head = struct.pack(f"{self.machine.order}Q{self.machine.long}", self.stamp_ns, commit)
        assert len(head + data) <= self.machine.page_bytes
        return (head + data).ljust(self.machine.page_bytes, b"\0")
