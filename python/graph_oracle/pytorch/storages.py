"""What memory the nodes of an exchange graph show, read and write at run time.

The facts come from the operators' schemas (the document's `ops`, else this torch's). A view, an in-place result and a
wait are the memory of what they come from; a collective reads its inputs and writes its result until its wait. Where a
schema does not tell, the graph is refused: nothing is guessed.
"""

import math
import re

from . import targets
from .errors import Refused

WAIT = "_c10d_functional.wait_tensor.default"
# Calls that start communication which another node waits for.
LAUNCHES = re.compile(
    r"_c10d_functional\.(all_reduce|all_reduce_coalesced|all_gather_into_tensor|all_gather_into_tensor_coalesced|"
    r"reduce_scatter_tensor|reduce_scatter_tensor_coalesced|all_to_all_single|broadcast|all_gather_into_tensor_out|"
    r"reduce_scatter_tensor_out)_?\.default$"
)
# Communication that is over when the call returns.
SYNCHRONOUS = ("c10d.barrier.default", "_dtensor.shard_dim_alltoall.default")
_POINT_TO_POINT = re.compile(r"_c10d_functional\.(isend|irecv|batch_p2p_ops)\.")
# Views by schema that are copies of some inputs.
_MAY_COPY = re.compile(
    r"aten\.(reshape|contiguous|to|flatten|ravel|unflatten|_reshape_copy|resolve_conj|resolve_neg|matrix_H|expand_as)\."
)
# Their schemas leave out that they return what they write.
_RETURN_WRITTEN = {"fsdp.all_gather_copy_in.default": 1}
RESIZE = "inductor.resize_storage_bytes_.default"
_DRAWS = re.compile(
    r"aten\.(rand|randn|randint|rand_like|randn_like|randint_like|randperm|bernoulli|native_dropout|normal|uniform|"
    r"multinomial|exponential|geometric|log_normal|cauchy|random|poisson|rrelu_with_noise|"
    r"_scaled_dot_product_\w+_attention)_?\."
)
_GEMM = re.compile(
    r"aten\.(mm|bmm|addmm|baddbmm|addbmm|convolution|linear|matmul|_scaled_mm|_scaled_dot_product_\w+)\."
)
_BYTES = {
    "bool": 1,
    "uint8": 1,
    "int8": 1,
    "int16": 2,
    "uint16": 2,
    "float16": 2,
    "bfloat16": 2,
    "int32": 4,
    "uint32": 4,
    "float32": 4,
    "int64": 8,
    "uint64": 8,
    "float64": 8,
    "complex32": 4,
    "complex64": 8,
    "complex128": 16,
}


class Storage:
    """Memory: the node (and the place in its result) that makes it, its bytes and device."""

    def __init__(self, index, by, place, size, device, external):
        self.index, self.by, self.place = index, by, place
        self.bytes, self.device, self.external = size, device, external
        # Whether it is resized on the way.
        self.resized = False


class Call:
    """A node and what it does to memory. All lists hold storages; `shows` has one entry for each tensor it returns."""

    def __init__(self, entry):
        self.entry, self.name, self.op, self.target = entry, entry["name"], entry["op"], entry.get("target")
        self.inputs, self.after = [], list(entry.get("after") or ())
        self.shows, self.writes, self.fresh = [], [], []
        # Of a wait: what its collective reads, and the launch.
        self.releases, self.launch = [], None
        self.is_launch = bool(self.target and LAUNCHES.match(self.target))
        self.is_wait = self.target == WAIT
        self.is_synchronous = self.target in SYNCHRONOUS
        self.draws = bool(self.target and _DRAWS.match(self.target))
        self.effect = False
        self.is_gemm = bool(self.target and _GEMM.match(self.target))
        self.is_tuple = isinstance(entry.get("out"), list)


class Storages:
    """`calls`: every node in list order; `named`: the same by name; `all`: the storages."""

    def __init__(self, document):
        self.document = document
        self.all, self.calls, self.named = [], [], {}
        self.recorded = {}
        facts = document.get("ops") or {}
        for entry in document["nodes"]:
            call = Call(entry)
            if call.name in self.named:
                raise Refused(f"two nodes are called {call.name}")
            for name in references(entry):
                if name not in self.named:
                    raise Refused(f"{call.name} takes {name}, which is no earlier node")
                if self.named[name] not in call.inputs:
                    call.inputs.append(self.named[name])
            for name in call.after:
                if name not in self.named:
                    raise Refused(f"{call.name} comes after {name}, which is no earlier node")
            if call.op in ("placeholder", "get_attr"):
                self.input(call)
            elif call.op == "call_function":
                self.call(call, facts.get(call.target))
            elif call.op != "output":
                raise Refused(f"{call.name} is a {call.op}")
            self.calls.append(call)
            self.named[call.name] = call

    def fresh(self, call, place, out):
        external = call.op != "call_function"
        number = out.get("storage") if external else None
        if number is not None and number in self.recorded:
            storage = self.recorded[number]
        else:
            storage = Storage(len(self.all), call, place, size_of(call.name, out), out["device"], external)
            self.all.append(storage)
            call.fresh.append(storage)
            if number is not None:
                self.recorded[number] = storage
        call.shows.append(storage)

    def input(self, call):
        for place, out in enumerate(tensors(call.entry)):
            self.fresh(call, place, out)

    def call(self, call, facts):
        entry, target = call.entry, call.target
        results = tensors(entry)
        if _POINT_TO_POINT.match(target):
            raise Refused(f"{call.name} is a message between ranks")
        if _MAY_COPY.match(target):
            self.recorded_view(call, results)
            return
        if target == "operator.getitem":
            source, index = self.argument(entry, 0), (entry.get("args") or [None, None])[1]
            if source is None or type(index) is not int:
                raise Refused(f"{call.name} takes an element that is not known")
            call.shows = self.element(source, index)
            return
        if target == RESIZE:
            source = self.argument(entry, 0)
            for storage in source.shows if source else ():
                storage.resized = True
                call.writes.append(storage)
            call.effect = True
            return
        if call.is_wait:
            source = self.argument(entry, 0)
            if source is None:
                raise Refused(f"{call.name} waits for nothing")
            call.shows = list(source.shows)
            launch = source.launch if source.is_wait or not source.is_launch else source
            call.launch = launch
            if launch is not None:
                call.writes = list(source.shows)
                call.releases = [s for i in launch.inputs for s in i.shows if s not in source.shows]
            return
        if facts is None:
            try:
                facts = targets.facts(targets.resolve(target))
            except Refused:
                facts = {}
        if facts.get("kind") == "higher_order":
            raise Refused(f"{call.name} is a higher-order operator")
        schema = facts.get("args")
        if schema is None:
            if target.startswith("operator.") or target.startswith("torch."):
                return
            # An operator that nobody knows: something that is done, and whose result is its own.
            call.effect = call.draws = True
            call.writes = [s for i in call.inputs for s in i.shows]
            for place, out in enumerate(results):
                self.fresh(call, place, out)
            return
        bound = self.bind(entry, schema)
        mutated = list(facts.get("mutated_args") or ())
        if target in _RETURN_WRITTEN:
            mutated.append(_RETURN_WRITTEN[target])
        for position in mutated:
            for source in bound.get(position, ()):
                call.writes += [s for s in source.shows if s not in call.writes]
        call.effect = not results and not call.writes
        if call.is_synchronous:
            call.effect = False
        aliases = {}
        for result, position in facts.get("ret_aliases_arg") or ():
            aliases.setdefault(result, []).append(position)
        if target in _RETURN_WRITTEN:
            aliases = {0: [_RETURN_WRITTEN[target]], 1: [_RETURN_WRITTEN[target]]}
        returns = facts.get("returns") or []
        for place, out in enumerate(results):
            # A list of tensors is one result of the schema.
            positions = aliases.get(0 if len(returns) == 1 else place)
            if not positions:
                self.fresh(call, place, out)
                continue
            sources = [s for position in positions for s in bound.get(position, ())]
            shown = [storage for source in sources for storage in source.shows]
            if len(returns) == 1 and len(sources) == len(results) > 1:
                shown = sources[place].shows
            if len(set(map(id, shown))) != 1:
                raise Refused(f"it is not known whose memory {call.name} ({target}) shows")
            call.shows.append(shown[0])

    def recorded_view(self, call, results):
        """A call that is a view of some inputs and a copy of others: what was recorded tells which."""
        source = self.argument(call.entry, 0)
        before = tensors(source.entry) if source else []
        numbers = [out.get("storage") for out in [*before, *results]]
        if len(before) != 1 or len(results) != 1 or None in numbers:
            raise Refused(f"{call.name} ({call.target}) may be a view or a copy")
        if numbers[0] == numbers[1]:
            call.shows = list(source.shows)
        else:
            self.fresh(call, 0, results[0])

    def argument(self, entry, position):
        args = entry.get("args") or []
        found = args[position] if position < len(args) else None
        return self.named.get(found.get("ref")) if isinstance(found, dict) else None

    def bind(self, entry, schema):
        """The nodes in each argument, by position in the schema."""
        args, kwargs = entry.get("args") or [], entry.get("kwargs") or {}
        bound = {}
        for position, argument in enumerate(schema):
            if position < len(args) and not argument.get("kwarg_only"):
                value = args[position]
            elif argument["name"] in kwargs:
                value = kwargs[argument["name"]]
            else:
                continue
            bound[position] = [self.named[name] for name in _references(value)]
        return bound

    def element(self, source, index):
        outs = source.entry.get("out")
        if not isinstance(outs, list) or not -len(outs) <= index < len(outs):
            raise Refused(f"{source.name} has no element {index}")
        index %= len(outs)
        before = sum(len(_tensors(out)) for out in outs[:index])
        return source.shows[before : before + len(_tensors(outs[index]))]

    def counts(self, storage):
        """Whether a storage counts: accelerators' memory does; the CPU's where the graph uses nothing else."""
        if not hasattr(self, "_all"):
            self._all = all(s.device.split(":")[0] in ("cpu", "meta") for s in self.all)
        return self._all or storage.device.split(":")[0] not in ("cpu", "meta")


def references(entry):
    """Names of the nodes in a node's arguments."""
    found = []
    for value in [*(entry.get("args") or ()), *(entry.get("kwargs") or {}).values()]:
        found += _references(value)
    return found


def _references(value):
    if isinstance(value, dict):
        if "ref" in value:
            return [value["ref"]]
        if "dict" in value:
            return [name for pair in value["dict"] for part in pair for name in _references(part)]
        if "slice" in value:
            return [name for part in value["slice"] for name in _references(part)]
        return []
    if isinstance(value, list):
        return [name for part in value for name in _references(part)]
    return []


def tensors(entry):
    """The tensors that a node returns, in order."""
    return _tensors(entry.get("out"))


def _tensors(out):
    if isinstance(out, list):
        return [tensor for part in out for tensor in _tensors(part)]
    if isinstance(out, dict):
        if "dict" in out and "t" not in out:
            return [tensor for _, part in out["dict"] for tensor in _tensors(part)]
        return [out] if out.get("t") == "tensor" else []
    return []


def size_of(name, out):
    """Bytes of the storage of a tensor."""
    recorded = out.get("storage_bytes")
    if type(recorded) is int:
        return recorded
    shape, stride = [_hint(name, n) for n in out["shape"]], [_hint(name, n) for n in out["stride"]]
    item = _BYTES.get(out["dtype"], 1 if out["dtype"].startswith("float8") else None)
    if item is None:
        raise Refused(f"{name} is of {out['dtype']}, of unknown size")
    if recorded is not None:
        return _hint(name, recorded)
    if math.prod(shape) == 0:
        return 0
    return item * (1 + _hint(name, out.get("offset", 0)) + sum((n - 1) * s for n, s in zip(shape, stride)))


def _hint(name, size):
    if isinstance(size, dict):
        size = size.get("hint")
    if type(size) is not int:
        raise Refused(f"{name} has a size that is not known")
    return size
