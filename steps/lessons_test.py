"""What each lesson has: its parts in their order, answers behind a fold, small tables, links to the glossary, instructions that exist.

Usage: lessons_test.py [FIGURES_PROGRAM]   with it, also that the order of blocks drawn in lesson 05 is the code's
"""

import collections
import csv
import json
import math
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "docs/book"))
import markdown

LESSONS = sorted((ROOT / "steps").glob("*/README.md"))
PARTS = ("Question", "Picture", "First", "What changed", "Walk", "Predict", "Count", "Measure", "Exercise", "What limits us now")
# Lines as a reader sees them, with tables, before he opens an answer; points of a Walk, numbers outside of tables; words of a sentence.
MOST_LINES, MOST_POINTS, MOST_NUMBERS, MOST_ROWS, MOST_COLUMNS, LONGEST_SENTENCE = 100, 8, 60, 8, 6, 30
CHAPTERS = [path for path in sorted((ROOT / "docs").glob("*.md")) if "\n## Check yourself\n" in path.read_text(encoding="utf-8")]
# One word for one thing: what is not said, and what is.
SYNONYMS = {
    r"CTAs?": "block",
    r"thread ?blocks?": "block",
    r"threadgroups?": "block",
    r"smem": "shared memory",
    r"warp groups?": "warpgroup",
    r"tensor memory accelerator": "copy engine",
    r"tails? effects?": "the last wave",
    r"rounds? of (?:\d+ SMs|tiles|blocks)|(?:takes?|fills?|are) [\w.]+ rounds": "wave",
}
EXERCISED = (*range(1, 17), 21)  # these lessons have exercises; from 08 on all with a kernel have edits
# Figures with these units are a file's or computed: markers above them say so (tools/report/tables.py).
UNITS = r"(?:TFLOP/s|µs|ms|[TG]B/s|[MG]Hz|%(?! \d)|W|pJ|[kMG]B|percentage points|of cuBLAS)(?!\w)"
# But these are no result file's. Of all pages: an H200's and an H100's data sheets. Of one: what the page says whose they are.
OF_OTHERS = {
    "": (
        *("1980 MHz", "1.98 GHz", "1.83 GHz", "1,830 MHz", "50 MB", "60 MB", "80 GB", "141 GB", "3.35 TB/s", "4.8 TB/s"),
        *("67 TFLOP/s", "989 TFLOP/s", "700 W"),
    ),
    "steps/05_l2_swizzle/README.md": ("2.47 GB", "6 %"),  # of an earlier main loop; l2_test.cpp holds the model to more
    "docs/roofline.md": ("100 %", "10 %", "17 %", "20 %", "18 %", "22 %"),  # a test holds the model to these
    "docs/library.md": (
        *("4 MB", "5 MB", "46 MB", "90.7 %"),  # sizes of a library; of an earlier commit
        *("84 %", "108 %", "4 %"),  # what the library's model chooses, which library_test knows
    ),
    "docs/teaching.md": ("2 %",),
    "docs/results/tables.md": (
        *("1700 MHz", "1800 MHz", "75 %"),  # ncu's own clock; some tiles' of many
        *("23 %", "1.5 %", "5 %", "78 %", "84 %", "86 %", "6 %"),  # another process's cuBLAS
    ),
    # Of a fit, and assumed; cost_model_test.cpp has what was fitted, and the page's first table.
    "docs/tensor_parallel.md": (
        *("4 µs", "55 %", "11 %", "2 µs", "5 µs", "0.5 µs", "75 %", "13 %", "4.5 µs", "5 %", "3.9 TB/s", "137 µs", "71 µs"),
        *("13 µs", "20 µs"),
    ),
    "docs/measuring.md": (
        *("20 %", "80 %", "20 ms", "20 µs", "13 %", "2 %", "103 %"),  # settings, and examples
        # Whole files beside each other, by 'tools/course compare'; test_report.py holds them to 3 %.
        *("3 %", "2.1 %", "1 %", "1.2 %", "1.8 %", "9 %", "4 %", "1.5 %"),
    ),
}
# Limits of programs; how far the model of L2 is off, which l2_test.cpp holds.
OTHER_FIGURES = ("interpret.md", "interpreter.md", "exercises.md", "options.md")
# Words of the glossary that the interpreter's page needs, and no lesson yet.
LATER = ()
PROGRAM = None


def number_of(lesson):
    """Of a step without one, of several GPUs, the number after the last."""
    return int(lesson.parent.name[:2]) if lesson.parent.name[0].isdigit() else 21


def text_of(lesson):
    """Without the line that says where the lesson stands, which is generated."""
    return re.sub(r"<!-- place -->\n.*\n\n", "", lesson.read_text(encoding="utf-8"))


def without_code(text):
    """Prose and links: fenced code and comments are left out, and so is code in a line, unless it is a word of the glossary."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.S | re.M)
    terms = glossary()
    return re.sub(r"`([^`\n]*)`", lambda code: code[1] if code[1] in terms else "``", re.sub(r"<!--.*?-->", "", text, flags=re.S))


def prose(text):
    """What is left without tables and what is generated below them, pictures and headings."""
    lines, in_table = [], False
    for line in re.sub(r"^```.*?^```$", "", text, flags=re.S | re.M).split("\n"):
        in_table = (in_table or line.startswith("<!-- table")) and not line.startswith("<!-- end of table")
        if not (in_table or line.startswith(("|", "<", "#", "!["))):
            lines.append(line)
    return "\n".join(lines)


def tables(text):
    """Rows without head and rule, and columns, of each."""
    for found in re.finditer(r"^\|.*\n\|[ -|]*\n(?:\|.*\n?)*", re.sub(r"^```.*?^```$", "", text, flags=re.S | re.M), re.M):
        lines = found[0].rstrip().split("\n")
        yield len(lines) - 2, lines[1].count("---"), lines[0]


def without_folds(text):
    return re.sub(r"^<details>.*?^</details>\n", "", text, flags=re.S | re.M)


def lines_of(text):
    """Those that a reader sees before he opens a fold."""
    return [line for line in without_folds(text).split("\n") if not line.startswith("<!--")]


def numbers(text):
    """Those that prose has before a reader opens a fold. A product or a size, 128 × 256, is one; code and links to lessons have none."""
    one = r"(?:\d[\d.,]*\d|\d)[¹²³⁰-⁹]*"
    seen = re.sub(r"\]\([^)]*\)", "]", re.sub(r"\[\d\d\]\([^)]*\)|`[^`\n]*`", "", prose(without_folds(text))))
    return re.findall(rf"(?<![\w.]){one}(?:\s*[×·/]\s*\(?{one}\)?)*", seen)


def unbound(text):
    """Figures with a unit, and factors such as '1.6 times', that no marker above their paragraph binds.

    '<!-- rows compared by FILE -->' binds a table: a test, FILE, does.
    """
    one = r"(?<![\w.,×·])\d+(?:,\d{3})*(?:\.\d+)?(?![\w³]|\.\d)"
    for paragraph in re.split(r"\n\s*\n", re.sub(r"^<!-- table .*?^<!-- end of table -->$", "", text, flags=re.S | re.M)):
        compared = re.match(r"<!-- rows compared by (\S+) -->\n", paragraph)
        if compared and (ROOT / compared[1]).exists():
            continue
        bound = re.findall(r"=([\d.,]+)(?= )", "\n".join(re.findall(r"^<!-- (?:figures|computed) .*-->$", paragraph, re.M)))
        seen = re.sub(r"\]\([^)]*\)|[`*\[]", "", re.sub(r"`[^`\n]*`|\[\d\d\]\([^)]*\)", "``", prose(re.sub(r"^\| *(.*)\|$", r"\1", paragraph, flags=re.M))))
        for found in re.finditer(rf"(?<![·×/+] )((?:{one}(?:(?:, {one})* and | to | or | : ))*{one})[ -]?\s*({UNITS})|({one}) (times)(?! (?:the|as many))", seen):
            numbers = re.findall(one, found[1] or found[3])
            unit = found[2] or found[4]
            yield from (f"{number} {unit}" for number in numbers if number not in bound and (found[1] or "." in number))


def sentences(text):
    for paragraph in re.split(r"\n\s*\n|\n(?=- |\d\. )", re.sub(r"\]\([^)]*\)", "]", prose(text))):
        yield from re.split(r"(?<=[.:;!?])\s+", paragraph)


def glossary():
    """From each term to its anchor."""
    text = text_of(ROOT / "docs/glossary.md")
    return {title: markdown.slug(title) for title in re.findall(r"^## (.*)$", text, re.M)}


def first_use(term, text):
    """Where TERM first occurs in TEXT, plurals and capitals included; None if it does not."""
    word = re.escape(term)
    if term.islower():
        word = f"[{term[0].upper()}{term[0]}]{word[1:]}"
    return re.search(rf"(?<![\w.*-]){word}(?:s|es|ed)?(?![\w-])", text)


class Lessons(unittest.TestCase):
    def test_each_step_has_one(self):
        steps = sorted(path.parent for path in ROOT.glob("steps/*/gemm.cuh"))
        self.assertEqual([lesson.parent for lesson in LESSONS], [*steps, ROOT / "steps/tensor_parallel"])
        self.assertLessEqual(set(EXERCISED), {number_of(lesson) for lesson in LESSONS})

    def test_parts(self):
        for lesson in LESSONS:
            found = re.findall(r"^\*\*(.*?)\.\*\*", text_of(lesson), re.M)
            left_out = {"What changed"} if lesson.parent.name.startswith("01") else set()
            if not list(lesson.parent.glob("first*.cu")):
                left_out.add("First")
            expected = [part for part in PARTS if part not in left_out]
            self.assertEqual(found, expected, lesson)

    def test_the_last_line_is_the_next_question(self):
        for lesson, following in zip(LESSONS, LESSONS[1:]):
            asked = re.search(r"\*([^*]*\?)\*\n*\Z", text_of(lesson))
            question = re.search(r"\*\*Question\.\*\* (.*?)\n\n", text_of(following), re.S)
            self.assertTrue(asked, lesson)
            asked, question = (re.sub(r"\[([^\]]*)\]\([^)]*\)|\*", r"\1", each[1]).split() for each in (asked, question))
            self.assertEqual(asked, question, lesson)

    def test_length(self):
        self.assertGreaterEqual(len(CHAPTERS), 4)
        for page in [*LESSONS, *CHAPTERS]:
            self.assertLessEqual(len(lines_of(text_of(page))), MOST_LINES, page)
            self.assertLessEqual(len(numbers(text_of(page))), MOST_NUMBERS, page)

    def test_a_walk_is_short(self):
        for lesson in LESSONS:
            walk = re.search(r"^\*\*Walk\.\*\*(.*?)^\*\*", without_folds(text_of(lesson)), re.S | re.M)[1]
            self.assertLessEqual(len(re.findall(r"^(?:- |\d\. )", walk, re.M)), MOST_POINTS, lesson)

    def test_one_word_for_one_thing(self):
        for page in [*LESSONS, *CHAPTERS, *ROOT.glob("exercises/*/README.md"), ROOT / "docs/glossary.md"]:
            text = without_code(prose(text_of(page)))
            for unwanted, word in SYNONYMS.items():
                found = re.search(rf"(?<![\w.-])(?:{unwanted})(?![\w-])", text, re.I)
                if found and not (page.name == "glossary.md" and word == "copy engine"):  # which says what TMA stands for
                    self.fail(f"{page}: '{found[0]}': say '{word}'")

    def test_figures_in_prose_are_bound(self):
        wrong = {}
        pages = [page for page in sorted(ROOT.glob("docs/**/*.md")) if page.name not in OTHER_FIGURES]
        for page in [*LESSONS, *pages, ROOT / "README.md"]:
            name = str(page.relative_to(ROOT))
            allowed = OF_OTHERS.get("", ()) + OF_OTHERS.get(name, ())
            every = list(unbound(text_of(page)))
            found = [figure for figure in every if figure not in allowed]
            wrong.update({name: found} if found else {})
            self.assertEqual([figure for figure in OF_OTHERS.get(name, ()) if figure not in every], [], f"{name} no longer says this")
        self.assertEqual(wrong, {}, "no marker binds these: CONTRIBUTING.md, 'A figure in prose'")

    def test_an_unbound_figure_is_found(self):
        marker = "<!-- computed 2*5=10 -->\n"
        for text, found in (
            ("It has 10 TFLOP/s.\n", ["10 TFLOP/s"]),
            (f"{marker}It has 10 TFLOP/s.\n", []),
            (f"{marker}It has 10 TFLOP/s.\n\nAnd 10 µs.\n", ["10 µs"]),
            ("At 4096³ it has [97.6 %](x.json), 3 to 5 % less,\n", ["97.6 %", "3 %", "5 %"]),
            ("1, 2 and 3 ms, 1.6 times as long.\n", ["1 ms", "2 ms", "3 ms", "1.6 times"]),
            ("Of 8 tiles, 128 × 256 and 2·64 each, 3 times; `10 ms`, stage 7 % 3.\n", []),
            ("| a | b |\n| --- | --- |\n| 2 · 5 = 10 ms | 6 W |\n", ["10 ms", "6 W"]),
        ):
            with self.subTest(text):
                self.assertEqual(list(unbound(text)), found)

    def test_what_fewer_instructions_bring(self):
        gains = collections.defaultdict(list)
        with open(ROOT / "docs/results/h200/instructions-f16.csv", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                shares = (float(row[f"cublas_{when}"]) / float(row[when]) for when in ("before", "after"))
                tile = re.fullmatch(r"(\d+)x(\d+)x64 s(\d+) g8 cluster (\d)", row["tile"])
                before, after = shares
                gains[tuple(map(int, tile.groups()))].append(math.log(after / before))
        rows = re.findall(r"^\| (\d+) × (\d+), (\d) \| (\d+) \| (\d+) \| (\S+) \|$", text_of(ROOT / "steps/20_fewer_requests/README.md"), re.M)
        self.assertEqual(len(rows), len(gains))
        for m, n, cluster, stages, clocks, gain in rows:
            each = gains[int(m), int(n), int(stages), int(cluster)]
            self.assertEqual(f"{math.exp(sum(each) / len(each)):.2f}", gain, (m, n))
            self.assertEqual(int(m) * int(n) * 64 / 2048, int(clocks))  # of 64 of k; 2048 multiply-adds a clock

    def test_chapters_ask_and_answer(self):
        for chapter in CHAPTERS:
            questions, answers = text_of(chapter).split("\n## Check yourself\n")[1].split("<details>\n<summary>Answers</summary>\n\n")
            for part in (questions, answers):
                self.assertEqual(re.findall(r"^(\d)\. ", part, re.M), ["1", "2", "3"], chapter)
            self.assertTrue(answers.endswith("\n\n</details>\n"), chapter)

    def test_tables_are_small(self):
        for lesson in LESSONS:
            for rows, columns, head in tables(text_of(lesson)):
                self.assertLessEqual((rows <= MOST_ROWS, columns <= MOST_COLUMNS), (True, True), f"{lesson}: {head}")
                self.assertTrue(rows <= MOST_ROWS and columns <= MOST_COLUMNS, f"{lesson}: {rows} rows, {columns} columns: {head}")

    def test_sentences_are_short(self):
        for page in [*LESSONS, *CHAPTERS]:
            for sentence in sentences(text_of(page)):
                self.assertLessEqual(len(sentence.split()), LONGEST_SENTENCE, f"{page}: {sentence}")

    def test_answers_are_behind_a_fold(self):
        for lesson in LESSONS:
            for part in ("Predict", "Exercise"):
                found = re.search(rf"^\*\*{part}\.\*\*(.*?)^\*\*", text_of(lesson), re.S | re.M)[1]
                # GitHub and Doxygen read Markdown in it after a blank line only.
                self.assertRegex(found, r"<details>\n<summary>[^<\n]+</summary>\n\n\S", f"{lesson}: {part}")
            self.assertEqual(text_of(lesson).count("<details>"), text_of(lesson).count("\n\n</details>\n"), lesson)

    def test_lessons_lead_to_exercises(self):
        written = {path.parent.name for path in ROOT.glob("exercises/*/test.cpp")}
        linked = [re.findall(r"\]\(../../exercises/(\w+)/README.md\)", text_of(lesson)) for lesson in LESSONS]
        for lesson, exercises in zip(LESSONS, linked):
            self.assertEqual(bool(exercises), number_of(lesson) in EXERCISED, lesson)
            if number_of(lesson) > 7 and (lesson.parent / "gemm.cuh").exists():  # edits, whose outcomes edits_test.py knows
                self.assertRegex(text_of(lesson), r"(?s)\*\*Exercise\.\*\*.*\]\(edits/[\w-]+\.patch\)", lesson)
        self.assertEqual(sorted(sum(linked, [])), sorted(written))
        index = text_of(ROOT / "exercises/README.md")
        self.assertEqual(sorted(re.findall(r"\]\((\w+)/README.md\)", index)), sorted(written))

    def test_exercises_are_read_as_lessons_are(self):
        anchors = set(glossary().values())
        for readme in sorted(ROOT.glob("exercises/*/README.md")):
            for sentence in sentences(without_code(text_of(readme))):
                self.assertLessEqual(len(sentence.split()), LONGEST_SENTENCE, f"{readme}: {sentence}")
            for anchor in re.findall(r"glossary\.md#([^)]*)", text_of(readme)):
                self.assertIn(anchor, anchors, readme)

    def test_the_front_page_shows_the_first_exercise(self):
        """As docs/walk.md has recorded it. (edits_test.py has the front page's other two commands.)"""
        recorded, shown = (re.sub(r"\([\d.]+ s\)", "", text_of(ROOT / page)) for page in ("docs/walk.md", "README.md"))
        shown = re.search(r"^tools/course check\n```\n\n```\n(.*?)^```", shown, re.S | re.M)[1].splitlines()
        self.assertEqual([line for line in shown if line not in recorded.splitlines()], [])
        self.assertGreaterEqual(len(shown), 3)

    def test_how_fast_it_is(self):
        """As soon as a step has been measured: a roofline, and from wgmma on the share of cuBLAS."""
        files = [*(ROOT / "docs/results/h200").glob("ladder-*.json"), *(ROOT / "docs/results/h200").glob("decode-*.json")]
        measured = {result["step"] for path in files for result in json.loads(text_of(path))["results"]}
        self.assertLessEqual({"01_naive", "08_split_k", "10_wgmma"}, measured)
        for lesson in LESSONS:
            if lesson.parent.name not in measured:
                continue
            number = lesson.parent.name[:2]
            own = rf"\S*roofline-\S+-{number}\.svg" if number < "10" else r"share\.svg"
            self.assertRegex(text_of(lesson), rf"!\[[^\]]+\]\({own}\)", lesson)

    def test_alternative_texts_say_what_pictures_show(self):
        seen = 0
        for page in [*LESSONS, *sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md"]:
            for words, link in re.findall(r"!\[([^\]]*)\]\(([^)]*\.svg)\)", text_of(page)):
                shown = " ".join(re.findall(r">([^<>]+)<", text_of(page.parent / link)))
                for number in re.findall(r"\d[\d,.]*\d|\d", words):
                    seen += 1
                    self.assertRegex(shown, rf"(?<![\d.]){re.escape(number)}(?!\d|\.\d)", f"{page}: {link} does not show {number}")
        self.assertGreaterEqual(seen, 100)

    def test_every_word_is_linked_where_it_first_occurs(self):
        texts = {lesson: without_code(prose(text_of(lesson))) for lesson in LESSONS}
        numbers = {anchor: number for number, anchor in enumerate(glossary().values())}

        def target(match):
            anchor = re.fullmatch(r"\.\./\.\./docs/glossary\.md#(.*)", match[1])
            return f"](@{numbers.get(anchor[1])}@)" if anchor else "](@)"

        # The question at the end stands in the next lesson, too.
        texts = {lesson: re.sub(r"\*[^*]*\*\n*\Z", "", text) for lesson, text in texts.items()}
        texts = {lesson: " ".join(re.sub(r"\]\(([^)]*)\)", target, text).split()) for lesson, text in texts.items()}
        for term, anchor in glossary().items():
            uses = [(lesson, first_use(term, text)) for lesson, text in texts.items()]
            lesson, found = next(((lesson, found) for lesson, found in uses if found), (None, None))
            if term in LATER:
                self.assertFalse(found, f"{lesson} says '{term}' now: take it out of LATER")
                continue
            self.assertTrue(found, f"no lesson says '{term}'")
            before, after = texts[lesson][: found.start()], texts[lesson][found.end() :]
            closing = re.match(r"[^\[\]]*\]\(@(\w*)@?\)", after)
            is_link = before.rfind("[") > before.rfind("]") and closing and closing[1] == str(numbers[anchor])
            self.assertTrue(is_link, f"{lesson}: '{found[0]}' is not linked to #{anchor}: ...{before[-60:]}{found[0]}{after[:40]}")

    def test_links_to_the_glossary_are_alive(self):
        anchors = set(glossary().values())
        for lesson in LESSONS:
            for anchor in re.findall(r"glossary\.md#([^)]*)\)", text_of(lesson)):
                self.assertIn(anchor, anchors, lesson)

    def test_instructions_are_those_of_the_wrappers(self):
        wrappers = "".join(map(text_of, sorted((ROOT / "common/device").glob("*.cuh"))))
        quoted = 0
        for lesson in LESSONS:
            for block in re.findall(r"^```ptx\n(.*?)^```$", text_of(lesson), re.S | re.M):
                for line in block.splitlines():
                    quoted += 1
                    instruction = line.split("//")[0].split()[0].rstrip(";")
                    self.assertIn(instruction, wrappers, lesson)
                    wrapper = re.search(r"// (?:device::)?(\w+)", line)
                    self.assertTrue(wrapper and re.search(rf"\b{wrapper[1]}\(", wrappers), f"{lesson}: {line}")
        self.assertGreaterEqual(quoted, 5)

    def test_the_order_that_lesson_05_draws(self):
        if not PROGRAM:
            self.skipTest("no program that knows the order")
        order = json.loads(subprocess.run([PROGRAM], stdout=subprocess.PIPE, check=True).stdout)["exercise"]
        drawn = [[None] * order["tiles_n"] for _ in range(order["tiles_m"])]
        for block, (m, n) in enumerate(order["tiles"]):
            drawn[m][n] = str(block)
        lines = [line.split() for line in text_of(ROOT / "steps/05_l2_swizzle/README.md").split("\n")]
        for row in drawn:
            self.assertIn(row, lines)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1) if len(sys.argv) > 1 and pathlib.Path(sys.argv[1]).is_file() else None
    unittest.main()
