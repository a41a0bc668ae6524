"""The memory and schedule passes on mock nodes: worked examples, and the dependencies that passes are given."""

import unittest

from graph_oracle.pytorch import passes, versions
from graph_oracle.pytorch.errors import Refused
from graph_oracle.pytorch.passes.memory import INCREMENTAL, METHODS, PROFILE
from graph_oracle.pytorch.passes.schedule import OFFERED
from graph_oracle.pytorch.rebuild import Rebuilt
from graph_oracle.pytorch.scheduler_nodes import Program
from graph_oracle.pytorch.storages import Storages

from .graphs import call, document, gather, output, placeholder, ref, tensor, wait


def run(name, graph, **options):
    return passes.load()[name].run(Rebuilt(graph, 0), options)


def made(name, size, *sources, target="aten.clone.default", **more):
    args = [ref(source) for source in sources] or [[size]]
    target = target if sources else "aten.empty.memory_format"
    if len(sources) > 1:
        target, args = "aten.cat.default", [args]
    return call(name, target, args, tensor([size], dtype="uint8"), **more)


def example():
    """a 10, b 30, c 5 reads a, d 5 reads b, e 5 reads c and d; e is returned."""
    nodes = [made("a", 10), made("b", 30), made("c", 5, "a"), made("d", 5, "b"), made("e", 5, "c", "d")]
    return document([*nodes, output("e")])


def overlapped():
    """a, a gather of an input, its wait, b, and c that reads all three."""
    nodes = [
        placeholder("arg0_1", [4]),
        made("a", 4),
        gather("g", "arg0_1", 2, "dp", [8]),
        wait("w", "g", [8]),
        made("b", 4),
        made("c", 4, "w", "a", "b"),
    ]
    return document([*nodes, output("c")])


HAVE_MODEL = versions.have("torch._inductor.dependencies.WeakDep.is_fake")
needs_model = unittest.skipUnless(HAVE_MODEL, "the scheduler of this torch does not fit the mock nodes")


@needs_model
class Memory(unittest.TestCase):
    @unittest.skipIf(versions.version() <= (2, 11), "its two estimators disagree")
    def test_the_estimators_of_an_order(self):
        claim = run("memory", example(), method="estimate")["claim"]
        self.assertEqual(claim["steps"], [[10, 10], [40, 40], [45, 35], [40, 10], [15, 5]])
        self.assertEqual(set(claim["estimates"].values()), {45})

    def test_the_orders(self):
        for method, order, peak in (
            ("lpmf", "acbde", 40),
            ("bfs", "abcde", 45),
            ("dfs", "acbde", 40),
            ("reorder_for_peak_memory", "acbde", 40),
        ):
            claim = run("memory", example(), method=method)["claim"]
            self.assertEqual(("".join(claim["order"]), claim["peak"]), (order, peak), method)

    @unittest.skipUnless(PROFILE, "this torch has no memory_estimator")
    def test_the_profile_of_a_view(self):
        nodes = [
            placeholder("primals_1", [2], device="cuda:0"),
            call("y", "aten.relu.default", [ref("primals_1")], tensor([2], device="cuda:0")),
            call("v", "aten.view.default", [ref("y"), [2]], tensor([2], device="cuda:0")),
            call("z", "aten.add.Tensor", [ref("v"), ref("v")], tensor([2], device="cuda:0")),
            output("z"),
        ]
        claim = run("memory", document(nodes))["claim"]
        self.assertEqual((claim["before"], claim["steps"], claim["peak"]), (8, [[16, 16], [16, 16], [24, 16]], 24))

    @unittest.skipUnless(PROFILE, "this torch has no memory_estimator")
    def test_no_live_bytes_are_claimed_where_the_profile_frees_what_is_in_flight(self):
        nodes = [
            placeholder("x", [2], device="cuda:0"),
            call("y", "aten.relu.default", [ref("x")], tensor([2], device="cuda:0")),
            call(
                "g",
                "_c10d_functional.all_gather_into_tensor.default",
                [ref("y"), 2, "dp"],
                tensor([4], device="cuda:0"),
            ),
            call("w", "_c10d_functional.wait_tensor.default", [ref("g")], tensor([4], device="cuda:0")),
            output("w"),
        ]
        claim = run("memory", document(nodes))["claim"]
        self.assertEqual(list(claim), ["estimates"])

    @unittest.skipUnless(INCREMENTAL, "this torch has the helper functions within its passes")
    def test_swaps_are_told(self):
        graph = overlapped()
        claim = run("memory", graph, method="reorder_communication_preserving_peak_memory")["claim"]
        first = claim["increments"][0]
        self.assertEqual(first["order"], ["g", "a", "w", "b", "c"])
        self.assertEqual(first["potential"]["moved"], ["a", "g"])
        # Against the estimator, in the order after the swap; the input's 16 bytes are the caller's.
        entries = {entry["name"]: entry for entry in graph["nodes"]}
        swapped = {**graph, "nodes": [entries[n] for n in ("arg0_1", *first["order"], "output")]}
        self.assertEqual(first["steps"], run("memory", swapped, method="estimate")["claim"]["steps"])

    def test_what_is_not_in_the_model_is_refused(self):
        nodes = [placeholder("x", [4]), gather("g", "x", 2, "dp", [8]), output("g")]
        graph = document(nodes)
        for method in METHODS[len(PROFILE) :]:
            with self.assertRaises(Refused):
                run("memory", graph, method=method)


@needs_model
class Schedule(unittest.TestCase):
    def order(self, graph, method, **options):
        nodes = run("schedule", graph, method=method, **options)["repaired"]["nodes"]
        return [entry["name"] for entry in nodes if entry["op"] == "call_function"]

    def test_the_scored_orders(self):
        # Nothing takes time but communication here, so all of the computation goes behind it.
        self.assertEqual(self.order(overlapped(), "sink_waits"), ["a", "g", "b", "w", "c"])
        self.assertEqual(self.order(overlapped(), "raise_comms"), ["g", "a", "w", "b", "c"])
        self.assertEqual(self.order(overlapped(), "reorder_compute_for_overlap"), ["g", "a", "b", "w", "c"])

    def test_ordering_edges_reach_the_passes(self):
        graph = overlapped()
        graph["nodes"][4]["after"] = ["w"]
        for method in {"sink_waits", "raise_comms", "reorder_compute_for_overlap", "simple_overlap"} & {*OFFERED}:
            order = self.order(graph, method)
            self.assertLess(order.index("w"), order.index("b"), method)

    def test_a_cluster_stays_together(self):
        graph = overlapped()
        graph["clusters"] = [{"name": "pair", "members": ["w", "b"]}]
        order = self.order(graph, "raise_comms")
        self.assertEqual(order.index("b"), order.index("w") + 1)

    def test_only_the_order_changes(self):
        graph = overlapped()
        after = run("schedule", graph, method="sink_waits")["repaired"]
        by_name = {entry["name"]: entry for entry in graph["nodes"]}
        self.assertTrue(all(by_name[entry["name"]] is entry for entry in after["nodes"]))
        self.assertEqual(len(after["nodes"]), len(graph["nodes"]))


@needs_model
class Dependencies(unittest.TestCase):
    def dependencies(self, nodes, name, **more):
        program = Program(document(nodes, **more))
        maker = {buffer.name: node.name for node in program.nodes for buffer in node.outs}
        node = next(node for node in program.nodes if node.name == name)
        return {(maker[dep.name], getattr(dep, "is_fake", False)) for dep in node.unmet_dependencies}

    def test_a_write_comes_after_earlier_readers(self):
        nodes = [
            placeholder("x", [4]),
            call("a", "aten.relu.default", [ref("x")], tensor([4])),
            call("r", "aten.neg.default", [ref("a")], tensor([4])),
            call("v", "aten.view.default", [ref("a"), [4]], tensor([4])),
            call("m", "aten.relu_.default", [ref("a")], tensor([4])),
            output("r", "v"),
        ]
        # The view keeps the memory, the other reader only comes before.
        self.assertEqual(self.dependencies(nodes, "m"), {("a", False), ("r", True), ("v", False)})

    def test_a_wait_reads_what_its_collective_reads(self):
        nodes = [
            placeholder("x", [4]),
            call("a", "aten.relu.default", [ref("x")], tensor([4])),
            gather("g", "a", 2, "dp", [8]),
            wait("w", "g", [8]),
            output("w"),
        ]
        self.assertEqual(self.dependencies(nodes, "w"), {("g", False), ("a", False)})

    def test_consecutive_collectives_stay_in_order(self):
        nodes = [
            placeholder("x", [4]),
            placeholder("y", [4]),
            gather("g", "x", 2, "dp", [8]),
            gather("h", "y", 2, "dp", [8]),
            wait("w", "g", [8]),
            wait("u", "h", [8]),
            output("w", "u"),
        ]
        self.assertEqual(self.dependencies(nodes, "h"), {("g", True)})

    def test_storages(self):
        nodes = [
            placeholder("x", [8]),
            call("s", "aten.split_with_sizes.default", [ref("x"), [4, 4]], [tensor([4]), tensor([4], offset=4)]),
            call("e", "operator.getitem", [ref("s"), 1], tensor([4], offset=4)),
            call("t", "aten.native_dropout.default", [ref("e"), 0.5, True], [tensor([4]), tensor([4], dtype="bool")]),
            call("m", "operator.getitem", [ref("t"), 1], tensor([4], dtype="bool")),
            output("m"),
        ]
        storages = Storages(document(nodes))
        shown = {call.name: [s.by.name for s in call.shows] for call in storages.calls}
        self.assertEqual(shown["e"], ["x"])
        self.assertEqual(shown["m"], ["t"])
        self.assertEqual([s.bytes for s in storages.all], [32, 16, 4])


if __name__ == "__main__":
    unittest.main()
