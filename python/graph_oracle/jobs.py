"""The shards of a campaign as jobs of a cluster: `python -m graph_oracle jobs slurm bucketing --shards 8 --out found >
job.sh`.

It writes one file, a Slurm array script or an indexed Job of Kubernetes, for people to read, to change and to hand in.
At its top stands how to run it and how to see what was found. All else that is given is for `graph-oracle fuzz`. A job
that is begun again goes on with its shard where it was; so the folder `--out` has to be on a disk that all machines
see, and so have files that the arguments name.

It hands in nothing, and asks for no queue, time or memory: what a cluster wants is given to sbatch, or added to the
file.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

SLURM = """\
#!/bin/bash
# {title} in {shards} shards.
#     sbatch job.sh    (add what the cluster wants: --partition, --time, --mem)
#     {results}    (what was found, also while it runs)
#SBATCH --job-name={name}
#SBATCH --array=0-{last}
#SBATCH --ntasks=1
#SBATCH --cpus-per-task={jobs}
#SBATCH --requeue
#SBATCH --signal=TERM@60
srun {fuzz} --shard "$SLURM_ARRAY_TASK_ID/{shards}" --out {out}/"shard-$SLURM_ARRAY_TASK_ID-of-{shards}"
status=$?
# That something was found, or that nothing could be judged, is no failure of the job.
case $status in 1 | 3) exit 0 ;; *) exit $status ;; esac
"""

KUBERNETES = """\
# {title} in {shards} shards. The claim has to be one that several machines can write (ReadWriteMany).
#     kubectl create -f job.yaml
#     kubectl wait --for=condition=complete --timeout=24h job/{name}
#     {results}
apiVersion: batch/v1
kind: Job
metadata:
  name: {name}
spec:
  completionMode: Indexed
  completions: {shards}
  parallelism: {shards}
  # How often a shard is begun again.
  backoffLimitPerIndex: 3
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: shard
          image: {image}
          command: [sh, -c, {command}]
          resources:
            requests:
              cpu: {jobs}
          volumeMounts:
            - name: found
              mountPath: {out}
      volumes:
        - name: found
          persistentVolumeClaim:
            claimName: {claim}
"""

# As in the script for Slurm.
SHARD = """\
{fuzz} --shard "$JOB_COMPLETION_INDEX/{shards}" --out {out}/"shard-$JOB_COMPLETION_INDEX-of-{shards}"
status=$?
case $status in 1 | 3) exit 0 ;; *) exit $status ;; esac
"""


@dataclass(frozen=True)
class Jobs:
    """A campaign that is to run as jobs."""

    # Of `graph-oracle fuzz`, the pass first.
    arguments: tuple[str, ...]
    shards: int
    out: str
    # Processors that a shard takes.
    jobs: int = 1
    image: str = ""
    claim: str = ""

    @property
    def name(self) -> str:
        """Of the job: letters, digits and hyphens, as both schedulers want it."""
        word = "".join(letter for letter in self.arguments[0].lower() if letter.isascii() and letter.isalnum())
        return f"graph-oracle-{word}" if word else "graph-oracle"

    @property
    def title(self) -> str:
        """The command, in one line of a comment."""
        return " ".join(shlex.join(["graph-oracle", "fuzz", *self.arguments]).split())

    @property
    def fuzz(self) -> str:
        return shlex.join(["graph-oracle", "fuzz", *self.arguments, "--jobs", str(self.jobs)])

    @property
    def results(self) -> str:
        return f"graph-oracle results {shlex.quote(self.out)}/shard-*-of-{self.shards}"


def slurm(jobs: Jobs) -> str:
    """A script for sbatch."""
    return SLURM.format(
        title=jobs.title,
        shards=jobs.shards,
        last=jobs.shards - 1,
        name=jobs.name,
        jobs=jobs.jobs,
        fuzz=jobs.fuzz,
        out=shlex.quote(jobs.out),
        results=jobs.results,
    )


def kubernetes(jobs: Jobs) -> str:
    """A Job for kubectl, as YAML. Strings are written as JSON, which YAML reads."""
    # Kubernetes reads $(NAME) in a command, and $$ for one dollar sign.
    fuzz = jobs.fuzz.replace("$", "$$")
    command = SHARD.format(fuzz=fuzz, shards=jobs.shards, out=shlex.quote(jobs.out).replace("$", "$$"))
    return KUBERNETES.format(
        title=jobs.title,
        shards=jobs.shards,
        name=jobs.name,
        jobs=jobs.jobs,
        image=_text(jobs.image),
        claim=_text(jobs.claim),
        out=_text(jobs.out),
        command=_text(command),
        results=_pod(jobs),
    )


def _pod(jobs: Jobs) -> str:
    """The command that shows what is on the claim: a pod that goes when it has done so."""
    name = f"{jobs.name}-results"
    container = {
        "name": name,
        "image": jobs.image,
        "command": ["sh", "-c", jobs.results.replace("$", "$$")],
        "volumeMounts": [{"name": "found", "mountPath": jobs.out}],
    }
    volume = {"name": "found", "persistentVolumeClaim": {"claimName": jobs.claim}}
    pod = json.dumps({"spec": {"restartPolicy": "Never", "volumes": [volume], "containers": [container]}})
    return shlex.join(
        ["kubectl", "run", name, "--rm", "-i", "--restart=Never", f"--image={jobs.image}", f"--overrides={pod}"]
    )


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


WRITERS: dict[str, Callable[[Jobs], str]] = {"slurm": slurm, "kubernetes": kubernetes}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m graph_oracle jobs",
        allow_abbrev=False,
        usage="%(prog)s {slurm,kubernetes} PASS --shards N [options]",
        description="Writes a campaign as jobs of a cluster, one for each shard; `graph-oracle fuzz --help` has more.",
    )
    parser.add_argument("kind", choices=list(WRITERS), help="whose jobs they are")
    parser.add_argument("pass_kind", metavar="PASS", help="as of `graph-oracle fuzz`")
    parser.add_argument("--shards", type=int, required=True, metavar="N", help="how many jobs")
    parser.add_argument(
        "--out", metavar="DIR", help="a folder that all machines see; default: found, /found in Kubernetes"
    )
    parser.add_argument("--jobs", type=int, default=1, metavar="J", help="processors that a shard takes; default: 1")
    parser.add_argument("--image", metavar="IMAGE", help="Kubernetes: an image with graph-oracle, and with the worker")
    parser.add_argument(
        "--claim", metavar="NAME", help="Kubernetes: the volume claim that --out is; default: graph-oracle"
    )
    read, rest = parser.parse_known_args(sys.argv[1:] if arguments is None else list(arguments))
    if refused := _refused(read, rest):
        print(f"graph-oracle jobs: {refused}", file=sys.stderr)
        return 2
    out = read.out or ("/found" if read.kind == "kubernetes" else "found")
    jobs = Jobs((read.pass_kind, *rest), read.shards, out, read.jobs, read.image or "", read.claim or "graph-oracle")
    print(WRITERS[read.kind](jobs), end="")
    return 0


def _refused(read: argparse.Namespace, rest: Sequence[str]) -> str | None:
    """Why no file is written, if none is."""
    words = [read.pass_kind, read.out or "", read.image or "", read.claim or "", *rest]
    if read.shards < 1 or read.jobs < 1:
        return "--shards and --jobs are at least 1"
    if any(
        word == flag or word.startswith(flag + "=") for word in rest for flag in ("--shard", "--seconds", "--cluster")
    ):
        return "--shard, --seconds and --cluster: each job has its shard; say --cases"
    if any(not word.isprintable() for word in words):
        return "a line break or another control character in an argument"
    if read.kind == "kubernetes" and not read.image:
        return "--image: name an image that has graph-oracle"
    if read.kind == "kubernetes" and not (read.out or "/found").startswith("/"):
        return "--out: in Kubernetes a path from /, where the claim is mounted"
    if read.kind == "slurm" and (read.image or read.claim):
        return "--image and --claim are for Kubernetes"
    return None


if __name__ == "__main__":
    sys.exit(main())
