#!/usr/bin/env python3
"""A second reader of super-archives, written from crates/archive/FORMAT.md alone: slow, and strict.

usage: super-archive.py FILE            prints views, members and symbols, a line each; exits with 1 if the
                                        file violates the text
       super-archive.py --check LIST    prints "sound", or what it violates, for each file that LIST names

Contents are not decompressed.
"""
import contextlib
import io
import sys

MASK = (1 << 64) - 1


class Violation(Exception):
    pass


def check(holds, what):
    if not holds:
        raise Violation(f"not as FORMAT.md says: {what}")


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
        digits = header[48:58].rstrip(b" ")
        check(digits.isdigit(), f"the size in the header at {at}")
        size = int(digits)
        yield header[:16].rstrip(b" "), at + 60, size
        at += 60 + size + size % 2
    check(at == len(archive), "the end of the last member")


def in_index(contents):
    if len(contents) < 24 or contents[-16:] != b"\x7fgpustub trailer":
        return None
    return number(contents, len(contents) - 24, 8)


def in_elf(contents):
    order = "big" if contents[5] == 2 else "little"
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
    raise Violation("not as FORMAT.md says: no blob")


# ---- the blob ---------------------------------------------------------------------------------------


RECORDS = (48, 32, 4, 32, 16, 4, 12, 16, 8, 8, 32, 1)
CONTENTS, VIEWS, DIRECTORY, DICTIONARIES, SLOTS, ROWS, LISTS, ENTRIES, LAYER_LISTS, LAYERS, EXTENSIONS, TEXTS = range(12)


class Blob:
    def __init__(self, archive):
        self.archive = archive
        self.container, begin = blob_of(archive)
        self.begin = begin
        size = number(archive, begin + 32, 8)
        self.data = data = part(archive, begin, size)
        check(begin % 16 == 0, "where the blob begins")
        check(data[:16] == b"\x7fgpustub archive", "the magic")
        check(number(data, 16, 2) == 1, "the major version")
        header = number(data, 20)
        check(header >= 120, "the header's size")
        self.compresses = number(data, 24) == 1
        check(number(data, 24) < 2, "the required features")
        check(number(data, 104, 8) == 0, "the zero at 104")
        self.tables = number(data, 40, 8)
        value = hash_of(data[:112]) ^ hash_of(part(data, 120, self.tables - 120))
        check(number(data, 112, 8) == value, "the hash of the tables")
        self.parts, end = [], header
        for kind, record in enumerate(RECORDS):
            count = number(data, 56 + 4 * kind)
            self.parts.append((end, count))
            end += count * record
        check(self.tables == end + -end % 16, "the size of the tables")
        check(not any(part(data, end, self.tables - end)), "the padding of the tables")
        self.names_left = self.parts[TEXTS][1]
        self.contents = self.all_contents()
        self.dictionaries = self.all_dictionaries()
        self.lists = self.ranges(LISTS, ENTRIES, self.entry)
        self.layer_lists = self.ranges(LAYER_LISTS, LAYERS, self.text)
        self.views = [self.view(at) for at in self.records(VIEWS)]
        self.default = number(data, 48)
        check(self.default <= len(self.views), "the default view")
        self.directory = self.records(DIRECTORY)
        self.directory_homes = len(self.directory) - number(data, 52)
        self.ordinary()

    def record(self, kind, index):
        at, count = self.parts[kind]
        check(index < count, f"a record {index} of {count}")
        return at + index * RECORDS[kind]

    def records(self, kind):
        at, count = self.parts[kind]
        return [at + index * RECORDS[kind] for index in range(count)]

    def text(self, at):
        offset, size = number(self.data, at), number(self.data, at + 4)
        begin, length = self.parts[TEXTS]
        return part(self.data[begin : begin + length], offset, size)

    def own_text(self, at):
        """A name of a view or a dictionary: all of them together are at most as long as the texts."""
        self.names_left -= number(self.data, at + 4)
        check(self.names_left >= 0, "the length of all names")
        return self.text(at)

    def all_contents(self):
        found, end = [], self.tables
        for index, at in enumerate(self.records(CONTENTS)):
            offset, stored, size, value = (number(self.data, at + field, 8) for field in (0, 8, 16, 24))
            flags, form = number(self.data, at + 32), number(self.data, at + 36)
            base, header = number(self.data, at + 40), number(self.data, at + 44)
            check(flags < 4, f"the flags of contents {index}")
            codec = form & 0xFF
            check(form >> 8 < 32 and codec < 2, f"the form of contents {index}")
            if codec == 1:
                check(self.compresses and flags & 1, f"the codec of contents {index}")
                check(flags < 2 or base != 0, f"the base of contents {index}")
            else:
                check(stored == size, f"the sizes of contents {index}")
                check((flags >> 1) == (base != 0), f"the base of contents {index}")
            if flags & 1:
                check(header == 0, f"the header's hash of hidden contents {index}")
                check((self.begin + offset) % (1 << (form >> 8)) == 0, f"the alignment of contents {index}")
                check(offset >= end and not any(self.data[end:offset]), f"where hidden contents {index} begin")
                contents = part(self.data, offset, stored)
                end = offset + stored
            else:
                check(hash_of(part(self.archive, offset - 60, 60)) & 0xFFFFFFFF == header, f"the header of {index}")
                contents = part(self.archive, offset, size)
            check(codec == 1 or hash_of(contents) == value, f"the contents {index}")
            found.append((contents, flags, base, offset))
        for at in self.records(EXTENSIONS):
            check(number(self.data, at + 4) == 0, "the flags of an extension")
            offset, size, value = (number(self.data, at + field, 8) for field in (8, 16, 24))
            check(offset >= end and not any(self.data[end:offset]), "where an extension begins")
            check(hash_of(part(self.data, offset, size)) == value, "an extension")
            end = offset + size
        check(end == len(self.data), "the end of the blob")
        for contents, flags, base, _ in found:
            check(base <= len(found) and (not base or found[base - 1][2] == 0), "a base")
        return found

    def all_dictionaries(self):
        found, slot, word = [], 0, 0
        for at in self.records(DICTIONARIES):
            fields = [number(self.data, at + 4 * field) for field in range(8)]
            first, homes, longest, symbols, row, classes, rows, zero = fields
            check((first, row, zero) == (slot, word, 0), "where a dictionary begins")
            slots = [self.record(SLOTS, first + index) for index in range(homes + longest)]
            names, far = {}, 0
            for index, at in enumerate(slots):
                one = number(self.data, at + 12)
                if one == 0:
                    check(not any(self.data[at : at + 16]), "an empty slot")
                    continue
                name = self.own_text(at + 4)
                value = hash_of(name)
                check(number(self.data, at) == value & 0xFFFFFFFF, "the hash of a symbol")
                check(one <= classes and name not in names, "the class of a symbol")
                far = max(far, index - self.home(value, homes))
                names[name] = one
            order = sorted(names, key=lambda name: (hash_of(name), name))
            check(list(names) == order and far == longest, "the order of symbols")
            check(len(names) == symbols, "the number of symbols")
            table = []
            for index in range(rows):
                begin = row + index * (classes + 1)
                words = [number(self.data, self.record(ROWS, begin + one)) for one in range(classes + 1)]
                check(words[0] == max(words[1:], default=0), "the largest word of a row")
                table.append(words)
            slot, word = slot + len(slots), word + rows * (classes + 1)
            found.append((slots, homes, names, table))
        check((slot, word) == (self.parts[SLOTS][1], self.parts[ROWS][1]), "the end of dictionaries")
        return found

    def home(self, value, homes):
        return (value >> 32) * homes >> 32

    def entry(self, at):
        check(number(self.data, at) < len(self.contents), "the contents of an entry")
        return number(self.data, at), self.text(at + 4), number(self.data, at + 12)

    def ranges(self, kind, of, read):
        found, end = [], 0
        for at in self.records(kind):
            first, count = number(self.data, at), number(self.data, at + 4)
            check(first == end, "where a list begins")
            end = first + count
            found.append([read(self.record(of, first + index)) for index in range(count)])
            if kind == LISTS:
                layers = max((layer + 1 for _, _, layer in found[-1]), default=0)
                check(number(self.data, at + 8) == layers, "the layers of a list")
        check(end == self.parts[of][1], "the end of lists")
        return found

    def view(self, at):
        dictionary, row, members, layers = (number(self.data, at + field) for field in (8, 12, 16, 20))
        check(number(self.data, at + 24, 8) == 0, "the zero of a view")
        lists = ((dictionary, self.dictionaries), (members, self.lists), (layers, self.layer_lists))
        for index, of in lists:
            check(index < len(of), "a part of a view")
        slots, homes, names, rows = self.dictionaries[dictionary]
        check(row < len(rows), "the row of a view")
        row, members, layers = rows[row], self.lists[members], self.layer_lists[layers]
        check(row[0] <= len(members), "a position in a row")
        check(all(layer < len(layers) for _, _, layer in members), "the layer of a member")
        symbols = {name: row[one] - 1 for name, one in names.items() if row[one]}
        name = self.own_text(at)
        return {"name": name, "slots": slots, "homes": homes, "row": row, "symbols": symbols,
                "members": members, "layers": layers}

    def walk(self, slots, homes, name):
        """The slots that may have a name."""
        home = self.home(hash_of(name), homes) if homes else 0
        return slots[home : home + len(slots) - homes + 1] if homes else []

    def view_named(self, name):
        for at in self.walk(self.directory, self.directory_homes, name):
            index = number(self.data, at)
            check(index <= len(self.views), "a slot of the directory")
            if index == 0 or self.views[index - 1]["name"] == name:
                return index - 1 if index else None
        return None

    def find(self, view, name):
        for at in self.walk(view["slots"], view["homes"], name):
            one = number(self.data, at + 12)
            if one == 0:
                return None
            if self.text(at + 4) == name:
                return view["row"][one] - 1 if view["row"][one] else None
        return None

    def ordinary(self):
        """The members and the index that other tools see are those of the default view."""
        members = self.views[self.default - 1]["members"] if self.default else []
        symbols = self.views[self.default - 1]["symbols"] if self.default else {}
        seen, index, long = [], None, b""
        for name, at, size in members_of(self.archive):
            if name in (b"/", b"/SYM64/"):
                index = (part(self.archive, at, size), 4 if name == b"/" else 8)
            elif name == b"//":
                long = part(self.archive, at, size)
            elif not at <= self.begin < at + size:
                name = long[int(name[1:]) :].split(b"/\n")[0] if name[:1] == b"/" else name[:-1]
                seen.append((name, part(self.archive, at, size), at))
        check(len(seen) == len(members), "the number of ordinary members")
        first = {}
        for (name, data, at), (contents, wanted, _) in zip(seen, members):
            check(name == wanted.translate(bytes.maketrans(b"\n/\0", b"___")), "the name of an ordinary member")
            found, flags, _, offset = self.contents[contents]
            check(not flags & 1 and found == data, "an ordinary member")
            check(first.setdefault(contents, at) == offset, "where an ordinary member begins")
        if index is None:
            return
        data, wide = index
        count = number(data, 0, wide, "big")
        names = data[(count + 1) * wide :].split(b"\0")[:count]
        entries = [(name, number(data, (one + 1) * wide, wide, "big") + 60) for one, name in enumerate(names)]
        taken = {}
        for name, at in entries:
            check(name in symbols and any(at == one for _, _, one in seen), "a symbol of the index")
            taken.setdefault(name, at)
        for name, position in symbols.items():
            check(taken.get(name) == seen[position][2], "the member of a symbol of the index")


def show(path):
    with open(path, "rb") as file:
        blob = Blob(file.read())
    print("container", blob.container)
    print("default", blob.default)
    for index, (contents, flags, base, _) in enumerate(blob.contents):
        print("contents", index, len(contents), f"{hash_of(contents):016x}", flags, base)
    for index, view in enumerate(blob.views):
        check(blob.view_named(view["name"]) == index, "a view in the directory")
        print("view", view["name"].hex() or "-")
        for layer in view["layers"]:
            print("layer", layer.hex() or "-")
        for contents, name, layer in view["members"]:
            print("has", contents, name.hex() or "-", layer)
        for name, position in sorted(view["symbols"].items()):
            check(blob.find(view, name) == position, "a symbol in its slots")
            check(blob.find(view, name + b"?") is None or name + b"?" in view["symbols"], "no symbol in slots")
            print("symbol", name.hex() or "-", position)


def main():
    if sys.argv[1] != "--check":
        try:
            return show(*sys.argv[1:])
        except Violation as violation:
            sys.exit(str(violation))
    with open(sys.argv[2]) as file:
        paths = file.read().splitlines()
    for path in paths:
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                show(path)
            print("sound")
        except Violation as violation:
            print(violation)


main()
