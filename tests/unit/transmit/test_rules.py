"""Response rules apply in order and before the default verdict; no pattern takes long."""

import time
from typing import Any

import msgspec
import pytest

from dataplane.expr.patterns import compile_pattern
from dataplane.spec import ResponseRule
from dataplane.transmit.policy.delivery_verdict import OK, DeliveryOutcome, judge
from dataplane.transmit.policy.rules import NO_RULES, Rules, compile_rules, decide, needs_body


def rules(*texts: tuple[str, str | None, str]) -> Rules:
    plain: list[dict[str, Any]] = [
        {"when": {"status": status, "body": body}, "then": then} for status, body, then in texts
    ]
    return compile_rules(msgspec.convert(plain, list[ResponseRule]))


ORDERED = rules(
    ("200", '"ok": ?false', "retry"),
    ("200-299", "error", "dead"),
    ("2xx", None, "delivered"),
    ("4xx", None, "throttle"),
)


@pytest.mark.parametrize(
    ("status", "body", "then"),
    [
        pytest.param(200, b'{"ok":false, "error": 1}', "retry", id="the first that fits decides"),
        pytest.param(201, b'{"ok":false, "error": 1}', "dead", id="another status, the next rule"),
        pytest.param(204, b"", "delivered", id="no body"),
        pytest.param(429, b"", "throttle", id="class"),
        pytest.param(500, b"error", None, id="none fits"),
        pytest.param(201, b"\xff error \xfe", "dead", id="text beside what is none"),
    ],
)
def test_first_matching_rule_decides(status: int, body: bytes, then: str | None):
    assert decide(ORDERED, status, body) == then


@pytest.mark.parametrize(
    ("one", "status", "outcome", "cause"),
    [
        pytest.param(("200", "denied", "dead"), 200, DeliveryOutcome.DEAD, "by-rule", id="a 200 that means failure"),
        pytest.param(("408", None, "retry"), 408, DeliveryOutcome.RECOVERABLE, "by-rule", id="408 worth a retry"),
        pytest.param(("409", None, "delivered"), 409, DeliveryOutcome.DELIVERED, "", id="had it already"),
        pytest.param(("503", None, "throttle"), 503, DeliveryOutcome.RECOVERABLE, "throttled", id="asks for less"),
        pytest.param(("410", None, "dead"), 410, DeliveryOutcome.DEAD, "by-rule", id="410 without the end of all"),
        pytest.param(("200", "denied", "dead"), 410, DeliveryOutcome.GONE, "gone", id="another status"),
    ],
)
def test_rules_come_before_the_default_verdict(
    one: tuple[str, str | None, str], status: int, outcome: DeliveryOutcome, cause: str
):
    verdict = judge(status, 0, rules=rules(one), body=b"access denied")
    assert (verdict.outcome, verdict.cause) == (outcome, cause)


def test_no_rule_applies_without_a_response():
    assert judge(0, 28, rules=rules(("1xx", None, "delivered"))).cause == "timeout"


def test_408_and_425_are_never_retried_without_rules():
    assert [judge(status, 0, rules=NO_RULES).outcome for status in (408, 425)] == [
        DeliveryOutcome.DEAD,
        DeliveryOutcome.DEAD,
    ]
    assert judge(200, 0) is OK


def test_only_rules_with_a_pattern_need_the_body():
    assert needs_body(ORDERED)
    assert not needs_body(rules(("408", None, "retry")))


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "(.*a){20}", "(x+x+)+y"])
def test_no_pattern_takes_longer_than_its_text_allows(pattern: str):
    compiled, text = compile_pattern(pattern), "a" * 16_000 + "!"
    begun = time.process_time()
    compiled.search(text)
    assert time.process_time() - begun < 0.2


@pytest.mark.parametrize("pattern", ["(", r"\1", "(?=x)", "a{1000}{1000}", "(((a{100}){100}){100})"])
def test_pattern_that_no_linear_engine_can_run_is_refused(pattern: str):
    with pytest.raises(ValueError, match=r"\w"):
        compile_pattern(pattern)
