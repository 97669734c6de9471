"""What changed between two result files, and whether it is beyond the noise.

Compares what both files have: same step, tile, epilogue, shape, types, layout and mode; and what stands for a step
where tuning found another tile. On a GPU that is the ratio to cuBLAS (cublasGemmEx, else cublasLt) if both have one,
else the time. Its noise is half of the 20-80 % band over the median, of both files together, and at least 1 %. The
interpreter's counters have no noise: they must be equal.
"""

from __future__ import annotations

import dataclasses
import sys

from . import results
from .terminal import NOTHING, Arguments, Style, align, count, plus_minus, rounded, run_command, wants_colours, width

LEAST_NOISE = 0.01  # below that, nobody should trust a difference between two runs
MOST_NAMED = 8  # of a step, one by one, that only one of the files has; of more, the number


@dataclasses.dataclass
class Line:
    """Of the report. `change` is relative, None if it cannot be computed."""

    what: str
    old: str = ""
    new: str = ""
    change: float | None = None
    noise: float | None = None
    verdict: str = ""
    is_change: bool = False  # beyond the noise

    def is_beyond(self, limit):
        return self.is_change and (self.change is None or abs(self.change) > limit)


def relative(old, new):
    return 0.0 if old == new else results.quotient(new - old, old)


def measured(what, old, new, scale, faster_is):
    """The line for two samples. FASTER_IS: 1 if a larger value is a faster one, -1 if a smaller one is."""
    change = relative(old["median"], new["median"])
    noise = max(LEAST_NOISE, (results.noise(old) or 0) + (results.noise(new) or 0))
    is_change = change is None or abs(change) > noise
    verdict = "within the noise"
    if is_change:
        verdict = "faster" if (new["median"] - old["median"]) * faster_is > 0 else "slower"
    return Line(what, rounded(old["median"] * scale), rounded(new["median"] * scale), change, noise, verdict, is_change)


def counted(old, new):
    """A line for all counters, then one for each that differs."""
    lines = []
    for name in [*old, *(name for name in new if name not in old)]:
        before, after = old.get(name), new.get(name)
        if before is None or after is None:  # made by another version of the course
            lines.append(Line(name, count(before), count(after), verdict="not in both"))
        elif before != after:
            lines.append(Line(name, count(before), count(after), relative(before, after), None, "differs", True))
    differing = sum(line.is_change for line in lines)
    return [Line("counters", verdict=f"{differing} differ" if differing else "equal"), *lines]


def compared(old, new):
    """The lines for two results of the same thing; none if there is nothing that both have."""
    for name in results.BASELINES:
        if results.ratio(old, name) and results.ratio(new, name):
            return [measured(f"% of {name}", results.ratio(old, name), results.ratio(new, name), 100, 1)]
    if old.get("time") and new.get("time"):
        return [measured("ms", old["time"], new["time"], 1e3, -1)]
    if fastest(old) and fastest(new):
        return [measured("ms, best tile", fastest(old), fastest(new), 1e3, -1)]
    counters = [each.get("counters") or {} for each in (old, new)]
    return counted(*counters) if any(counters) else []


def fastest(result):
    """What the best tile took that tuning found, as a sample; None where nothing was tuned, or not timed."""
    times = [each["seconds"] for each in result.get("tuning") or [] if each["seconds"]]
    return dict.fromkeys(("median", "q20", "q80"), min(times)) if times else None


def describe(result, before=None):
    tile = f"{before['tile']} → " if before and before["tile"] != result["tile"] else ""
    return f"{result['step']}, {tile}{results.title(result)}"


def differences_of_the_runs(old, new):
    pairs = [
        ("GPU", old["gpu"]["name"], new["gpu"]["name"]),
        ("driver", old["gpu"].get("driver"), new["gpu"].get("driver")),
        ("CUDA", old.get("cuda"), new.get("cuda")),
        ("cuBLAS", old.get("cublas"), new.get("cublas")),
        ("commit", old.get("commit"), new.get("commit")),
    ]
    uuids = [run["gpu"].get("uuid") for run in (old, new)]
    if all(uuids) and old["gpu"]["name"] == new["gpu"]["name"]:  # one model: yet cuBLAS differs by up to 10 % in some sizes
        pairs.append(("GPU", *uuids))
    return [f"{name}: {a or NOTHING} and {b or NOTHING}" for name, a, b in pairs if a != b]


def cells(line, what):
    """WHAT is compared; None below its first line."""
    return [
        f"  {what}" if what else f"    {line.what}",
        line.what if what else "",
        line.old,
        line.new,
        "" if line.change is None else f"{100 * line.change:+.2f}%",
        "" if line.noise is None else plus_minus(line.noise),
        line.verdict,
    ]


def pairs(old, new):
    """(old, new) results of the same thing, in the order of NEW."""
    before = {results.identity(each): each for each in old}
    after = {results.identity(each) for each in new}

    def first(each):
        return (each["step"], results.epilogue(each), *results.setting(each))

    # Those that stand for their step with a tile that the other file does not have.
    others = {first(each): each for each in old if each["first"] and results.identity(each) not in after}
    found = []
    for each in {results.identity(each): each for each in new}.values():
        same = before.get(results.identity(each)) or (others.get(first(each)) if each["first"] else None)
        if same and compared(same, each):
            found.append((same, each))
    return found


def report(old_path, old, new_path, new, style):
    """The text, and its Lines."""
    common = pairs(old["results"], new["results"])
    rows, lines, settings = [], [], []
    for setting, group in results.grouped(common, lambda pair: results.setting(pair[1])).items():
        for before, each in group:
            for index, line in enumerate(compared(before, each)):
                rows.append(cells(line, None if index else describe(each, before)))
                lines.append(line)
                settings.append(setting)

    text = [f"old: {old_path}, {old['created']}", f"new: {new_path}, {new['created']}"]
    text += [f"warning: the runs differ in {difference}" for difference in differences_of_the_runs(old, new)]
    head, body = align(["step, tile", "what", "old", "new", "change", "noise", ""], rows, width())
    text += ["", *head]
    for index, row in enumerate(body):
        if index == 0 or settings[index] != settings[index - 1]:
            text.append(style.bold(", ".join(results.describe(settings[index]))))
        text.append(row if lines[index].is_change else style.dim(row))
    for index, (path, document) in enumerate(((old_path, old), (new_path, new))):
        compared_ones = {results.identity(pair[index]) for pair in common}
        alone = [each for each in document["results"] if results.identity(each) not in compared_ones]
        for step, group in results.grouped(alone, lambda each: each["step"]).items():
            if len(group) > MOST_NAMED:
                text.append(f"only in {path}: {step}, {len(group)} results")
            else:
                text += [f"only in {path}: {describe(each)}, {', '.join(results.describe(results.setting(each)))}" for each in group]
    changed = sum(line.is_change for line in lines)
    text += ["", f"{len(common)} compared; {changed} change{'s' * (changed != 1)} beyond the noise."]
    return "\n".join(text) + "\n", lines


def percentage(text):
    value = float(text)
    if not 0 <= value < 1e9:
        raise ValueError
    return value / 100


def main():
    arguments = Arguments(prog="tools/course compare", add_help=False)
    arguments.add_argument("old", metavar="OLD")
    arguments.add_argument("new", metavar="NEW")
    arguments.add_argument("--fail-beyond", metavar="PERCENT", type=percentage)
    given = arguments.parse_args()
    old, new = results.load(given.old), results.load(given.new)
    # Without a common result there is no answer, which must not look like 'nothing changed'.
    if not pairs(old["results"], new["results"]):
        raise results.BadFile(
            f"{given.old} and {given.new} have no result in common:"
            " make them with the same steps, --shape, --dtype, --layout, --mode and --on."
        )
    text, lines = report(given.old, old, given.new, new, Style(wants_colours(sys.stdout)))
    sys.stdout.write(text)
    if given.fail_beyond is None:
        return 0
    return int(any(line.is_beyond(given.fail_beyond) for line in lines))


if __name__ == "__main__":
    run_command(main)
