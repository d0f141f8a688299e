"""Compiled route: the choice of a message's destinations."""

from collections.abc import Sequence
from typing import Any

from dataplane.causes import Cause
from dataplane.expr import CostAllowance, CostLimitError, EvaluationError, compile_expr
from dataplane.plan.stage import EMPTY_CONTEXT, StageError, internal_error
from dataplane.spec import RoutesSpec
from dataplane.spec.checks import EXPRESSION_ROOTS
from dataplane.stages.steps import StepContext


class CompiledRoutes:
    """Rules of a route over a decoded body, in order; RoutesSpec defines the modes `first` and `all`."""

    def __init__(self, routes: RoutesSpec, destinations: Sequence[str]) -> None:
        self._rules = [(compile_expr(rule.when, EXPRESSION_ROOTS), tuple(rule.to)) for rule in routes.rules]
        self._order = tuple(destinations)
        self._first_only = routes.mode == "first"
        self._otherwise = tuple(routes.otherwise)
        self.needs_about = any("meta" in when.uses for when, _ in self._rules)

    @property
    def parts(self) -> int:
        """Return the number of rules."""
        return len(self._rules)

    def __call__(self, value: Any, about: StepContext = EMPTY_CONTEXT) -> tuple[str, ...]:
        """Return the names of the destinations, each once; empty if the message is unrouted.

        If several rules match, the names are in the spec's order of destinations. Raises StageError `route`, with the
        rule, if a condition fails: a message is never sent to only some of its destinations.
        """
        chosen: list[tuple[str, ...]] = []
        number, allowance = 0, CostAllowance()
        try:
            for number, (when, to) in enumerate(self._rules):  # noqa: B007 (named in the error below)
                if when.test(value, about.meta, allowance=allowance):
                    if self._first_only:
                        return to
                    chosen.append(to)
        except (EvaluationError, CostLimitError) as exc:
            raise StageError(Cause.ROUTE, f"routes.rules[{number}].when: {exc}") from exc
        except Exception as exc:
            raise internal_error(f"routes.rules[{number}].when", exc) from exc
        if len(chosen) > 1:
            names = {name for to in chosen for name in to}
            return tuple(name for name in self._order if name in names)
        return chosen[0] if chosen else self._otherwise

    def verdicts(self, value: Any, about: StepContext = EMPTY_CONTEXT) -> list[bool | None]:
        """Return for each rule, in order, whether it matches; None for a rule after the deciding one.

        Raises EvaluationError or CostLimitError if the route would dead-letter the message.
        """
        found: list[bool | None] = []
        allowance = CostAllowance()
        for when, _ in self._rules:
            decided = self._first_only and True in found
            found.append(None if decided else when.test(value, about.meta, allowance=allowance))
        return found
