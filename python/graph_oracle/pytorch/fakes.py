"""Results of operators on fake tensors, remembered.

What an operator returns on fake tensors is a function of their metadata. So it is run once for each operator and
metadata; after that its results are made from what was learned: shape, strides, dtype, device, and whose storage a
result has. Where that is not the whole truth (symbolic sizes, conjugates, results of a strange make) nothing is
remembered and the operator runs.

Run means: its kernel for meta tensors is called as `FakeTensorMode` calls it, without the layers around it, which take
ten times as long. That is done where all tensors are on one device, which the results are on too, and where no argument
asks for another one. What has no such kernel, or is data-dependent, goes through the mode's dispatch.
"""

import math
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor, in_kernel_invocation_manager

# Entries; beyond it everything is forgotten.
_LIMIT = 50_000
_learned: dict[Any, Any] = {}
_CONSTANTS = (torch.dtype, torch.device, torch.memory_format, torch.layout, str, bool, int)


class _Unknown(Exception):
    """Not to be remembered."""


def tensor(mode, shape, stride, dtype, device, *, offset=0, storage=None):
    """A fake tensor of concrete sizes, on a storage of its own or on a given one."""
    meta = torch.empty_strided(shape, stride, dtype=dtype, device="meta")
    if storage is not None:
        meta.set_(storage, offset, shape, stride)
    return FakeTensor(mode, meta, device)


def run(mode, target, args, kwargs):
    """`target` on fx arguments, whose nodes have values."""
    try:
        inputs = []
        key = (target, _key(args, inputs), _key(tuple(kwargs.items()), inputs))
    except _Unknown:
        return dispatched(mode, target, args, kwargs)
    known = _learned.get(key)
    if known is None:
        known = _by_kernel(mode, target, args, kwargs, inputs)
        value = None
        if known is None:
            value = dispatched(mode, target, args, kwargs)
            try:
                known = _recipe(value, inputs, None, [])
            except _Unknown:
                known = False
        if len(_learned) >= _LIMIT:
            _learned.clear()
        _learned[key] = known
        if value is not None:
            return value
    if known is False:
        return dispatched(mode, target, args, kwargs)
    return _make(mode, known, inputs)


def dispatched(mode, target, args, kwargs):
    """The same through the mode's dispatch, whatever was learned."""
    with mode:
        return _call(target, args, kwargs)


def _call(target, args, kwargs):
    def value(a):
        return a.meta["val"] if isinstance(a, fx.Node) else a

    # Below autograd: nothing here is differentiated, and views are views all the same.
    with torch._C._AutoDispatchBelowAutograd():
        return target(*fx.node.map_aggregate(args, value), **fx.node.map_aggregate(kwargs, value))


def _by_kernel(mode, target, args, kwargs, inputs):
    """The recipe of what the kernel for meta tensors returns; None where only the dispatch can tell."""
    devices = {given.device for given in inputs}
    if len(devices) != 1 or any(isinstance(argument, torch.device) for argument in (*args, *kwargs.values())):
        return None
    try:
        with in_kernel_invocation_manager(mode):
            value = _call(target, args, kwargs)
        return _recipe(value, inputs, devices.pop(), [])
    except Exception:
        # The dispatch says what is wrong, if anything is.
        return None


def _key(value, inputs):
    """A key of an argument's metadata; collects the tensors in the order met."""
    if isinstance(value, fx.Node):
        value = value.meta["val"]
    if isinstance(value, FakeTensor):
        found = value.__dict__.get("graph_oracle_key")
        if found is None:
            found = value.graph_oracle_key = _tensor_key(value)
        inputs.append(value)
        return found
    if value is None or isinstance(value, _CONSTANTS):
        return type(value), value
    if type(value) is float:
        if math.isnan(value):
            raise _Unknown
        return float, value, math.copysign(1.0, value)
    if isinstance(value, (list, tuple)):
        return tuple([_key(v, inputs) for v in value])
    raise _Unknown


def _tensor_key(value):
    shape, stride, offset = tuple(value.shape), value.stride(), value.storage_offset()
    if type(offset) is not int or not all(type(n) is int for n in shape) or not all(type(n) is int for n in stride):
        raise _Unknown
    if (
        value.is_conj()
        or value.is_neg()
        or value.layout is not torch.strided
        or type(value) not in (FakeTensor, torch.Tensor)
    ):
        raise _Unknown
    return shape, stride, offset, value.dtype, value.device, value.requires_grad


def _recipe(value, inputs, device, fresh):
    """How to make a result again. `device`: that of results which are meta tensors. `fresh`: the storages that this
    result made."""
    if isinstance(value, (list, tuple)):
        return type(value), [_recipe(v, inputs, device, fresh) for v in value]
    if value is None:
        return None
    if not isinstance(value, torch.Tensor):
        raise _Unknown
    for index, given in enumerate(inputs):
        if value is given:
            return index
    shape, stride, offset, dtype, own, requires_grad = _tensor_key(value)
    if requires_grad:
        raise _Unknown
    device = device or own
    storage = value.untyped_storage()
    owner = None
    for index, given in enumerate(inputs):
        if given.untyped_storage()._cdata == storage._cdata:
            owner = index
            break
    if owner is None:
        if storage._cdata in fresh or offset != 0:
            raise _Unknown
        fresh.append(storage._cdata)
        if (
            storage.nbytes()
            != torch.empty_strided(shape, stride, dtype=dtype, device="meta").untyped_storage().nbytes()
        ):
            raise _Unknown
    return shape, stride, offset, dtype, device, owner


def _make(mode, recipe, inputs):
    if recipe is None:
        return None
    if type(recipe) is int:
        return inputs[recipe]
    if len(recipe) == 2:
        kind, parts = recipe
        made = [_make(mode, part, inputs) for part in parts]
        return made if kind is list else tuple(made)
    shape, stride, offset, dtype, device, owner = recipe
    storage = None if owner is None else inputs[owner].untyped_storage()
    return tensor(mode, shape, stride, dtype, device, offset=offset, storage=storage)
