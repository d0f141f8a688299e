"""Response rules of a destination: the first matching rule decides. Pure; linear in the response's length."""

from collections.abc import Sequence
from typing import Any, Final, Literal

from msgspec import Struct

from dataplane.expr.patterns import compile_pattern
from dataplane.spec import ResponseRule
from dataplane.spec.destination import status_bounds

Then = Literal["delivered", "retry", "dead", "throttle"]


class CompiledResponseRule(Struct, frozen=True):
    """One compiled rule: status bounds (inclusive), body pattern and result."""

    low: int
    high: int
    pattern: Any  # RE2 pattern, or None to match any body
    then: Then


Rules = tuple[CompiledResponseRule, ...]
NO_RULES: Final[Rules] = ()


def compile_rules(rules: Sequence[ResponseRule]) -> Rules:
    """Compile rules in the order of the spec. Cannot fail for rules that parse_pipe_spec accepted."""
    return tuple(
        CompiledResponseRule(
            *status_bounds(rule.when.status), compile_pattern(rule.when.body) if rule.when.body else None, rule.then
        )
        for rule in rules
    )


def needs_body(rules: Rules) -> bool:
    """Return True if any rule needs the response's body."""
    return any(rule.pattern is not None for rule in rules)


def decide(rules: Rules, status: int, body: bytes) -> Then | None:
    """Return the result of the first matching rule, or None. Bytes that are not UTF-8 match as U+FFFD."""
    text: str | None = None
    for rule in rules:
        if not rule.low <= status <= rule.high:
            continue
        if rule.pattern is None:
            return rule.then
        if text is None:
            text = body.decode("utf-8", "replace")
        if rule.pattern.search(text):
            return rule.then
    return None
