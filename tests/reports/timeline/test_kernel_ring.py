# SPDX-License-Identifier: Apache-2.0
"""A kernel's ring is decoded from its pages, of each byte order and word; what is damaged is named."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from reports.errors import RecordError
from reports.timeline.kernel_formats import parse_formats
from reports.timeline.kernel_ring import LOST_UNCOUNTED, CpuRing, decode_ring
from tests.campaign import Campaign
from tests.reports.hostile import damaged
from tests.reports.timeline.ring_pages import Machine, Page

MACHINES = [("<", 8), ("<", 4), (">", 8), (">", 4)]
T0_NS = 5_000_000_000_000


def decoded(machine: Machine, *pages: bytes) -> CpuRing:
    """Decode pages of CPU 3."""
    return decode_ring(b"".join(pages), parse_formats(machine.description()), 3)


@pytest.mark.parametrize(("order", "long_bytes"), MACHINES)
def test_every_kind_of_entry_is_read(order: str, long_bytes: int) -> None:
    it = Machine(order, long_bytes)
    page = Page(it, T0_NS).event(0, it.number(-1)).extend(1 << 33).event(3, it.number(2))
    page.thrown_away(10, 40).event(5, it.named(b"a\0rubbish", (1, 65535), b"eth0")).thrown_away(1, 12)
    page.absolute(T0_NS + (1 << 40)).long_event(7, it.number(3)).end_padding()
    found = decoded(it, page.packed())
    number, named = found.events["test/number"], found.events["test/named"]
    assert not found.damages
    assert number["value"].tolist() == [-1, 2, 3]
    second_ns = T0_NS + (1 << 33) + 3
    assert number["time_ns"].tolist() == [T0_NS, second_ns, T0_NS + (1 << 40) + 7]
    assert (number["place"].tolist(), named["place"].tolist()) == ([0, 1, 3], [2])
    assert named["time_ns"].tolist() == [second_ns + 15]
    assert named[["comm", "name", "common_pid"]].tolist() == [(b"a", b"eth0", -1)]
    assert named["pair"].tolist() == [[1, 65535]]
    assert number["value"].dtype == np.dtype("=i8")
    assert len(found.events["sched/sched_switch"]) == 0


@pytest.mark.parametrize(("order", "long_bytes"), MACHINES)
@pytest.mark.parametrize(("lost", "told"), [(12, 12), (None, LOST_UNCOUNTED)])
def test_lost_events_are_told_at_their_place(
    order: str, long_bytes: int, lost: int | None, told: int
) -> None:
    it = Machine(order, long_bytes)
    first = Page(it, T0_NS).event(0, it.number(0)).event(1, it.number(1)).packed()
    second = Page(it, T0_NS + 9).event(0, it.number(2)).packed(lost)
    found = decoded(it, first, second, first)
    assert found.gaps.tolist() == [(2, told)]
    assert found.events["test/number"]["time_ns"].tolist() == [
        T0_NS, T0_NS + 1, T0_NS + 9, T0_NS, T0_NS + 1,
    ]  # fmt: skip


def test_a_clock_that_uses_all_64_bits_keeps_its_upper_ones() -> None:
    """As one that is set to the time of day far in the future: an absolute time has 59 bits."""
    it = Machine()
    far_ns = (0xF8 << 56) + 12_345
    found = decoded(it, Page(it, far_ns).absolute(far_ns + 100).event(1, it.number(0)).packed())
    assert found.events["test/number"]["time_ns"].tolist() == [far_ns + 101]


def test_pages_of_another_size_and_none_at_all() -> None:
    it = Machine(page_bytes=16_384)
    page = Page(it, T0_NS)
    for value in range(500):
        page.event(1, it.number(value))
    assert decoded(it, page.packed()).events["test/number"]["value"].tolist() == list(range(500))
    assert len(decoded(it).events["test/number"]) == 0


def test_what_is_damaged_is_named_and_what_is_whole_is_kept() -> None:
    it = Machine()
    whole = Page(it, T0_NS).event(0, it.number(1)).packed()
    page = Page(it, T0_NS).event(0, it.number(2))
    page.data += it.word(20, 0) + b"\0" * 8
    overfull = b"".join((whole[:8], (5000).to_bytes(8, "little"), whole[16:]))
    stranger = Page(it, T0_NS).event(0, it.common(99, 1) + b"1234").event(0, it.common(7, 1)).packed()
    found = decoded(it, whole, page.packed(), whole, overfull, whole, stranger, whole[:77])
    assert found.events["test/number"]["value"].tolist() == [1, 2, 1, 1]
    assert found.gaps["place"].tolist() == [2, 3, 6]
    assert found.damages == [
        f"byte {4096 + 16 + 20}: an event is longer than its page, or shorter than its head",
        f"byte {3 * 4096}: the page says that it holds more than it can, or half a word",
        f"byte {6 * 4096}: the last page ends after 77 of 4096 bytes",
        f"byte {5 * 4096 + 20}: 1 events of type 99, which has no format",
        f"byte {5 * 4096 + 36}: 1 events test/number are shorter than their format",
    ]
    with pytest.raises(RecordError, match=r"ring\.gz: CPU 3: byte 4132: .*, and 4 more"):
        found.require_whole("ring.gz")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("byte order: little", "byte order: middle", "begins with no byte order"),
        ("file: events/header_page", "file: events/other", "lacks events/header_page"),
        ("type == 30", "type == 28", "header_event: does not say time_extend type == 30"),
        ("field: local_t commit;", "field: local_t other;", "header_page: lacks 'commit'"),
        ("size:4080", "size:99999999", "header_page: data ends at byte 100000015"),
        ("size:4080", "size:0", "pages of 16 bytes"),
        ("ID: 7\n", "", "events/test/number/format: lacks the ID"),
        ("dropped events: 0", "", "per_cpu/cpu3/stats: does not say how many"),
        ("s64 value;\toffset:8;", "s64 value;\toffset:-8;", "test/number/format: cannot read"),
        ("pair[2];\toffset:24", "pair[2];\toffset:22", "fields lie over each other"),
        ("u16 pair[2]", "u16 comm", "has two fields of one name"),
        ("name;\toffset:28;\tsize:4", "name;\toffset:28;\tsize:8", "place and length take 8 bytes"),
    ],
)
def test_a_description_that_is_wrong_is_refused(old: str, new: str, said: str) -> None:
    text = Machine().description()
    assert old in text
    with pytest.raises(RecordError, match=said):
        parse_formats(text.replace(old, new))


def test_dropped_events_are_of_their_cpu() -> None:
    assert parse_formats(Machine().description(17)).dropped == {3: 17}


@pytest.mark.parametrize(("order", "long_bytes"), MACHINES)
def test_whatever_the_bytes_what_is_whole_before_them_is_kept(
    order: str, long_bytes: int, campaign: Campaign
) -> None:
    it = Machine(order, long_bytes)
    page = Page(it, T0_NS)
    for value in range(20):
        page.event(1, it.number(value)).long_event(2, it.named(b"x" * 15, (1, 2), b"name")).extend(1 << 30)
    whole = page.packed(3)
    formats, text = parse_formats(it.description()), it.description()
    for random in campaign.rounds(100):
        data = whole + damaged(whole * 2, random)
        with campaign.trying(data):
            found = decode_ring(data, formats, 3)
            assert found.events["test/number"]["value"][:20].tolist() == list(range(20))
            campaign.reached.add("damaged" if found.damages else "read")
        wrong = damaged(text.encode(), random)
        with campaign.trying(wrong):
            try:
                decode_ring(whole, parse_formats(wrong.decode(errors="replace")), 3)
            except RecordError:
                campaign.reached.add("refused")


def test_as_many_events_as_a_measurement_has_come_in_order() -> None:
    it, random = Machine(), Random(1)
    pages, now_ns = b"", T0_NS
    expected: list[tuple[int, int, int]] = []
    for first in range(0, 20_000, 150):
        page = Page(it, now_ns)
        for value in range(first, first + 150):
            delta_ns = 0 if value == first else random.randrange(1 << 20)
            now_ns += delta_ns
            page.event(delta_ns, it.number(value))
            expected.append((now_ns, value, value))
        pages += page.packed()
    found = decoded(it, pages).events["test/number"]
    assert found[["time_ns", "place", "value"]].tolist() == expected
