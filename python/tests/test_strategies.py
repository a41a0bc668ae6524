"""Hypothesis over the generator: graphs that torch can hold, and failing examples that the reducer makes small."""

import copy

import pytest
import torch
from hypothesis import HealthCheck, Phase, assume, find, given, settings

import graph_oracle

# Without shrinking: a failure is told at once.
QUICK = settings(
    phases=[Phase.generate],
    max_examples=25,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=True,
    database=None,
)


@given(graph_oracle.graphs(max_ranks=4))
@QUICK
def test_a_graph_is_rebuilt_and_read_back(graph):
    try:
        with graph_oracle.rebuilt(graph) as module:
            assert graph_oracle.check_pair(module, copy.deepcopy(module))
            # What was made is what was rebuilt.
            assert graph_oracle.check_pair(graph, module).verdict != "violated"
    except graph_oracle.CannotJudge:
        assume(False)


def partition(module, inputs, num_fwd_outputs):
    from torch._functorch.partitioners import default_partition

    return default_partition(module, inputs, num_fwd_outputs=num_fwd_outputs)


@pytest.mark.skipif(torch.__version__ < "2.15", reason="this torch saves conditions that are only asserted")
@given(graph_oracle.joint_graphs(max_ranks=2))
@QUICK
def test_a_partitioner(joint):
    try:
        with graph_oracle.rebuilt(joint) as module:
            parts = partition(module, (), joint.num_fwd_outputs)
            verdict = graph_oracle.check_pair(joint, parts, "partition")
    except graph_oracle.CannotJudge:
        assume(False)
    assert verdict.verdict != "violated", str(verdict)


def test_a_failing_example_becomes_small():
    """Hypothesis turns the bits: of graphs with more than two nodes one is left that is hardly larger."""
    small = find(
        graph_oracle.graphs(max_ranks=1),
        lambda graph: len(graph) > 2,
        settings=settings(QUICK, max_examples=20, phases=[Phase.generate, Phase.shrink]),
    )
    assert 2 < len(small) <= 4, small.text()


def test_a_process_group_of_the_users_is_not_touched():
    import torch.distributed as dist

    graph = graph_oracle.Graph("x = input : f32[4]\ny = relu(x)\noutput y\n")
    with graph_oracle.fake_world(2):
        with pytest.raises(graph_oracle.CannotJudge, match="process group"):
            with graph_oracle.rebuilt(graph):
                pass
        assert dist.is_initialized()
