"""Digests of functions: the same for the same code, wherever it stands; another for other code."""

from __future__ import annotations

from functools import partial
from types import FunctionType, ModuleType
from typing import Any

import pytest

from everview.operators.digests import OPAQUE, captured, digest_of
from everview.operators.functions import Function
from everview.scalars.evaluate import Evaluate
from everview.scalars.expressions import UserCall
from everview.types import BIGINT


def made(text: str, name: str = "f") -> Any:
    module = ModuleType("made")
    exec(text, vars(module))
    return vars(module)[name]


BODY = "def f(a, b=2):\n    return [a + b for _ in range(3)]"


@pytest.mark.parametrize(
    "same",
    [
        f"# further down\n\n\n{BODY}",
        'def f(a, b=2):\n    "Docs."\n    return [a + b for _ in range(3)]',
        f"import math\nother = 7\n{BODY}",
    ],
)
def test_the_same_code_has_the_same_digest(same: str) -> None:
    assert digest_of(made(same)) == digest_of(made(BODY))


@pytest.mark.parametrize(
    "other",
    [
        "def f(a, b=3):\n    return [a + b for _ in range(3)]",
        "def f(a, b=2):\n    return [a - b for _ in range(3)]",
        "def f(a, b=2):\n    return [a + b for _ in range(4)]",
        "def f(a, b=2):\n    return [a + b for _ in iter(3)]",
    ],
)
def test_other_code_has_another_digest(other: str) -> None:
    assert digest_of(made(other)) != digest_of(made(BODY))


def test_what_a_function_calls_in_its_module_counts() -> None:
    text = "def g(a):\n    return a + {}\ndef f(a):\n    return g(a) + f(a - 1)"
    assert digest_of(made(text.format(1))) == digest_of(made(text.format(1)))
    assert digest_of(made(text.format(1))) != digest_of(made(text.format(2)))


def test_closures_methods_and_objects() -> None:
    def adding(more: int) -> FunctionType:
        def add(a: int) -> int:
            return a + more

        assert isinstance(add, FunctionType)
        return add

    class Adding:
        def __call__(self, a: int) -> int:
            return a + 1

    assert digest_of(adding(1)) == digest_of(adding(1))
    assert digest_of(adding(1)) != digest_of(adding(2))
    assert digest_of(partial(adding(1), 3)) != digest_of(partial(adding(1), 4))
    assert digest_of(Adding()) == digest_of(Adding())
    assert digest_of(Adding()) != digest_of(adding(1))
    assert digest_of(len) == digest_of(max)  # nothing is known of them


def test_functions_that_an_expression_calls_count() -> None:
    def evaluate(text: str) -> Evaluate:
        return Evaluate((UserCall("f", (), BIGINT),), (Function("f", made(text)),))

    assert digest_of(evaluate(BODY)) == digest_of(evaluate(f"# moved\n{BODY}"))
    assert digest_of(evaluate(BODY)) != digest_of(evaluate(BODY.replace("+", "-")))


@pytest.mark.parametrize(
    "value",
    ["1", "[1, {2, 3}]", "{'b': (1, None), 'a': 2}", "re.compile('a+')", "np.arange(3)", "Thing(1)", "Thing(Thing(2))"],
)
def test_what_a_function_refers_to_is_told(value: str) -> None:
    text = (
        "import re\nimport numpy as np\n"
        "class Thing:\n    def __init__(self, a): self.a = a\n"
        "X = {}\ndef g(a):\n    return X\ndef f(a):\n    return g(a)"
    )
    first = captured(made(text.format(value)))
    assert first == captured(made(text.format(value)))
    assert first != captured(made(text.format("'other'")))
    assert OPAQUE not in repr(first)
    assert OPAQUE in repr(captured(made(text.format("iter([1])"))))
