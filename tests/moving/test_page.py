"""The page as a whole."""
import re
import unittest

import page


class Page(unittest.TestCase):
    def setUp(self):
        self.sections = page.read()
        self.overview = [line for line in self.sections[page.OVERVIEW].lines
                         if line.startswith("| ") and not line.startswith("| today")]

    def test_the_overview_leads_to_every_section_with_a_board(self):
        anchors = [re.search(r"\]\((#[^)]*)\)", line)[1] for line in self.overview]
        with_boards = {page.anchor(heading) for heading, section in self.sections.items()
                       if section.layouts()}
        self.assertEqual(len(anchors), 15)
        self.assertEqual(set(anchors), with_boards)
        self.assertEqual(len(anchors), len(set(anchors)))

    def test_the_overview_has_the_layouts_of_the_sections(self):
        by_anchor = {page.anchor(heading): section for heading, section in self.sections.items()}
        for line in self.overview:
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            layout = re.match("`([^`]*)`", cells[1])
            section = by_anchor[re.search(r"\((#[^)]*)\)", cells[0])[1]]
            self.assertEqual(section.layouts()[0],
                             layout[1] if layout else "FIELD score 33 SIGNED TIME 31 S")
