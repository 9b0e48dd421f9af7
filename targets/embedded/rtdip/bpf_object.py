# SPDX-License-Identifier: Apache-2.0
"""Make a C header of a BPF object: `python3 bpf_object.py OBJECT NAME HEADER`.

The header holds the instructions of the one program in the object's section `xdp`, and where they refer to
which map: the loader puts descriptors there. So no program that loads it needs a library for BPF, and one
object serves every architecture of the same byte order.
"""

from __future__ import annotations

import struct
import sys
from pathlib import Path

SYMBOL, RELOCATIONS, R_BPF_64_64 = 2, 9, 1
INSTRUCTION_BYTES = 8


def main() -> None:
    """Read the object and write the header."""
    source, name, target = sys.argv[1:]
    instructions, maps = read_object(Path(source).read_bytes())
    words = "".join(f"\t0x{each:016x},\n" for each in instructions)
    uses = "".join(f'\t{{ {place}, "{map_name}" }},\n' for place, map_name in maps)
    use = "struct { unsigned int instruction; const char *map; }"
    Path(target).write_text(
        f"/* Made by bpf_object.py. */\nstatic const uint64_t {name}_instructions[] = {{\n{words}}};\n"
        f"static const {use} {name}_maps[] = {{\n{uses}}};\n"
    )


def read_object(data: bytes) -> tuple[list[int], list[tuple[int, str]]]:
    """Return the instructions, and number and map's name of those that refer to one.

    Raises:
        ValueError: The object is no little-endian ELF of 64 bits, or refers to something else than maps.
    """
    if data[:6] != b"\x7fELF\x02\x01":
        raise ValueError("not a little-endian ELF of 64 bits")
    (table,) = struct.unpack_from("<Q", data, 40)
    size, count, names_at = struct.unpack_from("<3H", data, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, table + place * size) for place in range(count)]
    names = sections[names_at]
    by_name = {_text(data, names[4] + each[0]): each for each in sections}
    program = by_name["xdp"]
    code = data[program[4] : program[4] + program[5]]
    symbols = next(each for each in sections if each[1] == SYMBOL)
    texts = sections[symbols[6]]
    maps: list[tuple[int, str]] = []
    relocations = by_name.get(".relxdp")
    for at in range(relocations[4], relocations[4] + relocations[5], 16) if relocations else ():
        offset, info = struct.unpack_from("<QQ", data, at)
        if info & 0xFFFFFFFF != R_BPF_64_64:
            raise ValueError(f"instruction {offset // INSTRUCTION_BYTES}: no reference to a map")
        name, _kind, _other, section, _value, _size = struct.unpack_from(
            "<IBBHQQ", data, symbols[4] + (info >> 32) * 24
        )
        if _text(data, names[4] + sections[section][0]) != "maps":
            raise ValueError(f"instruction {offset // INSTRUCTION_BYTES}: refers to what is no map")
        maps.append((offset // INSTRUCTION_BYTES, _text(data, texts[4] + name)))
    return [each for (each,) in struct.iter_unpack("<Q", code)], maps


def _text(data: bytes, at: int) -> str:
    return data[at : data.index(b"\0", at)].decode()


if __name__ == "__main__":
    main()
