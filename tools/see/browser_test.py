#!/usr/bin/python3
"""Pages of 'tools/course see' in a browser: they load, step by keys and by touch, fit, are legible in light and dark, and say no error.

Usage: tools/see/browser_test.py [FOLDER]   needs Debian's chromium-driver and python3-selenium; screenshots go to FOLDER
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SCREENSHOTS = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else None
PAGES = {
    "04": "04_pipelined_num_stages-256x256x256-f16.html",
    "13": "13_ping_pong-512x512x512-f16.html",
    "16": "16_multicast-512x512x512-f16.html",
    "steps/09_tma/first.cu": "09_tma-first.html",
    "solutions/9": "solution_09_num_stages.html",
    "exercises/14": "exercise_14_spot_the_race.html",
}
GRID = "12_persistent-2048x4096x256-f16-128x256x64-s4-g8-grid.html"
RANKS = "tensor_parallel-4096x4096x11008-2-ranks.html"
# Text on the ground, and labels on bars, with less contrast than 4.5: [[ratio, text], ...].
TOO_FAINT = """
const light = c => { const [r, g, b] = c.match(/[\\d.]+/g).slice(0, 3).map(v => v / 255).map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
                     return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
const ground = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if (!/, 0\\)$/.test(c)) return c; } return "rgb(255, 255, 255)"; };
const found = [];
for (const e of document.querySelectorAll("h1, h2, p, li, figcaption, td, th, button, .names div, .source div, #count")) {
  const r = ratio(getComputedStyle(e).color, ground(e));
  if (e.textContent.trim() && r < 4.5) found.push([r, e.textContent.slice(0, 40)]);
}
for (const text of document.querySelectorAll("#scroll svg text, #grids svg text")) {
  const bar = text.previousElementSibling, solid = bar && (bar.classList.contains("seg") || bar.classList.contains("cell")) && text.style.stroke === "";
  const below = solid ? getComputedStyle(bar).fill : ground(text.closest("div"));
  const r = ratio(getComputedStyle(text).fill, below);
  if (r < 4.5) found.push([r, text.textContent, below]);
}
return found.slice(0, 5);
"""


def without_times(text):
    """Nor where random numbers come from."""
    return re.sub(r"[0-9.]+ s\b|\S+T\S+Z|--seed \d+|Problem: .*", "", text)


def said(done):
    """On stderr, but for the build, which the first one may have had to wait for."""
    return sorted(line for line in done.stderr.splitlines() if not line.startswith("course: building"))


class See(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        for what in PAGES:
            subprocess.run([ROOT / "tools/course", "see", what, "--out", cls.folder], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([ROOT / "tools/course", "see", "12", "--grid", "--shape", "2048x4096x256", "--out", cls.folder], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([ROOT / "tools/course", "see", "tensor_parallel", "--out", cls.folder], check=True, stdout=subprocess.DEVNULL)
        options = webdriver.ChromeOptions()
        for word in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND"):
            options.add_argument(word)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        cls.browser = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
        cls.addClassCleanup(cls.browser.quit)

    def show(self, page, width, dark=False):
        metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 700}
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        self.browser.get((self.folder / page).as_uri())
        self.assertEqual(self.run_script("return document.body.dataset.ready"), "1")
        self.no_errors()

    def no_errors(self):
        self.assertEqual([each["message"] for each in self.browser.get_log("browser")], [])

    def run_script(self, script):
        return self.browser.execute_script(script)

    def press(self, *keys):
        for key in keys:
            self.browser.find_element(By.TAG_NAME, "body").send_keys(key)

    def now(self):
        return self.run_script("return document.getElementById('now').textContent")

    def chosen(self):
        return self.run_script("return Number(document.querySelector('#scroll .chosen').dataset.i)")

    def test_pages_fit_and_are_legible(self):
        for page in (*PAGES.values(), GRID, RANKS):
            for width in (390, 1280):
                for dark in (False, True):
                    with self.subTest(page, width=width, dark=dark):
                        self.show(page, width, dark)
                        if page not in (GRID, RANKS):
                            self.run_script("choose(Math.max(0, segments.findIndex(s => s.h)))")
                        self.assertLessEqual(self.run_script("return document.documentElement.scrollWidth"), width)
                        self.assertEqual(self.run_script(TOO_FAINT), [])
                        self.assertGreater(self.run_script("return document.querySelectorAll('#scroll .seg').length"), 3)
                        if SCREENSHOTS:
                            SCREENSHOTS.mkdir(parents=True, exist_ok=True)
                            self.browser.save_screenshot(str(SCREENSHOTS / f"{page[:-5]}-{width}-{'dark' if dark else 'light'}.png"))

    def test_keys_step_forwards_and_backwards(self):
        self.show(PAGES["04"], 1280)
        seen = [self.now()]
        for _ in range(5):
            self.press(Keys.ARROW_RIGHT)
            seen.append(self.now())
        self.assertEqual(len(set(seen)), 6)
        for before in reversed(seen[:-1]):
            self.press(Keys.ARROW_LEFT)
            self.assertEqual(self.now(), before)
        self.press(Keys.ARROW_LEFT)
        self.assertEqual(self.now(), seen[0])  # there is nothing before it
        self.press(Keys.END)
        self.assertEqual(self.chosen(), self.run_script("return JSON.parse(document.getElementById('data').textContent).segments.length") - 1)
        self.press(Keys.HOME, Keys.ARROW_DOWN)
        self.assertEqual(self.lane(), 1)
        self.press(Keys.SHIFT + Keys.ARROW_RIGHT)
        self.assertEqual(self.lane(), 1)
        self.no_errors()

    def lane(self):
        return self.run_script(f"return JSON.parse(document.getElementById('data').textContent).segments[{self.chosen()}].l")

    def test_an_event_shows_its_lines_and_a_line_its_events(self):
        self.show(PAGES["04"], 1280)
        marked = self.run_script("return [...document.querySelectorAll('.source .on')].map(e => Number(e.dataset.n))")
        self.assertIn(f"line{'s' if len(marked) > 1 else ''} {', '.join(map(str, marked))}", self.now())
        box = self.run_script("const b = document.getElementById('source').getBoundingClientRect(), e = document.querySelector('.source .on').getBoundingClientRect(); return e.top >= b.top && e.bottom <= b.bottom")
        self.assertTrue(box)
        line = self.run_script("const e = [...document.querySelectorAll('.source .has')].find(e => e.textContent.includes('cp_async_wait_group<kAhead')); e.click(); return Number(e.dataset.n)")
        first = self.chosen()
        self.assertIn(f"line {line}", self.now())
        self.run_script(f"document.querySelectorAll('.source div')[{line - 1}].click()")
        self.assertGreater(self.chosen(), first)

    def test_an_access_shows_its_banks_or_sectors(self):
        self.show(PAGES["04"], 390)
        drawn = []
        for n in range(self.run_script("return document.getElementById('access').options.length")):
            self.run_script(f"const s = document.getElementById('access'); s.value = {n}; s.onchange()")
            drawn.append(self.run_script("return [document.getElementById('asks').textContent, document.querySelectorAll('#cells rect').length]"))
        self.assertEqual(drawn[0][0], "cp.async of warp 0: 32 lanes, 16 bytes each; 16 sectors in 4 lines of 128 bytes. Of the 512 bytes that move, 512 are asked for.")
        self.assertEqual(drawn[0][1], 16)
        self.assertIn(["ldmatrix of warp 0: 32 lanes, 16 bytes each; 4 wavefronts, no bank is asked for two words at once.", 4 * 32], drawn)
        self.assertLessEqual(self.run_script("return document.documentElement.scrollWidth"), 390)
        self.run_script("[...document.querySelectorAll('.source .has')].find(e => e.textContent.includes('fragments_of_a.load')).click()")
        self.assertIn("ldmatrix", self.run_script("return document.getElementById('asks').textContent"))
        self.no_errors()

    def test_an_instruction_shows_what_it_works_on(self):
        self.show(PAGES["13"], 390)
        choose = "const d = JSON.parse(document.getElementById('data').textContent), i = d.segments.findIndex(s => s.h && s.t.includes(arguments[0])); choose(i); return d.segments[i].h.length"
        self.assertEqual(self.browser.execute_script(choose, "issues 4 wgmma"), 1)
        shown = "return [...document.querySelectorAll('#grids p')].map(e => e.textContent)"
        says = self.run_script(shown)
        self.assertIn("A, K-major, swizzled in 128 bytes. From one pattern to the next: stride_bytes 1,024 along m. They begin 0, 32, 64, 96 bytes from the first one.", says)
        self.assertEqual(says[-1], "Lane 5 holds of C (1, 2) (1, 3) (9, 2) (9, 3).")
        self.assertEqual(self.run_script("return [...document.querySelectorAll('#grids svg')].filter(e => e.textContent === '').length"), 2 + 4)  # panels, colours
        self.assertLessEqual(self.run_script("return document.documentElement.scrollWidth"), 390)
        self.run_script("document.querySelector('#grids .cell[data-lane=\"31\"]').onclick()")
        self.assertEqual(self.run_script(shown)[-1], "Lane 31 holds of C (7, 6) (7, 7) (15, 6) (15, 7).")
        self.show(PAGES["04"], 1280)
        self.assertTrue(self.run_script("return document.getElementById('operands').hidden"))  # of copies there is nothing to show
        self.assertEqual(self.browser.execute_script(choose, "mma.sync"), 3)
        self.assertIn("Lane 5 holds of A (1, 2) (1, 3) (1, 10) (1, 11) (9, 2) (9, 3) (9, 10) (9, 11); of B (2, 1) (3, 1) (10, 1) (11, 1); of C (1, 2) (1, 3) (9, 2) (9, 3).", self.run_script(shown))
        self.no_errors()

    def test_a_diagnosis_opens_the_page_where_its_warp_has_stopped(self):
        self.show(PAGES["exercises/14"], 390)
        report = self.run_script("return document.getElementById('diagnosis').textContent")
        self.assertRegex(report, r"^racecheck, warp \d+, lane \d+ \(this thread\), line \d+.*What: race on .*Expected: ")
        self.assertRegex(self.now(), "Here racecheck has stopped lane .* of warp")
        x = self.run_script("return document.querySelector('#scroll .chosen').getBoundingClientRect().x")
        self.assertTrue(0 < x < 390, x)
        self.assertTrue(self.run_script("return document.querySelectorAll('.source .on').length"))
        self.no_errors()

    def test_lanes_have_buttons_and_lines_are_whole(self):
        self.show(PAGES["04"], 390)
        self.browser.find_element(By.ID, "down").click()
        self.assertEqual(self.lane(), 1)
        first = self.chosen()
        self.browser.find_element(By.ID, "lanenext").click()
        self.assertEqual((self.lane(), self.chosen() > first), (1, True))
        self.browser.find_element(By.ID, "laneback").click()
        self.assertEqual(self.chosen(), first)
        self.browser.find_element(By.ID, "up").click()
        self.assertEqual(self.lane(), 0)
        self.assertTrue(self.run_script("const e = document.getElementById('source'); return e.scrollWidth <= e.clientWidth"))
        cut = "const w = document.querySelector('#scroll svg').clientWidth; return [...document.querySelectorAll('#scroll .axis')].map(e => e.getBBox()).filter((b, i, all) => b.x + b.width > w || i && b.x < all[i - 1].x + all[i - 1].width).length"
        for page in (*PAGES.values(), GRID, RANKS):
            for width in (390, 1280):
                self.show(page, width)
                self.assertEqual(self.run_script(cut), 0, (page, width))

    def test_a_race_leads_from_the_cross_to_the_red_frame(self):
        self.show(PAGES["exercises/14"], 1280)
        self.assertEqual(self.run_script("return document.querySelectorAll('#scroll .framed').length > 0"), True)
        cross, colour = self.chosen(), "return getComputedStyle(document.querySelector('#scroll .stop')).stroke"
        red = self.run_script(colour)
        self.browser.find_element(By.ID, "other").click()
        self.assertNotEqual(self.chosen(), cross)
        self.assertRegex(self.now(), "A red frame: this (is|may be) the access that the report names first")
        self.assertEqual(self.run_script(colour), red)
        self.browser.find_element(By.ID, "other").click()
        self.assertEqual(self.chosen(), cross)
        self.no_errors()

    def test_a_wait_for_an_mbarrier_says_what_a_parity_is(self):
        self.show(PAGES["13"], 390)
        self.run_script("choose(segments.findIndex(s => s.p))")
        self.assertIn("A wait for parity p goes on once the phase of that parity is over; before the first phase, parity 1 counts as over.", self.now())
        self.run_script("choose(segments.findIndex(s => !s.p))")
        self.assertNotIn("parity p", self.now())

    def test_what_other_commands_see_changes_nothing_else(self):
        page = self.folder / "seen.html"
        for words, begins in (
            (["run", "2", "--shape", "128", "--out", str(self.folder / "results")], "Warp"),
            (["check", "14", "--of", "exercises"], "Here racecheck has stopped lane"),
            (["interpret", "steps/09_tma/first.cu"], "Warp"),
        ):
            with self.subTest(words[0]):
                plain, seen = (
                    subprocess.run([ROOT / "tools/course", words[0], *more, *words[1:]], cwd=ROOT, capture_output=True, encoding="utf-8", check=False)
                    for more in ([], ["--see", page])
                )
                self.assertEqual((seen.returncode, without_times(seen.stdout)), (plain.returncode, without_times(plain.stdout)))
                self.assertEqual(said(seen), sorted([*said(plain), f"course: page: {page}"]))
                self.show(page.name, 390)
                self.assertRegex(self.now(), f"^Clocks? [^:]*: {begins}")

    def test_what_goes_to_another_block_has_an_arrow(self):
        self.show(PAGES["16"], 1280)
        heads = self.run_script("return [...document.querySelectorAll('.names .block')].map(e => e.textContent)")
        self.assertEqual(heads, ["block 0", "block 1"])
        copy = self.run_script("const s = JSON.parse(document.getElementById('data').textContent).segments, i = s.findIndex(s => s.k === 'copy'); choose(i); return i")
        self.assertEqual(self.chosen(), copy)
        self.assertIn("multicast to blocks 0–1", self.now())
        arrows = "return document.querySelectorAll('#scroll svg path[stroke-width=\"2\"][fill=none]').length"
        self.assertEqual(self.run_script(arrows), 1)
        self.press(Keys.HOME)  # an mbarrier of its own
        self.assertEqual(self.run_script(arrows), 0)
        faint = "return document.querySelectorAll('#scroll svg path[stroke-opacity=\"0.45\"]').length"
        self.assertEqual(self.run_script(faint), 0)
        for _ in range(3):
            self.press("+")
        self.assertGreater(self.run_script(faint), 100)
        self.no_errors()

    def test_a_grid_steps_from_block_to_block(self):
        self.show(GRID, 390)
        self.assertIn("Block 0 multiplies tile 0, its tile number 1, on SM 0.", self.now())
        self.press(Keys.ARROW_RIGHT, Keys.ARROW_DOWN)
        self.assertIn("Block 2 multiplies tile 2", self.now())
        self.press(Keys.END)
        self.assertIn("Block 123 multiplies tile 255, its tile number 2, on SM 123.", self.now())
        self.run_script("choose(0)")
        self.press(Keys.ARROW_UP, *[Keys.ARROW_DOWN] * 131)
        self.assertRegex(self.now(), r"on SM 131\..* This SM has nothing more to do from clock [\d,]+ on")
        self.assertEqual(self.run_script("return document.querySelectorAll('#scroll .idle').length"), 132 - 124)
        self.run_script("choose(0)")
        self.assertIn("Of A and B, 100 % of what it asks for is not in L2.", self.now())
        order = self.run_script("return getComputedStyle(document.querySelector('#scroll .seg')).fill")
        self.press("l")
        self.assertIn("all that it asks for is in L2", self.browser.find_element(By.ID, "legend").text)
        self.assertNotEqual(self.run_script("return getComputedStyle(document.querySelector('#scroll .seg')).fill"), order)
        self.press("l")
        self.no_errors()

    def test_gpus_step_from_operation_to_operation_and_from_plan_to_plan(self):
        self.show(RANKS, 390)
        self.assertRegex(self.now(), r"^GPU 0 copies, 0.0 µs to 59 µs, line \d+All-gather: receives 16.8 MB, .* It waits for nothing.")
        self.assertEqual(self.run_script("return document.querySelectorAll('#scroll .together').length"), 1)  # the other GPU's
        self.assertIn("all_gather(", self.run_script("return document.querySelector('.source .on').textContent"))
        self.press(Keys.ARROW_UP)
        self.assertIn("GPU 0 products", self.now())
        self.run_script("choose(plan.ops.findIndex(o => o.lane === 0 && o.waits.length))")
        self.assertRegex(self.now(), r"X · W1 of tokens of GPU 1, 2,048 rows: 92.3 GFLOP. An event holds it until all-gather \(line \d+\) is over.")
        self.assertEqual(self.run_script("return document.querySelectorAll('#scroll .arrow').length"), 1)
        self.assertEqual(self.run_script("return document.querySelectorAll('#scroll .faint').length"), 2 * 3 - 1)
        ends = "return [document.querySelector('#plans [aria-pressed=true]').textContent, document.getElementById('sums').textContent]"
        self.assertEqual(self.run_script(ends), ["overlapped, 1 chunk", "Each GPU: tensor cores idle 33 µs of 649 µs, the link 512 µs."])
        for _ in range(3):
            self.press("p")
        self.assertEqual(self.run_script(ends), ["plain", "Each GPU: tensor cores idle 179 µs of 724 µs, the link 545 µs."])
        self.run_script("document.querySelector('#scroll .seg[data-i=\"2\"]').dispatchEvent(new MouseEvent('click', {bubbles: true}))")
        self.assertRegex(self.now(), "^GPU 0 products, 86 µs .*X · W1 of all tokens, 4,096 rows")
        self.run_script("[...document.querySelectorAll('.source .has')].find(e => e.textContent.includes('all_gather(')).click()")
        self.assertIn("All-gather", self.now())
        self.press(Keys.END)
        self.assertIn("Reduce-scatter", self.now())
        self.assertLessEqual(self.run_script("return document.documentElement.scrollWidth"), 390)
        self.no_errors()

    def test_fingers_choose_bars_and_zoom(self):
        self.show(PAGES["13"], 390)
        self.run_script("const e = document.querySelector('#scroll .seg[data-i=\"40\"]'); e.dispatchEvent(new MouseEvent('click', {bubbles: true}))")
        self.assertEqual(self.chosen(), 40)
        self.assertGreater(self.run_script("return document.querySelector('#scroll svg').clientWidth"), 390)  # it begins where one can see something
        before = self.run_script("return document.querySelector('#scroll svg').clientWidth")
        for name, is_right in (("in", lambda w: w > before), ("fit", lambda w: w < 390)):
            self.browser.find_element(By.ID, name).click()
            self.assertTrue(is_right(self.run_script("return document.querySelector('#scroll svg').clientWidth")), name)
            self.assertEqual(self.chosen(), 40)
        self.no_errors()

    def test_it_is_one_file(self):
        for page in (*PAGES.values(), GRID, RANKS):
            self.show(page, 1280)
            entries = json.loads(self.run_script("return JSON.stringify(performance.getEntriesByType('resource').map(e => e.name))"))
            self.assertEqual(entries, [])


if __name__ == "__main__":
    unittest.main()
