"""The book: Sphinx's configuration, with MyST for Markdown and Furo as theme. 'tools/course docs' calls it, with the course's root as source.

The pages are GitHub's Markdown, as they lie in the repository. What is added here: the order of reading, GitHub's formulas, each step's
kernel with its changes below the lesson, and a page for every other file and folder that a page links to. Every warning is an error.
"""

import difflib
import functools
import html
import os
import pathlib
import re
import sys
import urllib.parse

import docutils.nodes
import pygments.lexers
import pygments.util
import sphinx.highlighting
import sphinx.util.logging

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE), str(ROOT / "tools")]
import markdown
from report import ladder

# --- Sphinx ---

project = "GPU matrix multiplication"
html_title = project
root_doc = "README"
extensions = ["myst_parser", "sphinx.ext.mathjax"]
highlight_language = "none"
smartquotes = False

html_theme = "furo"
html_theme_options = {
    "light_css_variables": {"color-foreground-muted": "#5a5c63", "color-sidebar-caption-text": "#5a5c63"},
    "dark_css_variables": {"color-foreground-muted": "#9ca0a5", "color-sidebar-caption-text": "#9ca0a5"},
}
pygments_style, pygments_dark_style = "xcode", "github-dark"
html_static_path = ["book.css", "book.js"]
html_css_files, html_js_files = ["book.css"], ["book.js"]
templates_path = ["."]
SIDEBAR = ("sidebar/brand", "sidebar/search", "sidebar/scroll-start", "sidebar/navigation", "api", "sidebar/scroll-end")
html_sidebars = {"**": [f"{part}.html" for part in SIDEBAR]}
html_copy_source = html_show_sphinx = html_use_index = False
html_show_copyright = html_domain_indices = False

myst_enable_extensions = ["html_image"]
myst_heading_anchors = 6
myst_url_schemes = ("http", "https", "mailto", "repo")
myst_update_mathjax = False
# Debian's MathJax 2, which 'tools/course docs' copies; SVG needs no fonts from anywhere.
mathjax_path = "mathjax/MathJax.js"
mathjax2_config = {
    "extensions": ["tex2jax.js", "TeX/AMSmath.js", "TeX/AMSsymbols.js"],
    "jax": ["input/TeX", "output/SVG"],
    "tex2jax": {"ignoreClass": "page", "processClass": "math"},
}

# --- the order of reading ---

PARTS = {
    "Before the first lesson": ["docs/hardware", "docs/roofline", "docs/measuring"],
    "Begin": ["docs/walk", "docs/exercises", "exercises/README"],
    "Lessons": sorted(f"{each.parent.relative_to(ROOT)}/README" for each in ROOT.glob("steps/*/README.md")),
    "Use it": ["docs/options", "docs/library", "docs/interpret", "docs/interpreter", "common/interpreter/README"],
    "Look it up": ["docs/glossary", "docs/faq", "docs/troubleshooting", "docs/results/README", "docs/results/tables", "docs/tensor_parallel", "docs/results/interpreter/strangers", "tools/peers/README"],
    "Take part": ["docs/teaching", "docs/*"],
}


def exercises_of(lesson):
    """Those that the table of exercises/README.md sends to after LESSON, in its order."""
    table = ROOT / "exercises" / "README.md"
    rows = table.read_text(encoding="utf-8").split("\n") if table.exists() else []
    links = [[link.target for link in markdown.links(row)] for row in rows if row.startswith("|")]
    return [f"exercises/{row[0][:-3]}" for row in links if len(row) > 1 and row[-1] == f"../{lesson}.md"]


def expanded(pages):
    """PAGES that exist. A last one takes what no part names: docs/*."""
    named = {page for part in PARTS.values() for page in part}
    for page in pages:
        found = sorted(str(each.relative_to(ROOT))[:-3] for each in ROOT.glob(f"{page}.md"))
        yield from (each for each in found if each == page or each not in named)


def contents(caption, pages):
    """A table of contents for the sidebar."""
    lines = ["", "", "```{toctree}", ":hidden:", f":caption: {caption}" if caption else ""]
    return "\n".join([*lines, *(f"{TITLES[page]} </{page}>" if page in TITLES else f"/{page}" for page in pages), "```", ""])


TITLES = {"exercises/README": "All exercises"}  # in the sidebar; there are two pages with this name
BOOK = [root_doc, *(page for pages in PARTS.values() for page in expanded(pages))]
BOOK += [page for lesson in PARTS["Lessons"] for page in exercises_of(lesson)]
include_patterns = [f"{page}.md" for page in BOOK]

# --- GitHub's Markdown for MyST ---

PICTURE = re.compile(
    r'<picture>(\s*)<source media="\(prefers-color-scheme: dark\)" srcset="([^"]*)">(\s*)<img src="([^"]*)" alt="([^"]*)">(\s*)</picture>'
)
# The theme's classes: the reader may choose light or dark himself.
BOTH_PICTURES = r'<img src="\4" alt="\5" class="only-light">\1<img src="\2" alt="\5" class="only-dark">\3\6'


def place(page, target):
    """Where a link of PAGE, a path from the root, leads: such a path, and the anchor."""
    path, _, anchor = target.partition("#")
    path = urllib.parse.unquote(path)
    path = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
    return path, anchor


def shown(path):
    """The page of the book that shows a file or folder of the repository; it has no suffix yet. None for a page of Markdown."""
    if path.endswith(".md"):
        return None
    if (ROOT / path).is_dir():
        readme = os.path.normpath(f"{path}/README")
        return readme if readme in BOOK else f"files/{path}/index"
    return f"files/{path}"


def convert(page, text):
    """The same text with formulas as MyST writes them, pictures for light and dark, and links to other files as repo:PATH."""
    prose = markdown.hide_code(text)
    edits = []  # from, to, what instead
    for match in re.finditer(r"(?<!`)\$`([^`\n]+)`\$", markdown.hide_blocks(text)):
        # The dollars are prose, unless longer code has it all in it.
        if prose[match.start()] == "$" and prose[match.end() - 1] == "$":
            edits.append((match.start(), match.end(), f"{{math}}`{match[1]}`"))
    for match in markdown.LINK.finditer(prose):
        target = match[3]
        if match[1] and markdown.is_remote(target):
            warn(page, f"loads {target}: the book has to work without a network")
        if match[1] or not target or markdown.is_remote(target):
            continue
        path, anchor = place(page, target)
        if not (ROOT / path).exists():
            warn(page, f"a link leads to {path}, which does not exist")
        elif path.endswith(".md") and path[:-3] not in BOOK:
            warn(page, f"a link leads to {path}, which is in no part of the book: name it in docs/book/conf.py")
        elif not path.endswith(".md"):
            edits.append((match.start(3), match.end(3), f"repo:{path}" + (f"#{anchor}" if anchor else "")))
    for match in re.finditer(r"<a\b[^>]*\bhref=[\"'](?!https?:)", prose):
        warn(page, f"{match[0]}: write a link as [text](target), which the book knows how to follow")
    for match in PICTURE.finditer(prose):
        edits.append((match.start(), match.end(), match.expand(BOTH_PICTURES)))
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return re.sub(r"^```math$", "```{math}", text, flags=re.M)


def warn(page, what):
    sphinx.util.logging.getLogger(__name__).warning("%s", what, location=page[:-3])


def read_source(app, page, source):
    text = convert(f"{page}.md", source[0])
    if page == root_doc:
        text += "".join(contents(caption, expanded(pages)) for caption, pages in PARTS.items())
    elif page.startswith("steps/") and exercises_of(page):
        text += contents("", exercises_of(page))
    source[0] = text


def resolve_links(app, doctree, page):
    for node in doctree.findall(docutils.nodes.reference):
        target = node.get("refuri", "")
        if target.startswith("repo:"):
            path, _, anchor = target[len("repo:") :].partition("#")
            node["refuri"] = app.builder.get_relative_uri(page, shown(path)) + (f"#{anchor}" if anchor else "")


# --- sources ---


@functools.cache
def lines_of(path):
    """The file's lines as HTML, coloured."""
    text = (ROOT / path).read_text(encoding="utf-8")
    try:
        language = "cuda" if path.endswith((".cuh", ".cu")) else pygments.lexers.get_lexer_for_filename(path).aliases[0]
    except (pygments.util.ClassNotFound, IndexError):
        language = "none"
    bridge = sphinx.highlighting.PygmentsBridge("html", pygments_style)
    shown_text = bridge.highlight_block(text.rstrip("\n") + "\n", language, opts={"stripnl": False}, force=True)
    inner = re.search(r"<pre>(?:<span></span>)?(.*)\n</pre>", shown_text, re.S)
    return inner[1].split("\n") if inner else []


def listing(lines):
    """LINES are anchors, classes and HTML."""
    spans = (f'<span{f" id=L{anchor}" if anchor else ""} data-line="{anchor}" class="line {kind}">{line}\n</span>' for anchor, kind, line in lines)
    return f'<div class="highlight source"><pre>{"".join(spans)}</pre></div>'


def changes(old, new, around=3):
    """A coloured diff of two files, and how many lines are new and gone."""
    texts = [(ROOT / path).read_text(encoding="utf-8").rstrip("\n").split("\n") for path in (old, new)]
    coloured = [lines_of(path) for path in (old, new)]
    lines, added, gone = [], 0, 0
    for group in difflib.SequenceMatcher(None, *texts, autojunk=False).get_grouped_opcodes(around):
        if lines:
            lines.append(("", "gap", "⋯"))
        for kind, i, i_end, j, j_end in group:
            if kind == "equal":
                lines += [("", "", line) for line in coloured[1][j:j_end]]
                continue
            lines += [("", "gone", line) for line in coloured[0][i:i_end]] + [("", "new", line) for line in coloured[1][j:j_end]]
            added, gone = added + j_end - j, gone + i_end - i
    return listing(lines), added, gone


def add_kernel(app, doctree):
    """Below a lesson, or beside it: its kernel, and what that changes of the kernel it is built on. A line below the title leads there."""
    page = app.env.docname
    kernel = f"{os.path.dirname(page)}/gemm.cuh"
    if not re.fullmatch(r"steps/\d\d_\w+/README", page) or not (ROOT / kernel).exists():
        return
    lines = [(str(number), "", line) for number, line in enumerate(lines_of(kernel), 1)]
    parts = [("kernel", f"The kernel, {len(lines)} lines", listing(lines))]
    base = ladder.built_on(page.split("/")[1], ROOT)
    if base:
        text, added, gone = changes(f"steps/{base}/gemm.cuh", kernel)
        parts.append(("changes", f"What it changes of {base[:2]}: {added} lines new, {gone} gone", text))
    where = " · ".join(f'<a href="#{name}">{title}</a>' for name, title, _ in parts)
    below = "".join(f'<details id="{name}" class="beside" name="source"><summary>{title}</summary>{text}</details>' for name, title, text in parts)
    section = doctree.next_node(docutils.nodes.section)
    section.insert(1, docutils.nodes.raw("", f'<p class="to-kernel">{where}</p>', format="html"))
    section.append(docutils.nodes.raw("", below, format="html"))


def is_visible(path):
    return not path.name.startswith(".") and path.name not in ("build", "__pycache__")


def is_text(path):
    try:
        return path.stat().st_size < 2**18 and path.suffix != ".svg" and bool(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        return False


def linked(app):
    """Every file and folder that a page links to, and the steps' kernels."""
    found = {f"steps/{each.name}/gemm.cuh" for each in ROOT.glob("steps/*_*") if (each / "gemm.cuh").exists()}
    for page in app.env.found_docs:
        links = markdown.links((ROOT / f"{page}.md").read_text(encoding="utf-8"))
        found.update(place(f"{page}.md", link.target)[0] for link in links if not markdown.is_remote(link.target))
    return sorted(path for path in found if (ROOT / path).exists() and (shown(path) or "").startswith("files/"))


def folder_page(app, path, pages):
    """What lies there; those that are in the book are links."""
    items = []
    for entry in sorted(filter(is_visible, (ROOT / path).iterdir()), key=lambda entry: (entry.is_file(), entry.name)):
        inner = os.path.normpath(os.path.join(path, entry.name))
        target = inner[:-3] if inner.endswith(".md") else shown(inner)
        name = html.escape(entry.name) + "/" * entry.is_dir()
        if target in pages:
            link = html.escape(app.builder.get_relative_uri(shown(path), target))
            name = f'<a href="{link}">{name}</a>'
        items.append(f"<li>{name}</li>")
    return "<ul>" + "".join(items) + "</ul>"


def file_page(app, path):
    source = ROOT / path
    if is_text(source):
        return listing([(str(number), "", line) for number, line in enumerate(lines_of(path), 1)])
    copy = pathlib.Path(app.outdir, "files", path)
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_bytes(source.read_bytes())
    link, name = html.escape(urllib.parse.quote(source.name)), html.escape(source.name)
    return f'<p><a href="{link}">' + (f'<img src="{link}" alt="{name}"/>' if source.suffix == ".svg" else name) + "</a></p>"


def file_pages(app):
    pathlib.Path(app.outdir, "index.html").write_text('<meta http-equiv="refresh" content="0; url=README.html">\n', encoding="utf-8")
    paths = linked(app)
    pages = app.env.found_docs.union(map(shown, paths))

    @functools.cache
    def navigation(up, **options):
        """The sidebar's, which takes longer than the rest of such a page: the same for all that are as many folders down."""
        return app.builder._get_local_toctree(up * "files/" + "file", **options)

    for path in paths:
        body = folder_page(app, path, pages) if (ROOT / path).is_dir() else file_page(app, path)
        title = html.escape(path)
        context = {"title": title, "body": f"<h1>{title}</h1>\n{body}", "toctree": functools.partial(navigation, shown(path).count("/"))}
        yield shown(path), context, "page.html"


def setup(app):
    app.add_lexer("ptx", pygments.lexers.TextLexer)  # Pygments' knows no :: yet
    app.connect("source-read", read_source)
    app.connect("doctree-read", add_kernel)
    app.connect("doctree-resolved", resolve_links)
    app.connect("html-collect-pages", file_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
