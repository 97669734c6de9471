"""What a page shows of the matrices that a warp's instructions load and multiply: which lane holds what, and where a descriptor's panels lie."""

from . import descriptors, fragments

MOST = 24  # on a page
OF_GROUP = 4  # instructions whose panels are drawn together: as a group of wgmma has them


def begins(matrices):
    """Where those of instructions side by side begin, in words."""
    if len(matrices) == 1:
        return ""
    return f" They begin {', '.join(f'{each.address - matrices[0].address:,}' for each in matrices)} bytes from the first one."


class Operands:
    def __init__(self, launch):
        self.launch, self.documents, self.numbers = launch, [], {}
        self.issued = {}  # wgmma's numbers: the key and the document

    def of(self, events):
        """The numbers of the documents that stand for these events."""
        by_kind = {}
        for event in events:
            by_kind.setdefault(self.launch.kinds[self.launch.events[event][1]], []).append(self.launch.events[event])
        documents = [self.of_ldmatrix(each) for each in by_kind.get("ldmatrix", ())]
        documents += [self.of_mma(each) for each in by_kind.get("mma", ()) if each[7]]
        if by_kind.get("wgmma", [[0] * 8])[0][7]:
            numbers = tuple(tuple(event[4:]) for event in by_kind["wgmma"][:OF_GROUP])
            if numbers not in self.issued:
                self.issued[numbers] = self.of_wgmma(numbers)
            documents.append(self.issued[numbers])
        return list(dict.fromkeys(number for key, document in documents if (number := self.number_of(key, document)) is not None))

    def number_of(self, key, document):
        if key not in self.numbers:
            if len(self.documents) == MOST:
                return None
            self.numbers[key] = len(self.documents)
            self.documents.append(document())
        return self.numbers[key]

    @staticmethod
    def of_ldmatrix(event):
        count, is_transposed = bin(event[3]).count("1") // 8, event[8] & 1
        how = "Transposed: a lane gets two elements that lie below each other." if is_transposed else "A lane gets two elements that lie side by side."

        def document():
            grids = fragments.of_ldmatrix(count, is_transposed)
            return {
                "t": f"ldmatrix.x{count}{'.trans' if is_transposed else ''}: lane 8 i + r says where row r of matrix i lies, 16 bytes. {how}",
                "g": [grid.document() for grid in grids],
            }

        return ("ldmatrix", count, is_transposed), document

    @staticmethod
    def of_mma(event):
        words = event[7]
        k = event[4] // (2 * fragments.ROWS * fragments.COLUMNS)

        def document():
            grids = fragments.of_mma(words, k // words)
            return {"t": f"mma.sync m16n8k{k}: four lanes share a row of A and of C, and a column of B.", "g": [grid.document() for grid in grids]}

        return ("mma", words, k), document

    @staticmethod
    def of_wgmma(events):
        """@param events the numbers a to e of each"""
        issued = [descriptors.matrices_of(each) for each in events]
        slices = list(zip(*issued)) if len(set(map(len, issued))) == 1 else [[each[-1] for each in issued]]
        rasters = [descriptors.raster(each) for each in slices]
        columns, layouts = events[0][3:5]
        # Two stages' are alike, but for where they begin.
        key = ("wgmma", columns, layouts, len(events), tuple((begin % descriptors.PATTERN, *rows) for begin, rows in rasters))

        def document():
            grid = fragments.sums(f"C, columns 0–7 of {columns}: warp w of the warpgroup has the rows from 16 w on")
            panels = [
                {"t": f"{each[0].in_words()}{begins(each)}", "r": rows}
                for each, (_, rows) in zip(slices, rasters)
            ]
            where = "" if len(slices) > 1 else " A is in registers."
            several = f"{len(events)} of these, a colour for each. " if len(events) > 1 else ""
            text = f"wgmma m64n{columns}: {several}Filled is what it reads of shared memory; a row is {descriptors.ROW} bytes, a line stands after {descriptors.PATTERN:,}.{where}"
            return {"t": text, "p": panels, "g": [grid.document()], "s": len(events)}

        return key, document
