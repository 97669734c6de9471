"""Which lane holds what of a product, as the PTX ISA manual has it; a test compares it with what instructions do on the interpreter.

Seen as words of 4 bytes, the fragments of every mma.sync with 16 rows are alike, whatever its types: with g = lane / 4 and t = lane % 4, A's
registers are the words t and t + 4 of the rows g and g + 8, B's the same words of column g; sums are columns 2 t and 2 t + 1 of A's rows. A
warpgroup's sums are, for each of its warps and each 8 columns, as those of mma.sync.
"""

LANES, ROWS, COLUMNS = 32, 16, 8


class Grid:
    """Cells in rows, each with the lane that holds it and the number of the lane's register. `down` and `across`: what rows and columns are;
    `deep` and `wide`: elements of a cell that lie below each other and side by side; `in_one`: they share a register."""

    def __init__(self, name, cells, deep=1, wide=1, in_one=True):
        self.name, self.cells, self.deep, self.wide, self.in_one = name, cells, deep, wide, in_one

    def document(self):
        return {"n": self.name, "c": self.cells, "h": self.deep, "w": self.wide}


def cells(rows, columns, holder):
    return [[holder(row, column) for column in range(columns)] for row in range(rows)]


def sums(name="C", rows=ROWS):
    return Grid(name, cells(rows, COLUMNS // 2, lambda row, pair: (row % 8 * 4 + pair, row // 8 * 2)), wide=2, in_one=False)


def of_mma(words, elements=2):
    """[A, B, C]. @param words of 4 bytes along k  @param elements in a word"""
    a = cells(ROWS, words, lambda row, word: (row % 8 * 4 + word % 4, word // 4 * 2 + row // 8))
    b = cells(words, COLUMNS, lambda word, column: (column * 4 + word % 4, word // 4))
    return [Grid("A", a, wide=elements), Grid("B", b, deep=elements), sums()]


def of_ldmatrix(count, is_transposed):
    """The matrices of 8 x 8 as they lie in memory; lane 8 i + r has said where row r of matrix i is."""
    if is_transposed:
        return [Grid(f"matrix {i}", cells(4, 8, lambda pair, column, i=i: (column * 4 + pair, i)), deep=2) for i in range(count)]
    return [Grid(f"matrix {i}", cells(8, 4, lambda row, pair, i=i: (row * 4 + pair, i)), wide=2) for i in range(count)]


def held(grid, lane):
    """{(row, column): register} of the elements."""
    return {
        (row * grid.deep + i, column * grid.wide + j): register + (0 if grid.in_one else j)
        for row, line in enumerate(grid.cells)
        for column, (holder, register) in enumerate(line)
        if holder == lane
        for i in range(grid.deep)
        for j in range(grid.wide)
    }
