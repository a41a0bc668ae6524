"""Passes of AutoParallel, for who has it in a checkout of his own: it is not on PyPI, and these were not run.

The names of modules are those of its commit a54c252 (../shared/spec/partition.md, sections 7 and 8) and of the stored
sources after it. What a checkout has elsewhere is refused.
"""

from __future__ import annotations

import functools
from typing import Any

from torch import fx

from .called import Call, Cut, of

_PASSES = "autoparallel.graph_passes"


def _marked(reshard: bool, joint: fx.GraphModule, inputs: Any, **kwargs: Any) -> Any:
    """The marks on FSDP's gathers, and the partitioner that AOTAutograd has after them."""
    from torch._functorch.partitioners import default_partition

    mark = of(f"{_PASSES}.activation_checkpointing", "tag_fsdp_collectives_for_recomputation")
    mark(joint.graph, reshard)
    return default_partition(joint, inputs, **kwargs)


def _checkpointed(stage: float | str | None, joint: fx.GraphModule, inputs: Any, **kwargs: Any) -> Any:
    """Its joint pass for activation checkpointing."""
    from torch._functorch.partitioners import min_cut_rematerialization_partition

    of(f"{_PASSES}.activation_checkpointing", "ac_joint_pass")(joint.graph, stage)
    return min_cut_rematerialization_partition(joint, inputs, **kwargs)


def _replayed(joint: fx.GraphModule, inputs: Any, **kwargs: Any) -> Any:
    """The replay of what is tagged `ap_must_save`, with waits that are no effect meanwhile."""
    partitioner = of("autoparallel.compile", "_ReplaySavesPartitioner")
    with of("autoparallel.api", "_suppress_wait_tensor_side_effect")():
        with of("autoparallel.compile", "_patch_partitioner_dce")():
            return partitioner()(joint, inputs, **kwargs)


def _bucketed(gm: fx.GraphModule) -> Any:
    module = f"{_PASSES}.auto_bucketing"
    settings = of(module, "aten_autobucketing_config")
    return of(module, "aten_autobucketing_reordering_pass")(gm.graph, settings)


def _contiguous(gm: fx.GraphModule) -> Any:
    return of(f"{_PASSES}.make_collectives_contiguous", "make_collectives_contiguous")(gm)


PASSES: dict[str, Call | Cut] = {
    "autoparallel_reshard_after_forward": Cut(functools.partial(_marked, True)),
    "autoparallel_keep_after_forward": Cut(functools.partial(_marked, False)),
    "autoparallel_checkpointing": Cut(functools.partial(_checkpointed, "auto")),
    "autoparallel_checkpointing_of_operators": Cut(functools.partial(_checkpointed, None)),
    "autoparallel_replay": Cut(_replayed),
    "autoparallel_bucketing": Call(_bucketed, functional=True),
    "autoparallel_make_collectives_contiguous": Call(_contiguous, functional=True),
}
