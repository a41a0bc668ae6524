"""The passes of other stacks, judged: `checked_passes(passes)`.

torchtitan's graph trainer (0.3.0, torchtitan/experiments/graph_trainer/passes.py) runs a list of `(gm,
example_inputs) -> gm`:

    gm = apply_graph_passes(gm, inputs, graph_oracle.checked_passes(passes))

DeepSpeed's DeepCompile (0.19.8, deepspeed/compile/backend.py) looks passes up by name, or takes a schedule of them, and
calls them as `(gm, graph_id, graph_order, ...)`, which return the module, or None for "nothing was changed":

    deepspeed.compile.backend.opt_passes.update(graph_oracle.checked_passes(deepspeed.compile.backend.opt_passes))
    schedule = graph_oracle.checked_passes([(0, [add_z3_gather_release]), (5, [schedule_prefetch])])

vLLM's manager (0.33.0, vllm/compilation/passes/pass_manager.py) holds a list, and some passes by name; it is changed
in place, as the configuration holds the manager itself:

    graph_oracle.checked_passes(manager)      # after manager.configure(...)

Passes that gather or free parameters by operators of their own are "undecided" at best: their operators have no
meaning here.
"""

from __future__ import annotations

from typing import Any

from .._oracle import CannotJudge
from ..arguments import described
from .hooks import Checked, checked


def checked_passes(passes: Any, **options: Any) -> Any:
    """The same with each pass judged whenever it runs; `options` as for `checked`.

    `passes`: a list, tuple or dict of passes, nested as it may be (numbers among them stay), or a manager that holds
    its passes in an attribute `passes`, which is changed in place.
    """
    if isinstance(passes, (str, bytes)):
        raise CannotJudge(f"checked_passes takes passes, not the name {passes!r}")
    if isinstance(getattr(passes, "passes", None), (list, tuple)):
        return _manager(passes, options)
    if not isinstance(passes, (list, tuple, dict)):
        raise CannotJudge(f"checked_passes takes a list of passes or a pass manager, not {described(passes)}")
    return _each(passes, options)


def _each(value: Any, options: dict[str, Any]) -> Any:
    if isinstance(value, (list, tuple)):
        parts = [_each(one, options) for one in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if isinstance(value, dict):
        return {key: _each(one, options) for key, one in value.items()}
    if isinstance(value, (str, bytes)):
        raise CannotJudge(f"checked_passes takes passes, not the name {value!r}: look it up first")
    # Steps of a schedule.
    if type(value) in (Checked, int):
        return value
    if not callable(value):
        raise CannotJudge(f"checked_passes takes passes, and {described(value)} among them is none")
    return checked(value, **options)


def _manager(manager: Any, options: dict[str, Any]) -> Any:
    from torch._inductor.custom_graph_pass import CustomGraphPass

    for name, value in list(vars(manager).items()):
        if name == "passes" or isinstance(value, CustomGraphPass):
            setattr(manager, name, _each(value, options))
    return manager
