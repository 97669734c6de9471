"""The page of a block on several GPUs: a lane for each one's products and copies, plan by plan."""

import html
import os

from . import cost, page

RESULTS, SOURCE = "docs/results/h200-x2/tensor_parallel.json", "steps/tensor_parallel/feed_forward.h"
COPIES = {"gather": "all-gather", "exchange": "all-to-all", "reduce": "reduce-scatter"}
LABELS = {"first": ("X·W1", "1"), "second": ("H·W2", "2"), "gather": ("all-gather", "g"), "exchange": ("all-to-all", "e"), "reduce": ("reduce-scatter", "r"), "add": ("sum", "+")}


def micros(seconds):
    value = 1e6 * seconds
    return f"{value:,.0f} µs" if value >= 9.95 else f"{value:.1f} µs"


def amount(value, unit):
    for factor, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= factor:
            return f"{value / factor:.3g} {prefix}{unit}" if value < 1000 * factor else f"{value / factor:,.0f} {prefix}{unit}"
    return f"{value:.0f} {unit}"


def name_of(plan):
    return "plain" if not plan["overlapped"] else f"overlapped, {plan['chunks']} chunk{'s' if plan['chunks'] > 1 else ''}"


def measured_name(plan):
    return "plain" if not plan["overlapped"] else f"overlapped, {plan['chunks']}, copy engines"


def owners(plan, operation):
    """Whose tokens its rows are: ranks, in order."""
    begin, end = (row // plan["piece_rows"] for row in (operation["rows"][0], operation["rows"][1] - 1))
    return sorted({piece % len(plan["ranks"]) for piece in range(begin, end + 1)})


def of_chunk(plan, operation):
    """In words; '' where there is one."""
    return f" of chunk {operation['rows'][0] // plan['piece_rows'] // len(plan['ranks']) + 1}" if plan["chunks"] > 1 else ""


def whose(plan, operation, rank):
    """In words, behind a product's name."""
    found, ranks = owners(plan, operation), len(plan["ranks"])
    rows = operation["rows"][1] - operation["rows"][0]
    if found == [rank]:
        tokens = "its own tokens"
    elif len(found) == ranks:
        tokens = "all tokens"
    else:
        tokens = f"tokens of GPU{'s' if len(found) > 1 else ''} {', '.join(map(str, found)) if len(found) < 4 else f'{found[0]} to {found[-1]}'}"
    return f"{tokens}{of_chunk(plan, operation)}, {rows:,} row{'' if rows == 1 else 's'}"


def called(operation):
    """Short, with its line."""
    work = operation["work"]
    words = COPIES.get(work) or {"first": "X · W1", "second": "hidden · W2", "add": "the sum"}[work]
    return f"{words} (line {operation['line']})"


def what(plan, operation, rank):
    work, chunk = operation["work"], of_chunk(plan, operation)
    bytes_ = amount(operation["bytes"], "B")
    if work == "gather":
        return f"All-gather{chunk}: receives {bytes_}, the X of the others' tokens."
    if work == "exchange":
        return f"All-to-all{chunk}: receives {bytes_}, the others' parts of the sums of its own tokens."
    if work == "reduce":
        return f"Reduce-scatter{chunk}: receives {bytes_}, and adds the others' parts of the sums of its own tokens."
    if work == "add":
        return f"Adds the parts of the sums of its own tokens{chunk}: {bytes_} are read and written."
    factors = "X · W1" if work == "first" else "Hidden · W2"
    return f"{factors} of {whose(plan, operation, rank)}: {amount(operation['operations'], 'FLOP')}."


def overlap(a, b):
    return max(0.0, min(a["to"], b["to"]) - max(a["from"], b["from"]))


def before(operations, number):
    """(the one before it on its stream or None, those of the other stream that it waits for)."""
    it = operations[number]
    same = next((i for i in range(number - 1, -1, -1) if operations[i]["copies"] == it["copies"]), None)
    return same, it["waits"]


def text_of(plan, rank, number):
    operations = plan["ranks"][rank]["operations"]
    it = operations[number]
    same, waits = before(operations, number)
    words = [what(plan, it, rank)]
    if waits:
        words.append(f"An event holds it until {' and '.join(called(operations[i]) for i in waits)} is over.")
    if same is not None:
        words.append(f"Before it on its stream: {called(operations[same])}.")
    if not waits and same is None:
        words.append("It waits for nothing.")
    if it["work"] in COPIES:
        words.append("All GPUs do it together.")
    else:
        beside = sum(overlap(it, each) for each in operations if each["copies"])
        if beside > 0 and it["work"] != "add":
            words.append(f"A copy is under way for {micros(beside)} of it, and slows it down.")
    return " ".join(words)


def lane_of(rank, operation):
    """Copies have one, whatever their stream."""
    return 2 * rank + (operation["work"] in COPIES)


def gaps(operations, end):
    """[(begin, end)] where none of them is under way."""
    found, last = [], 0.0
    for each in sorted(operations, key=lambda each: each["from"]):
        if each["from"] > last:
            found.append((last, each["from"]))
        last = max(last, each["to"])
    return [*found, (last, end)] if end - last > 1e-12 else found


def busy(operations, works):
    return sum(each["to"] - each["from"] for each in operations if each["work"] in works)


def sums_of(plan):
    """For each GPU, how long its tensor cores and its link have nothing to do."""
    end, said = plan["seconds"], []
    for rank, each in enumerate(plan["ranks"]):
        products, copies = busy(each["operations"], ("first", "second")), busy(each["operations"], COPIES)
        said.append(f"GPU {rank}: tensor cores idle {micros(end - products)} of {micros(end)}, the link {micros(end - copies)}.")
    alike = {text.split(":", 1)[1] for text in said}
    return [f"Each GPU:{alike.pop()}"] if len(alike) == 1 else said


def races_of(plan):
    """[(rank, number of the one, number of the other)]"""
    return [(rank, first, second) for rank, each in enumerate(plan["ranks"]) for first, second in each["races"]]


def document_of(plan, measured):
    found, place = [], {}
    for rank, each in enumerate(plan["ranks"]):
        operations = each["operations"]
        for number, it in enumerate(operations):
            same, waits = before(operations, number)
            others = [i for i in (*waits, *([same] if same is not None and lane_of(0, operations[same]) != lane_of(0, it) else [])) if i is not None]
            racing = [operations[b if a == number else a] for a, b in each["races"] if number in (a, b)]
            mine = owners(plan, it) if it["work"] in ("first", "second") else [rank] if it["work"] != "gather" else [r for r in range(len(plan["ranks"])) if r != rank]
            found.append(
                {
                    "key": (rank, number),
                    "lane": lane_of(rank, it),
                    "from": round(1e6 * it["from"], 3),
                    "to": round(1e6 * it["to"], 3),
                    "line": it["line"],
                    "copy": it["work"] in COPIES,
                    "s": mine[0] if len(mine) == 1 else -1,
                    "label": LABELS[it["work"]][0],
                    "short": LABELS[it["work"]][1],
                    "text": text_of(plan, rank, number),
                    "waits": [(rank, i) for i in others],
                    "race": f"Nothing orders it and {' and '.join(map(called, racing))}: one of them writes what the other one reads or writes." if racing else "",
                }
            )
    found.sort(key=lambda each: (each["from"], each["lane"]))
    for i, each in enumerate(found):
        place[each["key"]] = i
    turn, met = {}, {}
    for rank, each in enumerate(plan["ranks"]):
        for number, it in enumerate(each["operations"]):
            if it["work"] in COPIES:  # the first of this rank is the first of all
                key = (it["copies"], turn.get((rank, it["copies"]), 0))
                turn[rank, it["copies"]] = key[1] + 1
                met.setdefault(key, []).append(place[rank, number])
    for each in found:
        each["waits"] = [place[key] for key in each["waits"]]
        each["together"] = []
    for these in met.values():
        for i in these:
            found[i]["together"] = [other for other in these if other != i]
    for each in found:
        del each["key"]
    lanes = []
    for rank, each in enumerate(plan["ranks"]):
        for is_copy in (False, True):
            these = [it for it in each["operations"] if (it["work"] in COPIES) == is_copy]
            lanes += [(2 * rank + is_copy, round(1e6 * a, 3), round(1e6 * b, 3)) for a, b in gaps(these, plan["seconds"])]
    return {"name": name_of(plan), "ops": found, "gaps": lanes, "sums": sums_of(plan), "measured": round(1e6 * measured, 3) if measured else 0}


def measured_of(said, shape, ranks):
    """By the plans' names, seconds; empty where another block was measured."""
    like = said["like"]
    return like["seconds"] if (like["tokens"], like["model"], like["hidden"], like["ranks"]) == (*shape, ranks) else {}


def summary(said):
    """In a sentence, how long each plan takes."""
    plain, *overlapped = said["plans"]
    return f"The model says: plain {micros(plain['seconds'])}; overlapped {', '.join(f'''{micros(each['seconds'])} with {each['chunks']}''' for each in overlapped)} chunks."


def facts(said, shape, ranks):
    """Sentences for the heading; the last one is the result."""
    like = said["like"]
    block = "×".join(str(like[key]) for key in ("tokens", "model", "hidden"))
    found = [
        f"Tokens×model×hidden = {'×'.join(map(str, shape))}, f16, on {ranks} GPUs. What each does, and what it waits for, was recorded; when, is a model's:"
        f" its products are as fast as those of {block} on {like['ranks']} H200s, its copies as their link ({RESULTS})."
    ]
    if ranks > like["ranks"]:
        found.append("The link was measured between two GPUs. Here each has the same rate, and the others' pieces come one after the other.")
    rows = [each["rows"][1] - each["rows"][0] for plan in said["plans"] for rank in plan["ranks"] for each in rank["operations"] if each["work"] in ("first", "second")]
    if rows and min(rows) <= said["few"]:
        found.append(f"Some products have {said['few']} rows or fewer. These take as long as their weights, which the model does not know: they would take longer than it says.")
    racing = [plan for plan in said["plans"] if races_of(plan)]
    if racing:
        found.append(f"Red frames: nothing orders operations that use the same memory ({'; '.join(map(name_of, racing))}). On GPUs the result is wrong now and then.")
    return [*found, summary(said)]


def plans_table(said, measured):
    head = "<tr><th>plan</th><th>model</th>" + ("<th>measured</th>" if measured else "") + "<th>tensor cores idle</th><th>link idle</th></tr>"
    rows = ""
    for plan in said["plans"]:
        idle = [
            max(plan["seconds"] - busy(rank["operations"], works) for rank in plan["ranks"])
            for works in (("first", "second"), COPIES)
        ]
        cells = [name_of(plan), micros(plan["seconds"]), *([micros(measured[measured_name(plan)])] if measured else []), *map(micros, idle)]
        rows += "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>"
    return f"<table>{head}{rows}</table><p>Idle: of the GPU that idles most.</p>"


HOW = """<p>The program itself has said what each rank does: its own <code>FeedForward</code> ran, and a recorder stood in the place of streams, copies,
products and sums. So nothing was computed, and a change of <code>run_overlapped</code> changes this page. A clock then runs all ranks at once:</p>
<ul>
<li>A product takes its operations at the measured rate of a whole product. While its GPU copies on another stream, it has @SPEED@ of that speed.</li>
<li>A copy takes what the link took for so many bytes, on the products' stream by NCCL, else by copy engines. It begins when it may on all GPUs.</li>
<li>A launch begins @GAP@ after what it waited for, on a GPU with two streams. A sum of parts moves @MEMORY@.</li>
</ul>
<p>What a product loses and the launch's gap are fitted to two H200s (<code>steps/tensor_parallel/cost_model.h</code>). docs/tensor_parallel.md says how far the model is off. Left out: that a product of
few rows is slower for each of them, what a launch costs the host, and that GPUs are not equally fast.</p>"""


def page_of(said, shape, ranks):
    title, measured = f"tensor parallel, {ranks} GPUs", measured_of(said, shape, ranks)
    plans = [document_of(plan, measured.get(measured_name(plan))) for plan in said["plans"]]
    with open(os.path.join(cost.ROOT, SOURCE), encoding="utf-8") as file:
        source = file.read().splitlines()
    data = {
        "title": title,
        "ranks": ranks,
        "short": "Where there is no room: " + ", ".join(f"{short} {long}" for long, short in LABELS.values()),
        "lanes": [name for rank in range(ranks) for name in (f"GPU {rank} products", f"GPU {rank} copies")],
        "end": max(each for plan, drawn in zip(said["plans"], plans) for each in (1e6 * plan["seconds"], drawn["measured"])),
        "opens": next((i for i, plan in enumerate(said["plans"]) if races_of(plan)), 1),
        "source": source,
        "plans": plans,
    }
    parts = {
        "TITLE": html.escape(title),
        "FACTS": html.escape(" ".join(facts(said, shape, ranks))),
        "PLANS": plans_table(said, measured),
        "FILE": html.escape(SOURCE),
        "HOW": HOW,
        "SPEED": f"{100 * (1 - said['slowed']):.0f} %",
        "GAP": micros(said["gap"]),
        "MEMORY": amount(said["memory"], "B/s"),
    }
    return page.placed("ranks.html", parts, data)


def is_racing(said):
    return any(map(races_of, said["plans"]))

