"""The topological repair: `stable_topological_sort` of torch/_inductor/pattern_matcher.py."""

from torch._inductor.pattern_matcher import stable_topological_sort

from .. import ordering
from ..errors import PassFailed, Refused
from . import register


@register(
    "repair",
    values=False,
    without=None if ordering.AVAILABLE else ["ordering-edges"],
    after="carried" if ordering.AVAILABLE else None,
)
def run(rebuilt, options):
    """Options: none."""
    try:
        with rebuilt.timing() as timing:
            stable_topological_sort(rebuilt.graph)
    except PassFailed as failed:
        if isinstance(failed.cause, AssertionError) and is_cyclic(rebuilt.graph):
            raise Refused("the graph has a cycle", left_behind=rebuilt.export()) from failed
        raise
    return {"seconds": timing.seconds, "repaired": rebuilt.export()}


def is_cyclic(graph):
    """Whether no order of the nodes puts definitions before uses."""
    waiting = {node: len(node.all_input_nodes) for node in graph.nodes}
    ready, done = [node for node, count in waiting.items() if count == 0], 0
    while ready:
        node = ready.pop()
        done += 1
        for user in node.users:
            waiting[user] -= 1
            if waiting[user] == 0:
                ready.append(user)
    return done < len(waiting)
