"""Targets of calls by name, and back; and the facts about them that PyTorch's schemas give."""

from __future__ import annotations

import operator
from typing import Any

import torch

from .errors import Refused

# Namespaces whose operators are registered by an import.
_REGISTERED_BY = {
    "bucketing": ["torch._inductor.fx_passes.bucketing"],
    "fsdp": ["torch.distributed.fsdp._fully_shard._fsdp_collectives"],
    "_c10d_functional": ["torch.distributed._functional_collectives"],
    "_dtensor": ["torch.distributed.tensor"],
    "autoparallel": ["autoparallel"],
    "rngprims": ["torch._prims.rng_prims"],
    "prims": ["torch._prims", "torch._inductor.inductor_prims", "torch._inductor.fx_passes.post_grad"],
}

_PYTHON = {
    f"operator.{name}": getattr(operator, name)
    for name in (
        "getitem",
        "add",
        "sub",
        "mul",
        "truediv",
        "floordiv",
        "mod",
        "neg",
        "pow",
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "and_",
        "or_",
        "xor",
        "lshift",
        "rshift",
        "pos",
        "abs",
    )
}
for _name in ("sym_sum", "sym_max", "sym_min", "sym_not", "sym_int", "sym_float", "sym_ite", "sym_sqrt"):
    _PYTHON[f"torch.{_name}"] = getattr(torch, _name)
_NAMES = {function: name for name, function in reversed(_PYTHON.items())}


def attribute(owner: Any, path: str) -> Any:
    """What a module has under a dotted path; None where it has nothing there."""
    for part in path.split("."):
        owner = getattr(owner, part, None)
    return owner


_resolved: dict[str, Any] = {}
_facts: dict[Any, dict[str, Any]] = {}


def resolve(name: str) -> Any:
    """The function called `name`. Refused if this torch has none."""
    found = _resolved.get(name)
    if found is None:
        found = _PYTHON.get(name) or _operator(name)
        if found is None:
            raise Refused(f"{name} is not an operator of this torch")
        _resolved[name] = found
    return found


def _operator(name):
    parts = name.split(".")
    if parts[0] == "higher_order":
        return _higher_order(parts[1:])
    if len(parts) == 2:
        parts.append("default")
    if len(parts) != 3 or parts[0] in ("operator", "torch"):
        return None
    namespace, packet, overload = parts
    for module in _REGISTERED_BY.get(namespace, []):
        try:
            __import__(module)
        except ImportError:
            return None
    try:
        return getattr(getattr(getattr(torch.ops, namespace), packet), overload)
    except (AttributeError, RuntimeError):
        return None


# Higher-order operators that are rebuilt: those that run a body once (bodies.py), and one that draws.
_HIGHER_ORDER = {
    "invoke_subgraph": "torch._higher_order_ops.invoke_subgraph",
    "control_deps": "torch._inductor.fx_passes.control_dependencies",
    "graphsafe_run_with_rng_state": "torch._prims.rng_prims",
}


def _higher_order(path):
    name = ".".join(path)
    if name not in _HIGHER_ORDER:
        return None
    try:
        __import__(_HIGHER_ORDER[name])
    except ImportError:
        return None
    return getattr(torch.ops.higher_order, name, None)


def name_of(target: Any) -> str:
    """The name of a function, as the exchange JSON writes it."""
    if isinstance(target, str):
        return target
    if isinstance(target, torch._ops.OpOverload):
        return str(target)
    if isinstance(target, torch._ops.HigherOrderOperator):
        return f"higher_order.{target.name()}"
    found = _NAMES.get(target)
    if found is None:
        found = f"{getattr(target, '__module__', 'python').lstrip('_')}.{getattr(target, '__name__', target)}"
    return found


def facts(target: Any) -> dict[str, Any]:
    """Schema facts, as `ops[target]` of the exchange JSON."""
    found = _facts.get(target)
    if found is None:
        found = _facts[target] = _facts_of(target)
    return found


def _alias(info):
    if info is None:
        return None
    return {"before": sorted(info.before_set), "after": sorted(info.after_set), "write": info.is_write}


def _facts_of(target):
    if isinstance(target, torch._ops.HigherOrderOperator):
        return {"kind": "higher_order"}
    if not isinstance(target, torch._ops.OpOverload):
        return {"kind": "python"}
    schema = target._schema
    args, returns, aliases = [], [], []
    for argument in schema.arguments:
        entry = {"name": argument.name, "type": str(argument.type)}
        if argument.kwarg_only:
            entry["kwarg_only"] = True
        if argument.has_default_value():
            default = argument.default_value
            entry["default"] = default if default is None or type(default) in (bool, int, float, str) else str(default)
        if argument.alias_info is not None:
            entry["alias"] = _alias(argument.alias_info)
        args.append(entry)
    for index, result in enumerate(schema.returns):
        entry = {"type": str(result.type)}
        sets = set()
        if result.alias_info is not None and (result.alias_info.before_set or result.alias_info.is_write):
            entry["alias"] = _alias(result.alias_info)
            sets = result.alias_info.before_set
        elif str(result.type).startswith("List[") and (found := _list_alias(schema, index)):
            # The alias of a list's elements is missing from the schema object, and is there in its text.
            entry["alias"] = {"before": [], "after": [], "write": False}
            entry["elem_alias"] = [found]
            sets = {found}
        returns.append(entry)
        for position, argument in enumerate(schema.arguments):
            if argument.alias_info is not None and sets & argument.alias_info.before_set:
                aliases.append([index, position])
    mutated = [i for i, a in enumerate(schema.arguments) if a.alias_info is not None and a.alias_info.is_write]
    return {
        "kind": "op",
        "namespace": target.namespace,
        "schema": str(schema),
        "args": args,
        "returns": returns,
        "is_mutable": bool(schema.is_mutable),
        "mutated_args": mutated,
        "ret_aliases_arg": aliases,
        "is_view": bool(aliases) and not mutated,
        "torch_is_view": bool(target.is_view),
        "tags": [str(tag).removeprefix("Tag.") for tag in target.tags],
    }


def _list_alias(schema, index):
    """The alias set of `Tensor(a)[]` among the returns, read off an argument that has it."""
    text = str(schema).rpartition("->")[2].strip().strip("()")
    parts = [part.strip() for part in text.split(", ")]
    if index < len(parts) and parts[index].startswith("Tensor(") and "[]" in parts[index]:
        return parts[index][len("Tensor(") :].split(")")[0].split("!")[0].split(" ")[0]
    # Printed without it: operators that split a tensor return views of their first argument.
    first = schema.arguments[0].alias_info if schema.arguments else None
    if first is not None and not first.is_write and len(first.before_set) == 1 and "*" in first.after_set:
        return next(iter(first.before_set))
    return None
