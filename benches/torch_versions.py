"""What each version of torch has of the private parts that graph-oracle leans on, read off its sources.

    python benches/torch_versions.py --sources DIR          # DIR/2.8/torch/..., DIR/2.9/torch/..., ...
    python benches/torch_versions.py --sources DIR --fetch  # makes what is missing there, one wheel at a time

The table is python/graph_oracle/pytorch/versions.py. Nothing of torch is imported: a name counts as there if the
module's text binds it (a definition, an assignment, an import). What is compiled, or made at import, they do not show.
Prints the table; the exit status is 1 if a row says something else than the sources.
"""

import argparse
import ast
import importlib.util
import pathlib
import subprocess
import sys
import tempfile
import zipfile

PACKAGE = pathlib.Path(__file__).resolve().parents[1] / "python" / "graph_oracle" / "pytorch"


def table():
    """The module with the table, by its file: the package itself need not be built."""
    spec = importlib.util.spec_from_file_location("versions", PACKAGE / "versions.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["versions"] = module
    spec.loader.exec_module(module)
    return module


class Sources:
    """The unpacked Python files of one version."""

    def __init__(self, root):
        self.root, self.trees = pathlib.Path(root), {}

    def has(self, row):
        """Whether a row's part is there, and takes what it must take."""
        parts = row.path.split(".")
        for length in range(len(parts), 0, -1):
            tree = self.module(parts[:length])
            if tree is not None:
                return self.within(tree, parts[:length], parts[length:], row)
        return False

    def module(self, parts):
        """The syntax tree of a module; None where there is none."""
        key = tuple(parts)
        if key not in self.trees:
            path = self.root.joinpath(*parts)
            files = [path / "__init__.py", path.with_suffix(".py")]
            found = next((file for file in files if file.is_file()), None)
            self.trees[key] = None if found is None else ast.parse(found.read_text(encoding="utf-8"))
        return self.trees[key]

    def within(self, tree, module, names, row):
        """Whether a module binds a name, and the class of that name the next one."""
        scope = tree
        for number, name in enumerate(names):
            last = number == len(names) - 1
            found = self.bound(scope, name, module)
            if not found and last and number and row.of_instance:
                return is_set(scope, name)
            if not found:
                return False
            if isinstance(found, tuple):
                # From another module: it must have it, if it has a text.
                source, original = found
                if source[:2] == ["torch", "_C"] or source[0] != "torch":
                    return True
                other = self.module(source)
                if other is None:
                    return self.module([*source, original]) is not None
                return self.within(other, source, [original, *names[number + 1 :]], row)
            if last:
                return takes(found, row.takes)
            scope = found
        return True

    def bound(self, scope, name, module):
        """What binds a name: a statement, or (module, name) of an import; None if nothing does."""
        for statement in statements(scope):
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                if statement.name == name:
                    return statement
            elif isinstance(statement, ast.ImportFrom):
                source = absolute(statement, module, self.is_package(module))
                for alias in statement.names:
                    if alias.name == "*" and (other := self.module(source)) is not None:
                        if other is not scope and self.bound(other, name, source):
                            return source, name
                    if (alias.asname or alias.name) == name:
                        return source, alias.name
            elif isinstance(statement, ast.Import):
                if any((alias.asname or alias.name.split(".")[0]) == name for alias in statement.names):
                    return statement
            elif name in assigned(statement):
                return statement
        return None

    def is_package(self, module):
        return self.root.joinpath(*module, "__init__.py").is_file()


def statements(scope):
    """The statements of a scope, those under conditions too."""
    for statement in getattr(scope, "body", []):
        yield statement
        if isinstance(statement, (ast.If, ast.Try, ast.With, ast.For)):
            yield from statements(statement)
            for handler in getattr(statement, "handlers", []):
                yield from statements(handler)
            for part in (getattr(statement, "orelse", []), getattr(statement, "finalbody", [])):
                yield from statements(ast.Module(part, []))


def assigned(statement):
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    nodes = [node for target in targets if target is not None for node in ast.walk(target)]
    return {node.id for node in nodes if isinstance(node, ast.Name)}


def is_set(scope, name):
    """Whether some method of a class sets `self.NAME`."""
    stores = [node for node in ast.walk(scope) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)]
    return any(node.attr == name for node in stores)


def takes(found, parameters):
    if not parameters:
        return True
    if not isinstance(found, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    known = found.args
    names = {argument.arg for argument in (*known.posonlyargs, *known.args, *known.kwonlyargs)}
    return set(parameters) <= names


def absolute(statement, module, is_package):
    """The module that an import is from."""
    named = statement.module.split(".") if statement.module else []
    if not statement.level:
        return named
    up = statement.level - (1 if is_package else 0)
    return [*module[: len(module) - up], *named]


def fetch(folder, version):
    """The Python files of a version's wheel from the package index; the wheel is deleted at once."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "-d", place]
        subprocess.run([*command, f"torch=={version}.0"], check=True)
        (wheel,) = pathlib.Path(place).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder / version, [name for name in archive.namelist() if name.endswith(".py")])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sources", required=True, metavar="DIR", type=pathlib.Path)
    parser.add_argument("--fetch", action="store_true", help="download what is missing, one wheel (1 GB) at a time")
    given = parser.parse_args()
    known = table()
    versions = [(2, minor) for minor in range(known.FIRST[1], known.LAST[1] + 1)]
    given.sources.mkdir(exist_ok=True)
    sources = {}
    for version in versions:
        name = ".".join(map(str, version))
        if given.fetch and not (given.sources / name).is_dir():
            fetch(given.sources, name)
        if (given.sources / name / "torch").is_dir():
            sources[version] = Sources(given.sources / name)
        else:
            print(f"there are no sources of {name} in {given.sources}: --fetch gets them", file=sys.stderr)
            return 2
    wrong, compiled = 0, 0
    print(f"{'':<78}" + " ".join(f"{f'{a}.{b}':>4}" for a, b in versions))
    for row in known.ROWS:
        if row.compiled:
            compiled += 1
            print(f"{row.path:<78}(made when torch is imported: not in the sources)")
            continue
        cells = []
        for version in versions:
            has, should = sources[version].has(row), row.first <= version <= row.last
            wrong += has != should
            cells.append(f"{('yes' if has else '-') + ('' if has == should else '!'):>4}")
        print(f"{row.path:<78}" + " ".join(cells))
    print(f"{len(known.ROWS)} rows, {len(versions)} versions, {compiled} not in the sources; {wrong} cells differ (!)")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
