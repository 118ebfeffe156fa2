"""Reads the tables of a redb file (format 3) without redb.

`make_data.py` uses it to check that the store it made has a record of every kind. The file may be that of a killed
server. Blocks of other formats are refused.
"""

import pathlib
import struct

MAGIC = b"redb\x1a\x0a\xa9\x0d\x0a"
LEAF, BRANCH = 1, 2
NORMAL_TABLE = 3


class RedbFile:
    def __init__(self, path):
        self.bytes = pathlib.Path(path).read_bytes()
        assert self.bytes.startswith(MAGIC), f"{path} is not a redb file"
        god_byte = self.bytes[9]
        self.page_size, self.header_pages, self.max_data_pages = struct.unpack_from("<III", self.bytes, 12)
        self.slot = 64 + 128 * (god_byte & 1)
        version, self.has_root = self.bytes[self.slot], self.bytes[self.slot + 1]
        assert version == 3, f"{path}: expected format 3, found {version}"

    def page(self, number):
        """Start and end of a page in the file."""
        order = number >> 59
        index = number & (0xFFFFF >> order)
        region = (number >> 20) & 0xFFFFF
        region_size = (self.header_pages + self.max_data_pages) * self.page_size
        size = self.page_size << order
        start = self.page_size + region * region_size + self.header_pages * self.page_size + index * size
        return start, start + size

    def leaf_entries(self, start):
        """Positions of the entries of a leaf: (start of key, its end, start of value, its end), from the file's start."""
        (count,) = struct.unpack_from("<H", self.bytes, start + 2)
        key_ends = struct.unpack_from(f"<{count}I", self.bytes, start + 4)
        value_ends = struct.unpack_from(f"<{count}I", self.bytes, start + 4 + 4 * count)
        key, value = 4 + 8 * count, key_ends[-1] if count else 0
        for key_end, value_end in zip(key_ends, value_ends, strict=True):
            yield start + key, start + key_end, start + value, start + value_end
            key, value = key_end, value_end

    def walk(self, number):
        """Positions of all entries of a tree of pages, in the order of keys."""
        start, _ = self.page(number)
        kind = self.bytes[start]
        if kind == LEAF:
            yield from self.leaf_entries(start)
            return
        assert kind == BRANCH, f"page {number:#x}: neither leaf nor branch: {kind}"
        (count,) = struct.unpack_from("<H", self.bytes, start + 2)
        for child in struct.unpack_from(f"<{count + 1}Q", self.bytes, start + 8 + 16 * (count + 1)):
            yield from self.walk(child)

    def tables(self):
        """Name -> [(key, value)] of every table."""
        found = {}
        if not self.has_root:
            return found
        (root,) = struct.unpack_from("<Q", self.bytes, self.slot + 8)
        for key, key_end, value, _ in self.walk(root):
            name = self.bytes[key:key_end].decode()
            kind, length, has_root, table_root = struct.unpack_from("<BQBQ", self.bytes, value)
            assert kind == NORMAL_TABLE, f"table {name}: kind {kind}"
            entries = self.walk(table_root) if has_root else ()
            found[name] = [(self.bytes[k:ke], self.bytes[v:ve]) for k, ke, v, ve in entries]
            assert len(found[name]) == length, f"table {name}: {len(found[name])} entries of {length}"
        return found
