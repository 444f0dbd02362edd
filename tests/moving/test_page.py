"""The chooser, and the pages as a whole."""
import re
import unittest

import page

DEFAULT = "FIELD score 33 SIGNED TIME 31 S"


class Pages(unittest.TestCase):
    def setUp(self):
        self.pages = page.read()
        lines = self.pages[page.CHOOSER].lines
        rows = [line.strip("|").split(" | ") for line in lines if line.startswith("| ")]
        self.packings = [[cell.strip() for cell in cells] for cells in rows if len(cells) == 4][1:]

    def target(self, cell):
        return re.search(r"\]\((.*)\.md\)", cell)[1]

    def test_the_chooser_leads_to_every_page_with_a_board_for_a_packing(self):
        targets = [self.target(cells[0]) for cells in self.packings]
        self.assertEqual(len(targets), 15)
        self.assertEqual(len(targets), len(set(targets)))
        with_boards = {name for name, one in self.pages.items() if one.layouts() and not one.has_clock()}
        self.assertEqual(set(targets), with_boards)

    def test_the_chooser_leads_to_every_page(self):
        text = "\n".join(self.pages[page.CHOOSER].lines)
        for name in self.pages.keys() - {page.CHOOSER}:
            self.assertIn(f"]({name}.md)", text)

    def test_the_chooser_has_the_layouts_of_the_pages(self):
        for cells in self.packings:
            layout = re.match("`([^`]*)`", cells[1])
            self.assertEqual(self.pages[self.target(cells[0])].layouts()[0], layout[1] if layout else DEFAULT)
