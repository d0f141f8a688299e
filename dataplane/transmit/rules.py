"""A destination's own rules about answers: the first that fits decides. Pure; linear in the answer's length."""

from collections.abc import Sequence
from typing import Any, Final, Literal

from msgspec import Struct

from dataplane.expr.patterns import compile_pattern
from dataplane.spec import ResponseRule
from dataplane.spec.destination import status_bounds

Then = Literal["delivered", "retry", "dead", "throttle"]


class Rule(Struct, frozen=True):
    """One rule, ready to ask."""

    low: int
    high: int
    pattern: Any  # of RE2, or None: whatever the body
    then: Then


Rules = tuple[Rule, ...]
NO_RULES: Final[Rules] = ()


def compile_rules(rules: Sequence[ResponseRule]) -> Rules:
    """In the order of the spec. Cannot fail for rules that parse_pipe_spec accepted."""
    return tuple(
        Rule(*status_bounds(rule.when.status), compile_pattern(rule.when.body) if rule.when.body else None, rule.then)
        for rule in rules
    )


def ask_body(rules: Rules) -> bool:
    """Whether any rule needs the answer's body."""
    return any(rule.pattern is not None for rule in rules)


def decide(rules: Rules, status: int, body: bytes) -> Then | None:
    """What the first rule that fits says, None if none does. What is not UTF-8 in the body fits no letter."""
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
