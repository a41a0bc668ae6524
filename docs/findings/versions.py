"""Which versions of PyTorch show which finding.

    python docs/findings/versions.py                           # all findings in all versions
    python docs/findings/versions.py --drop --write            # one environment at a time on disk; then writes
    python docs/findings/versions.py --bisect --only NAME      # the first and the last version alone
    python docs/findings/versions.py --campaign schedule --cases 300 --versions 2.14.0 2.15.0

Makes an environment for each version (1.9 GB: torch without the CUDA libraries, whose place is taken by empty ones
that say that there is no device; needs cc and readelf) and runs each docs/findings/*/repro.py in it. A repro shows its
failure (exit status 1), does not show it (0), or it cannot be told: another status, no end in time, or a traceback that
is no assertion, which is what a missing name of torch ends in. Outcomes are remembered beside the environments until
the repro changes, or until --again. `--write` puts `first` and `last` into each finding.toml, and the table into
docs/findings/versions.md. `--bisect` takes for granted that the versions that show a finding are neighbours; a walk
through all of them reports where they are not.

It leaves out the findings that need more than torch, does not look between the versions that it is given (patch
releases, nightly builds), runs nothing on a GPU, and takes the word of a repro: one that needs what an older version
lacks says nothing of that version.
"""

import argparse
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

VERSIONS = [f"2.{minor}.0" for minor in range(8, 16)]
FINDINGS = Path(__file__).resolve().parent
PACKAGES = ["numpy", "sympy", "networkx", "jinja2", "filelock", "fsspec", "typing_extensions", "setuptools<81"]
OF_CUDA = re.compile(r"(__cuda|cu[A-Za-z]|nv|nccl|NV)\w+$")
ERROR = re.compile(r"[\w.]+(Error|Exception|Interrupt|Unsupported)\b")
LACKING = re.compile(r"No module named|cannot import name|module '\S+' has no attr|unexpected keyword|does not exist")
SHOWS, NOT, UNKNOWN = "shows", "does not show", "cannot be told"
# Imports torch once and runs each script in a child of its own: importing takes longer than most scripts.
SERVER = """
import contextlib, importlib, os, runpy, signal, sys, time, traceback
for module in "torch torch._inductor.compile_fx torch._dynamo torch.distributed torch._functorch.partitioners".split():
    with contextlib.suppress(ImportError):
        importlib.import_module(module)
for line in sys.stdin:
    script, log, seconds = line.rstrip().split("|")
    child = os.fork()
    if not child:
        os.setsid()
        for number in (1, 2):
            os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
        sys.argv, code = [script], 0
        sys.path.insert(0, os.path.dirname(script))
        try:
            runpy.run_path(script, run_name="__main__")
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
            print(end.code if isinstance(end.code, str) else "")
        except BaseException:
            traceback.print_exc()
            code = 1
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    end, ended = time.monotonic() + float(seconds), (0, 0)
    while not ended[0] and time.monotonic() < end:
        time.sleep(0.05)
        ended = os.waitpid(child, os.WNOHANG)
    if not ended[0]:
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(ended[1]) if ended[0] else "late", flush=True)
"""


def run(command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def stand_ins(libraries):
    """Puts empty libraries in the place of those that torch links to and that are not there.

    What torch calls of CUDA is a function there that returns 100, cudaErrorNoDevice.
    """
    files = sorted(libraries.glob("*.so*"))
    needed, defined, wanted, versions = set(), set(), {}, {}
    for file in files:
        needed |= set(re.findall(r"NEEDED.*\[(.*)\]", run(["readelf", "-dW", file])))
        for line in run(["readelf", "-VW", file]).splitlines():
            if found := re.search(r"File: (\S+)", line):
                library = found[1]
            elif found := re.search(r" Name: (\S+)  Flags", line):
                versions.setdefault(library, set()).add(found[1])
        for line in run(["readelf", "--dyn-syms", "-W", file]).splitlines():
            words = line.split()
            name, _, version = words[7].partition("@") if len(words) > 7 else ("", "", "")
            if OF_CUDA.match(name):
                (wanted.setdefault(version.strip("@"), set()) if words[6] == "UND" else defined).add(name)
    present = {file.name for file in files} | set(re.findall(r"^\s*(\S+) \(", run(["ldconfig", "-p"]), re.M))
    loose = wanted.get("", set()) - defined  # No version: any library may have them.
    for library in sorted(needed - present):
        named = {version: wanted.get(version, set()) for version in versions.get(library, ())}
        names, loose = loose.union(*named.values()), set()
        with tempfile.TemporaryDirectory() as folder:
            source, script = Path(folder, "empty.c"), Path(folder, "versions")
            source.write_text("int empty;\n" + "".join(f"long {name}(void) {{ return 100; }}\n" for name in names))
            listed = {version: "".join(f"{name}; " for name in some) for version, some in named.items()}
            script.write_text("".join(f"{v} {{ {'global: ' if some else ''}{some}}};\n" for v, some in listed.items()))
            link = ["-shared", "-fPIC", f"-Wl,-soname,{library}", *[f"-Wl,--version-script={script}"][: len(named)]]
            run(["cc", "-w", *link, "-o", libraries / library, source])


def environment(version, folder, given):
    """The Python of an environment with that torch; made where there is none. And the folder that was made, if so."""
    whole, lean = folder / f"torch-{version}", folder / f"torch-{version}-without-cuda"
    for python in filter(None, (given.get(version), whole / "bin/python", lean / "bin/python")):
        test = f"import torch, numpy; assert torch.__version__.split('+')[0] == '{version}'"
        if Path(python).exists() and not subprocess.run([python, "-P", "-c", test], capture_output=True).returncode:
            return str(python), lean if Path(python).is_relative_to(lean) else None
    print(f"making {lean}", flush=True)
    shutil.rmtree(lean, ignore_errors=True)
    run([sys.executable, "-m", "venv", "--without-pip", lean])
    pip = [sys.executable, "-m", "pip", "--python", lean / "bin/python", "install", "--quiet", "--no-cache-dir"]
    run([*pip, "--no-compile", "--no-deps", f"torch=={version}"])
    run([*pip, "--no-compile", *PACKAGES])
    stand_ins(next(lean.glob("lib/python*/site-packages/torch/lib")))
    run([lean / "bin/python", "-P", "-c", "import torch"])
    return str(lean / "bin/python"), lean


class Runs:
    """What has been run, in a file; and the process of each version that runs more."""

    def __init__(self, options):
        given = dict(text.split("=", 1) for text in options.python)
        if "GRAPH_ORACLE_TORCH" in os.environ:
            given.setdefault("2.15.0", os.environ["GRAPH_ORACLE_TORCH"] + "/bin/python")
        self.options, self.given, self.servers = options, given, {}
        self.file = options.environments / "versions.json"

    def seen(self):
        return json.loads(self.file.read_text()) if self.file.is_file() else {}

    def python(self, version):
        return environment(version, self.options.environments, self.given)

    def of(self, name, version, new=True):
        """The outcome; None where it is not remembered and nothing new is to be run."""
        script = FINDINGS / name / "repro.py"
        key = f"{name} {version} {hashlib.sha256(script.read_bytes()).hexdigest()[:16]}"
        if new and (self.options.again or key not in self.seen()):
            found = self.outcome(version, script)
            self.file.write_text(json.dumps({**self.seen(), key: found}, indent=1))
            print(f"{version}  {name}: {' - '.join(filter(None, found))}"[:180], flush=True)
        return self.seen().get(key)

    def outcome(self, version, script):
        """What a repro says, and why where it says nothing."""
        if version not in self.servers:
            quiet = {"OMP_NUM_THREADS": "1", "TORCHINDUCTOR_COMPILE_THREADS": "1", "PYTHONWARNINGS": "ignore"}
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
            command = [self.python(version)[0], "-P", "-c", SERVER]
            self.servers[version] = subprocess.Popen(command, env=os.environ | quiet, **pipes)
        server = self.servers[version]
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder, "log")
            server.stdin.write(f"{script}|{log}|{self.options.timeout}\n")
            server.stdin.flush()
            status = server.stdout.readline().strip()
            lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
        said = next((line for line in lines if line.startswith("FAILS")), "")
        thrown = next((line for line in reversed(lines) if ERROR.match(line)), "")
        if status == "0":
            return NOT, ""
        if status == "late":
            return UNKNOWN, f"no end after {self.options.timeout} s"
        traced = any(line.startswith("Traceback") for line in lines)
        if status == "1" and not LACKING.search(said) and (said or not traced or thrown.startswith("AssertionError")):
            return SHOWS, said or thrown or (lines or [""])[-1]
        return UNKNOWN, said or thrown or (lines or [f"exit status {status}"])[-1]

    def drop(self, version):
        """Ends the process of a version and removes the environment, if this script made it."""
        if version in self.servers:
            self.servers.pop(version).kill()
        if made := self.python(version)[1]:
            shutil.rmtree(made)


def bisect(name, versions, runs):
    """Runs enough to tell the first and the last version that show it, if these are neighbours."""
    shown = lambda at: runs.of(name, versions[at])[0] == SHOWS  # noqa: E731
    low, high = 0, next((at for at in reversed(range(len(versions))) if shown(at)), 0)
    while low < high and not shown(0):
        middle = (low + high) // 2
        low, high = (low, middle) if shown(middle) else (middle + 1, high)


def span(found):
    """The first and the last version that show it, and what is to be said of the others."""
    showing = [version for version in VERSIONS if version in found and found[version][0] == SHOWS]
    if not showing:
        return "", "", "shown by none" if found else "not run"
    first, last = (VERSIONS.index(showing[end]) for end in (0, -1))
    if any(v not in found for v in VERSIONS[max(first - 1, 0) : first] + VERSIONS[last + 1 : last + 2]):
        return "", "", "its neighbours have not been run"
    gaps = [v[:-2] for v in VERSIONS[first:last] if v in found and found[v][0] == NOT]
    dark = [v[:-2] for v in VERSIONS[:first] if v in found and found[v][0] == UNKNOWN]
    notes = f"not in {', '.join(gaps)} in between; " * bool(gaps) + f"cannot be told in {', '.join(dark)}" * bool(dark)
    return showing[0], showing[-1], notes.rstrip("; ")


def written(table):
    """Puts the keys into each finding.toml, and the table between what people wrote into versions.md."""
    signs, reasons = {SHOWS: "x", NOT: "-", UNKNOWN: "?"}, []
    rows = ["| finding | " + " | ".join(v[:-2] for v in VERSIONS) + " | note |", "|---" * (len(VERSIONS) + 2) + "|"]
    for name, found in table.items():
        first, last, note = span(found)
        cells = [signs[found[v][0]] if v in found else " " for v in VERSIONS]
        rows.append(f"| [{name}]({name}/) | {' | '.join(cells)} | {note} |")
        told = {v[:-2]: re.sub(r" \(/.*|`", "", why)[:160] for v, (kind, why) in found.items() if kind == UNKNOWN}
        for said in dict.fromkeys(told.values()):
            reasons.append(f"- {name}, {', '.join(v for v in told if told[v] == said)}: `{said}`")
        file = FINDINGS / name / "finding.toml"
        if first and file.is_file():
            kept = [line for line in file.read_text().splitlines() if not re.match(r"(first|last) =", line)]
            at = next((at for at, line in enumerate(kept) if line.startswith("first_seen =")), len(kept) - 1)
            kept[at + 1 : at + 1] = [f'first = "{first}"', f'last = "{last}"']
            file.write_text("\n".join(kept) + "\n")
    file = FINDINGS / "versions.md"
    start, end = "<!-- the table, written by versions.py -->\n", "<!-- end of the table -->\n"
    text = file.read_text() if file.is_file() else f"# Versions\n\n{start}{end}"
    table = "\n".join([*rows, "", "What cannot be told, and why:", "", *reasons, ""])
    file.write_text(f"{text.split(start)[0]}{start}\n{table}\n{end}{text.split(end)[1]}")


def campaign(options, runs):
    """What got worse and what got better from the first to the second version, in one pass."""
    call = "{} -P -m graph_oracle.pytorch worker " + options.worker
    old, new = (call.format(shlex.quote(runs.python(version)[0])) for version in options.versions)
    command = [options.program, "fuzz", options.campaign, "--worker", new, "--against", old, "--worker-start", "300"]
    path = os.pathsep.join(filter(None, [str(FINDINGS.parents[1] / "python"), os.environ.get("PYTHONPATH")]))
    print(f"{options.campaign}: {' -> '.join(options.versions)}", flush=True)
    command += ["--cases", str(options.cases), "--seed", "1", "--reduce-seconds", "5"]
    return subprocess.run(command, env=os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"}).returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"), "graph-oracle")
    option = parser.add_argument
    option("--environments", type=Path, default=cache, metavar="DIR")
    option("--python", action="append", default=[], metavar="VERSION=PYTHON", help="an environment that is there")
    option("--versions", nargs="*", default=VERSIONS, metavar="VERSION")
    option("--only", nargs="+", metavar="NAME", help="these findings")
    option("--timeout", type=int, default=180, metavar="SECONDS", help="of each repro")
    option("--again", action="store_true", help="run also what is remembered")
    option("--drop", action="store_true", help="remove each environment that this script made, after its use")
    option("--bisect", action="store_true", help="run as few versions as tell the first and the last")
    option("--write", action="store_true", help="write finding.toml and versions.md")
    option("--campaign", metavar="PASS", help="instead: PASS in the second of two --versions against the first")
    option("--cases", type=int, default=300)
    option("--worker", default="", metavar="OPTIONS", help="options of both workers, such as --functional")
    option("--program", default="graph-oracle", help="the program graph-oracle")
    options = parser.parse_args()
    options.environments.mkdir(parents=True, exist_ok=True)
    runs = Runs(options)
    if options.campaign:
        return campaign(options, runs)
    alone = re.compile(r'^torch = "[\d.]+"$', re.M)
    files = (file for file in FINDINGS.glob("*/repro.py") if file.with_name("finding.toml").is_file())
    everything = sorted(f.parent.name for f in files if alone.search(f.with_name("finding.toml").read_text()))
    names = sorted(options.only or everything)
    for name in names if options.bisect else []:
        bisect(name, options.versions, runs)
    for version in options.versions:
        for name in [] if options.bisect else names:
            runs.of(name, version)
        if options.drop:
            runs.drop(version)
    for server in runs.servers.values():
        server.kill()
    table = {name: {v: seen for v in VERSIONS if (seen := runs.of(name, v, new=False))} for name in everything}
    for name in names:
        first, last, note = span(table[name])
        print(f"{name}: {f'{first} to {last}; ' * bool(first)}{note}".rstrip("; "))
    if options.write:
        written(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
