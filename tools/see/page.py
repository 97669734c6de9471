"""One page that needs nothing else: the picture, the kernel's source, what was assumed."""

import html
import json
import os

from .cost import LEFT_OUT, how_good

TEMPLATE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "page.html")
COLUMNS = ("loads", "copies", "mbarrier", "barrier", "cluster", "products", "stores")


def shares_table(picture):
    rows = picture.shares()
    used = [column for column in COLUMNS if any(shares.get(column) for _, shares in rows)]
    if not used:
        return "<p>No warp waits.</p>"
    head = "".join(f"<th>{html.escape(column)}</th>" for column in used)
    lines = []
    for name, shares in rows:
        cells = "".join(f"<td>{100 * shares.get(column, 0):.0f} %</td>" for column in used)
        lines.append(f"<tr><th>{html.escape(name)}</th>{cells}<td>{100 * sum(shares.values()):.0f} %</td></tr>")
    return f'<table><tr><th>waits for</th>{head}<th>in all</th></tr>{"".join(lines)}</table>'


def constants_table(costs):
    rows = "".join(
        f"<tr><td>{html.escape(c.name)}</td><td class=figure>{c.value:g} {html.escape(c.unit)}</td><td>{html.escape(c.source)}</td></tr>"
        for c in costs.constants
    )
    return f"<table class=stack><tr><th>what</th><th>costs</th><th>from</th></tr>{rows}</table>"


def page(picture, costs, facts):
    """@param facts sentences on the launch, in its heading"""
    with open(TEMPLATE, encoding="utf-8") as file:
        text = file.read()
    data = json.dumps(picture.document(), separators=(",", ":")).replace("</", "<\\/")
    parts = {
        "TITLE": html.escape(picture.title),
        "FACTS": html.escape(" ".join(facts)),
        "GPU": html.escape(costs.gpu),
        "SHARES": shares_table(picture),
        "CONSTANTS": constants_table(costs),
        "LEFT_OUT": "".join(f"<li>{html.escape(each)}</li>" for each in LEFT_OUT),
        "HOW_GOOD": html.escape(how_good()),
        "DATA": data,
    }
    for name, value in parts.items():
        text = text.replace(f"@{name}@", value)
    return text
