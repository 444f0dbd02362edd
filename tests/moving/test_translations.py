"""The Chinese pages say what the English ones say, as far as a program can tell: section by section
the same blocks of code, the same code, numbers and links in the text, the same rows of tables. So
what the tests run of an English page is run of its translation.
"""
import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [(str(page.relative_to(ROOT)).replace(".zh-CN", ""), str(page.relative_to(ROOT)))
         for page in [ROOT / "README.zh-CN.md", *sorted((ROOT / "docs").rglob("*.zh-CN.md"))]]
TRANSLATED = {Path(chinese).name: Path(english).name for english, chinese in PAGES}
FENCE = re.compile("^```.*?^```$", re.MULTILINE | re.DOTALL)


class Section:
    def __init__(self, text):
        self.blocks = FENCE.findall(text)
        text = FENCE.sub("", text)
        self.level = text.find(" ")
        self.heading = text.splitlines()[0].lstrip("# ")
        self.rows = [sorted(re.findall("`[^`]*`", line)) for line in text.splitlines()
                     if line.startswith("|")]
        # A line that leads to the page in the other language is on both pages.
        text = re.sub(r"^\[(English|简体中文)\]\(.*\)$", "", text, flags=re.MULTILINE)
        self.code = set(re.findall("`([^`]*)`", " ".join(text.split())))
        links = re.findall(r"\]\(([^)]*)\)", text)
        self.anchors = [link[1:] for link in links if link.startswith("#")]
        self.links = {self.original(link) for link in links if not link.startswith("#")}
        prose = re.sub(r"\]\([^)]*\)|`[^`]*`", "", text)
        prose = re.sub(r"(\d+) 万", lambda found: f"{int(found[1]) / 100:g}", prose)  # of 10000
        self.numbers = set(re.findall(r"\d[\d.]*\d|\d", prose))

    @staticmethod
    def original(link):
        folder, _, name = link.rpartition("/")
        return folder + "/" + TRANSLATED.get(name, name)

    def anchor(self):
        """As GitHub makes it: letters of any language, digits, '_' and '-'."""
        return re.sub(r"[^\w\- ]", "", self.heading.lower()).replace(" ", "-")


def sections(name):
    """A '#' in a block of code begins none."""
    text = (ROOT / name).read_text(encoding="utf-8")
    hidden = FENCE.sub(lambda block: block[0].replace("\n#", "\n\0"), text)
    parts = re.split(r"^(?=##? )", hidden, flags=re.MULTILINE)
    return [Section(part.replace("\0", "#")) for part in parts if part]


class Translations(unittest.TestCase):
    def pairs(self):
        for english, chinese in PAGES:
            originals, translations = sections(english), sections(chinese)
            self.assertEqual([section.level for section in originals],
                             [section.level for section in translations], chinese)
            for original, translation in zip(originals, translations):
                yield original, translation

    def test_blocks_of_code_are_the_same(self):
        count = 0
        for original, translation in self.pairs():
            self.assertEqual(original.blocks, translation.blocks, translation.heading)
            count += len(original.blocks)
        self.assertGreater(count, 60)

    def test_rows_of_tables_have_the_same_code(self):
        for original, translation in self.pairs():
            self.assertEqual(original.rows, translation.rows, translation.heading)

    def test_the_text_has_the_same_code(self):
        for original, translation in self.pairs():
            self.assertEqual(original.code, translation.code, translation.heading)

    def test_the_text_has_the_same_numbers(self):
        """Apart from 1: "9.5 times less" is "1/9.5" in Chinese. "1.8 million" is "180 万"."""
        for original, translation in self.pairs():
            self.assertEqual(original.numbers - {"1"}, translation.numbers - {"1"}, translation.heading)

    def test_links_lead_to_the_same_pages(self):
        for original, translation in self.pairs():
            self.assertEqual(original.links, translation.links, translation.heading)
            self.assertEqual(len(original.anchors), len(translation.anchors), translation.heading)

    def test_links_within_a_page_lead_to_a_section(self):
        for name in (name for pair in PAGES for name in pair):
            page = sections(name)
            there = {section.anchor() for section in page}
            self.assertLessEqual({anchor for section in page for anchor in section.anchors}, there)
