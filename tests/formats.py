"""What the program prints for machines, held against the schemas of those formats.

    python tests/formats.py PROGRAM SCHEMAS

PROGRAM is graph-oracle. SCHEMAS is a folder with sarif.json (SARIF 2.1.0 of OASIS), junit-10.xsd (that of Jenkins) and
github-actions.json (that of SchemaStore); .ci/formats fetches them. Our own documents are held against docs/schemas.
Needs jsonschema, lxml and PyYAML. Fails if some format was not seen at all.
"""

import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import jsonschema
import lxml.etree
import yaml

PROJECT = pathlib.Path(__file__).resolve().parent.parent
# Markup of XML, HTML, markdown, SARIF and GitHub; what steers a terminal; what turns the direction of writing.
HOSTILE = "<b a=\"'&]]>|`@u`%25\x1b[31m\x07\r\n::error::x\n##[error]y {0}[a](1) \u202e\ufffeé,:"
JOINT = "corpus/real/partition/small_gpt_joint.json.gz"
BUCKETS = "corpus/dependent_gathers.graph"
UNDECIDED = "tests/cases/bucket/rank_semantics_equal_of_unknown_communication.graph"


def hostile_graph(op):
    """An exchange JSON graph in which every name is hostile."""
    tensor = {"t": "tensor", "shape": [4], "stride": [1], "dtype": "float32", "device": "cpu"}
    of = lambda name: name + HOSTILE
    call = lambda name, target, *args: {
        "name": of(name), "op": "call_function", "target": target, "args": list(args), "out": tensor,
        "stack": "train.py" + " line 7, in step",
    }
    nodes = [
        {"name": of("x"), "op": "placeholder", "target": "x", "out": tensor},
        call("r", "_c10d_functional.all_reduce.default", {"ref": of("x")}, op, "dp"),
        call("w", "_c10d_functional.wait_tensor.default", {"ref": of("r")}),
        {"name": "output", "op": "output", "target": "output", "args": [[{"ref": of("w")}]]},
    ]
    return {
        "schema_version": "graph-oracle/1", "name": "g", "kind": "forward", "source": "test", "torch": "",
        "groups": {"dp": {"size": 2, "rank": 0}}, "symbols": {}, "num_nodes": len(nodes), "ops": {}, "nodes": nodes,
    }


class Validation:
    def __init__(self, program, schemas):
        self.program = program
        self.seen = collections.Counter()
        self.faults = []
        read = lambda path: json.loads(pathlib.Path(path).read_text())
        self.sarif = self.validator(read(schemas / "sarif.json"))
        if "2.1.0" not in self.sarif.schema["title"]:
            self.fail("sarif.json is no schema of SARIF 2.1.0")
        self.action = self.validator(read(schemas / "github-actions.json"))
        self.junit = lxml.etree.XMLSchema(lxml.etree.parse(str(schemas / "junit-10.xsd")))
        self.own = {}
        for path in sorted((PROJECT / "docs/schemas").glob("*.schema.json")):
            name, version = path.name.removesuffix(".schema.json").rsplit("-", 1)
            self.own[f"graph-oracle-{name}/{version}"] = self.validator(read(path))

    @staticmethod
    def validator(schema):
        kind = jsonschema.validators.validator_for(schema)
        kind.check_schema(schema)
        return kind(schema, format_checker=kind.FORMAT_CHECKER)

    def fail(self, why):
        self.faults.append(why)
        print("FAULT", why)

    def run(self, arguments, status, environment=None):
        command = [self.program, *arguments]
        done = subprocess.run(command, cwd=PROJECT, capture_output=True, env={**os.environ, **(environment or {})})
        if done.returncode != status:
            self.fail(f"{arguments}: exit status {done.returncode}, not {status}: {done.stderr.decode()[:300]}")
        return done.stdout.decode()

    def holds(self, kind, validator, document, arguments):
        self.seen[kind] += 1
        for error in list(validator.iter_errors(document))[:3]:
            self.fail(f"{kind}: {arguments}: {error.json_path}: {error.message[:300]}")

    def tools(self, arguments, status):
        """The formats of the tools of others."""
        log = json.loads(self.run([*arguments, "--format", "sarif"], status))
        self.holds("sarif", self.sarif, log, arguments)
        run = log["runs"][0]
        rules = run["tool"]["driver"]["rules"]
        for result in run["results"]:
            if rules[result["ruleIndex"]]["id"] != result["ruleId"]:
                self.fail(f"sarif: {arguments}: ruleIndex {result['ruleIndex']} is not {result['ruleId']}")
            if re.search(r"\]\(", result["message"]["text"]):
                self.fail(f"sarif: {arguments}: a link in {result['message']['text']!r}")
        levels = {result["level"] for result in run["results"]}
        if status == 1 and not levels & {"error", "warning"}:
            self.fail(f"sarif: {arguments}: violated, and no result says so")
        if status == 3 and "note" not in levels:
            self.fail(f"sarif: {arguments}: undecided, and no result says so")

        xml = lxml.etree.fromstring(self.run([*arguments, "--format", "junit"], status).encode())
        self.seen["junit"] += 1
        if not self.junit.validate(xml):
            self.fail(f"junit: {arguments}: {self.junit.error_log}")
        suite = xml.find("testsuite")
        for word, element in [("tests", "testcase"), ("failures", "failure"), ("errors", "error"), ("skipped", "skipped")]:
            if int(suite.get(word)) != len(list(suite.iter(element))):
                self.fail(f"junit: {arguments}: {word} is {suite.get(word)}")
        if status == 1 and suite.get("failures") == "0" or status == 3 and suite.get("errors") == "0":
            self.fail(f"junit: {arguments}: exit status {status}, and no test says so")

        with tempfile.NamedTemporaryFile() as summary:
            text = self.run([*arguments, "--format", "github"], status, {"GITHUB_STEP_SUMMARY": summary.name})
            told = pathlib.Path(summary.name).read_text()
        self.seen["github"] += 1
        command = re.compile(r"::(error|warning|notice) (file=[^,:]*(,line=\d+(,col=\d+)?)?,)?title=[^,:]*::.*")
        commands = [line for line in text.splitlines() if line.lstrip().startswith("::")]
        for line in commands:
            if not command.fullmatch(line):
                self.fail(f"github: {arguments}: {line!r}")
        for line in text.splitlines():
            if "##[" in line and not line.startswith("::"):
                self.fail(f"github: {arguments}: a command in {line!r}")
        if len(commands) != len(run["results"]):
            self.fail(f"github: {arguments}: {len(commands)} annotations and {len(run['results'])} results")
        if not told.startswith("### graph-oracle ") or len(told.encode()) > 1 << 20:
            self.fail(f"github: {arguments}: the summary of the step has {len(told)} characters")
        inside = re.sub(r"<code>[^<>|`*_\[\]@\n]*</code>", "", told)
        if re.search(r"[<>`@*\[\]]", inside):
            self.fail(f"github: {arguments}: markup in the summary: {inside[:300]!r}")

    def document(self, arguments, status):
        """A document of our own."""
        document = json.loads(self.run([*arguments, "--format", "json"], status))
        first = document[0] if isinstance(document, list) else document
        first = first.get("first", first) if isinstance(first.get("first"), dict) else first
        version = next(value for key, value in first.items() if key.endswith("_version"))
        if version not in self.own:
            return self.fail(f"{arguments}: docs/schemas has none of {version}")
        self.holds(version, self.own[version], document, arguments)
        # A schema that takes everything checks nothing: without a key that it requires it must refuse.
        for key in first:
            less = {name: value for name, value in first.items() if name != key}
            less = [less] if isinstance(document, list) else less
            required = key in self.required(self.own[version].schema)
            if required and self.own[version].is_valid(less):
                self.fail(f"{version}: valid without {key}")

    def required(self, schema, root=None):
        root = root or schema
        if "$ref" in schema:
            return self.required(root["$defs"][schema["$ref"].rsplit("/", 1)[1]], root)
        below = [schema["items"]] if "items" in schema else schema.get("anyOf", [])[:1]
        return set(schema.get("required", [])).union(*(self.required(one, root) for one in below))

    def action_yml(self, scratch):
        """The action, and what its step does with a program that is there."""
        action = yaml.safe_load((PROJECT / "action.yml").read_text())
        self.holds("action.yml", self.action, action, "action.yml")
        steps = {step["name"]: step for step in action["runs"]["steps"]}
        for name, step in steps.items():
            if "run" in step:
                if "${{" in step["run"]:
                    self.fail(f"action.yml: {name}: an expression in a program")
                if subprocess.run(["bash", "-n"], input=step["run"].encode()).returncode != 0:
                    self.fail(f"action.yml: {name}: bash cannot read it")
        log = scratch / "action.sarif"
        for arguments, allow, status, written in [
            (f"check bucketing {BUCKETS} --candidate pr158663", "false", 1, True),
            (f"check\nbucketing\n{BUCKETS}\n--candidate\nreference\n", "false", 0, True),
            ("check bucketing nobody.graph", "false", 2, False),
            (f"check bucketing {UNDECIDED}", "false", 3, True),
            (f"check bucketing {UNDECIDED}", "true", 0, True),
        ]:
            log.unlink(missing_ok=True)
            output = scratch / "output"
            output.write_text("")
            environment = {
                **os.environ, "ARGUMENTS": arguments, "BINARY": str(self.program), "SARIF": str(log),
                "ALLOW_UNDECIDED": allow, "GITHUB_OUTPUT": str(output), "RUNNER_TEMP": str(scratch),
            }
            done = subprocess.run(["bash", "-c", steps["Judge"]["run"]], cwd=PROJECT, capture_output=True, env=environment)
            if done.returncode != status or log.exists() != written:
                self.fail(f"action.yml: {arguments!r}: exit status {done.returncode}: {done.stderr.decode()[:300]}")
            if written:
                self.holds("sarif", self.sarif, json.loads(log.read_text()), arguments)
            if "status=" not in output.read_text():
                self.fail(f"action.yml: {arguments!r}: no status in the outputs")


def check(validation, scratch):
    write = lambda name, value: (scratch / name).write_text(json.dumps(value)) and str(scratch / name)
    before, after = write("be fore,:%.json", hostile_graph("sum")), write("after.json", hostile_graph("max"))
    events = scratch / "events.jsonl"
    events.write_text(validation.run(["lifecycle", "--graph", JOINT], 0))
    wrong = scratch / "wrong.jsonl"
    told = events.read_text().splitlines(keepends=True)
    # Without the mark of the end, and once more.
    wrong.write_text("".join(["\n", *told[:-1], *told]))
    dumps = scratch / "dumps"
    dumps.mkdir()
    for rank in (0, 1):
        (dumps / f"fr_{rank}.json").write_text((PROJECT / "corpus/dumps/flight.json").read_text())
    kept = str(scratch / "kept")
    convicted = ["--candidate", "pr158663", "--cases", "6", "--reduce-seconds", "1", "--jobs", "1"]
    validation.run(["fuzz", "bucketing", *convicted, "--out", kept], 1)
    snapshot = "corpus/dumps/snapshot.json"
    logs = "corpus/printed_graphs/logs.txt"
    reference = ["--candidate", "reference"]
    both = [
        (["check", "bucketing", BUCKETS, *reference], 0),
        (["check", "bucketing", BUCKETS, "--candidate", "pr158663"], 1),
        (["check", "bucketing", UNDECIDED], 3),
        (["check", "bucketing", before, after], 1),
        (["check", "rewrite", before, after], 1),
        (["check", "partition", before, *reference], None),
        (["check", "memory", JOINT, *reference], 0),
        (["check", "partition", "--replay", JOINT, *reference], 0),
        (["check", "schedule", "tests/cases/schedule/exposed_time_hidden.graph"], None),
        (["trace", logs], None),
        (["trace", logs, "--demand", "strides"], None),
        (["fuzz", "bucketing", *convicted], 1),
        (["fuzz", "all", "--cases", "14", "--jobs", "1"], None),
        (["fuzz", "bucketing", *convicted, "--against", "reference"], 1),
        (["results", kept], 1),
        (["lifecycle", str(events), "--graph", JOINT], 0),
        (["lifecycle", str(wrong)], 1),
        (["lifecycle", snapshot], None),
        (["lifecycle", snapshot, "--graph", JOINT], None),
        (["simulate", BUCKETS], 0),
        (["simulate", before, after, "--ranks", "0,1"], 1),
        (["simulate", BUCKETS, "--flight", str(dumps)], None),
    ]
    for arguments, status in both:
        if status is None:
            # Whatever it is, it is the same in every format.
            status = subprocess.run([validation.program, *arguments], cwd=PROJECT, capture_output=True).returncode
            if status == 2:
                validation.fail(f"{arguments}: could not run")
        validation.tools(arguments, status)
        validation.document(arguments, status)
    parts = str(scratch / "parts")
    for arguments, status in [
        (["rules"], 0),
        (["rules", "rewrite/values"], 0),
        (["smoke", BUCKETS], 0),
        (["smoke", BUCKETS, "--inject", "missing-wait"], 1),
        (["run", "partition", JOINT, "-o", parts], 0),
        (["run", "partition", JOINT, "-o", parts, "--set", "method=replay", "--set", "first=default"], 0),
    ]:
        validation.document(arguments, status)
    validation.action_yml(scratch)


def main():
    validation = Validation(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]))
    with tempfile.TemporaryDirectory() as scratch:
        check(validation, pathlib.Path(scratch))
    for kind in ["sarif", "junit", "github", "action.yml", *validation.own]:
        print(f"{validation.seen[kind]:4} {kind}")
        if validation.seen[kind] == 0:
            validation.fail(f"{kind}: nothing was held against it")
    print(f"{sum(validation.seen.values())} documents, {len(validation.faults)} faults")
    sys.exit(1 if validation.faults else 0)


if __name__ == "__main__":
    main()
