"""What Python code makes of verdicts that are not sound."""

import json
import os
import tempfile
import unittest

import pytest

from graph_oracle import judge, pytest_plugin
from graph_oracle.pytorch.watch import Seen

X = {"t": "tensor", "shape": [4], "stride": [1], "dtype": "float32", "device": "cpu"}
GATHERED = {**X, "shape": [8]}


def graph(*calls):
    """x, some calls, and a gather of the last of them that is waited for and returned."""
    last = calls[-1]["name"] if calls else "x"
    group = [{"ref": last}, 2, "0"]
    nodes = [
        {"name": "x", "op": "placeholder", "target": "x", "out": X},
        *calls,
        {
            "name": "g",
            "op": "call_function",
            "target": "_c10d_functional.all_gather_into_tensor.default",
            "args": group,
            "out": GATHERED,
        },
        {
            "name": "w",
            "op": "call_function",
            "target": "_c10d_functional.wait_tensor.default",
            "args": [{"ref": "g"}],
            "out": GATHERED,
        },
        {"name": "output", "op": "output", "target": "output", "args": [[{"ref": "w"}]]},
    ]
    return {
        "schema_version": "graph-oracle/1",
        "name": "t",
        "kind": "forward",
        "source": "test",
        "torch": "",
        "groups": {"0": {"size": 2, "rank": 0}},
        "symbols": {},
        "num_nodes": len(nodes),
        "ops": {},
        "nodes": nodes,
    }


def call(target):
    """A call of x. Nobody records what an operator of `mylib` returns, and no rule says it."""
    known = {} if target.startswith("mylib.") else {"out": X}
    return {"name": "c", "op": "call_function", "target": target, "args": [{"ref": "x"}], **known}


class Verdicts(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name, document):
        path = os.path.join(self.folder.name, name)
        with open(path, "w") as file:
            json.dump(document, file)
        return path

    def pair(self, target):
        """A pass that puts a call before the gather."""
        return self.path("before.json", graph()), self.path("after.json", graph(call(target)))

    def test_only_sound_is_true(self):
        for target, expected in (
            ("aten.clone.default", "sound"),
            ("aten.neg.default", "violated"),
            ("mylib.same.default", "undecided"),
        ):
            with self.subTest(expected):
                verdict = judge.check_pair(*self.pair(target), "bucketing")
                self.assertEqual(verdict.verdict, expected, str(verdict))
                self.assertEqual(bool(verdict), expected == "sound")

    def test_an_undecided_verdict_names_its_reasons(self):
        verdict = judge.check_pair(*self.pair("mylib.same.default"), "bucketing")
        self.assertFalse(verdict.decided)
        self.assertIn("nothing is recorded of what", str(verdict))
        self.assertTrue(all("/" in reason.code for reason in verdict.reasons))

    def test_the_fixture_fails_what_is_undecided_unless_that_is_allowed(self):
        fixture, pair = pytest_plugin.Oracle(), self.pair("mylib.same.default")
        with self.assertRaises(pytest.fail.Exception):
            fixture.assert_pass_ok(*pair, "bucketing")
        fixture.assert_pass_ok(*pair, "bucketing", allow_undecided=True)
        with self.assertRaises(pytest.fail.Exception):
            fixture.assert_pass_ok(*self.pair("aten.neg.default"), "bucketing", allow_undecided=True)

    def test_what_was_watched_is_right_only_if_all_of_it_is(self):
        seen = Seen()
        self.assertFalse(seen, "nothing was seen")
        seen.verdicts.append(judge.check_pair(*self.pair("aten.clone.default"), "bucketing"))
        self.assertTrue(seen)
        seen.verdicts.append(judge.check_pair(*self.pair("mylib.same.default"), "bucketing"))
        self.assertFalse(seen)
        self.assertEqual((len(seen.violated), len(seen.undecided)), (0, 1))
        self.assertIn("1 undecided", str(seen))


if __name__ == "__main__":
    unittest.main()
