"""Tries the patches of findings: `fixes.py [NAME...] [--campaign N] [--seed S] [--torch PYTHON] [--oracle PROGRAM]`.

For each NAME, or each finding that has a fix.patch: links to the torch of PYTHON in a folder of its own, with copies of
the files that the patch changes, and that folder first in PYTHONPATH. repro.py has to exit with 1 before and 0 after.
--campaign also runs the campaign that the patch names in lines above its diff, before and after, and counts the
violated cases that known.jsonl, without its lines for the finding, does not know: some before, none after.

    Campaign: PASS OPTIONS
    Function: NAME         of graph_oracle.pytorch.peers, for the worker
    Links: NAME...         findings that known.jsonl tells from this one by no word, whose lines are left out too
    Besides: RULE...       rules that the pass breaks for another reason, of which known.jsonl has no line
    Not shown: REASON      the campaign does not meet the finding: none before is right

A patch without the line Campaign is tried with its repro.py alone. Upstream's own tests are not run: they are not in
the wheel. Exit status 1 if one fails.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
WHERE = "import importlib.util; print(importlib.util.find_spec('torch').origin)"


def header(patch: str, key: str) -> str:
    """What the text above the diff says of `key`."""
    return next((line[len(key) + 2 :] for line in patch.splitlines() if line.startswith(key + ": ")), "")


def overlay(torch: Path, patch: str, folder: Path) -> None:
    """A torch of links in `folder`, but for what `patch` changes."""
    for path in [line.split()[1][2:] for line in patch.splitlines() if line.startswith("+++ b/torch/")]:
        inside = folder
        for part in Path(path).parts[:-1]:
            inside = inside / part
            source = torch.parent / inside.relative_to(folder)
            if inside.is_symlink():
                inside.unlink()
            if not inside.exists():
                inside.mkdir(parents=True)
                for entry in source.iterdir():
                    if entry.name != "__pycache__":
                        (inside / entry.name).symlink_to(entry)
                # In a folder of its own, so that what the patch changes is compiled beside it.
                (inside / "__pycache__").mkdir()
                for entry in source.glob("__pycache__/*.pyc"):
                    (inside / "__pycache__" / entry.name).symlink_to(entry)
        file = folder / path
        if file.is_symlink():
            file.unlink()
            file.write_text((torch.parent / path).read_text())
    applied = ["patch", "--batch", "--forward", "--fuzz=0", "-p1", "-d", str(folder)]
    subprocess.run(applied, input=patch, text=True, check=True, stdout=subprocess.DEVNULL)


def environment(paths: list[Path], caches: Path) -> dict[str, str]:
    caches.mkdir(exist_ok=True)
    path = os.pathsep.join(str(one) for one in paths)
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "TORCHINDUCTOR_CACHE_DIR": str(caches)}


def campaign(asked: argparse.Namespace, name: str, patch: str, known: Path, env: dict[str, str]) -> list[int]:
    """How many cases are undecided and violated, and of how many of these known.jsonl and the patch know no reason."""
    options, function = header(patch, "Campaign").split(), header(patch, "Function")
    worker = f"--functional --only {options[0]}"
    worker += f" --function graph_oracle.pytorch.peers:{function}" if function else ""
    links = tuple(f"docs/findings/{one}" for one in [name, *header(patch, "Links").split()])
    lines = asked.known.read_text().splitlines()
    known.write_text("\n".join(line for line in lines if line[:1] != "{" or json.loads(line)["link"] not in links))
    command = [asked.oracle, "fuzz", *options, "--cases", str(asked.campaign), "--seed", str(asked.seed)]
    command += ["--jobs", "1", "--known", str(known), "--format", "json", "--reduce-seconds", "1"]
    command += ["--worker", f"{asked.torch} -P -m graph_oracle.pytorch worker {worker}"]
    command += ["--worker-start", "300", "--worker-seconds", "120"]
    run = subprocess.run(command, cwd=HERE / name, env=env, capture_output=True, text=True, check=False)
    if run.returncode not in (0, 1, 3):  # 3: no case was of use.
        raise RuntimeError(run.stderr)
    (summary,) = json.loads(run.stdout)
    besides = set(header(patch, "Besides").split())
    left = sum(cause["cases"] for cause in summary["causes"] if not besides & set(cause["rules"]))
    return [summary["total"]["undecided"], summary["total"]["violated"], left]


def tried(asked: argparse.Namespace, torch: Path, name: str) -> bool:
    patch = (HERE / name / "fix.patch").read_text()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        overlay(torch, patch, folder / "patched")
        package = HERE.parent.parent / "python"
        sides = [environment([package], folder / "a"), environment([folder / "patched", package], folder / "b")]
        place = [asked.torch, "-P", "-c", WHERE]
        found = subprocess.run(place, env=sides[1], capture_output=True, text=True, check=True).stdout
        assert found.startswith(str(folder / "patched")), found
        repro = [asked.torch, str(HERE / name / "repro.py")]
        runs = [subprocess.run(repro, env=env, capture_output=True, text=True, timeout=600) for env in sides]
        codes = [run.returncode for run in runs]
        right, said = codes == [1, 0], f"repro.py {codes[0]} -> {codes[1]}"
        if not right:
            said += "".join(f"\n{run.stdout}{run.stderr}"[-2000:] for run in runs)
        if asked.campaign and header(patch, "Campaign"):
            before, after = (campaign(asked, name, patch, folder / "known.jsonl", env) for env in sides)
            said += f"; of {asked.campaign} cases undecided {before[0]} -> {after[0]}"
            said += f", violated {before[1]} -> {after[1]}, of these not known {before[2]} -> {after[2]}"
            # What known.jsonl explains by another finding must not grow: a failure of the patch may say the same words.
            right &= after[2] == 0 and after[1] <= before[1] - before[2]
            right &= (before[2] > 0) != bool(header(patch, "Not shown"))
    print(f"{'ok  ' if right else 'FAIL'} {name}: {said}", flush=True)
    return right


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--campaign", type=int, default=0, metavar="N")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--torch", default=sys.executable, metavar="PYTHON", help="a Python that has torch")
    parser.add_argument("--oracle", default="graph-oracle", metavar="PROGRAM")
    parser.add_argument("--known", type=Path, default=HERE / "known.jsonl", metavar="FILE")
    asked = parser.parse_args()
    where = [asked.torch, "-P", "-c", WHERE]
    torch = Path(subprocess.run(where, capture_output=True, text=True, check=True).stdout.strip()).parent
    names = asked.names or sorted(path.parent.name for path in HERE.glob("*/fix.patch"))
    failed = 0
    for name in names:
        try:
            failed += not tried(asked, torch, name)
        except (subprocess.SubprocessError, RuntimeError) as error:
            print(f"FAIL {name}: {error} {getattr(error, 'stderr', None) or ''}", flush=True)
            failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
