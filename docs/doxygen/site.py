#!/usr/bin/env python3
"""What Doxygen cannot do alone for the course's site; tools/command/subcommands/docs.py and docs/Doxyfile call it, in the course's root.

    site.py filter FILE           prints a Markdown file of GitHub's as Doxygen wants it, line for line
    site.py finish SITE TAGFILE   resolves links, adds pages for linked files that Doxygen has none for, checks the whole site

Links go through three hands: the filter turns each relative one into repo:PATH#ANCHOR, Doxygen copies that as it is, and finish()
replaces it by the page that PATH has become: only then is it known how Doxygen named its pages, which differs between versions.
"""

import html
import html.parser
import os
import pathlib
import re
import shutil
import sys
import urllib.parse
import xml.etree.ElementTree
from typing import Optional

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import markdown

IMAGES = {".svg", ".png", ".jpg", ".jpeg", ".gif", ".webp"}
SCHEME = "repo:"


def label(path: str) -> str:
    """Doxygen's label of a page: steps/01_naive/README.md is steps_01_naive."""
    name = re.sub(r"(/?README)?\.md$", "", path)
    return re.sub(r"\W", "_", name, flags=re.A) or "mainpage"


def heading_label(path: str, anchor: str) -> str:
    """Labels are the site's, not the page's, and ASCII; Doxygen 1.9.1 reads two hyphens as a dash."""
    ascii_anchor = "".join(c if c.isascii() else f"u{ord(c):x}" for c in anchor)
    return f"{label(path)}-{ascii_anchor.replace('-', '_')}"


# --- filter ---


def repository_link(page: str, target: str) -> str:
    """A link of `page` as a path from the root, or `target` itself where it leads out of the repository."""
    if not target or markdown.is_remote(target):
        return target
    path, hash_sign, anchor = target.partition("#")
    path = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
    return f"{SCHEME}{path}{hash_sign}{anchor}"


def convert_blocks(text: str) -> str:
    """Formula blocks and folds become Doxygen's; of the words after a fence, only the language stays."""
    lines, fence, is_formula = [], "", False
    for line in text.split("\n"):
        match = markdown.FENCE.match(line)
        if fence:
            if match and match[1].startswith(fence) and not match[2].strip():
                lines.append(r"\f]" if is_formula else line)
                fence = ""
            else:
                lines.append(line)
        elif match and "`" not in match[2]:
            fence, words = match[1], match[2].split()
            is_formula = words[:1] == ["math"]
            lines.append(r"\f[" if is_formula else fence + "".join(words[:1]))
        else:
            lines.append(FOLD.sub(lambda match: fold(match[0]), line))
    return "\n".join(lines)


FOLD = re.compile(r"^(<details>|<summary>.*</summary>|</details>)$")


def fold(line: str) -> str:
    """A line of a fold, <details>, as HTML that Doxygen copies: it would end the fold at the next paragraph."""
    begin = "" if line.startswith("<summary>") else r"\htmlonly[block]"
    return begin + line + ("" if line == "<details>" else r"\endhtmlonly")


def convert_prose(page: str, text: str) -> str:
    """Links, formulas in a line, comments. `text` has headings already labelled."""
    prose = markdown.hide_code(text)
    blocks = markdown.hide_blocks(text)
    edits: list[tuple[int, int, str]] = []  # from, to, what instead
    for match in markdown.LINK.finditer(prose):
        target = html.escape(repository_link(page, match[3]))
        if match[1]:
            alt = html.escape(text[match.start(2) : match.end(2)].replace("\n", " "))
            edits.append((match.start(), match.end(), f'<img src="{target}" alt="{alt}"/>' + "\n" * match[0].count("\n")))
            continue
        edits.append((match.start(), match.start(2), f'<a href="{target}">'))
        for inner in markdown.LINK.finditer(match[2]):  # an image within the link
            alt = html.escape(inner[2])
            source = html.escape(repository_link(page, inner[3]))
            edits.append((match.start(2) + inner.start(), match.start(2) + inner.end(), f'<img src="{source}" alt="{alt}"/>'))
        edits.append((match.end(2), match.end(), "</a>" + "\n" * text.count("\n", match.end(2), match.end())))
    for match in markdown.DEFINITION.finditer(prose):
        edits.append((match.start(1), match.end(1), repository_link(page, match[1])))
    for match in markdown.ATTRIBUTE.finditer(prose):
        edits.append((match.start(1), match.end(1), repository_link(page, match[1])))
    for match in markdown.CODE_SPAN.finditer(blocks):
        if blocks[match.start() - 1 : match.start()] == "$" and blocks[match.end() : match.end() + 1] == "$":
            edits.append((match.start() - 1, match.end() + 1, rf"\f${match[2]}\f$"))
    for match in markdown.COMMENT.finditer(markdown.CODE_SPAN.sub(lambda m: markdown.hide(m[0]), blocks)):
        edits.append((match.start(), match.end(), "\n" * match[0].count("\n")))
    for begin, end, instead in sorted(edits, reverse=True):
        text = text[:begin] + instead + text[end:]
    return text


def filter_markdown(page: str, text: str) -> str:
    lines = text.split("\n")
    for number, level, anchor in markdown.headings(text):
        # Doxygen 1.9 shows the tags of code in a heading.
        title = markdown.HEADING.match(lines[number - 1])[2].replace("`", "")
        lines[number - 1] = f"{'#' * level} {title} {{#{label(page) if level == 1 else heading_label(page, anchor)}}}"
    text = convert_prose(page, "\n".join(lines))
    # Doxygen knows <img>, not the element around it that chooses one for dark screens.
    text = re.sub(r"</?picture>|<source\b[^>]*>", "", text)
    return convert_blocks(text)


# --- finish ---


class Page(html.parser.HTMLParser):
    """What a page of the site refers to, and its own anchors."""

    LOADED = {("script", "src"), ("link", "href"), ("img", "src"), ("source", "src"), ("source", "srcset"), ("iframe", "src"),
              ("object", "data"), ("embed", "src"), ("video", "src"), ("audio", "src"), ("image", "href"), ("use", "href")}

    def __init__(self, text: str):
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.in_style = False
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, Optional[str]]]) -> None:
        self.in_style = tag == "style"
        for name, value in attributes:
            if value is None:
                continue
            if name in ("id", "name"):
                self.anchors.add(value)
            elif (tag, name.replace("xlink:", "")) in self.LOADED:
                self.loads.append(value)
            elif tag in ("a", "area") and name == "href":
                self.links.append(value)
            elif name == "style":
                self.loads.extend(style_references(value))

    def handle_data(self, data: str) -> None:
        if self.in_style:
            self.loads.extend(style_references(data))

    def handle_endtag(self, tag: str) -> None:
        self.in_style = False


def style_references(text: str) -> list[str]:
    return [a or b for a, b in re.findall(r"url\(\s*[\"']?([^\"')]+)|@import\s+[\"']([^\"']+)", text)]


def site_pages(tagfile: pathlib.Path) -> dict[str, str]:
    """The site's page of each file that has one: of a Markdown file and a header its page, of a step's code its listing."""
    root = pathlib.Path.cwd()
    found = {}
    for compound in xml.etree.ElementTree.parse(tagfile).getroot().iter("compound"):
        if compound.get("kind") != "file":
            continue
        path = pathlib.Path(compound.findtext("path", "")) / compound.findtext("name", "")
        if path.is_absolute():
            path = path.relative_to(root)
        name = re.sub(r"\.html$", "", compound.findtext("filename", ""))
        if path.suffix != ".md":
            found[str(path)] = name + ("_source.html" if path.parts[0] == "steps" else ".html")
    for path in [pathlib.Path("README.md"), *sorted(root.glob("steps/*/*.md")), *sorted(root.glob("docs/**/*.md"))]:
        relative = str(path.relative_to(root) if path.is_absolute() else path)
        found[relative] = "index.html" if label(relative) == "mainpage" else label(relative) + ".html"
    return found


def is_visible(path: pathlib.Path) -> bool:
    return not path.name.startswith(".") and path.name not in ("build", "__pycache__")


class Site:
    def __init__(self, folder: pathlib.Path, tagfile: pathlib.Path):
        self.folder = folder
        self.pages = site_pages(tagfile)
        self.waiting: list[str] = []  # linked files and folders that need a page of their own
        self.errors: list[str] = []

    def resolve(self, link: str, source: pathlib.Path) -> str:
        """The address that stands for repo:`link` in the page `source`."""
        path, _, anchor = link.partition("#")
        path = urllib.parse.unquote(path)
        if path in self.pages:
            address = self.pages[path]
            if anchor and path.endswith(".md"):
                anchor = heading_label(path, urllib.parse.unquote(anchor))
            elif re.fullmatch(r"L\d+", anchor):
                address, anchor = re.sub(r"(_source)?\.html$", "_source.html", address), f"l{int(anchor[1:]):05}"
        else:
            file = pathlib.Path(path)
            if not file.exists():
                self.errors.append(f"{source.name}: a link leads to {path}, which does not exist")
                return "#"
            self.waiting.append(path)
            address = "files/" + os.path.normpath(path)
            address += "/index.html" if file.is_dir() else "" if is_raw(file) else ".html"
        address = urllib.parse.quote(address) + (f"#{anchor}" if anchor else "")
        return "../" * len(source.relative_to(self.folder).parts[1:]) + address

    def resolve_all(self, page: pathlib.Path) -> None:
        text = page.read_text(encoding="utf-8")
        if SCHEME not in text:
            return
        changed = re.sub(rf'(href|src)="{SCHEME}([^"]*)"',
                         lambda match: f'{match[1]}="{self.resolve(html.unescape(match[2]), page)}"', text)
        page.write_text(changed, encoding="utf-8")

    def add_file_pages(self) -> None:
        done: set[str] = set()
        while self.waiting:
            path = os.path.normpath(self.waiting.pop())
            if path in done:
                continue
            done.add(path)
            source = pathlib.Path(path)
            target = self.folder / "files" / path
            if source.is_dir():
                entries = sorted(filter(is_visible, source.iterdir()), key=lambda entry: (entry.is_file(), entry.name))
                items = [f'<li><a href="{SCHEME}{html.escape(str(entry))}">{html.escape(entry.name)}{"/" * entry.is_dir()}</a></li>'
                         for entry in entries]
                self.write_page(target / "index.html", path + "/", "<ul>\n" + "\n".join(items) + "\n</ul>")
            elif is_raw(source):
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)
            else:
                lines = source.read_text(encoding="utf-8").rstrip("\n").split("\n")
                body = "".join(f'<span id="L{number}">{html.escape(line)}</span>\n' for number, line in enumerate(lines, 1))
                self.write_page(target.with_name(target.name + ".html"), path, f'<pre class="fragment">{body}</pre>')

    def write_page(self, file: pathlib.Path, title: str, body: str) -> None:
        up = "../" * len(file.relative_to(self.folder).parts[1:])
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f'''<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<title>{html.escape(title)}</title>
<link href="{up}doxygen.css" rel="stylesheet"/>
<link href="{up}site.css" rel="stylesheet"/>
</head>
<body>
<div class="contents">
<p><a href="{up}index.html">GPU matrix multiplication</a></p>
<h1>{html.escape(title)}</h1>
{body}
</div>
</body>
</html>
''', encoding="utf-8")
        self.resolve_all(file)

    def check(self) -> None:
        """Nothing is loaded from elsewhere, and every link within the site leads to a page and an anchor that exist."""
        pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(self.folder.rglob("*.html"))
                 if "mathjax" not in path.parts}
        loads = [(path, target) for path, page in pages.items() for target in page.loads]
        for path in self.folder.rglob("*.css"):
            loads += [(path, target) for target in style_references(path.read_text(encoding="utf-8"))]
        for path, target in loads:
            if re.match(r"\s*([a-z]+:)?//", target, re.I):
                self.errors.append(f"{path.relative_to(self.folder)}: loads {target}: the site has to work without a network")
            # data: and javascript: load nothing; Doxygen's own style sheets name images of features that are off.
            elif path.suffix != ".css" and not markdown.is_remote(target):
                self.check_link(pages, path, target)
        for path, page in pages.items():
            for target in page.links:
                if not markdown.is_remote(target):
                    self.check_link(pages, path, target)

    def check_link(self, pages: dict[pathlib.Path, Page], source: pathlib.Path, target: str) -> None:
        address, _, anchor = target.partition("#")
        address = urllib.parse.unquote(address.partition("?")[0])
        file = pathlib.Path(os.path.normpath(source.parent / address)) if address else source
        if not file.exists():
            self.errors.append(f"{source.relative_to(self.folder)}: leads to {target}, which does not exist")
        elif anchor and file in pages and urllib.parse.unquote(anchor) not in pages[file].anchors:
            self.errors.append(f"{source.relative_to(self.folder)}: leads to {target}, an anchor that does not exist")


def is_raw(path: pathlib.Path) -> bool:
    """Whether a file goes into the site as it is, instead of as a page that shows its text."""
    if path.suffix.lower() in IMAGES or path.stat().st_size > 2**20:
        return True
    try:
        path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return True
    return False


def finish(folder: pathlib.Path, tagfile: pathlib.Path) -> int:
    site = Site(folder, tagfile)
    for page in sorted(folder.glob("*.html")):
        site.resolve_all(page)
    site.add_file_pages()
    site.check()
    for error in sorted(set(site.errors)):
        print(f"error: {error}", file=sys.stderr)
    return 1 if site.errors else 0


def main() -> int:
    if len(sys.argv) == 3 and sys.argv[1] == "filter":
        path = os.path.relpath(sys.argv[2])
        sys.stdout.reconfigure(encoding="utf-8")
        sys.stdout.write(filter_markdown(path, pathlib.Path(path).read_text(encoding="utf-8")))
        return 0
    if len(sys.argv) == 4 and sys.argv[1] == "finish":
        return finish(pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]))
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
