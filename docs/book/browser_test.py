#!/usr/bin/python3
"""The book in a browser, as files: its search, the way through it, a phone's width, dark screens, contrast, errors.

Usage: docs/book/browser_test.py   after 'tools/course docs'; needs Debian's chromium-driver and python3-selenium
"""

import pathlib
import re
import time
import unittest

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BOOK = ROOT / "build/docs/html"
LESSONS = sorted(f"{path.parent.relative_to(ROOT)}/README.html" for path in ROOT.glob("steps/*/README.md"))
SEVERAL = ["README.html", *LESSONS, "docs/hardware.html", "docs/options.html", "docs/troubleshooting.html", "docs/glossary.html", "docs/interpreter.html", "docs/results/tables.html", "files/steps/10_wgmma/gemm.cuh.html"]
WORDS = """coalesced; bank conflict; TMA; wgmma; mma.sync; swizzle; wavefront; sector; occupancy; roofline; epilogue; split-k; multicast; parity;
descriptor; warp specialisation; ldmatrix; deadlock; setmaxnreg; cuBLAS; race; prefetch; latency; batch invariance; sm_90a; tf32""".replace("\n", " ").split("; ")
OPEN_FOLDS = "document.querySelectorAll('details').forEach(fold => { fold.open = true; });"
# Text that is seen, with less contrast than 4.5 to what lies below it: [[ratio, text], ...].
TOO_FAINT = """
const parse = colour => { const c = colour.match(/[\\d.]+/g).map(Number); return c.length < 4 ? [...c, 1] : c; };
const over = (top, below) => [0, 1, 2].map(i => top[i] * top[3] + below[i] * (1 - top[3]));
const light = c => { const [r, g, b] = c.map(v => v / 255).map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
                     return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const below = element => { const layers = [];
  for (let e = element; e; e = e.parentElement) layers.push(parse(getComputedStyle(e).backgroundColor));
  return layers.reverse().reduce((sum, layer) => over(layer, sum), [255, 255, 255]); };
const found = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), seen = new Map();
for (let node; (node = walker.nextNode());) {
  const element = node.parentElement, box = element.getBoundingClientRect();
  if (!node.data.trim() || !box.width || !box.height || element.closest("script, style, title, svg, .MathJax_Preview")) continue;
  const style = getComputedStyle(element);
  if (style.visibility !== "visible" || style.clip === "rect(0px, 0px, 0px, 0px)") continue;
  const ground = below(element), ink = over(parse(style.color), ground), key = ground + "|" + ink;
  if (!seen.has(key)) {
    const [a, b] = [light(ink), light(ground)].sort((x, y) => y - x);
    seen.set(key, (a + 0.05) / (b + 0.05));
  }
  if (seen.get(key) < 4.5) found.push([seen.get(key), node.data.trim().slice(0, 40), element.className]);
}
return found.slice(0, 5);
"""


class Book(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        options = webdriver.ChromeOptions()
        for word in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND"):
            options.add_argument(word)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        cls.browser = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
        cls.addClassCleanup(cls.browser.quit)

    def setUp(self):
        self.screen(1280)
        self.browser.get_log("browser")  # an error is of the test in which it occurs

    def open(self, page):
        self.browser.get(BOOK.as_uri() + "/" + page)
        self.no_errors(page)

    def no_errors(self, page):
        wrong = [each["message"] for each in self.browser.get_log("browser") if each["level"] in ("SEVERE", "WARNING")]
        self.assertEqual(wrong, [], page)

    def screen(self, width, dark=False):
        metrics = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 700}
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def eventually(self, script):
        for _ in range(200):
            found = self.browser.execute_script(script)
            if found:
                return found
            time.sleep(0.1)
        self.fail(f"20 s, and not yet: {script}")

    def found(self, word):
        self.open("search.html?q=" + word.replace(" ", "+"))
        self.eventually("return /Search finished|did not match/.test(document.querySelector('#search-results').innerText)")
        self.no_errors(word)
        return [link.get_attribute("href") for link in self.browser.find_elements(By.CSS_SELECTOR, "#search-results li a")]

    def test_search(self):
        self.assertGreaterEqual(len(WORDS), 20)
        for word in WORDS:
            with self.subTest(word):
                pages = self.found(word)
                self.assertTrue(pages)
                text = "".join((ROOT / re.sub(r".*/html/|\.html.*", "", page)).with_suffix(".md").read_text("utf-8").lower() for page in pages)
                self.assertTrue(all(part in text for part in word.lower().split()))
        self.assertEqual(self.found("zyzzyva"), [])

    def test_next_and_previous(self):
        self.open("index.html")
        self.eventually("return location.pathname.endsWith('/README.html')")
        pages = []
        step = "const a = document.querySelector('a.{}-page'); return a ? a.href : null;"
        while True:
            pages.append(self.browser.current_url.split("/html/")[1].split("#")[0])
            following = self.browser.execute_script(step.format("next"))
            if not following:
                break
            self.browser.get(following)
            self.assertIn(self.browser.execute_script(step.format("prev")), [BOOK.as_uri() + "/" + pages[-1], BOOK.as_uri() + "/" + pages[-1] + "#"])
        self.no_errors("the way through the book")
        self.assertEqual([page for page in pages if page in LESSONS], LESSONS)
        for name in ("exercises/*/README.md", "docs/*.md"):
            wanted = {str(path.relative_to(ROOT))[:-3] + ".html" for path in ROOT.glob(name)}
            self.assertEqual(wanted - set(pages), set())
        self.assertEqual(len(pages), len(set(pages)))

    def test_a_phone(self):
        self.screen(390)
        for page in SEVERAL:
            with self.subTest(page):
                self.open(page)
                self.browser.execute_script(OPEN_FOLDS)
                text, whole = self.browser.execute_script(
                    "return [(document.querySelector('article p') || document.querySelector('article')).getBoundingClientRect().width,"
                    " document.documentElement.scrollWidth]"
                )
                self.assertGreaterEqual(text, 340)
                self.assertLessEqual(whole, 390)
                for image in self.browser.find_elements(By.CSS_SELECTOR, "article img"):
                    self.browser.execute_script("arguments[0].scrollIntoView()", image)
                    width, natural = self.browser.execute_script("return [arguments[0].clientWidth, arguments[0].naturalWidth]", image)
                    self.assertGreaterEqual(width, min(natural, 340))
                    self.assertGreater(natural, 0)

    def test_contrast(self):
        for dark in (False, True):
            self.screen(1280, dark)
            for page in [*SEVERAL, "search.html?q=TMA"]:
                with self.subTest(page, dark=dark):
                    self.open(page)
                    self.browser.execute_script(OPEN_FOLDS)
                    ground = self.browser.execute_script("return getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
                    self.assertEqual(max(ground[:3]) < 64, dark)
                    self.assertEqual(self.browser.execute_script(TOO_FAINT), [])

    def test_formulas(self):
        pages = [page for page in ROOT.glob("docs/*.md") if re.search(r"^```math$", page.read_text("utf-8"), re.M)]
        self.assertTrue(pages)
        for page in pages:
            self.open(f"docs/{page.stem}.html")
            self.eventually("const math = document.querySelectorAll('.math'); return math.length && [...math].every(e => e.querySelector('svg'))")
            self.no_errors(page)

    def test_a_link_opens_the_kernel(self):
        self.open(LESSONS[9])
        for name, text in (("kernel", "wgmma"), ("changes", "+")):
            self.browser.execute_script(f"document.querySelector('.to-kernel a[href=\"#{name}\"]').click()")
            self.eventually(f"return document.getElementById('{name}').open")
            self.assertIn(text, self.browser.execute_script(f"return document.getElementById('{name}').innerText + '+'"))

    def test_the_kernel_beside_the_text(self):
        edges = """const [text, kernel] = ['#furo-main-content', '#changes'].map(each => document.querySelector(each).getBoundingClientRect());
                   return [text.right, kernel.left, kernel.right, document.documentElement.clientWidth, text.width];"""
        for width, is_beside in ((1920, True), (1280, False)):
            self.screen(width)
            self.open(LESSONS[9])
            for name in ("kernel", "changes"):  # one at a time
                self.browser.execute_script(f"document.querySelector('.to-kernel a[href=\"#{name}\"]').click()")
                self.eventually(f"return document.getElementById('{name}').open")
            self.assertFalse(self.browser.execute_script("return document.getElementById('kernel').open"))
            text, left, right, screen, wide = self.browser.execute_script(edges)
            self.assertEqual(left >= text, is_beside)
            self.assertGreaterEqual(wide, 600)
            self.assertLessEqual(right, screen)


if __name__ == "__main__":
    unittest.main()
