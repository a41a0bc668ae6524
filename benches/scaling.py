"""How time grows with a small file: each subcommand on inputs that are large in one way, with n and with 4n.

    python benches/scaling.py [--binary target/release/graph-oracle] [--only WORDS] [--limit 60] [--divide 1]

Each line has a kind of input, a command, n, the processor time at n and at 4n, and the exponent: 1 where four times the
input takes four times the time, 2 where it takes sixteen times. An exponent above 1.2 is marked, where the larger run
takes longer than a third of a second; so are runs that are cut off at the limit, which is processor time too. What is
marked is measured once more, and the faster runs count. What the process takes for an empty graph is subtracted. The
exit status is 1 if anything is marked. Needs nothing but the program and Python.
"""

import argparse
import hashlib
import json
import math
import os
import pathlib
import re
import resource
import subprocess
import tempfile

PAIR = "world 2 ranks, groups dp = [0 1]\n"


def ranks(n):
    return f"world {n} ranks, groups dp = [{' '.join(map(str, range(n)))}]\n" + BODY


def pairs_of_ranks(n):
    groups = " | ".join(f"{2 * i} {2 * i + 1}" for i in range(n // 2))
    return f"world {n} ranks, groups dp = [{groups}]\n" + BODY


BODY = "x = input : f32[4]\ng = all_reduce(x, 'sum', dp)\nw = wait(g)\noutput w\n"


def groups(n):
    names = ", ".join(f"g{i} = [0 1]" for i in range(n))
    lines = [f"a{i} = all_reduce(x, 'sum', g{i})\nw{i} = wait(a{i})" for i in range(n)]
    return f"world 2 ranks, groups {names}\nx = input : f32[4]\n" + "\n".join(lines) + f"\noutput w{n - 1}\n"


def in_flight(n):
    launches = "\n".join(f"a{i} = all_gather(x, dp) : f32[8]" for i in range(n))
    waits = "\n".join(f"w{i} = wait(a{i}) : f32[8]" for i in range(n))
    return f"{PAIR}x = input : f32[4]\n{launches}\n{waits}\noutput w{n - 1}\n"


def one_after_another(n):
    lines = "\n".join(f"a{i} = all_reduce(x, 'sum', dp)\nw{i} = wait(a{i})" for i in range(n))
    return f"{PAIR}x = input : f32[4]\n{lines}\noutput w{n - 1}\n"


def chain(n):
    lines = "\n".join(f"a{i} = relu({'x' if i == 0 else f'a{i - 1}'})" for i in range(n))
    return f"{PAIR}x = input : f32[4]\n{lines}\noutput a{n - 1}\n"


def users(n):
    lines = "\n".join(f"a{i} = relu(x)" for i in range(n))
    return f"{PAIR}x = input : f32[4]\n{lines}\noutput a{n - 1}\n"


def outputs(n):
    lines = "\n".join(f"a{i} = relu(x)" for i in range(n))
    return f"{PAIR}x = input : f32[4]\n{lines}\noutput ({', '.join(f'a{i}' for i in range(n))})\n"


def inputs(n):
    lines = "\n".join(f"x{i} = input : f32[4]" for i in range(n))
    return f"{PAIR}{lines}\na = relu(x0)\noutput a\n"


def views(n):
    lines = "\n".join(f"v{i} = view(a, [2, 2])" for i in range(n))
    return f"{PAIR}x = input : f32[4]\na = relu(x)\n{lines}\noutput v{n - 1}\n"


def returned_views(n):
    lines = "\n".join(f"v{i} = view(a, [2, 2])" for i in range(n))
    names = ", ".join(f"v{i}" for i in range(n))
    return f"{PAIR}x = input : f32[4]\na = relu(x)\n{lines}\noutput ({names})\n"


def writes_through_views(n):
    lines = "\n".join(f"v{i} = view(x, [2, 2])\nw{i} = add_(v{i}, 1)" for i in range(n))
    return f"{PAIR}x = input : f32[4]\n{lines}\noutput x\n"


def gathers(n):
    inputs = "\n".join(f"x{i} = input : f32[4]" for i in range(n))
    lines = "\n".join(f"a{i} = all_gather(x{i}, dp) : f32[8]\nw{i} = wait(a{i}) : f32[8]" for i in range(n))
    names = ", ".join(f"w{i}" for i in range(n))
    return f"{PAIR}{inputs}\n{lines}\noutput ({names})\n"


def dead_gathers(n):
    return gathers(n).replace(f"output ({names(n, 'w')})", "output x0")


def dead_gathers_of_one(n):
    return graph(lines(n, "a# = all_gather(x, dp) : f32[8]\nw# = wait(a#) : f32[8]") + "\noutput x")


def dead_gathers_of_nothing(n):
    return dead_gathers(n).replace("f32[4]", "f32[0]").replace("f32[8]", "f32[0]")


def dead_gathers_of_gathers(n):
    of = "a# = all_gather(x, dp) : f32[8]\nw# = wait(a#) : f32[8]\nb# = all_gather(w#, dp) : f32[16]\nv# = wait(b#) : f32[16]"
    return graph(lines(n, of) + "\noutput x")


def accumulated(n):
    of = "a# = all_reduce(x, 'sum', dp)\nw# = wait(a#)\ns# = add(s<, w#)"
    return graph(lines(n, of).replace("s-1", "x") + f"\noutput s{n - 1}")


def contradicting_gathers(n):
    return gathers(n).replace("dp) : f32[8]", "dp) : f32[6]").replace(") : f32[8]", ") : f32[6]")


def writes(n):
    lines = "\n".join(f"v{i} = add_(a, {i})" for i in range(n))
    return f"{PAIR}x = input : f32[4]\na = relu(x)\n{lines}\noutput a\n"


def reads_between_writes(n):
    lines = "\n".join(f"r{i} = relu(a)" for i in range(n))
    return f"{PAIR}x = input : f32[4]\na = relu(x)\n{lines}\nw = add_(a, 1)\noutput (a, r{n - 1})\n"


def waits(n):
    lines = "\n".join(f"w{i} = wait(a) : f32[8]" for i in range(n))
    return f"{PAIR}x = input : f32[4]\na = all_gather(x, dp) : f32[8]\n{lines}\noutput w{n - 1}\n"


def packed(n):
    lines = "\n".join(f"a{i} = relu(x)" for i in range(n))
    names = ", ".join(f"a{i}" for i in range(n))
    return f"{PAIR}x = input : f32[4]\n{lines}\nc = cat([{names}])\noutput c\n"


def ordering(n):
    lines = "\n".join(f"a{i} = relu(x){f' after a{i - 1}' if i else ''}" for i in range(n))
    return f"{PAIR}x = input : f32[4]\n{lines}\noutput a{n - 1}\n"


def messages(n):
    lines = "\n".join(f"s{i} = send(x, 1, 0, dp)\nt{i} = wait(s{i})" for i in range(n))
    return f"{PAIR}x = input : f32[4]\n{lines}\noutput x\n"


def lines(n, line):
    """`line` n times, with the number of each in the place of every `#`, and of the one before in that of every `<`."""
    return "\n".join(line.replace("#", str(i)).replace("<", str(i - 1)) for i in range(n))


def names(n, prefix):
    return ", ".join(f"{prefix}{i}" for i in range(n))


def graph(body, head=PAIR):
    """A graph of an input `x` and `body`; without an output of its own, it returns the input."""
    return f"{head}x = input : f32[4]\n{body}\n" + ("" if "\noutput " in body else "output x\n")


def mutations(n):
    return graph(lines(n, "a# = add_(x, 1)"))


def edges_into(n):
    return graph(lines(n, "a# = neg(x)") + f"\nz = abs(x) after {names(n, 'a')}\noutput (z, a0)")


def edges_from(n):
    return graph("z = abs(x)\n" + lines(n, "a# = neg(x) after z") + f"\noutput (z, a{n - 1})")


def chain_of_views(n):
    return graph("a = relu(x)\nv0 = view(a, [4])\n" + lines(n, "v# = view(v<, [4])")[len("v0 = view(v-1, [4])\n") :]
                 + f"\noutput v{n - 1}")


def slices(n):
    cut = "\n".join(f"s{i} = slice(a, 0, {4 * i}, {4 * i + 4})" for i in range(n))
    return f"{PAIR}x = input : f32[{4 * n}]\na = relu(x)\n{cut}\noutput ({names(n, 's')})\n"


def writes_into_slices(n):
    cut = "\n".join(f"s{i} = slice(a, 0, {4 * i}, {4 * i + 4})\nw{i} = add_(s{i}, 1)" for i in range(n))
    return f"{PAIR}x = input : f32[{4 * n}]\na = relu(x)\n{cut}\noutput a\n"


def pieces(n):
    n = min(n, 1 << 16)
    types = ", ".join(f"f32[1]{f' offset {i}' if i else ''}" for i in range(n))
    return f"{PAIR}x = input : f32[{n}]\ns = split(x, 1) : ({types})\n" + lines(n, "p# = s[#]") + "\noutput p0\n"


def symbolic_pieces(n):
    n = min(n, 1 << 15)
    types = ", ".join(f"f32[s0, 2] strides [{2 * n}, 1]{f' offset {2 * i}' if i else ''}" for i in range(n))
    return (f"{PAIR}symbol s0 = 4\nx = input : f32[s0, {2 * n}] strides [{2 * n}, 1]\n"
            f"s = split(x, 2, -1) : ({types})\np = s[{n - 1}]\noutput p\n")


def faults(n):
    return graph(lines(n, "n# = neg(x)\nx# = input : f32[4]") + "\noutput n0")


def dangling(n):
    return graph(lines(n, "a# = neg(y#) : f32[4]"))


def wrong_shapes(n):
    return graph(lines(n, "a# = neg(x) : f32[5]"))


def tags(n):
    tagged = "a# = neg(x) : f32[4] {recompute: MUST_SAVE, seq_nr: #, ac_graph_id: 1}"
    return graph(lines(n, tagged) + f"\noutput a{n - 1}")


def long_prefix(n):
    prefix = "a_" * 100
    return graph(lines(n, f"{prefix}# = neg(x)") + f"\noutput {prefix}{n - 1}")


def numbered_names(n):
    return graph("a = neg(x)\n" + "\n".join(f"a_{i} = neg(a)" for i in range(1, n)) + f"\noutput a_{n - 1}")


def symbols(n):
    head = "".join(f"symbol s{i} = 4\n" for i in range(n))
    return f"{PAIR}{head}{sized(n)}"


def sized(n):
    return lines(n, "x# = input : f32[s#]") + "\n" + lines(n, "a# = neg(x#)") + f"\noutput a{n - 1}\n"


def guards(n):
    head = "".join(f'symbol s{i} = 4\n' for i in range(n)) + "".join(f'guard "Eq(s{i}, s{i + 1})"\n' for i in range(n - 1))
    return f"{PAIR}{head}{sized(n)}"


def bodies(n):
    of = lines(n, "body r#\n  p = input : f32[4]\n  q = relu(p) : f32[4]\n  output (q)\nend")
    calls = lines(n, 'm# = attr r# : other(GraphModule)\nc# = higher_order.invoke_subgraph(m#, "r#", x) : (f32[4])\n'
                     "y# = c#[0] : f32[4]")
    return graph(f"{calls}\noutput (y{n - 1})\n{of}")


def calls(n):
    of = "body r\n  p = input : f32[4]\n  q = relu(p) : f32[4]\n  output (q)\nend"
    call = 'c# = higher_order.invoke_subgraph(m, "r", x) : (f32[4])\ny# = c#[0] : f32[4]'
    return graph(f"m = attr r : other(GraphModule)\n{lines(n, call)}\noutput (y{n - 1})\n{of}")


def streams(n):
    of = """e# = streams.record_event.default(#, 0)
i# = streams.wait_event.default(#, 1)
b# = neg(x) : f32[4] {custom: '{"stream": 1}'}
j# = streams.wait_stream.default(0, 1)"""
    return graph(lines(n, of) + f"\noutput b{n - 1}")


def draws(n):
    return graph(lines(n, "a# = rand_like(x)") + f"\noutput ({names(n, 'a')})")


def dead_draws(n):
    return graph(lines(n, "a# = rand_like(x)"))


def equal_calls(n):
    return graph(lines(n, "a# = mul(x, x)\nb# = neg(a#)") + f"\noutput ({names(n, 'b')})")


def claims(n):
    of = "life x 16\n" + lines(n, "life a# 16")
    return graph(f"{lines(n, 'a# = neg(x)')}\noutput ({names(n, 'a')})\n--- claim\n{of}", PAIR + "pass memory\n")


def places(n):
    of = "\n".join(f"offset a{i} {16 * i}" for i in range(n))
    return graph(f"{lines(n, 'a# = neg(x)')}\noutput ({names(n, 'a')})\n--- claim\n{of}", PAIR + "pass memory\n")


def joint(n):
    forward = lines(n, "a# = sin(a<) : f32[4] {partitioner_tag: is_forward}").replace("a-1", "primals_1")
    backward = lines(n, "g# = mul(g<, a#) : f32[4] {partitioner_tag: is_backward}").replace("g-1", "tangents_1")
    return (f"graph joint joint\n{PAIR}pass partition num_fwd_outputs=1\nprimals_1 = input : f32[4]\n"
            f"tangents_1 = input : f32[4]\n{forward}\n{backward}\noutput (a{n - 1}, g{n - 1})\n")


def joint_of_many(n):
    return (f"graph joint joint\n{PAIR}pass partition num_fwd_outputs={n}\n{lines(n, 'primals_# = input : f32[4]')}\n"
            f"{lines(n, 'tangents_# = input : f32[4]')}\n{lines(n, 'a# = sin(primals_#)')}\n"
            f"{lines(n, 'g# = mul(tangents_#, a#)')}\noutput ({names(n, 'a')}, {names(n, 'g')})\n")


GRAPHS = {
    "ranks": (ranks, 50_000),
    "pairs_of_ranks": (pairs_of_ranks, 50_000),
    "groups": (groups, 4_000),
    "in_flight": (in_flight, 5_000),
    "one_after_another": (one_after_another, 5_000),
    "chain": (chain, 10_000),
    "users": (users, 10_000),
    "outputs": (outputs, 10_000),
    "inputs": (inputs, 10_000),
    "views": (views, 10_000),
    "returned_views": (returned_views, 10_000),
    "writes_through_views": (writes_through_views, 5_000),
    "gathers": (gathers, 5_000),
    "dead_gathers": (dead_gathers, 5_000),
    "dead_gathers_of_one": (dead_gathers_of_one, 5_000),
    "dead_gathers_of_nothing": (dead_gathers_of_nothing, 5_000),
    "dead_gathers_of_gathers": (dead_gathers_of_gathers, 5_000),
    "accumulated": (accumulated, 5_000),
    "contradicting_gathers": (contradicting_gathers, 5_000),
    "writes": (writes, 5_000),
    "reads_between_writes": (reads_between_writes, 5_000),
    "waits": (waits, 5_000),
    "packed": (packed, 5_000),
    "ordering": (ordering, 5_000),
    "messages": (messages, 5_000),
    "mutations": (mutations, 5_000),
    "edges_into": (edges_into, 25_000),
    "edges_from": (edges_from, 25_000),
    "chain_of_views": (chain_of_views, 10_000),
    "slices": (slices, 5_000),
    "writes_into_slices": (writes_into_slices, 5_000),
    "pieces": (pieces, 10_000),
    "symbolic_pieces": (symbolic_pieces, 8_000),
    "faults": (faults, 5_000),
    "dangling": (dangling, 5_000),
    "wrong_shapes": (wrong_shapes, 5_000),
    "tags": (tags, 5_000),
    "long_prefix": (long_prefix, 5_000),
    "numbered_names": (numbered_names, 5_000),
    "symbols": (symbols, 2_000),
    "guards": (guards, 2_000),
    "bodies": (bodies, 2_000),
    "calls": (calls, 5_000),
    "streams": (streams, 2_000),
    "draws": (draws, 5_000),
    "dead_draws": (dead_draws, 5_000),
    "equal_calls": (equal_calls, 5_000),
    "claims": (claims, 5_000),
    "places": (places, 5_000),
    "joint": (joint, 5_000),
    "joint_of_many": (joint_of_many, 5_000),
}

COMMANDS = {
    "show": ["show", "A", "--format", "text"],
    "convert": ["convert", "A", "OUT.json"],
    "check rewrite": ["check", "rewrite", "A", "B", "--values", "symbolic"],
    "check renamed": ["check", "rewrite", "A", "RENAMED", "--values", "symbolic"],
    "check wrong": ["check", "rewrite", "A", "WRONG", "--values", "symbolic"],
    "check executed": ["check", "rewrite", "A", "B", "--values", "execute"],
    "check page": ["check", "rewrite", "A", "B", "--values", "off", "--html", "OUT.html"],
    "check schedule": ["check", "schedule", "A", "B"],
    "check bucketing": ["check", "bucketing", "A", "B", "--values", "symbolic"],
    "check reference": ["check", "bucketing", "A", "--candidate", "reference"],
    "check repair": ["check", "repair", "A", "B", "--values", "symbolic"],
    "check memory": ["check", "memory", "A", "--candidate", "reference"],
    "simulate": ["simulate", "A"],
    "simulate 2": ["simulate", "A", "B"],
    "lifecycle": ["lifecycle", "--graph", "A"],
    "simulate page": ["simulate", "A", "--html", "OUT.html"],
    "run bucketing": ["run", "bucketing", "A", "-o", "OUT.graph"],
    "run schedule": ["run", "schedule", "A", "-o", "OUT.graph"],
    "smoke": ["smoke", "A"],
}

# Only graphs before a partition are judged as such.
PARTITION = {
    "check partition": ["check", "partition", "A", "--candidate", "reference", "--values", "symbolic"],
    "check min-cut": ["check", "partition", "A", "--candidate", "reference", "--method", "min-cut", "--values", "off"],
    "run partition": ["run", "partition", "A", "-o", "OUT"],
}


def renamed(text):
    """Every node but the inputs has another name."""
    made = {m.group(1) for m in re.finditer(r"^ *(\w+) = (?!input|attr)", text, re.M)}
    return re.sub(r"\w+", lambda m: "r_" + m.group() if m.group() in made else m.group(), text)


def wrong(text):
    """Every call is another one."""
    return re.sub(r" = (relu|neg|add_|sin|mul)\b", lambda m: {"relu": " = abs", "neg": " = abs", "add_": " = mul_",
                                                             "sin": " = cos", "mul": " = add"}[m.group(1)], text)


VARIANTS = {"A": str, "B": str, "RENAMED": renamed, "WRONG": wrong}


def alloc(name, size):
    return f'{{"event":"alloc","storage":"{name}","bytes":{size}}}'


def launch(name, reads=(), writes=()):
    def part(of):
        return ",".join(f'{{"storage":"{s}","range":[{a},{b}]}}' for s, a, b in of)

    return f'{{"event":"launch","flight":"{name}","reads":[{part(reads)}],"writes":[{part(writes)}]}}'


def flights_of_one_storage(n):
    yield alloc("x", 8)
    for i in range(n):
        yield launch(f"f{i}", [("x", 0, 8)])
        yield '{"event":"read","storage":"x","range":[0,8]}'
    for i in range(n):
        yield f'{{"event":"wait","flight":"f{i}"}}'


def flights_of_slices(n):
    yield alloc("x", 16 * n)
    for i in range(n):
        yield launch(f"f{i}", [("x", 16 * i, 16 * i + 8)])
        yield f'{{"event":"write","storage":"x","range":[{16 * i + 8},{16 * i + 16}]}}'
    for i in range(n):
        yield f'{{"event":"wait","flight":"f{i}"}}'


def nested_flights(n):
    yield alloc("x", 4 * n)
    for i in range(n):
        yield launch(f"f{i}", [("x", i, 2 * n - i)])
        yield f'{{"event":"write","storage":"x","range":[{2 * n + i},{2 * n + i + 1}]}}'
    for i in range(n):
        yield f'{{"event":"wait","flight":"f{i}"}}'


def frees_beside_flights(n):
    for i in range(n):
        yield alloc(f"x{i}", 8)
        yield alloc(f"y{i}", 8)
        yield launch(f"f{i}", [(f"x{i}", 0, 8)])
        yield f'{{"event":"free","storage":"y{i}"}}'
    for i in range(n):
        yield f'{{"event":"wait","flight":"f{i}"}}'


def one_wide_flight(n):
    yield alloc("x", 8 * n)
    yield launch("f", [("x", 8 * i, 8 * i + 8) for i in range(n)])
    for i in range(n):
        yield f'{{"event":"read","storage":"x","range":[{8 * i},{8 * i + 8}]}}'
    yield '{"event":"wait","flight":"f"}'


EVENTS = {
    "flights_of_one_storage": flights_of_one_storage,
    "flights_of_slices": flights_of_slices,
    "nested_flights": nested_flights,
    "frees_beside_flights": frees_beside_flights,
    "one_wide_flight": one_wide_flight,
}


def record(name, text):
    said = {"artifact": {"name": name, "encoding": "string"}, "rank": 0, "frame_id": 0, "frame_compile_id": 0,
            "attempt": 0, "has_payload": hashlib.md5(text.encode()).hexdigest()}
    indented = "".join(f"\t{line}\n" for line in text.split("\n"))
    return f"V1122 20:08:47.934000 8363 torch/x.py:1] {json.dumps(said)}\n{indented}"


def printed(body, result):
    head = 'class GraphModule(torch.nn.Module):\n    def forward(self, x: "f32[4][1]cuda:0"):\n'
    return f"{head}{body}\n        return ({result},)"


def log_of_nodes(n):
    body = lines(n, '        a#: "f32[4][1]cuda:0" = torch.ops.aten.neg.default(x)')
    text = printed(body, f"a{n - 1}")
    return record("before_a", text) + record("after_a", text.replace("a0", "b0"))


def log_of_passes(n):
    text = printed('        a: "f32[4][1]cuda:0" = torch.ops.aten.neg.default(x)', "a")
    return "".join(record(f"before_p{i}", text) + record(f"after_p{i}", text) for i in range(n))


def log_of_groups(n):
    calls = "\n".join(
        f'        a{i}: "f32[8][1]cuda:0" = torch.ops._c10d_functional.all_gather_into_tensor.default(x, 2, '
        f"'{hashlib.sha1(str(i).encode()).hexdigest()}')" for i in range(n)
    )
    text = printed(calls, f"a{n - 1}")
    return record("before_a", text) + record("after_a", text)


def log_of_frames(n):
    text = printed('        a: "f32[4][1]cuda:0" = torch.ops.aten.neg.default(x)', "a")
    pair = record("before_a", text) + record("after_a", text)
    return "".join(pair.replace('"frame_id": 0', f'"frame_id": {i}') for i in range(n))


LOGS = {
    "log_of_nodes": log_of_nodes,
    "log_of_passes": log_of_passes,
    "log_of_frames": log_of_frames,
    "log_of_groups": log_of_groups,
}


def seconds(command, limit):
    def within_limit():
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(limit), math.ceil(limit)))

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, preexec_fn=within_limit)
    if done.returncode < 0:
        return limit, "cut off"
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    first = done.stderr.decode(errors="replace").strip().split("\n")[0][:60]
    return took, first if done.returncode not in (0, 1, 3) else ""


def measured(n, at, limit):
    """Processor seconds at n and at 4n, and what was wrong with a run."""
    empty, _ = seconds(at(1), limit)
    small, why = seconds(at(n), limit)
    large, later = (limit, "cut off") if why == "cut off" else seconds(at(4 * n), limit)
    return max(small - empty, 0.002), max(large - empty, 0.002), why or later


def compare(what, command, n, at, limit):
    def steep():
        return why == "cut off" or (math.log(large / small, 4) > 1.2 and large > 0.33)

    small, large, why = measured(n, at, limit)
    if steep() and why != "cut off":
        again = measured(n, at, limit)
        small, large, why = min(small, again[0]), min(large, again[1]), why or again[2]
    mark = "  <<<" if steep() else ""
    exponent = math.log(large / small, 4)
    print(f"{what:24} {command:16} {n:7} {small:8.3f} {large:8.3f} {exponent:6.2f}{mark} {why}", flush=True)
    return steep()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--binary", default="target/release/graph-oracle")
    parser.add_argument("--only", nargs="*", help="kinds of inputs and commands of these names")
    parser.add_argument("--limit", type=float, default=60, help="processor seconds for a run")
    parser.add_argument("--divide", type=int, default=1, help="measure at so many times less than n")
    options = parser.parse_args()
    binary = str(pathlib.Path(options.binary).resolve())
    marked = 0
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)

        def wanted(*words):
            return not options.only or any(word in options.only for word in words)

        for what, (text, n) in GRAPHS.items():
            commands = COMMANDS | PARTITION if what.startswith("joint") else COMMANDS
            for name, words in commands.items():
                if not wanted(what, name):
                    continue

                def at(n):
                    files = {"OUT": str(folder / "out")}
                    for variant, change in VARIANTS.items():
                        path = folder / f"{what}{n}{variant}.graph"
                        if variant in words and not path.exists():
                            path.write_text(change(text(max(n, 2))))
                        files[variant] = str(path)
                    return [binary, *(files.get(w) or w.replace("OUT", files["OUT"]) for w in words)]

                marked += compare(what, name, n // options.divide, at, options.limit)
            for path in folder.glob("*.graph"):
                path.unlink()
        for what, text in LOGS.items():
            if not wanted(what, "trace"):
                continue

            def at(n):
                path = folder / f"{what}{n}.log"
                if not path.exists():
                    path.write_text(text(max(n, 2)))
                return [binary, "trace", str(path)]

            marked += compare(what, "trace", 1_000 // options.divide, at, options.limit)
        for what, of in EVENTS.items():
            if not wanted(what, "lifecycle"):
                continue

            def at(n):
                path = folder / f"{what}{n}.jsonl"
                if not path.exists():
                    path.write_text("\n".join([*of(n), '{"event":"end"}', ""]))
                return [binary, "lifecycle", str(path)]

            marked += compare(what, "lifecycle", 20_000 // options.divide, at, options.limit)
    raise SystemExit(1 if marked else 0)


if __name__ == "__main__":
    main()
