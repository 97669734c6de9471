"""GitHub's Markdown, as far as links and headings go. tools/check-links and conf.py read it."""

import dataclasses
import re
from collections.abc import Iterator

FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$")
# A run of backticks, anything but a blank line, the same run.
CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`)((?:(?!\n[ \t]*\n).)+?)(?<!`)\1(?!`)", re.S)
COMMENT = re.compile(r"<!--.*?-->", re.S)
HEADING = re.compile(r"^ {0,3}(#{1,6})[ \t]+(.*?)[ \t]*#*[ \t]*$")
TARGET = r"<?([^\s<>()]*(?:\([^\s()]*\)[^\s<>()]*)*)>?"
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\](?:\([^()]*\))?)*)\]\(\s*" + TARGET + r"(?:\s+[\"'][^)]*[\"'])?\s*\)")
DEFINITION = re.compile(r"^ {0,3}\[[^\]\n]+\]:[ \t]*" + TARGET, re.M)
ATTRIBUTE = re.compile(r"<(?:a|img|source)\b[^>]*?\b(?:href|src|srcset)=[\"']([^\"']+)[\"']", re.S)
HIDDEN = "\0"


def hide(text: str) -> str:
    """As long as `text` and with the same lines, everything else replaced."""
    return re.sub(r"[^\n]", HIDDEN, text)


def hide_blocks(text: str) -> str:
    """`text` with fenced code hidden, fences included."""
    lines, fence = [], ""
    for line in text.split("\n"):
        match = FENCE.match(line)
        if fence:
            lines.append(hide(line))
            if match and match[1].startswith(fence) and not match[2].strip():
                fence = ""
        elif match and "`" not in match[2]:
            fence = match[1]
            lines.append(hide(line))
        else:
            lines.append(line)
    return "\n".join(lines)


def hide_code(text: str) -> str:
    """`text` with fenced code, code spans and comments hidden: what is left is prose and links, at the same places."""
    text = CODE_SPAN.sub(lambda match: hide(match[0]), hide_blocks(text))
    return COMMENT.sub(lambda match: hide(match[0]), text)


def slug(title: str) -> str:
    """The anchor that GitHub gives a heading."""
    title = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", title)  # a link counts with its text
    return re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")


def headings(text: str) -> Iterator[tuple[int, int, str]]:
    """Line (from 1), level and anchor of each heading; the second of two equal ones ends in -1."""
    seen: dict[str, int] = {}
    originals = text.split("\n")
    for number, line in enumerate(hide_blocks(text).split("\n"), 1):
        match = HEADING.match(line)
        if not match:
            continue
        anchor = slug(HEADING.match(originals[number - 1])[2])
        count = seen.get(anchor, 0)
        seen[anchor] = count + 1
        yield number, len(match[1]), f"{anchor}-{count}" if count else anchor


@dataclasses.dataclass
class Link:
    line: int  # from 1
    target: str


def links(text: str) -> list[Link]:
    """Every link and image, in the order of the lines."""
    prose = hide_code(text)
    found = []
    for pattern, group in ((LINK, 3), (DEFINITION, 1), (ATTRIBUTE, 1)):
        for match in pattern.finditer(prose):
            found.append(Link(prose.count("\n", 0, match.start(group)) + 1, match[group]))
    # An image within a link's text.
    for match in LINK.finditer(prose):
        for inner in LINK.finditer(match[2]):
            found.append(Link(prose.count("\n", 0, match.start(2) + inner.start(3)) + 1, inner[3]))
    return sorted(found, key=lambda link: link.line)


def is_remote(target: str) -> bool:
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]*:|//", target) is not None
