"""`python -m graph_oracle.pytorch worker`: PyTorch's passes over the worker protocol (docs/protocol.md).

One request at a time, each answered once. Standard output belongs to the protocol: it is moved to another descriptor
at the start, and what torch, C++ or a library prints goes to standard error.
"""

import gc
import json
import os
import sys
import traceback
import warnings

PROTOCOL = "graph-oracle-worker/1"
# Requests after which the driver is asked to start a new worker; README.md has the growth that was measured.
RECYCLE_AFTER = 20000


def add_arguments(parser):
    parser.add_argument("--only", metavar="PASSES", help="serve these passes and no others, separated by commas")
    parser.add_argument(
        "--function",
        metavar="FILE.py:FUNCTION",
        help="serve this function (or MODULE:FUNCTION) in place of PyTorch's passes",
    )
    parser.add_argument(
        "--functional",
        action="store_true",
        help="refuse graphs that write in place, but for copies into inputs at the end: what Inductor's passes get",
    )


def main(arguments):
    channel = Channel.take()
    warnings.filterwarnings("ignore")
    import torch

    from . import passes

    torch.set_num_threads(1)
    if arguments.function:
        return serve_function(channel, arguments, torch.__version__)
    offered = passes.load()
    settle()
    if arguments.only:
        wanted = arguments.only.split(",")
        unknown = [name for name in wanted if name not in offered]
        if unknown:
            print(f"graph-oracle: no pass {unknown[0]}; there are {', '.join(offered)}", file=sys.stderr)
            return 2
        offered = {name: offered[name] for name in wanted}
    serve(Worker(channel, offered, torch.__version__, arguments.functional))


def serve_function(channel, arguments, version):
    """The user's own function as the implementation."""
    from . import function

    try:
        found = function.load(arguments.function)
        offered = function.passes(found, arguments.only)
    except function.BadFunction as bad:
        print(f"graph-oracle: {bad}", file=sys.stderr)
        return 2
    settle()
    # Another text of the file is another version.
    serve(Worker(channel, offered, version.split("+")[0] + found.digest, arguments.functional, found))


def settle():
    """What was loaded stays: collecting garbage need not look at it again."""
    gc.collect()
    gc.freeze()
    # A request makes some hundred thousand objects, most of which end with it: looking for garbage less often takes 6%
    # off.
    gc.set_threshold(50_000, 20, 100)


def serve(worker):
    worker.serve()
    # Nothing is left to be saved; taking torch apart takes time, and its libraries complain about it.
    sys.stderr.flush()
    os._exit(0)


class Channel:
    """The protocol's own descriptors: lines in, lines out."""

    def __init__(self, read, write):
        self.read, self.write = read, write

    @staticmethod
    def take():
        """Takes standard input and output; from then on, writing to standard output is writing to standard error."""
        sys.stdout.flush()
        write = os.fdopen(os.dup(1), "wb", buffering=0)
        os.dup2(2, 1)
        sys.stdout = sys.stderr
        read = os.fdopen(os.dup(0), "rb")
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        return Channel(read, write)

    def lines(self):
        return iter(self.read.readline, b"")

    def send(self, message):
        # ASCII: names may hold anything, a lone surrogate too.
        data = memoryview(json.dumps(message, separators=(",", ":"), allow_nan=False).encode() + b"\n")
        while data:
            data = data[self.write.write(data) :]


class Worker:
    def __init__(self, channel, offered, version, functional=False, function=None):
        self.channel, self.offered, self.version = channel, offered, version
        # A user's function, where the passes are not PyTorch's.
        self.function = function
        self.functional = functional
        self.served = 0

    def serve(self):
        for line in self.channel.lines():
            if not line.strip():
                continue
            try:
                answer = self.answer(line)
            except BrokenPipeError:
                return
            if answer is None:
                return
            self.channel.send(answer)

    def answer(self, line):
        """The answer to one message; None to end."""
        try:
            message = json.loads(line)
            if not isinstance(message, dict):
                raise ValueError("a message is an object")
        except (ValueError, RecursionError) as error:
            return fault(None, "BadMessage", f"the line is no message: {error}")
        kind, number = message.get("type"), message.get("id")
        if kind == "hello":
            return self.hello(message)
        if kind == "bye":
            return None
        if kind == "run":
            return self.run(message, number)
        if kind == "repro":
            return self.repro(message, number)
        return fault(number, "BadMessage", f"unknown type {kind!r}")

    def hello(self, message):
        if message.get("protocol") != PROTOCOL:
            return fault(None, "BadMessage", f"this worker speaks {PROTOCOL}, not {message.get('protocol')!r}")
        return {
            "type": "hello",
            "protocol": PROTOCOL,
            "name": self.function.name if self.function else "pytorch",
            "version": self.version,
            "bakes_rank": True,
            "recycle_after": RECYCLE_AFTER,
            "repro": True,
            "passes": {name: self.capabilities(found) for name, found in self.offered.items()},
        }

    def capabilities(self, found):
        if not self.functional or not found.rebuilds:
            return found.capabilities
        return {**found.capabilities, "without": [*found.capabilities.get("without", ()), "writes"]}

    def run(self, message, number):
        from .caches import trim
        from .errors import PassFailed, Refused
        from .rebuild import rebuild

        if type(number) is not int:
            return fault(None, "BadMessage", "a run has a number as id")
        found = self.offered.get(message.get("pass"))
        if found is None:
            return fault(number, "BadMessage", f"there is no pass {message.get('pass')!r} here")
        graph, options, rank = message.get("graph"), message.get("options") or {}, message.get("rank", 0)
        if not isinstance(graph, dict) or not isinstance(graph.get("nodes"), list):
            return fault(number, "BadMessage", "a run has a graph with nodes")
        if not isinstance(options, dict) or type(rank) is not int:
            return fault(number, "BadMessage", "options are an object, and the rank is a number")

        def progress(phase):
            self.channel.send({"type": "progress", "id": number, "phase": phase})

        self.served += 1
        try:
            progress("rebuild")
            try:
                how = {"request": message, "progress": progress}
                if found.rebuilds:
                    rebuilt = rebuild(graph, rank, values=found.values, after=found.after, **how)
                else:
                    rebuilt = unbuilt(graph, rank, **how)
            except Refused:
                raise
            except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
                return fault(number, "BadMessage", f"the graph is no exchange JSON: {describe(error)}", error)
            if self.functional and found.rebuilds:
                demand_functional(rebuilt.graph)
            outcome = found.run(rebuilt, options)
        except Refused as refused:
            answer = {"type": "refused", "id": number, "reason": refused.reason}
            if refused.left_behind is not None:
                answer["left_behind"] = refused.left_behind
            return answer
        except PassFailed as failed:
            answer = fault(number, type(failed.cause).__name__, str(failed.cause), failed.cause)
            if failed.left_behind is not None:
                answer["left_behind"] = failed.left_behind
            return answer
        except Exception as error:
            return fault(number, "AdapterFault", describe(error), error)
        finally:
            rebuilt = None
            if self.served % 100 == 0:
                trim()
        return {"type": "outcome", "id": number, **outcome}

    def repro(self, message, number):
        """A script that shows the failure by itself (repro.py): as one file, and as a short one beside its tools."""
        from . import repro
        from .errors import Refused

        if type(number) is not int or not isinstance(message.get("graph"), dict):
            return fault(number if type(number) is int else None, "BadMessage", "a repro has an id and a graph")
        try:
            script = repro.write(
                message["graph"],
                message.get("pass"),
                message.get("options") or {},
                message.get("rank", 0),
                message.get("rule") or "",
                message.get("title") or "",
                self.function,
            )
        except Refused as refused:
            return {"type": "refused", "id": number, "reason": refused.reason}
        except Exception as error:
            return fault(number, "AdapterFault", describe(error), error)
        files = {"repro.py": script, "replay.py": repro.tools()}
        return {"type": "repro", "id": number, "python": repro.whole(script), "files": files}


def demand_functional(graph):
    """Refuses a graph with an operator that writes, unless it is one of the copies into inputs with which it ends."""
    from . import ordering
    from .errors import Refused

    ends = True
    for node in reversed(graph.nodes):
        call = ordering.carried(node) or node
        schema = getattr(call.target, "_schema", None)
        if node.op != "call_function":
            continue
        is_copy = schema is not None and schema.name == "aten::copy_" and call.args[0].op == "placeholder"
        ends = ends and is_copy
        if schema is not None and schema.is_mutable and not ends:
            raise Refused(f"{schema.name} writes in place, and only functional graphs were asked for")


def unbuilt(graph, rank, *, request, progress):
    from .rebuild import Rebuilt

    return Rebuilt(graph, rank, request, progress)


def describe(error):
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0][:300] if text else ''}"


def fault(number, kind, text, error=None):
    answer = {"type": "error", "id": number, "error": kind, "message": text[:4000]}
    if error is not None:
        answer["traceback"] = "".join(traceback.format_exception(error))[-20000:]
    return answer
