"""The route compiled: which destinations a message goes to."""

from collections.abc import Sequence
from typing import Any

from dataplane.expr import Allowance, EvalError, LimitError, compile_expr
from dataplane.plan.stage import NOTHING_KNOWN, StageError, internal_error
from dataplane.spec import Routes
from dataplane.spec.checks import EXPRESSION_ROOTS
from dataplane.stages.steps import About


class Route:
    """Rules in order over a decoded body; the spec says what `first` and `all` mean."""

    def __init__(self, routes: Routes, destinations: Sequence[str]) -> None:
        self._rules = [(compile_expr(rule.when, EXPRESSION_ROOTS), tuple(rule.to)) for rule in routes.rules]
        self._order = tuple(destinations)
        self._first_only = routes.mode == "first"
        self._otherwise = tuple(routes.otherwise)
        self.needs_about = any("meta" in when.uses for when, _ in self._rules)

    @property
    def parts(self) -> int:
        """How many there are."""
        return len(self._rules)

    def __call__(self, value: Any, about: About = NOTHING_KNOWN) -> tuple[str, ...]:
        """The names of the destinations, each once, in the spec's order where several rules hold; none: unrouted.

        Raises StageError `route`, naming the rule, if a condition has no value: a message about which we cannot say
        where it goes goes nowhere, not half of its ways.
        """
        chosen: list[tuple[str, ...]] = []
        number, allowance = 0, Allowance()
        try:
            for number, (when, to) in enumerate(self._rules):  # noqa: B007 (named in the error below)
                if when.test(value, about.meta, allowance=allowance):
                    if self._first_only:
                        return to
                    chosen.append(to)
        except (EvalError, LimitError) as exc:
            raise StageError("route", f"routes.rules[{number}].when: {exc}") from exc
        except MemoryError:
            raise
        except Exception as exc:
            raise internal_error(f"routes.rules[{number}].when", exc) from exc
        if len(chosen) > 1:
            names = {name for to in chosen for name in to}
            return tuple(name for name in self._order if name in names)
        return chosen[0] if chosen else self._otherwise

    def verdicts(self, value: Any, about: About = NOTHING_KNOWN) -> list[bool | None]:
        """Whether each rule holds, in order; None for one that is not asked, because an earlier one has decided.

        Raises EvalError, LimitError where the route itself would bury the message.
        """
        found: list[bool | None] = []
        allowance = Allowance()
        for when, _ in self._rules:
            decided = self._first_only and True in found
            found.append(None if decided else when.test(value, about.meta, allowance=allowance))
        return found
