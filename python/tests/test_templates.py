"""Texts with places to fill. Needs no torch."""

import unittest

from graph_oracle.pytorch.templates import docstring, fill


class Templates(unittest.TestCase):
    def test_what_is_filled_in_is_not_filled_again(self):
        template = '"""@HEAD@"""\nPASS = 1\n@PASS@\n'
        self.assertEqual(
            fill(template, {"HEAD": "x@PASS@ @HEAD@", "PASS": "y@HEAD@\\1"}),
            '"""x@PASS@ @HEAD@"""\nPASS = 1\ny@HEAD@\\1\n',
        )

    def test_any_title_is_a_docstring(self):
        for title in ['a "" """ end"', "back\\slash\\", "@PASS@", "nul\0 esc\x1b rlo\u202e", "two\nlines"]:
            space = {}
            exec(fill('"""@HEAD@"""\n', {"HEAD": docstring([title, "", "rest"])}), space)
            self.assertEqual(space["__doc__"], f"{title}\n\nrest")


if __name__ == "__main__":
    unittest.main()
