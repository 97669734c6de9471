"""Where in shared memory the matrices of a wgmma lie: its descriptors, taken apart as common/interpreter/instructions/wgmma.cpp does, which an
H200 has confirmed; a test compares what they name with what the copies wrote."""

SWIZZLES = (0, 128, 64, 32)  # bytes
PIECE, ROW, PATTERN = 16, 128, 1024  # bytes: what no layout takes apart; all banks once; what the widest swizzle repeats
ROWS_OF_A, OF_K = 64, 16  # of an instruction; of k so many 16-bit elements
NO_SLICE = "."


class Matrix:
    """One operand. `field`: its part of an event's `e`."""

    def __init__(self, name, address, field, is_mn_major, rows):
        self.name, self.address, self.is_mn_major, self.rows = name, address, is_mn_major, rows
        self.leading, self.stride, self.swizzle = (field & 0x3FFF) * PIECE, (field >> 14 & 0x3FFF) * PIECE, SWIZZLES[field >> 28 & 3]

    def offset(self, row, k):
        """Bytes from the first element to the piece that begins with (row, k), before it is swizzled; row is m or n."""
        width = max(self.swizzle, PIECE) // 2
        if not self.is_mn_major:
            return row // 8 * self.stride + row % 8 * width * 2 + (k * 2 if self.swizzle else k // 8 * self.leading)
        along_rows, along_k = (self.leading, self.stride) if self.swizzle else (self.stride, self.leading)
        return row // width * along_rows + row % width * 2 + k // 8 * along_k + k % 8 * width * 2

    def pieces(self):
        """[(address, row, k)] of all 16 bytes that lie together, along k or along rows."""
        steps = (8, 1) if self.is_mn_major else (1, 8)
        return [(self.swizzled(self.address + self.offset(row, k)), row, k) for row in range(0, self.rows, steps[0]) for k in range(0, OF_K, steps[1])]

    def swizzled(self, address):
        """As the copy engine writes: bits 4 to 6 are changed by those three places above."""
        return address ^ (address >> 3 & self.swizzle - 16 & 0x70) if self.swizzle else address

    def in_words(self):
        rows = "m" if self.name == "A" else "n"
        how = f"swizzled in {self.swizzle} bytes" if self.swizzle else "not swizzled"
        along_stride, along_leading = ("k", rows) if self.is_mn_major and self.swizzle else (rows, "k")
        leading = "" if self.swizzle and not self.is_mn_major else f", and leading_bytes {self.leading:,} along {along_leading}"
        return f"{self.name}, {'MN' if self.is_mn_major else 'K'}-major, {how}. From one pattern to the next: stride_bytes {self.stride:,} along {along_stride}{leading}."


def matrices_of(values):
    """[A, B] of a wgmma's numbers a to e; without A where that is in registers."""
    _, address_a, address_b, columns, layouts = values
    b = Matrix("B", address_b, layouts >> 34, bool(layouts & 4), columns)
    return [b] if layouts & 1 else [Matrix("A", address_a, layouts >> 4 & (1 << 30) - 1, bool(layouts & 2), ROWS_OF_A), b]


def raster(slices):
    """Of the same operand of one instruction after the other: (where it begins, [a row of 128 bytes, a letter for each 16 of them: the number of
    the instruction that reads them, or none])."""
    read = {piece // PIECE: number for number, matrix in enumerate(slices) for piece, *_ in matrix.pieces()}
    in_row = ROW // PIECE
    begin = min(read) * PIECE // PATTERN * PATTERN
    rows = max(read) // in_row - begin // ROW + 1
    at = begin // PIECE
    letters = (str(read[each] % 10) if each in read else NO_SLICE for each in range(at, at + rows * in_row))
    return begin, ["".join(row) for row in zip(*[letters] * in_row)]
