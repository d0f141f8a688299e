"""Comprehensions as closures, over the elements of a list or the keys of a map. Each iteration is charged."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

from dataplane.expr.closures import Code
from dataplane.expr.frame import ERROR_UNITS, Frame, charge
from dataplane.expr.nodes import ComprehensionKind
from dataplane.expr.values import EvaluationError, kind


class LoopIteration(NamedTuple):
    """One iteration of a comprehension: the element is in slot `place` of the frame.

    An iteration costs `nodes` units and one more.
    """

    place: int
    test: Code | None
    result: Code
    nodes: int

    def rounds(self, frame: Frame, over: Any, name: str) -> Iterator[Any]:
        """Set the variable to each element in turn, and charge for its iteration."""
        units = self.nodes + 1
        for element in _elements(over, name):
            charge(frame, units)
            frame[self.place] = element
            yield element


def comprehension(kind_of: ComprehensionKind, over: Code, each: LoopIteration) -> Code:
    """Return code for `over.kind(variable, result)`."""
    return _KINDS[kind_of](over, each)


def _elements(value: Any, name: str) -> Iterable[Any]:
    if type(value) is list or type(value) is dict:
        return value
    raise EvaluationError(f"{name} needs a list or a map, got {kind(value)}")


def _holds(test: Code, frame: Frame, name: str) -> bool:
    value = test(frame)
    if type(value) is bool:
        return value
    raise EvaluationError(f"{name} needs a bool for each element, got {kind(value)}")


def _deciding(name: str, decides: bool) -> Callable[[Code, LoopIteration], Code]:
    """Act as a chain of `||` or `&&` over the elements: one that decides absorbs the errors of all others."""

    def make(over: Code, each: LoopIteration) -> Code:
        def run(frame: Frame) -> bool:
            error: EvaluationError | None = None
            for _ in each.rounds(frame, over(frame), name):
                try:
                    if _holds(each.result, frame, name) is decides:
                        return decides
                except EvaluationError as exc:
                    charge(frame, ERROR_UNITS)
                    error = error or exc
            if error is not None:
                raise error
            return not decides

        return run

    return make


def _exists_one(over: Code, each: LoopIteration) -> Code:
    def run(frame: Frame) -> bool:
        rounds = each.rounds(frame, over(frame), "exists_one")
        return sum(_holds(each.result, frame, "exists_one") for _ in rounds) == 1

    return run


def _filter(over: Code, each: LoopIteration) -> Code:
    def run(frame: Frame) -> list[Any]:
        rounds = each.rounds(frame, over(frame), "filter")
        return [element for element in rounds if _holds(each.result, frame, "filter")]

    return run


def _map(over: Code, each: LoopIteration) -> Code:
    result, test = each.result, each.test

    def run(frame: Frame) -> list[Any]:
        rounds = each.rounds(frame, over(frame), "map")
        return [result(frame) for _ in rounds if test is None or _holds(test, frame, "map")]

    return run


_KINDS: Final[dict[ComprehensionKind, Callable[[Code, LoopIteration], Code]]] = {
    "all": _deciding("all", False),
    "exists": _deciding("exists", True),
    "exists_one": _exists_one,
    "filter": _filter,
    "map": _map,
}
