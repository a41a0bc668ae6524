"""The topological repair: `stable_topological_sort` of torch/_inductor/pattern_matcher.py."""

from torch._inductor.pattern_matcher import stable_topological_sort

from .. import ordering
from ..errors import PassFailed
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
        failed.left_behind = rebuilt.export()
        raise
    return {"seconds": timing.seconds, "repaired": rebuilt.export()}
