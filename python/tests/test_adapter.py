"""The worker's parts, each against what PyTorch itself says."""

import collections
import copy
import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import torch

from graph_oracle.pytorch import fakes, groups, ordering, passes, versions, worker
from graph_oracle.pytorch.document import groups_of
from graph_oracle.pytorch.errors import Refused
from graph_oracle.pytorch.rebuild import evaluate, rebuild

from . import graphs

BUCKETING = versions.have("torch._inductor.fx_passes.bucketing.bucket_all_gather")
needs_bucketing = unittest.skipUnless(BUCKETING, "this torch has no bucketing")


class Silent:
    def __init__(self):
        self.sent = []

    def send(self, message):
        self.sent.append(message)


def served():
    return worker.Worker(Silent(), passes.load(), torch.__version__)


def ask(pass_, document, options=None, rank=0, **more):
    message = {"type": "run", "id": 5, "pass": pass_, "options": options or {}, "rank": rank, "graph": document, **more}
    return served().answer(json.dumps(message))


def bits(numbers):
    return [struct.pack(">f", number).hex() for number in numbers]


def numbers(result):
    return [struct.unpack(">f", bytes.fromhex(digits))[0] for digits in result["bits"]]


def targets(document):
    return [node["target"] for node in document["nodes"]]


class Rebuilding(unittest.TestCase):
    def test_a_graph_comes_back_as_it_was(self):
        before = graphs.two_gathers()
        after = rebuild(before, 1).export()
        self.assertEqual([n["name"] for n in after["nodes"]], [n["name"] for n in before["nodes"]])
        self.assertEqual([n.get("args") for n in after["nodes"]], [n.get("args", None) for n in before["nodes"]])
        self.assertEqual((after["world"], after["groups"]), (before["world"], before["groups"]))

    def test_bodies_come_back_as_they_were(self):
        f32 = graphs.tensor([4])
        inner = [
            graphs.placeholder("a", [4]),
            graphs.call("b", "aten.relu.default", [graphs.ref("a")], f32),
            graphs.output("b"),
        ]
        module = {"t": "other", "type": "GraphModule"}
        run = "higher_order.invoke_subgraph"

        def calls(name, body, given):
            return [
                {"name": f"{name}_body", "op": "get_attr", "target": body, "out": module},
                graphs.call(f"{name}_run", run, [graphs.ref(f"{name}_body"), body, graphs.ref(given)], [f32]),
                graphs.call(name, "operator.getitem", [graphs.ref(f"{name}_run"), 0], f32),
            ]

        outer = [graphs.placeholder("x", [4]), *calls("y", "inner", "x"), graphs.output("y")]
        nodes = [graphs.placeholder("x", [4]), *calls("y", "outer", "x"), *calls("z", "outer", "y"), graphs.output("z")]
        document = graphs.document(nodes)
        document["subgraphs"] = {"outer": {"nodes": outer, "subgraphs": {"inner": inner}}}

        def shown(nodes):
            return [(n["name"], n["op"], n["target"], n.get("args")) for n in nodes]

        after = rebuild(document).export()
        self.assertEqual(shown(after["nodes"]), shown(nodes))
        self.assertEqual(shown(after["subgraphs"]["outer"]["nodes"]), shown(outer))
        self.assertEqual(shown(after["subgraphs"]["outer"]["subgraphs"]["inner"]), shown(inner))
        for wrong, reason in (
            ({}, "of type GraphModule, which is not rebuilt"),
            ({"outer": [graphs.placeholder("x", [4]), graphs.placeholder("w", [4]), graphs.output("x")]}, "takes 2"),
        ):
            with self.assertRaisesRegex(Refused, reason):
                rebuild({**document, "subgraphs": wrong})

    def test_views_share_storage(self):
        after = rebuild(
            graphs.document(
                [
                    graphs.placeholder("x", [4]),
                    graphs.call("v", "aten.view.default", [graphs.ref("x"), [2, 2]]),
                    graphs.call("r", "aten.relu.default", [graphs.ref("v")]),
                    graphs.output("v", "r"),
                ]
            )
        ).export()
        x, v, r = (node["out"]["storage"] for node in after["nodes"][:3])
        self.assertEqual(x, v)
        self.assertNotEqual(x, r)

    def test_what_is_remembered_is_what_the_operator_gives(self):
        nodes = [
            graphs.placeholder("x", [4, 6]),
            graphs.call("t", "aten.t.default", [graphs.ref("x")]),
            graphs.call("s", "aten.split.Tensor", [graphs.ref("t"), 4]),
            graphs.call("i", "operator.getitem", [graphs.ref("s"), 1]),
            graphs.call("a", "aten.add_.Tensor", [graphs.ref("i"), graphs.ref("i")]),
            graphs.call("c", "aten.clone.default", [graphs.ref("i")]),
            graphs.output("a", "c"),
        ]
        first, again = (rebuild(graphs.document(copy.deepcopy(nodes))).export() for _ in range(2))
        self.assertEqual(first, again)
        i, a = first["nodes"][3]["out"], first["nodes"][4]["out"]
        self.assertEqual((i["offset"], i["storage"]), (4, first["nodes"][0]["out"]["storage"]))
        self.assertEqual(i, a)

    def test_what_a_kernel_gives_is_what_the_dispatch_gives(self):
        """On every call of the recorded graphs."""
        compared, differ = collections.Counter(), []
        by_kernel = fakes._by_kernel

        def both(mode, target, args, kwargs, inputs):
            recipe = by_kernel(mode, target, args, kwargs, inputs)
            if recipe is not None:
                compared[str(target)] += 1
                if recipe != fakes._recipe(fakes.dispatched(mode, target, args, kwargs), inputs, None, []):
                    differ.append(str(target))
            return recipe

        with unittest.mock.patch.object(fakes, "_by_kernel", both), unittest.mock.patch.object(fakes, "_learned", {}):
            for name, document in graphs.recorded():
                try:
                    rebuild(document, after="ignored")
                except Refused as reason:
                    # A copy into a view that was recorded elsewhere.
                    self.assertIn("copy_2 is recorded with offset 3", reason.reason, name)
        self.assertEqual(differ, [])
        self.assertGreater(len(compared), 50, compared)

    def test_inputs_keep_their_memory(self):
        shared = graphs.document(
            [
                graphs.placeholder("x", [2], storage=7, offset=1, storage_bytes=40),
                graphs.placeholder("y", [3], storage=7, offset=0, storage_bytes=40),
                graphs.output("x", "y"),
            ]
        )
        x, y = (node["out"] for node in rebuild(shared).export()["nodes"][:2])
        self.assertEqual((x["storage"], x["offset"], x["storage_bytes"]), (y["storage"], 1, 40))

    def test_tags_come_back(self):
        document = graphs.joint()
        tags = {"recompute": "MUST_SAVE", "ac_graph_id": 2, "partitioner_tag": "is_forward", "custom": {"a": [1]}}
        document["nodes"][1]["tags"] = tags
        self.assertEqual(rebuild(document).export()["nodes"][1]["tags"], tags)

    def test_what_cannot_be_rebuilt_is_refused(self):
        def change(edit):
            document = graphs.two_gathers()
            edit(document)
            return document

        cases = {
            "is not an operator": lambda d: d["nodes"][2].update(target="aten.no_such_operator.default"),
            "shape": lambda d: d["nodes"][2]["out"].update(shape=[5]),
            "bfloat16": lambda d: d["nodes"][2]["out"].update(dtype="bfloat16"),
            "strides": lambda d: d["nodes"][4]["out"].update(stride=[2]),
            "ordering edges": lambda d: d["nodes"][3].update(after=["x"]),
            "clusters": lambda d: d.update(clusters=[{"name": "c", "members": ["g0"]}]),
            "no earlier node": lambda d: d["nodes"].reverse() or d["nodes"].append(d["nodes"].pop(0)),
            "two nodes": lambda d: d["nodes"][1].update(name="x"),
            "group tp": lambda d: d["nodes"][2].update(args=[graphs.ref("x"), 2, "tp"]),
            "reaches beyond": lambda d: d["nodes"][0]["out"].update(storage=1, storage_bytes=4),
        }
        for words, edit in cases.items():
            with self.subTest(words), self.assertRaisesRegex(Refused, words):
                rebuild(change(edit))
        with self.assertRaisesRegex(Refused, "rank 2 is not one of"):
            rebuild(graphs.two_gathers(), 2)

    def test_strides_that_say_nothing_are_not_compared(self):
        document = graphs.document(
            [
                graphs.placeholder("x", [1, 3]),
                graphs.call("r", "aten.neg.default", [graphs.ref("x")], {**graphs.tensor([1, 3]), "stride": [7, 1]}),
                graphs.output("r"),
            ]
        )
        self.assertEqual(rebuild(document).export()["nodes"][1]["out"]["stride"], [3, 1])
        document["nodes"][1]["out"]["stride"] = [3, 2]
        with self.assertRaisesRegex(Refused, "strides"):
            rebuild(document)

    @unittest.skipIf(versions.version() == (2, 8), "this torch cannot view tensors of symbolic sizes below autograd")
    def test_symbolic_sizes(self):
        size = {"sym": "s0", "hint": 6}
        out = {"t": "tensor", "shape": [size, 4], "dtype": "float32", "device": "cpu", "stride": [4, 1]}
        document = graphs.document(
            [
                {"name": "x", "op": "placeholder", "target": "x", "out": out},
                graphs.call("r", "aten.relu.default", [graphs.ref("x")], out),
                graphs.call("f", "aten.view.default", [graphs.ref("r"), [-1]]),
                graphs.output("f"),
            ],
            symbols={"s0": {"hint": 6, "range": ["2", "int_oo"], "unbacked": False}},
        )
        after = rebuild(document).export()
        self.assertEqual(after["nodes"][1]["out"]["shape"], [size, 4])
        self.assertEqual(after["nodes"][2]["out"]["shape"], [{"sym": "4*s0", "hint": 24}])

    def test_expressions(self):
        self.assertEqual(evaluate("2*a + (b//3) - 1", {"a": 5, "b": 7}), 11)
        for text in ("a.b", "__import__('os')", "a**100", "c", "a[0]"):
            with self.subTest(text), self.assertRaises(Refused):
                evaluate(text, {"a": 5})


@unittest.skipUnless(ordering.AVAILABLE, "this torch has no control_deps")
class Ordering(unittest.TestCase):
    """Ordering edges as calls of control_deps, and back."""

    @staticmethod
    def gathers(**after):
        document = graphs.two_gathers()
        document["nodes"].insert(2, graphs.call("c", "aten.neg.default", [graphs.ref("x")]))
        document["nodes"][-1]["args"][0].append(graphs.ref("c"))
        for entry in document["nodes"]:
            if entry["name"] in after:
                entry["after"] = after[entry["name"]]
        return document

    def test_edges_come_back_as_they_were(self):
        document = self.gathers(c=["x", "y"], w1=["w0", "c"])
        rebuilt = rebuild(document, after="carried")
        self.assertIn("control_deps", str(rebuilt.graph))
        after = rebuilt.export()
        shown = [
            [(n["name"], n["op"], n["target"], n.get("args"), n.get("after")) for n in d["nodes"]]
            for d in (document, after)
        ]
        self.assertEqual(*shown)

    def test_a_group_that_only_carriers_name_is_written(self):
        document = graphs.two_gathers()
        for entry in document["nodes"]:
            if "all_gather" in entry["target"]:
                entry["after"] = ["x"]
        rebuilt = rebuild(document, after="carried")
        groups.enter(document, 0)
        try:
            self.assertEqual(list(groups_of(rebuilt.graph)), list(document["groups"]))
        finally:
            groups.leave()

    def test_bucketing_keeps_them_and_heeds_them(self):
        answer = ask("bucketing", self.gathers(c=["w0"]), {"kind": "all_gather"})
        nodes = {node["name"]: node for node in answer["repaired"]["nodes"]}
        (before,) = nodes["c"]["after"]
        self.assertIn(before, nodes)
        self.assertNotIn("g0", nodes)
        self.assertFalse(any("control_deps" in n["target"] or n["op"] == "get_attr" for n in nodes.values()))
        # A path from one gather to the other, of which one edge is an ordering edge.
        document = self.gathers(c=["w0"])
        document["nodes"][4]["args"][0] = graphs.ref("c")
        document["nodes"][4]["out"]["shape"] = document["nodes"][6]["out"]["shape"] = [4]
        document["nodes"].insert(2, document["nodes"].pop(3))
        document["nodes"].insert(3, document["nodes"].pop(5))
        answer = ask("bucketing", document, {"kind": "all_gather"})
        self.assertEqual(answer["type"], "outcome", answer)
        self.assertIn("g0", [node["name"] for node in answer["repaired"]["nodes"]])

    def test_repair_sorts_by_them(self):
        document = self.gathers(c=["w1"])
        answer = ask("repair", document)
        names = [node["name"] for node in answer["repaired"]["nodes"]]
        self.assertGreater(names.index("c"), names.index("w1"))
        self.assertEqual(answer["repaired"]["nodes"][names.index("c")]["after"], ["w1"])

    def test_no_form_is_guessed(self):
        document = self.gathers(c=["w0"])
        document["nodes"][-1]["after"] = ["c"]
        self.assertEqual(ask("bucketing", document)["type"], "refused")
        for edges in ({"c": ["g0"]}, {"w1": ["c"]}):
            self.assertIn("between a launch and its wait", ask("bucketing", self.gathers(**edges))["reason"])
            self.assertEqual(ask("repair", self.gathers(**edges))["type"], "outcome")


class Inputs(unittest.TestCase):
    @needs_bucketing
    def test_an_object_is_handed_on(self):
        nodes = [graphs.placeholder("mesh", [1]), graphs.placeholder("x", [2]), graphs.output("x", "mesh")]
        nodes[0]["out"] = {"t": "other", "type": "FakeScriptObject"}
        answer = ask("bucketing", graphs.document(nodes))
        self.assertEqual(answer["repaired"]["nodes"][0]["out"], nodes[0]["out"])
        nodes[0]["out"] = {"t": "other", "type": "ScriptObject"}
        self.assertIn("type ScriptObject", ask("bucketing", graphs.document(nodes))["reason"])

    @needs_bucketing
    def test_an_operator_finds_nothing_in_an_object(self):
        nodes = [graphs.placeholder("mesh", [1]), graphs.call("y", "aten.relu.default", [graphs.ref("mesh")])]
        nodes[0]["out"] = {"t": "other", "type": "FakeScriptObject"}
        answer = ask("bucketing", graphs.document([*nodes, graphs.output("y")]))
        self.assertEqual(answer["type"], "refused", answer)

    @needs_bucketing
    def test_nothing_is_said_of_a_storage_where_the_offset_is_symbolic(self):
        size, twice = {"sym": "s0", "hint": 4}, {"sym": "2*s0", "hint": 8}
        nodes = [
            graphs.placeholder("s", [1]),
            graphs.placeholder("x", [8]),
            graphs.call("v", "aten.slice.Tensor", [graphs.ref("x"), 0, graphs.ref("s"), 2**63 - 1]),
            graphs.output("v"),
        ]
        nodes[0]["out"] = {"t": "symint", **size}
        nodes[1]["out"]["shape"] = [twice]
        nodes[2]["out"] = {**nodes[1]["out"], "shape": [size]}
        for entry in nodes[1:3]:
            for key in ("storage", "offset", "storage_bytes"):
                entry["out"].pop(key, None)
        document = graphs.document(nodes)
        document["symbols"] = {"s0": {"hint": 4, "range": ["2", "int_oo"], "unbacked": False}}
        answer = ask("bucketing", document)
        self.assertEqual(answer["type"], "outcome", answer)
        out = answer["repaired"]["nodes"][2]["out"]
        self.assertEqual([key for key in ("storage", "offset", "storage_bytes") if key in out], [])
        self.assertEqual(out["shape"], [size])


class Passes(unittest.TestCase):
    @needs_bucketing
    def test_two_gathers_become_one(self):
        modes = passes.load()["bucketing"].capabilities["options"]["mode"]
        for mode in {"default", "custom_ops"} & {*modes}:
            answer = ask("bucketing", graphs.two_gathers(), {"mode": mode}, rank=1)
            self.assertEqual(answer["type"], "outcome", answer)
            gathers = [t for t in targets(answer["repaired"]) if "all_gather_into_tensor" in t]
            self.assertEqual(len(gathers), 1, mode)

    @needs_bucketing
    def test_a_limit_keeps_them_apart(self):
        answer = ask("bucketing", graphs.two_gathers(), {"cap": "16B", "kind": ["all_gather"]})
        self.assertEqual(targets(answer["repaired"]), targets(graphs.two_gathers()))

    @needs_bucketing
    def test_the_rank_is_baked_in(self):
        one, other = (ask("bucketing", graphs.two_gathers(), rank=rank)["repaired"]["nodes"] for rank in (0, 1))
        self.assertNotEqual(one, other)

    @needs_bucketing
    def test_options_are_refused_or_known(self):
        for options in (
            {"mode": "functional"},
            {"groups": "dp"},
            {"cap": "x"},
            {"rank": "1"},
            {"selection": "spanning"},
        ):
            with self.subTest(options):
                self.assertEqual(ask("bucketing", graphs.two_gathers(), options)["type"], "refused")

    def test_repair_sorts(self):
        document = graphs.two_gathers()
        nodes = document["nodes"]
        nodes[2], nodes[4] = nodes[4], nodes[2]
        answer = ask("repair", document)
        names = [node["name"] for node in answer["repaired"]["nodes"]]
        self.assertLess(names.index("g0"), names.index("w0"))

    def test_repair_shows_what_it_leaves_of_a_cycle(self):
        document = graphs.two_gathers()
        document["nodes"][2]["args"][0] = graphs.ref("w0")
        answer = ask("repair", document)
        self.assertEqual((answer["type"], answer["error"]), ("error", "AssertionError"))
        self.assertEqual(len(answer["left_behind"]["nodes"]), 7)

    @needs_bucketing
    def test_only_functional_graphs(self):
        functional = worker.Worker(Silent(), passes.load(), torch.__version__, functional=True)
        write = [
            graphs.call("w", "aten.copy_.default", [graphs.ref("x"), graphs.ref("y")], graphs.tensor([2])),
            graphs.call("n", "aten.neg.default", [graphs.ref("x")], graphs.tensor([2])),
        ]
        inputs = [graphs.placeholder("x", [2]), graphs.placeholder("y", [2])]
        for order, kind in ((write, "refused"), (write[::-1], "outcome")):
            document = graphs.document([*inputs, *order, graphs.output("n")])
            message = {"type": "run", "id": 5, "pass": "bucketing", "options": {}, "rank": 0, "graph": document}
            self.assertEqual(functional.answer(json.dumps(message))["type"], kind)

    def test_partitions(self):
        for method in ("default", "min-cut"):
            answer = ask("partition", graphs.joint(), {"method": method})
            self.assertEqual(answer["type"], "outcome", answer)
            self.assertIn("aten.sin.default", targets(answer["forward"]))
            self.assertIn("tangents_1", targets(answer["backward"]))

    def test_an_exception_of_the_pass_is_an_error(self):
        original, passes_ = passes.load()["repair"], passes._passes

        def broken(rebuilt, options):
            with rebuilt.timing():
                raise AssertionError("a promise")

        passes_["repair"] = passes.Pass("repair", broken, {}, True, False)
        try:
            answer = ask("repair", graphs.two_gathers())
        finally:
            passes_["repair"] = original
        self.assertEqual((answer["error"], answer["message"]), ("AssertionError", "a promise"))
        self.assertIn("broken", answer["traceback"])


class Execution(unittest.TestCase):
    def test_ranks_gather_from_each_other(self):
        given = [{"x": [1, 2], "y": [3, 4, 5]}, {"x": [-1, -2], "y": [6, 7, 8]}]
        inputs = [
            {k: {"dtype": "float32", "shape": [len(v)], "bits": bits(v)} for k, v in rank.items()} for rank in given
        ]
        answer = ask("execute", graphs.two_gathers(), inputs=inputs)
        self.assertEqual(answer.get("through"), "gloo", answer)
        for results in answer["results"]:
            self.assertEqual([numbers(r) for r in results], [[1, 2, -1, -2], [3, 4, 5, 6, 7, 8]])

    def test_groups_in_another_order_and_what_is_left_in_inputs(self):
        document = graphs.document(
            [
                graphs.placeholder("x", [2]),
                graphs.call("w", "aten.mul_.Tensor", [graphs.ref("x"), 2]),
                graphs.gather("g", "w", 2, "tp", [4]),
                graphs.wait("v", "g", [4]),
                graphs.call("r", "_c10d_functional.all_reduce_.default", [graphs.ref("x"), "sum", "dp"]),
                graphs.wait("u", "r", [2]),
                graphs.output("v"),
            ],
            groups={"dp": [[0, 1]], "tp": [[1, 0]]},
        )
        inputs = [{"x": {"dtype": "float32", "shape": [2], "bits": bits(v)}} for v in ([1, 2], [3, 4])]
        # Twice: the processes and their groups stay.
        for _ in range(2):
            answer = ask("execute", document, inputs=inputs)
            self.assertEqual(answer.get("through"), "gloo", answer)
            self.assertEqual([numbers(rank[0]) for rank in answer["results"]], [[6, 8, 2, 4]] * 2)
            self.assertEqual([numbers(rank["x"]) for rank in answer["inputs"]], [[8, 12]] * 2)

    def test_reductions(self):
        document = graphs.document(
            [
                graphs.placeholder("x", [4]),
                graphs.call("a", "_c10d_functional.all_reduce.default", [graphs.ref("x"), "sum", "dp"]),
                graphs.call("s", "_c10d_functional.reduce_scatter_tensor.default", [graphs.ref("x"), "avg", 2, "dp"]),
                graphs.wait("u", "a", [4]),
                graphs.wait("v", "s", [2]),
                graphs.output("u", "v"),
            ]
        )
        inputs = [{"x": {"dtype": "float32", "shape": [4], "bits": bits(v)}} for v in ([1, 2, 3, 4], [10, 20, 30, 40])]
        answer = ask("execute", document, inputs=inputs)
        results = answer["results"]
        self.assertEqual(
            [[numbers(r) for r in rank] for rank in results],
            [[[11, 22, 33, 44], [5.5, 11]], [[11, 22, 33, 44], [16.5, 22]]],
        )

    def test_what_gloo_has_not_is_emulated(self):
        eight = graphs.document(
            [
                graphs.placeholder("x", [2]),
                graphs.call("c", "prims.convert_element_type.default", [graphs.ref("x"), {"dtype": "int16"}]),
                graphs.call("g", "_c10d_functional.all_reduce.default", [graphs.ref("c"), "sum", "dp"]),
                graphs.call("w", "_c10d_functional.wait_tensor.default", [graphs.ref("g")]),
                graphs.output("w"),
            ]
        )
        inputs = [{"x": {"dtype": "float32", "shape": [2], "bits": bits(v)}} for v in ([1, 2], [3, 4])]
        answer = ask("execute", eight, inputs=inputs)
        self.assertEqual(answer.get("through"), "emulated", answer)
        self.assertEqual([rank[0]["bits"] for rank in answer["results"]], [["0004", "0006"]] * 2)


class Reproductions(unittest.TestCase):
    def run_script(self, message, whole=False):
        """`whole`: as one file, which holds what scripts share."""
        answer = served().answer(json.dumps({"type": "repro", "id": 1, **message}))
        self.assertEqual(answer["type"], "repro", answer)
        files = {"repro.py": answer["python"]} if whole else answer["files"]
        self.assertLessEqual(len(answer["files"]["repro.py"].splitlines()), 60)
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                self.assertNotIn("graph_oracle.pytorch", text)
                with open(os.path.join(folder, name), "w") as file:
                    file.write(text)
            path = os.path.join(folder, "repro.py")
            # In this process' torch: starting another takes seconds.
            import contextlib
            import io
            import runpy

            text = io.StringIO()
            with contextlib.redirect_stdout(text):
                try:
                    runpy.run_path(path, run_name="__main__")
                    status = 0
                except SystemExit as end:
                    status = end.code
        # The script made its own process groups.
        from graph_oracle.pytorch import groups

        groups.leave()
        return status, text.getvalue()

    @needs_bucketing
    def test_a_sound_case_does_not_fail(self):
        for pass_, document in (("bucketing", graphs.two_gathers()), ("partition", graphs.joint())):
            for whole in (False, True):
                message = {"pass": pass_, "graph": document, "rule": "", "title": "nothing"}
                status, text = self.run_script(message, whole)
                self.assertEqual((status, text), (0, "the failure does not show\n"), pass_)

    def test_the_findings_share_what_is_written(self):
        """docs/findings/replay.py, as `python -m graph_oracle.pytorch repro CASE.json ... --out FOLDER` writes it."""
        from graph_oracle.pytorch import repro

        path = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "findings", "replay.py")
        if not os.path.exists(path):
            self.skipTest("no checkout")
        with open(path) as file:
            self.assertEqual(file.read(), repro.tools())

    @needs_bucketing
    @unittest.skipIf(versions.version() <= (2, 9), "this torch keeps the write")
    def test_a_lost_write_fails(self):
        document = graphs.document(
            [
                graphs.placeholder("x", [2]),
                graphs.placeholder("y", [2]),
                graphs.call(
                    "b",
                    "aten.empty.memory_format",
                    [[4]],
                    kwargs={"dtype": {"dtype": "float32"}, "device": {"device": "cpu"}, "pin_memory": False},
                ),
                graphs.call(
                    "g0",
                    "_c10d_functional.all_gather_into_tensor_out.default",
                    [graphs.ref("x"), 2, "dp"],
                    kwargs={"out": graphs.ref("b")},
                ),
                graphs.gather("g1", "y", 2, "dp", [4]),
                graphs.wait("w0", "g0", [4]),
                graphs.wait("w1", "g1", [4]),
                graphs.call("r", "aten.neg.default", [graphs.ref("b")]),
                graphs.output("w0", "w1", "r"),
            ]
        )
        status, text = self.run_script({"pass": "bucketing", "graph": document, "title": "the buffer is not written"})
        self.assertEqual(status, 1)
        self.assertRegex(text, "^FAILS: value 2 of rank 0 is tensor")

    @needs_bucketing
    @unittest.skipIf(versions.version() <= (2, 9), "this torch puts the bucket where the first gather was")
    def test_a_draw_behind_a_later_draw_fails(self):
        def draw(name, of, shape):
            return graphs.call(name, "aten.bernoulli.p", [graphs.ref(of), 0.5], graphs.tensor(shape))

        document = graphs.document(
            [
                graphs.placeholder("x", [16]),
                graphs.gather("g0", "x", 2, "dp", [32]),
                graphs.wait("w0", "g0", [32]),
                draw("r0", "w0", [32]),
                draw("r1", "x", [16]),
                graphs.gather("g1", "x", 2, "dp", [32]),
                graphs.wait("w1", "g1", [32]),
                graphs.output("r0", "r1", "w1"),
            ]
        )
        status, text = self.run_script({"pass": "bucketing", "graph": document, "title": "the second draws first"})
        self.assertEqual(status, 1)
        self.assertRegex(text, "^FAILS: value 0 of rank 0 is tensor")


class Process(unittest.TestCase):
    def test_standard_output_is_the_protocol_s_alone(self):
        script = (
            "from graph_oracle.pytorch.worker import Channel; import os; c = Channel.take(); print('noise');"
            "os.write(1, b'more'); c.send({'type': 'hello'})"
        )
        done = subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(os.path.abspath(__file__)))},
        )
        self.assertEqual(done.stdout, b'{"type":"hello"}\n')
        self.assertTrue(b"noise" in done.stderr and b"more" in done.stderr, done.stderr)

    def test_no_torch_is_one_line(self):
        script = (
            "import sys; sys.modules['torch'] = None; from graph_oracle.pytorch.__main__ import main; "
            "sys.exit(main(['worker']))"
        )
        done = subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(os.path.abspath(__file__)))},
        )
        self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
        self.assertIn("torch", done.stderr)


if __name__ == "__main__":
    unittest.main()
