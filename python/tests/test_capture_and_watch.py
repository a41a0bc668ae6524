"""Graphs and passes of a running torch.compile, in a fake process group."""

import contextlib
import copy
import io
import os
import tempfile
import unittest

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives  # noqa: F401
from torch import fx

from graph_oracle import judge
from graph_oracle.pytorch import capture, groups, schedules, versions
from graph_oracle.pytorch.document import document, write
from graph_oracle.pytorch.watch import watch


def gathered(x):
    group = dist.group.WORLD.group_name
    whole = torch.ops._c10d_functional.all_gather_into_tensor.default(x, 2, group)
    return torch.ops._c10d_functional.wait_tensor.default(whole)


class Group(unittest.TestCase):
    """Tests in a world of their own: the worker's tests leave theirs behind."""

    def setUp(self):
        groups.leave()
        self.world = contextlib.ExitStack()
        self.world.enter_context(capture.fake_world(2))
        self.addCleanup(self.world.close)


class Capture(Group):
    def test_a_training_step(self):
        weight = torch.randn(4, 4, requires_grad=True)
        with capture.recording("step") as found:
            torch.compile(lambda x: torch.relu(torch.mm(x, weight)).sum())(torch.randn(2, 4)).backward()
        self.assertEqual(found.problems, [])
        kinds = [written["kind"] for _, written in found.graphs]
        self.assertEqual(sorted(set(kinds)), ["backward", "forward", "joint"])
        joint = found.graphs[0][1]
        self.assertEqual(joint["num_fwd_outputs"], 1)
        self.assertTrue(any(node["name"].startswith("tangents") for node in joint["nodes"]))
        with tempfile.TemporaryDirectory() as folder:
            paths = found.write(folder)
            self.assertIn("step_joint.json.gz", map(os.path.basename, paths))

    def test_groups_have_their_ranks(self):
        with capture.recording("gather", post_grad=False) as found:
            with torch.no_grad():
                torch.compile(lambda x: gathered(x) * 2)(torch.randn(4))
        ((name, written),) = found.graphs
        self.assertEqual(name, "gather_0_inference")
        self.assertEqual([group["ranks"] for group in written["groups"].values()], [[[0, 1]]])
        self.assertEqual(written["world"], {"ranks": 2})

    def test_what_is_missing_is_told_in_one_line(self):
        for name, part in (("nowhere:f", "nowhere"), ("os:no_such", "no_such"), ("os", "MODULE:FUNCTION")):
            with self.assertRaisesRegex(SystemExit, part):
                capture.find(name)


class Scheduler(Group):
    @unittest.skipIf(versions.version() <= (2, 9), "what is ordered only is not told from what is read")
    def test_passes_on_real_nodes(self):
        def step(x, w, d):
            z = torch.mm(x, w)
            x.add_(d)
            return z, gathered(x) * 2

        names = ["sink_waits", "reorder_communication_preserving_peak_memory"]
        settings = {"reorder_for_compute_comm_overlap": True, "reorder_for_compute_comm_overlap_passes": names}
        with torch._inductor.config.patch(settings), contextlib.redirect_stderr(io.StringIO()):
            with schedules.recording() as ran:
                torch.compile(step)(*(torch.randn(8, 8) for _ in range(3)))
        # Eagerly run functions that `step` calls are compiled by themselves later.
        by_name = {one.name: one for one in reversed(ran)}
        self.assertLessEqual(set(names), set(by_name))
        before = by_name["sink_waits"].before["nodes"]
        # The write to x comes after the product that reads the old x, by an ordering edge alone.
        writes = [node for node in before if node.get("after")]
        self.assertEqual(len(writes), 1)
        for one in ran:
            self.assertEqual(
                sorted(n["name"] for n in one.before["nodes"]), sorted(n["name"] for n in one.after["nodes"])
            )
        self.assertTrue(by_name["sink_waits"].verdict())
        if torch.__version__.startswith("2.15.0"):
            # Known: see defects/reorder_communication_ignores_ordering_edges.py.
            wrong = by_name["reorder_communication_preserving_peak_memory"].verdict()
            self.assertEqual(wrong.violated, ["order/keep-ordering-edges"])


class Check(Group):
    def graph(self):
        graph = fx.Graph()
        x = graph.placeholder("x")
        a = graph.call_function(torch.ops.aten.relu.default, (x,))
        b = graph.call_function(torch.ops.aten.neg.default, (a,))
        graph.output((b,))
        for node, value in ((x, torch.empty(4)), (a, torch.empty(4)), (b, torch.empty(4))):
            node.meta["val"] = value
        return fx.GraphModule(torch.nn.Module(), graph)

    def test_a_pass_that_is_right_and_one_that_is_wrong(self):
        module = self.graph()
        verdict = judge.check_pair(module, copy.deepcopy(module), "bucketing")
        self.assertTrue(verdict and verdict.decided)
        wrong = copy.deepcopy(module)
        output = next(node for node in wrong.graph.nodes if node.op == "output")
        output.args = ((next(node for node in wrong.graph.nodes if node.name == "relu_default"),),)
        verdict = judge.check_pair(module, wrong, "bucketing")
        self.assertFalse(verdict)
        self.assertIn("rewrite/values", [*verdict.violated, *verdict.rules])
        self.assertIn("is wrong", str(verdict))
        self.assertIn("relu_default", str(verdict))

    def test_files_and_documents(self):
        written = document(self.graph())
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "graph.json.gz")
            write(path, written)
            self.assertTrue(judge.check_pair(path, written, "schedule"))
            with open(os.path.join(folder, "bad.json"), "w") as file:
                file.write("nonsense")
            with self.assertRaisesRegex(judge.CannotJudge, "bad.json"):
                judge.check_pair(os.path.join(folder, "bad.json"), written, "schedule")

    @unittest.skipUnless(
        versions.have("torch._inductor.fx_passes.bucketing.bucket_all_gather"), "this torch has no bucketing"
    )
    def test_watch(self):
        weight = torch.randn(4, 4, requires_grad=True)

        def step(x):
            a, b = gathered(x), gathered(x * 2)
            return (torch.mm(a, weight) + b).sum()

        with torch._inductor.config.patch(bucket_all_gathers_fx="all"):
            with watch(report=False) as seen, capture.recording():
                torch.compile(step)(torch.randn(4, 4)).backward()
        self.assertEqual(seen.problems, [])
        kinds = [verdict.pass_kind for verdict in seen.verdicts]
        self.assertIn("bucketing", kinds)
        self.assertIn("partition", kinds)
        # Known of older versions: nothing ties the gather of a bucket to the copy that fills it (`_foreach_copy_`), and
        # the sort of 2.9 puts it first.
        by_version = {(2, 9): {"rewrite/values"}, (2, 11): {"order/write-before-aliased-read"}}
        known = by_version.get(versions.version(), set())
        found = {rule for verdict in seen.violated for rule in verdict.violated}
        self.assertEqual(found, known, str(seen))
        self.assertIn(f"{len(seen.violated)} of them wrong", str(seen))


if __name__ == "__main__":
    unittest.main()
