"""How time grows with a small file: each subcommand on inputs that are large in one way, with n and with 4n.

    python benches/scaling.py [--binary target/release/graph-oracle] [--only GROUPS] [--limit 60]

Each line has a kind of input, a command, n, the processor time at n and at 4n, and their ratio. A program that takes
n log n comes to a little over 4, one that takes n squared to 16. Ratios above 7 are marked, where the larger run takes
longer than half a second; so are runs that are cut off at the limit. What the process takes for an empty graph is
subtracted. Needs nothing but the program and Python.
"""

import argparse
import os
import pathlib
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


GRAPHS = {
    "ranks": (ranks, 50_000),
    "pairs_of_ranks": (pairs_of_ranks, 50_000),
    "groups": (groups, 5_000),
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
    "writes": (writes, 5_000),
    "reads_between_writes": (reads_between_writes, 5_000),
    "waits": (waits, 5_000),
    "packed": (packed, 5_000),
    "ordering": (ordering, 5_000),
    "messages": (messages, 5_000),
}

COMMANDS = {
    "show": ["show", "A", "--format", "text"],
    "check schedule": ["check", "schedule", "A", "B"],
    "check bucketing": ["check", "bucketing", "A", "B", "--values", "symbolic"],
    "check reference": ["check", "bucketing", "A", "--candidate", "reference"],
    "check repair": ["check", "repair", "A", "B", "--values", "symbolic"],
    "check memory": ["check", "memory", "A", "--candidate", "reference"],
    "simulate": ["simulate", "A"],
    "simulate 2": ["simulate", "A", "B"],
    "lifecycle": ["lifecycle", "--graph", "A"],
    "run bucketing": ["run", "bucketing", "A", "-o", os.devnull + ".graph"],
    "run schedule": ["run", "schedule", "A", "-o", os.devnull + ".graph"],
    "smoke": ["smoke", "A"],
}



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


def seconds(command, limit):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=limit)
    except subprocess.TimeoutExpired:
        return limit, "cut off"
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    first = done.stderr.decode(errors="replace").strip().split("\n")[0][:60]
    return took, first if done.returncode not in (0, 1, 3) else ""


def compare(what, command, n, at, limit):
    empty, _ = seconds(at(1), limit)
    small, why = seconds(at(n), limit)
    large, later = (limit, "cut off") if why == "cut off" else seconds(at(4 * n), limit)
    small, large = max(small - empty, 0.002), max(large - empty, 0.002)
    ratio = large / small
    mark = "  <<<" if "cut off" in (why, later) or (ratio > 7 and large > 0.5) else ""
    print(f"{what:24} {command:16} {n:7} {small:8.3f} {large:8.3f} {ratio:6.1f}{mark} {why or later}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--binary", default="target/release/graph-oracle")
    parser.add_argument("--only", help="kinds of inputs and commands that contain this word")
    parser.add_argument("--limit", type=float, default=60, help="seconds for a run")
    options = parser.parse_args()
    binary = str(pathlib.Path(options.binary).resolve())
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)

        def wanted(*words):
            return not options.only or any(options.only == word for word in words)

        for what, (text, n) in GRAPHS.items():
            for name, words in COMMANDS.items():
                if not wanted(what, name):
                    continue

                def at(n):
                    files = {"A": folder / f"{what}{n}.graph", "B": folder / f"{what}{n}b.graph"}
                    for path in files.values():
                        if not path.exists():
                            path.write_text(text(max(n, 2)))
                    files[os.devnull + ".graph"] = folder / "out.graph"
                    return [binary, *(str(files.get(word, word)) for word in words)]

                compare(what, name, n, at, options.limit)
            for path in folder.iterdir():
                path.unlink()
        for what, lines in EVENTS.items():
            if not wanted(what, "lifecycle"):
                continue

            def at(n):
                path = folder / f"{what}{n}.jsonl"
                if not path.exists():
                    path.write_text("\n".join([*lines(n), '{"event":"end"}', ""]))
                return [binary, "lifecycle", str(path)]

            compare(what, "lifecycle", 20_000, at, options.limit)


if __name__ == "__main__":
    main()
