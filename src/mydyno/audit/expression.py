"""The language of rules: arithmetic and comparisons over named facts, and nothing else.

``fact.redo < 900 * rate.redo`` is parsed by Python's own parser, and only the nodes named here are
evaluated.  A name without a value makes the expression impossible to evaluate: never a guess.
"""

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NoReturn

from mydyno.model import SpecError

Value = float | str
Values = Mapping[str, Value]

_UNITS = {"KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40}
_LONGEST = 1000  # characters
_POWERS = (1.0, 1.25, 1.5, 1.75)


class LackingError(Exception):
    """A fact that an expression needs is not known; the argument is its name."""


def clamp(value: float, low: float, high: float) -> float:
    """Return the value, or the end of the range that it is beyond."""
    return min(max(value, low), high)


def steps(value: float) -> float:
    """Return the value rounded down to a power of two times 1, 1.25, 1.5 or 1.75.

    Values that differ by less than a step are the same advice.
    """
    if value <= 0:
        return 0.0
    power = 2.0 ** math.floor(math.log2(value))
    return power * max(step for step in _POWERS if power * step <= value)


_FUNCTIONS: Mapping[str, tuple[Callable[..., float], int]] = {
    "min": (min, 2),
    "max": (max, 2),
    "clamp": (clamp, 3),
    "round": (round, 1),
    "steps": (steps, 1),
}
_ARITHMETIC: Mapping[type[ast.AST], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_COMPARISONS: Mapping[type[ast.AST], Callable[[Value, Value], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_ORDERED = (operator.lt, operator.le, operator.gt, operator.ge)
_NAME = re.compile(r"[a-z]+(\.[A-Za-z]\w*)+")


Evaluated = Callable[[Values], Value]


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression that can be evaluated; `text` is what was written, `names` the facts in it."""

    text: str
    names: frozenset[str]
    evaluated: Evaluated

    def value(self, values: Values) -> Value:
        """Return its value; raise `LackingError` for a fact that is not known.

        What cannot be computed (a division by zero, text compared with a number) raises it too,
        with the reason.
        """
        try:
            found = self.evaluated(values)
        except (ZeroDivisionError, OverflowError, TypeError, ValueError) as error:
            raise LackingError(f"{self.text}: {error}") from error
        if isinstance(found, float) and not math.isfinite(found):
            raise LackingError(f"{self.text}: not a finite number")
        return found

    def true(self, values: Values) -> bool:
        """Return whether it holds; raise `LackingError` as `value` does."""
        return bool(self.value(values))


@cache
def parsed(text: str, place: str) -> Expression:
    """Return an expression; raise `SpecError` naming its `place` for anything but the language."""
    try:
        body = ast.parse(text.strip()[: _LONGEST + 1], mode="eval").body
        evaluated = _built(body)
        if len(text) > _LONGEST:
            _refuse("longer than a thousand characters")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise SpecError(f"{place}: {text[:80]!r} is not an expression: {error}") from error
    found = (node for node in ast.walk(body) if isinstance(node, ast.Attribute))
    return Expression(text, frozenset(map(ast.unparse, found)), evaluated)


def _refuse(reason: str) -> NoReturn:
    raise ValueError(reason)


def _built(node: ast.expr) -> Evaluated:
    """Return the function that evaluates a node; raise `ValueError` for one of another kind."""
    build = _BUILDERS.get(type(node))
    return build(node) if build else _refuse(f"{ast.unparse(node)!r} is not allowed")


def _constant(node: ast.Constant) -> Evaluated:
    value = node.value
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        _refuse(f"{value!r}: write a number, or text such as 'ON'")
    return lambda _: value if isinstance(value, str) else float(value)


def _unit(node: ast.Name) -> Evaluated:
    if node.id not in _UNITS:
        _refuse(f"{node.id} is not a unit; known: {', '.join(_UNITS)}")
    return lambda _: _UNITS[node.id]


def _fact(node: ast.Attribute) -> Evaluated:
    name = ast.unparse(node)
    if not _NAME.fullmatch(name):
        _refuse(f"{name} is not the name of a fact")

    def fact(values: Values) -> Value:
        if name not in values:
            raise LackingError(name)
        return values[name]

    return fact


def _number(node: ast.expr) -> Callable[[Values], float]:
    inner = _built(node)

    def number(values: Values) -> float:
        found = inner(values)
        if isinstance(found, str):
            raise LackingError(f"{ast.unparse(node)} as a number; it is {found!r}")
        return found

    return number


def _unary(node: ast.UnaryOp) -> Evaluated:
    if isinstance(node.op, ast.Not):
        inner = _built(node.operand)
        return lambda values: float(not inner(values))
    if not isinstance(node.op, ast.USub):
        _refuse(f"{ast.unparse(node)!r} is not allowed")
    number = _number(node.operand)
    return lambda values: -number(values)


def _arithmetic(node: ast.BinOp) -> Evaluated:
    act = _ARITHMETIC.get(type(node.op)) or _refuse("arithmetic is +, -, *, /")
    left, right = _number(node.left), _number(node.right)
    return lambda values: act(left(values), right(values))


def _logic(node: ast.BoolOp) -> Evaluated:
    test = all if isinstance(node.op, ast.And) else any
    parts = [_built(part) for part in node.values]
    # the rest needs no facts once the answer is clear
    return lambda values: float(test(bool(part(values)) for part in parts))


def _call(node: ast.Call) -> Evaluated:
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    if name == "has" and len(node.args) == 1 and isinstance(node.args[0], ast.Attribute):
        fact = ast.unparse(node.args[0])
        return lambda values: float(fact in values)
    if name not in _FUNCTIONS or node.keywords:
        _refuse(f"{ast.unparse(node)!r} is not allowed")
    act, count = _FUNCTIONS[name]
    if len(node.args) != count:
        _refuse(f"{name}() takes {count} values")
    parts = [_number(part) for part in node.args]
    return lambda values: float(act(*(part(values) for part in parts)))


def _comparison(node: ast.Compare) -> Evaluated:
    terms = [node.left, *node.comparators]
    tests = [_test(*one) for one in zip(node.ops, terms, terms[1:], strict=False)]
    return lambda values: float(all(test(values) for test in tests))


def _test(op: ast.cmpop, left: ast.expr, right: ast.expr) -> Callable[[Values], bool]:
    if isinstance(op, ast.In | ast.NotIn):
        return _listed(left, right, wanted=isinstance(op, ast.In))
    compare = _COMPARISONS.get(type(op)) or _refuse("a comparison is ==, !=, <, <=, >, >=, in")
    first, second = _built(left), _built(right)

    def test(values: Values) -> bool:
        one, other = _plain(first(values)), _plain(second(values))
        if isinstance(one, str) != isinstance(other, str) and compare in _ORDERED:
            raise LackingError(f"{ast.unparse(left)} and {ast.unparse(right)}: text and a number")
        return compare(one, other)

    return test


def _listed(left: ast.expr, right: ast.expr, *, wanted: bool) -> Callable[[Values], bool]:
    if not isinstance(right, ast.Tuple):
        _refuse("`in` takes a list, as ('a', 'b')")
    value, parts = _built(left), [_built(part) for part in right.elts]
    return lambda values: (
        (_plain(value(values)) in {_plain(part(values)) for part in parts}) == wanted
    )


def _plain(value: Value) -> Value:
    """Return a value as it is compared: text in upper case, as servers print ON or on."""
    return value.upper() if isinstance(value, str) else value


_BUILDERS: Mapping[type[ast.expr], Callable[[Any], Evaluated]] = {
    ast.Constant: _constant,
    ast.Name: _unit,
    ast.Attribute: _fact,
    ast.UnaryOp: _unary,
    ast.BinOp: _arithmetic,
    ast.BoolOp: _logic,
    ast.Call: _call,
    ast.Compare: _comparison,
}
