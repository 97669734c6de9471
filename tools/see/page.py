"""One page that needs nothing else: the picture, the kernel's source, what was assumed."""

import html
import json
import os

from .cost import LEFT_OUT, how_good

HERE = os.path.dirname(os.path.abspath(__file__))
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


def read(name):
    with open(os.path.join(HERE, name), encoding="utf-8") as file:
        return file.read()


def placed(template, parts, data):
    """The template with what all have in common, its PARTS, by their names, and DATA for its script."""
    text = read(template)
    for name, value in {"STYLE": read("style.css"), "SCRIPT": read("common.js"), **parts, "DATA": json.dumps(data, separators=(",", ":")).replace("</", "<\\/")}.items():
        text = text.replace(f"@{name}@", value)
    return text


def filled(template, title, facts, costs, data, **more):
    """The page that a template of this folder makes. @param facts sentences on the launch, in its heading  @param more of its places"""
    parts = {
        "TITLE": html.escape(title),
        "FACTS": html.escape(" ".join(facts)),
        "GPU": html.escape(costs.gpu),
        "CONSTANTS": constants_table(costs),
        "LEFT_OUT": "".join(f"<li>{html.escape(each)}</li>" for each in LEFT_OUT),
        **more,
    }
    return placed(template, parts, data)


def page(picture, costs, facts):
    return filled("page.html", picture.title, [*facts, *picture.notes()], costs, picture.document(), SHARES=shares_table(picture), HOW_GOOD=html.escape(how_good()))
