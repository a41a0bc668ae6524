"""What the program says today, in one folder, so that a rebuilt program can be held against it.

    python benches/record.py make FOLDER [--binary target/release/graph-oracle] [--cases 100000] [--seeds 3]
    python benches/record.py compare BEFORE AFTER

`make` writes, as text that is the same on every machine:

    cases/       of each text case under tests/cases and corpus, and of each pair and triple under corpus/real: the verdict
                 with all findings, notes and rules, as `check --format json` says them, and the exit status
    score.txt    after how many cases each planted bug is convicted, and by which rule (`score --seeds`)
    campaigns/   of a campaign of the reference in each family: what it counted, and a digest of its record
    lines.txt    lines of Rust that are no tests

`compare` lists what differs and ends with 1 if anything does. A rename that is meant shows as a difference: list it in
the commit. Campaigns against PyTorch are recorded by `.ci/conformance`, builds and tests are timed by hand
(docs/performance.md). Needs nothing but the program and Python.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
FAMILIES = ["bucketing", "repair", "partition", "schedule", "memory"]


def run(binary, *arguments):
    """Exit status and what was printed, run in the repository so that paths in reports are relative."""
    done = subprocess.run([binary, *map(str, arguments)], cwd=ROOT, capture_output=True, text=True, errors="replace")
    return done.returncode, done.stdout, done.stderr


def pass_of(path):
    named = re.search(r"^pass (\w+)", path.read_text(errors="replace"), re.M)
    return named.group(1) if named else "bucketing"


def checks():
    """Name of a record, and the arguments of the check that it is of."""
    for path in sorted(ROOT.glob("tests/cases/*/*.graph")) + sorted(ROOT.glob("corpus/*.graph")):
        kind, name = pass_of(path), path.relative_to(ROOT)
        if kind in FAMILIES:
            yield str(name), ["check", kind, name]
            # The outcome that is recorded in a case says nothing of what candidates do with its graph.
            for candidate in sorted(set(re.findall(r"^expect ([\w-]+) ", path.read_text(), re.M)) - {"outcome", "input"}):
                yield f"{name}.{candidate}", ["check", kind, name, "--candidate", candidate]
    for forward in sorted(ROOT.glob("corpus/real/partition/*_fw.json.gz")):
        stem = forward.name.removesuffix("_fw.json.gz")
        program = stem.rsplit("_", 1)[0]
        joints = [*ROOT.glob(f"corpus/real/partition/{program}_joint.json.gz"), *ROOT.glob(f"corpus/real/{program}_joint.json.gz")]
        if joints:
            backward = forward.with_name(f"{stem}_bw.json.gz")
            files = [path.relative_to(ROOT) for path in (joints[0], forward, backward)]
            yield f"corpus/real/partition/{stem}", ["check", "partition", *files]
    for graph in sorted(ROOT.glob("corpus/real/*.json.gz")):
        name = graph.relative_to(ROOT)
        yield f"{name}.bucketing", ["check", "bucketing", name, "--candidate", "reference"]
        yield f"{name}.memory", ["check", "memory", name, "--candidate", "reference"]


def make(options):
    out = pathlib.Path(options.folder)
    out.mkdir(parents=True)
    binary = str(pathlib.Path(options.binary).resolve())

    def check(item):
        name, arguments = item
        status, text, errors = run(binary, *arguments, "--format", "json")
        path = out / "cases" / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            text = json.dumps(json.loads(text), indent=1, sort_keys=True)
        except ValueError:
            pass
        path.write_text(f"exit status {status}\n{text}\n{errors}")
        return status

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        statuses = list(pool.map(check, checks()))
    counts = ", ".join(f"{statuses.count(status)} ended with {status}" for status in sorted(set(statuses)))
    print(f"{len(statuses)} checks: {counts}")

    (out / "campaigns").mkdir()
    for family in FAMILIES:
        with tempfile.TemporaryDirectory() as store:
            status, text, errors = run(
                binary, "fuzz", family, "--cases", options.cases, "--seed", 1, "--out", store, "--reduce-seconds", 5
            )
            lines = (pathlib.Path(store) / "campaign.jsonl").read_bytes().splitlines()
            # The first line names the version.
            digest = hashlib.sha256(b"\n".join(sorted(lines[1:]))).hexdigest()
            text = text.replace(store, "STORE")
        text = re.sub(r", [\d.]+ (ms|s|min)\b.*", "", text)
        (out / "campaigns" / f"{family}.txt").write_text(f"exit status {status}\n{digest}\n{text}")
        print(f"{family}: {options.cases} cases, exit status {status}, {digest[:12]}")

    status, text, errors = run(binary, "score", "--seeds", options.seeds)
    (out / "score.txt").write_text(f"exit status {status}\n{text}{errors}")
    print(f"score: {text.count(chr(10))} lines")

    files = [path for path in sorted(ROOT.glob("oracle/**/*.rs")) if "tests" not in path.parts and path.name != "tests.rs"]
    sums = {str(path.relative_to(ROOT)): body(path) for path in files}
    total = sum(sums.values())
    (out / "lines.txt").write_text("".join(f"{n:6} {name}\n" for name, n in sums.items()) + f"{total:6} in all\n")
    print(f"{total} lines of Rust that are no tests")


def body(path):
    """The lines of a file before its tests."""
    text = path.read_text()
    return text.split("#[cfg(test)]\nmod tests {")[0].count("\n")


def compare(options):
    before, after = pathlib.Path(options.before), pathlib.Path(options.after)
    names = {path.relative_to(folder) for folder in (before, after) for path in folder.rglob("*") if path.is_file()}
    differ = 0
    for name in sorted(names):
        if str(name) == "lines.txt":
            continue
        texts = [(folder / name).read_text() if (folder / name).exists() else None for folder in (before, after)]
        if texts[0] == texts[1]:
            continue
        differ += 1
        if None in texts:
            print(f"{name}: only {'after' if texts[0] is None else 'before'}")
            continue
        print(f"{name}:")
        a, b = (text.splitlines() for text in texts)
        changed = [(x, y) for x, y in zip(a, b) if x != y] or [(f"{len(a)} lines", f"{len(b)} lines")]
        for x, y in changed[:3]:
            print(f"    - {x[:200]}\n    + {y[:200]}")
    print(f"{len(names)} records, {differ} differ")
    sys.exit(bool(differ))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("make", help="write a record")
    command.add_argument("folder")
    command.add_argument("--binary", default=ROOT / "target/release/graph-oracle")
    command.add_argument("--cases", type=int, default=100_000)
    command.add_argument("--seeds", type=int, default=3)
    command.set_defaults(run=make)
    command = commands.add_parser("compare", help="list what differs between two")
    command.add_argument("before")
    command.add_argument("after")
    command.set_defaults(run=compare)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
