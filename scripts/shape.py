"""Measure the shape of the code: what a change of one row visits, and what a person must touch or read.

``scripts/shape.py [NAME=CHECKOUT …]`` prints one Markdown table with a column for each checkout, by default this one.
To compare with an older commit, make a worktree of it (`git worktree add ../before COMMIT`) and run
``.venv/bin/python scripts/shape.py before=../before now=.``
"""

from __future__ import annotations

import ast
import json
import os
import re
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

# Each stands for its kind: what names it today is what a new one of its kind would have to be named in.
SCALAR_FUNCTION = "initcap"
AGGREGATE = "stddev_pop"
OPERATOR = "Semijoin"
FRONT_END = "pomora"

LONG = 60  # lines of a function
BRANCHY = 15  # places where a function may go one way or another
VAGUE = ("found", "at", "here", "of")  # names that say nothing of what they are bound to

# A tick of one row through a join and an aggregate: calls of Python functions in the package, once it is warm.
VISIT = """
import json, os, sys, tempfile
import everview as ev

root = os.path.dirname(ev.__file__)

def visited(db):
    db.sql('''
        CREATE TABLE account (id BIGINT PRIMARY KEY, country STRING);
        CREATE TABLE transfer (id BIGINT PRIMARY KEY, src BIGINT, amount DECIMAL(12, 2));
        CREATE MATERIALIZED VIEW exposure AS
            SELECT a.country, SUM(t.amount) AS total FROM transfer t JOIN account a ON a.id = t.src GROUP BY a.country
    ''')
    db.apply({"account": [((n, "UK"), 1) for n in range(100)]})
    for n in range(40):
        db.apply({"transfer": [((n, n, "1.50"), 1)]})
    calls, functions, files = 0, set(), set()

    def seen(frame, event, argument):
        nonlocal calls
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(root):
            calls += 1
            functions.add(code)
            files.add(code.co_filename)

    change = {"transfer": [((99, 99, "1.50"), 1)]}
    sys.setprofile(seen)
    db.apply(change)
    sys.setprofile(None)
    db.close()
    return [calls, len(functions), len(files)]

memory = visited(ev.connect())
with tempfile.TemporaryDirectory() as home:
    durable = visited(ev.connect(home + "/db"))
print(json.dumps([memory, durable]))
"""


def main(arguments: list[str]) -> None:
    """Print the table: a row for each measure, a column for each checkout."""
    checkouts = dict(argument.split("=", 1) for argument in arguments) or {"now": "."}
    columns = {name: measured(Path(path).resolve()) for name, path in checkouts.items()}
    print("| |", " | ".join(columns), "|")
    print("|---|" + "---:|" * len(columns))
    for measure in next(iter(columns.values())):
        print(f"| {measure} |", " | ".join(column[measure] for column in columns.values()), "|")


def measured(checkout: Path) -> dict[str, str]:
    """Give every measure of one checkout, by its title."""
    memory, durable = _visited(checkout)
    trees = {path: ast.parse(path.read_text()) for path in sorted((checkout / "src" / "everview").rglob("*.py"))}
    functions = [(path, node) for path, tree in trees.items() for node in ast.walk(tree) if _is_function(node)]
    outside = [node for path, node in functions if "kernels" not in path.parts]
    classes = Counter(n.name for tree in trees.values() for n in ast.walk(tree) if isinstance(n, ast.ClassDef))
    return {
        "a one-row `db.apply`: calls / functions / files": _figures(memory),
        "the same, durable": _figures(durable),
        f"files that name a scalar function (`{SCALAR_FUNCTION}`)": str(_naming(trees, SCALAR_FUNCTION)),
        f"files that name an aggregate (`{AGGREGATE}`)": str(_naming(trees, AGGREGATE)),
        f"files that name an operator (`{OPERATOR}`)": str(_naming(trees, OPERATOR)),
        f"files outside its folder that import a front end (`{FRONT_END}`)": str(_importing(trees, FRONT_END)),
        "class names defined more than once": str(sum(count > 1 for count in classes.values())),
        f"functions over {LONG} lines, outside kernels": str(sum(_lines(node) > LONG for node in outside)),
        f"functions over {BRANCHY} branches, outside kernels": str(sum(_branches(n) > BRANCHY for n in outside)),
        "median lines of a function": f"{statistics.median(_lines(node) for _, node in functions):g}",
        f"bindings of {', '.join(f'`{name}`' for name in VAGUE)}": _vague(trees),
        "lines of `src`": f"{sum(len(path.read_text().splitlines()) for path in trees):,}",
    }


def _visited(checkout: Path) -> list[list[int]]:
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src")}
    done = subprocess.run([sys.executable, "-c", VISIT], env=environment, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def _figures(counts: list[int]) -> str:
    return " / ".join(str(count) for count in counts)


def _is_function(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


def _naming(trees: dict[Path, ast.Module], name: str) -> int:
    """Count the files that name something: as a whole word, in code; its tests and its page do not count."""
    word = re.compile(rf"\b{name}\b")
    return sum(any(word.search(text) for text in _names(tree)) for tree in trees.values())


def _names(tree: ast.Module) -> Iterator[str]:
    """Give identifiers and texts of a module, without its docstrings."""
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.FunctionDef(name=name) | ast.keyword(arg=str(name)):
                yield name
            case ast.Constant(value=str(text)) if id(node) not in docstrings:
                yield text
            case _:
                pass


def _importing(trees: dict[Path, ast.Module], package: str) -> int:
    dotted = re.compile(rf"everview\.frontends\.(\w+\.)*{package}\b")
    outside = [tree for path, tree in trees.items() if package not in path.parts]
    return sum(
        any(isinstance(node, ast.ImportFrom) and dotted.search(node.module or "") for node in ast.walk(tree))
        for tree in outside
    )


def _lines(node: ast.AST) -> int:
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    return (node.end_lineno or node.lineno) - node.lineno + 1


def _branches(node: ast.AST) -> int:
    """Count where a function branches; what is defined inside of it counts for itself."""
    branching = (ast.If, ast.For, ast.While, ast.IfExp, ast.ExceptHandler, ast.match_case, ast.comprehension)
    count, left = 0, list(ast.iter_child_nodes(node))
    while left:
        inner = left.pop()
        if _is_function(inner) or isinstance(inner, ast.ClassDef | ast.Lambda):
            continue
        count += isinstance(inner, branching)
        left.extend(ast.iter_child_nodes(inner))
    return count


def _vague(trees: dict[Path, ast.Module]) -> str:
    bound = Counter(name for tree in trees.values() for node in ast.walk(tree) for name in _bound(node))
    return " / ".join(str(bound[name]) for name in VAGUE)


def _bound(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
            yield name
        case _:
            pass


if __name__ == "__main__":
    main(sys.argv[1:])
