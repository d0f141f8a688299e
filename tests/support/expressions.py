"""Random pairs of an expression and an event, from a seed: mostly of matching kinds, often not, so errors too.

Cases in which the other implementation violates CEL's specification are left out and tested by hand; see
tests/unit/expr/test_cel_conformance.py.
"""

# ruff: noqa: ARG005 (a maker may use neither depth nor maker)
from collections.abc import Callable
from random import Random
from typing import Any, Final

INTS: Final = (0, 1, -1, 2, 3, 7, 100, -12, 2**31, 2**53 - 1, 2**62, 2**63 - 1)
SMALL_INTS: Final = (0, 1, -1, 2, 3, 7, 100, -12, -7)
DOUBLES: Final = (0.0, -0.0, 1.0, 1.5, -2.25, 3.0, 99.99, 1e10)
DIVISORS: Final = (1.0, -2.5, 8.0)
STRINGS: Final = ("", "a", "b", "abc", "ab", "B", "42", "-7", "1.5", "x y", "é", "zß", "2026-01-02T03:04:05Z", "1h")
FIELDS: Final = ("i", "j", "d", "s", "t", "n", "l", "m", "mix", "nope")
MOMENTS: Final = (
    "2026-01-02T03:04:05Z",
    "1969-12-31T23:59:59.5+01:00",
    "2024-02-29T00:00:00-11:30",
    "2026-01-02T03:04:05.25Z",
    "2000-02-29T12:00:00Z",
    "2026-13-01T00:00:00Z",
)
INSTANTS: Final = ("2026-01-02T03:04:05Z", "2000-02-29T23:59:59Z", "1969-12-31T00:00:00Z", "1900-01-01T00:00:00Z")
PARTS: Final = ("getFullYear", "getMonth", "getDate", "getDayOfWeek", "getHours")
SPANS: Final = ("1h", "90m", "-1.5s", "0", "20ms", "1h30m10s", "3s", "2m", "100h", "x")
# Weights by repetition: numbers most, times seldom. "any" last.
KINDS: Final = (
    *("bool", "int", "int", "int", "double", "double", "string", "string"),
    *("list", "list", "map", "time", "span", "any"),
)


class Maker:
    """Random generator of pairs; one seed gives one sequence."""

    def __init__(self, seed: int) -> None:
        self._chance = Random(seed)
        self.names: list[str] = []

    def pair(self) -> tuple[str, dict[str, Any]]:
        """Return an expression and the body of an event."""
        self.names = []
        return self.of("bool" if self._chance.random() < 0.6 else self.pick(KINDS), 4), self.body()

    def body(self) -> dict[str, Any]:
        """Return an event; most fields are present and of the kind that their letter promises, but not all."""
        whole = {
            "i": self.pick(INTS),
            "j": self.pick(SMALL_INTS),
            "d": self.pick(DOUBLES),
            "s": self.pick(STRINGS),
            "t": self.pick((True, False)),
            "n": None,
            "l": [self.pick(SMALL_INTS) for _ in range(self._chance.randrange(4))],
            "m": {name: self._scalar() for name in "abc"[: self._chance.randrange(4)]},
            "mix": [self._scalar() for _ in range(self._chance.randrange(4))],
        }
        if self._chance.random() < 0.1:
            whole[self.pick(tuple(whole))] = self.pick((*SMALL_INTS, 1.5, "abc", "42", True, None))
        return {name: value for name, value in whole.items() if self._chance.random() < 0.93}

    def of(self, kind: str, depth: int) -> str:
        """Return an expression that should be of a kind; one in twelve is of another."""
        if kind == "any" or (kind != "sure" and self._chance.random() < 1 / 12):
            kind = self.pick(KINDS[:-1])
        leaves, makers = _MAKERS[kind]
        if depth <= 0 or self._chance.random() < 0.25:
            return str(self.pick(leaves)(self))
        return str(self.pick(makers)(self, depth - 1))

    def pick(self, among: Any) -> Any:
        """Return one of the values."""
        return self._chance.choice(among)

    def _scalar(self) -> Any:
        return self.pick((self.pick(SMALL_INTS), self.pick(DOUBLES), self.pick(STRINGS), True, False, None))

    def literal(self, values: Any) -> str:
        """Return one of some constants, as a CEL literal."""
        value = self.pick(values)
        return f'"{value}"' if isinstance(value, str) else repr(value)

    def field(self, names: str | tuple[str, ...]) -> str:
        """Return a field of the event, or a variable of an enclosing comprehension."""
        if self.names and self._chance.random() < 0.5:
            return str(self.pick(self.names))
        return f"body.{self.pick(names)}"

    def loop(self, kind: str, depth: int, result: str, over: tuple[str, ...] = ("list", "list", "map")) -> str:
        """Return `over.kind(name, result)`, nested at most twice."""
        if len(self.names) >= 2:
            return self.of(result, 0)
        source = self.of(self.pick(over), min(depth, 1))
        self.names.append("xy"[len(self.names)])
        try:
            return f"{source}.{kind}({self.names[-1]}, {self.of(result, depth)})"
        finally:
            self.names.pop()

    def infix(self, signs: tuple[str, ...], kind: str, depth: int) -> str:
        """Return `(one sign other)`."""
        return f"({self.of(kind, depth)} {self.pick(signs)} {self.of(kind, depth)})"

    def choose(self, kind: str, depth: int) -> str:
        """Return `(test ? one : other)`."""
        return f"({self.of('bool', depth)} ? {self.of(kind, depth)} : {self.of(kind, depth)})"


_ORDER: Final = ("<", "<=", ">", ">=", "==", "!=")
_Leaf = Callable[[Maker], str]
_Make = Callable[[Maker, int], str]
_MAKERS: Final[dict[str, tuple[list[_Leaf], list[_Make]]]] = {
    "bool": (
        [
            lambda m: m.field("t"),
            lambda m: m.literal(("true", "false")).strip('"'),
            lambda m: f"has(body.{m.pick(FIELDS)})",
        ],
        [
            lambda m, d: m.infix(("&&", "||"), "bool", d),
            lambda m, d: m.infix(("&&", "||"), "bool", d),
            lambda m, d: m.infix(_ORDER, m.pick(("int", "int", "int", "double", "string", "time", "span")), d),
            lambda m, d: (
                f"({m.of(m.pick(('int', 'double')), d)} {m.pick(_ORDER)} {m.of(m.pick(('int', 'double')), 0)})"
            ),
            lambda m, d: m.infix(("==", "!="), "any", d),
            lambda m, d: f"!({m.of('bool', d)})".replace("!(!", "!(false || !"),
            lambda m, d: f"({m.of('any', d)} in body.{m.pick(('l', 'mix'))})",
            lambda m, d: f"({m.of('any', d)} in [{m.of('any', d)}, {m.of('any', d)}])",
            lambda m, d: f"({m.literal(STRINGS)} in {m.of('map', d)})",
            lambda m, d: f"{m.of('string', d)}.{m.pick(('contains', 'startsWith', 'endsWith'))}({m.of('string', d)})",
            lambda m, d: f'{m.of("string", d)}.matches("{m.pick(("^a", "b+", "[0-9]{2}", "(a|b)c?$", ""))}")',
            lambda m, d: m.loop("all", d, "sure"),
            lambda m, d: m.loop("exists", d, "sure"),
            lambda m, d: m.loop("exists_one", d, "bool"),
            lambda m, d: m.choose("bool", d),
        ],
    ),
    "sure": (  # never an error: the other implementation lets a first element's error win over a later decision
        [lambda m: f"{m.names[-1]} == {m.literal(SMALL_INTS)}", lambda m: f"{m.names[-1]} != {m.literal(STRINGS)}"],
        [
            lambda m, d: m.infix(("&&", "||"), "sure", d),
            lambda m, d: f"!({m.of('sure', d)})",
            lambda m, d: f"({m.names[-1]} in [{m.literal(STRINGS)}, {m.literal(SMALL_INTS)}, {m.literal(DOUBLES)}])",
            lambda m, d: f"has(body.{m.pick(FIELDS)})",
        ],
    ),
    "int": (
        [lambda m: m.literal(INTS), lambda m: m.literal(SMALL_INTS), lambda m: m.field("ij"), lambda m: m.field("ij")],
        [
            lambda m, d: m.infix(("+", "-", "*", "/", "%"), "int", d),
            lambda m, d: m.infix(("+", "-", "*", "/", "%"), "int", d),
            lambda m, d: f"({m.literal(INTS)} {m.pick('+-*/%')} {m.literal((3, -3, 7, 2**31, 2**63 - 1))})",
            lambda m, d: f"({m.literal(SMALL_INTS)} {m.pick('/%')} {m.literal((2, -5, 9))})",
            lambda m, d: f"-({m.literal(INTS)} - {m.literal(SMALL_INTS)})",  # no field: the other negates bools, too
            lambda m, d: f"size(body.{m.pick(('l', 'm', 'mix'))})",
            lambda m, d: f"body.{m.pick(('l', 'm', 'mix'))}.size()",
            lambda m, d: f"int({m.literal(m.pick((DOUBLES, STRINGS, INTS)))})",
            lambda m, d: f"{m.of('list', d)}[{m.of('int', 0)}]",
            lambda m, d: f"timestamp('{m.pick(INSTANTS)}').{m.pick(PARTS)}()",
            lambda m, d: m.choose("int", d),
        ],
    ),
    "double": (
        [lambda m: m.literal(DOUBLES), lambda m: m.field("d")],
        [
            lambda m, d: m.infix(("+", "-", "*"), "double", d),
            lambda m, d: f"({m.of('double', d)} / {m.literal(DIVISORS)})",
            lambda m, d: f"double({m.literal(m.pick((DOUBLES, STRINGS, INTS)))})",
            lambda m, d: m.choose("double", d),
        ],
    ),
    "string": (
        [lambda m: m.literal(STRINGS), lambda m: m.field("s")],
        [
            lambda m, d: m.infix(("+",), "string", d),
            lambda m, d: f"string({m.literal(m.pick((INTS, STRINGS)))})",
            lambda m, d: m.choose("string", d),
        ],
    ),
    "list": (
        [lambda m: m.field(("l", "mix")), lambda m: "[]", lambda m: f"[{m.literal(SMALL_INTS)}, {m.literal(STRINGS)}]"],
        [
            lambda m, d: f"({m.field(('l', 'mix'))} + {m.field(('l', 'mix', 'j'))})",
            lambda m, d: f"[{m.of('any', d)}, {m.of('any', d)}]",
            lambda m, d: m.loop("map", d, "any", ("list",)),
            lambda m, d: m.loop("filter", d, "bool", ("list",)),
            lambda m, d: m.choose("list", d),
        ],
    ),
    "map": (
        [lambda m: m.field("m"), lambda m: "{}"],
        [lambda m, d: f'{{"a": {m.of("any", d)}, "b": {m.of("any", d)}}}', lambda m, d: m.choose("map", d)],
    ),
    "time": (
        [lambda m: f'timestamp("{m.pick(MOMENTS)}")'],
        [
            lambda m, d: f"({m.of('time', d)} {m.pick('+-')} {m.of('span', d)})",
            lambda m, d: f"timestamp({m.literal((*MOMENTS, *MOMENTS, *STRINGS[:3]))})",
        ],
    ),
    "span": (
        [lambda m: f'duration("{m.pick(SPANS)}")'],
        [
            lambda m, d: f'({m.of("span", d)} {m.pick("+-")} duration("{m.pick(SPANS)}"))',
            lambda m, d: f"({m.of('time', d)} - {m.of('time', d)})",
        ],
    ),
}
