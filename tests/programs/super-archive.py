#!/usr/bin/env python3
"""A second reader of super-archives, written from crates/archive/FORMAT.md alone: slow, and strict.

usage: super-archive.py FILE    prints views, members and symbols, a line each; exits with 1 if the file
violates the text.
"""
import sys

MASK = (1 << 64) - 1


def check(holds, what):
    if not holds:
        sys.exit(f"not as FORMAT.md says: {what}")


def number(data, at, size=4, order="little"):
    check(at >= 0 and at + size <= len(data), f"a number at {at} of {len(data)} bytes")
    return int.from_bytes(data[at : at + size], order)


def part(data, at, size):
    check(at >= 0 and at + size <= len(data), f"{size} bytes at {at} of {len(data)}")
    return data[at : at + size]


def hash_of(data):
    value = len(data)
    for at in range(0, len(data), 16):
        block = data[at : at + 16].ljust(16, b"\0")
        low = int.from_bytes(block[:8], "little") ^ 0x9E3779B97F4A7C15
        high = int.from_bytes(block[8:], "little") ^ 0xBB67AE8584CAA73B
        product = low * high
        value = (value * 0x9FB21C651E98DF25 + (product & MASK ^ product >> 64)) & MASK
    return value


# ---- offset of the blob -----------------------------------------------------------------------------


def members_of(archive):
    """Names, offsets and sizes of the members."""
    check(archive[:8] == b"!<arch>\n", "the first 8 bytes")
    at = 8
    while at < len(archive):
        header = part(archive, at, 60)
        check(header[58:] == b"`\n", f"the end of the header at {at}")
        size = int(header[48:58])
        yield header[:16].rstrip(b" "), at + 60, size
        at += 60 + size + size % 2
    check(at in (len(archive), len(archive) + 1), "the end of the last member")


def in_index(contents):
    if len(contents) < 24 or contents[-16:] != b"\x7fgpustub trailer":
        return None
    return number(contents, len(contents) - 24, 8)


def in_elf(contents):
    order = {1: "little", 2: "big"}[contents[5]]
    if contents[4] == 2:
        table, size, count, at, length, wide = 40, 58, 60, 24, 32, 8
    else:
        table, size, count, at, length, wide = 32, 46, 48, 16, 20, 4
    table = number(contents, table, wide, order)
    size, count = number(contents, size, 2, order), number(contents, count, 2, order)
    for section in range(table, table + size * count, size):
        begin = number(contents, section + at, wide, order)
        if number(contents, section + length, wide, order) >= 16:
            if part(contents, begin, 16) == b"\x7fgpustub archive":
                return begin
    return None


def blob_of(archive):
    """Container and offset of the blob."""
    for name, at, size in members_of(archive):
        contents = part(archive, at, size)
        if name in (b"/", b"/SYM64/"):
            found = in_index(contents)
            if found is not None:
                return "index", at + found
        elif name != b"//":
            if contents[:4] == b"\x7fELF":
                found, container = in_elf(contents), "elf"
            elif contents[:4] == b"\xde\xc0\x17\x0b":
                found, container = number(contents, 8) + number(contents, 12), "bitcode"
            else:
                found = None
            check(found is not None, "no blob")
            return container, at + found
    sys.exit("not as FORMAT.md says: no blob")


# ---- the blob ---------------------------------------------------------------------------------------


class Blob:
    def __init__(self, archive):
        self.archive = archive
        self.container, begin = blob_of(archive)
        size = number(archive, begin + 24, 8)
        self.data = data = part(archive, begin, size)
        check(begin % 16 == 0, "where the blob begins")
        check(data[:16] == b"\x7fgpustub archive", "the magic")
        check(number(data, 16, 2) == 1, "the major version")
        check(number(data, 20) == 96, "the header's size")
        check(number(data, 32, 8) == len(archive), "the archive's size")
        check(number(data, 76) == 0, "the zero at 76")
        self.tables = number(data, 80, 8)
        value = hash_of(data[:88]) ^ hash_of(part(data, 96, self.tables - 96))
        check(number(data, 88, 8) == value, "the hash of the tables")
        at, self.text_size = self.pair(64)
        self.texts = part(data[: self.tables], at, self.text_size)
        self.begin = begin
        self.members = [self.member(*one) for one in self.entries(40, 40)]
        self.views = [self.view(at) for _, at in self.entries(48, 40)]
        self.default = number(data, 72)
        check(self.default <= len(self.views), "the default view")
        self.directory = self.slots(56, 4)

    def pair(self, at):
        return number(self.data, at), number(self.data, at + 4)

    def text(self, at):
        at, size = self.pair(at)
        return part(self.texts, at, size)

    def entries(self, at, size):
        at, count = self.pair(at)
        check(at + count * size <= self.tables, "a table's end")
        return [(index, at + index * size) for index in range(count)]

    def slots(self, at, size):
        at, power = self.pair(at)
        check(power <= 31 and at + (size << power) <= self.tables, "the end of slots")
        return [at + index * size for index in range(1 << power)]

    def member(self, index, at):
        offset, size, value = (number(self.data, at + field, 8) for field in (0, 8, 16))
        flags, header = number(self.data, at + 32), number(self.data, at + 36)
        check(flags in (0, 1), f"the flags of member {index}")
        if flags:
            check(header == 0, f"the header's hash of hidden member {index}")
            check((self.begin + offset) % 16 == 0, f"where hidden member {index} begins")
            check(offset >= self.tables, f"hidden member {index} is among the tables")
            contents = part(self.data, offset, size)
        else:
            check(hash_of(part(self.archive, offset - 60, 60)) & 0xFFFFFFFF == header, f"the header of member {index}")
            contents = part(self.archive, offset, size)
        check(hash_of(contents) == value, f"the contents of member {index}")
        return self.text(at + 24), contents, bool(flags)

    def view(self, at):
        slots = self.slots(at + 8, 16)
        symbols = {}
        for slot in slots:
            member = number(self.data, slot + 12)
            if member:
                check(member <= len(self.members), "the member of a symbol")
                name = self.text(slot + 4)
                check(number(self.data, slot) == hash_of(name) >> 32, "the hash of a symbol")
                symbols[name] = member - 1
        check(len(symbols) == number(self.data, at + 16), "the number of symbols")
        check(len(symbols) * 2 <= len(slots), "half of the slots are empty")
        check(number(self.data, at + 36) == 0, "the zero of a view")
        members = [self.pair(entry) for _, entry in self.entries(at + 20, 8)]
        layers = [self.text(entry) for _, entry in self.entries(at + 28, 8)]
        for member, layer in members:
            check(member < len(self.members) and layer < len(layers), "a member of a view")
        return {"name": self.text(at), "slots": slots, "symbols": symbols, "members": members, "layers": layers}

    def search(self, slots, name, of):
        """Value of a name in a hash table; `of` returns (name, value) of a slot, or None if it is empty."""
        at = hash_of(name) % len(slots)
        for _ in slots:
            found = of(slots[at])
            if found is None or found[0] == name:
                return found and found[1]
            at = (at + 1) % len(slots)
        return None

    def view_named(self, name):
        def of(slot):
            index = number(self.data, slot)
            return (self.views[index - 1]["name"], index - 1) if index else None

        return self.search(self.directory, name, of)

    def find(self, view, name):
        def of(slot):
            member = number(self.data, slot + 12)
            return (self.text(slot + 4), member - 1) if member else None

        return self.search(view["slots"], name, of)


def main(path):
    with open(path, "rb") as file:
        blob = Blob(file.read())
    print("container", blob.container)
    print("default", blob.default)
    for index, (name, contents, hidden) in enumerate(blob.members):
        print("member", index, name.hex() or "-", len(contents), f"{hash_of(contents):016x}", int(hidden))
    for index, view in enumerate(blob.views):
        check(blob.view_named(view["name"]) == index, "a view in the directory")
        print("view", view["name"].hex() or "-")
        for layer in view["layers"]:
            print("layer", layer.hex() or "-")
        for member, layer in view["members"]:
            print("has", member, layer)
        for name, member in sorted(view["symbols"].items()):
            check(blob.find(view, name) == member, "a symbol in its slots")
            check(blob.find(view, name + b"?") is None or name + b"?" in view["symbols"], "no symbol in slots")
            print("symbol", name.hex() or "-", member)


main(*sys.argv[1:])
