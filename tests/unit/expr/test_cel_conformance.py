"""Our closures against another CEL (the Rust one): the same value or an error from both, for random pairs."""

import math
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import cel
import pytest

from dataplane.expr import CostLimitError, EvaluationError, ExpressionError, Timestamp, compile_expr
from dataplane.expr.values import Duration
from tests.support.expressions import Maker

FAILED: Final = "an error"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def ours(text: str, body: dict[str, Any]) -> Any:
    try:
        return plain(compile_expr(text)(body))
    except (ExpressionError, EvaluationError, CostLimitError):
        return FAILED


def theirs(text: str, body: dict[str, Any]) -> Any:
    try:
        return cel.evaluate(text, {"body": body})
    except (TypeError, ValueError, RuntimeError, LookupError, ArithmeticError):
        return FAILED


def plain(value: Any) -> Any:
    """Return times in the types of the other implementation."""
    match value:
        case Timestamp():
            return _EPOCH + timedelta(microseconds=value.ns // 1_000)
        case Duration():
            return timedelta(microseconds=value.ns // 1_000)
        case list():
            return [plain(one) for one in value]
        case dict():
            return {key: plain(one) for key, one in value.items()}
    return value


def same(one: Any, other: Any) -> bool:
    """Return True for the same type and value, not-a-number included; the sign of zero counts as well."""
    if type(one) is not type(other):
        return False
    if isinstance(one, float):
        return repr(one) == repr(other) or (math.isnan(one) and math.isnan(other))
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return bool(one == other)


def check(seed: int, pairs: int) -> None:
    maker, failed, told = Maker(seed), 0, set()
    for _ in range(pairs):
        text, body = maker.pair()
        expected, found = theirs(text, body), ours(text, body)
        assert same(found, expected), f"seed {seed}: {text} over {body}: {found!r}, the other one says {expected!r}"
        failed += found == FAILED
        told.add(repr(found))
    assert pairs * 0.1 < failed < pairs * 0.8, "pairs must fail often, but not always"
    assert len(told) > pairs / 50, "results must differ"


def test_thousand_random_pairs_agree():
    check(seed=20_261_121, pairs=1_000)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10))
def test_ten_thousand_random_pairs_agree(seed: int):
    check(seed, pairs=1_000)


@pytest.mark.parametrize(
    ("text", "result"),
    [
        pytest.param('size("é")', 1, id="size counts characters, not bytes"),
        pytest.param("string(true)", "true", id="a bool has a text"),
        pytest.param('bool("true")', True, id="a text has a truth"),
        pytest.param("string(1e21)", "1e+21", id="large doubles are written short"),
        pytest.param('string(duration("1h30m"))', "5400s", id="durations are written in seconds"),
        pytest.param('string(timestamp("2026-01-02T03:04:05Z"))', "2026-01-02T03:04:05Z", id="UTC is written Z"),
        pytest.param('int(timestamp("2026-01-02T03:04:05Z"))', 1767323045, id="a timestamp has seconds"),
        pytest.param("timestamp(0) == timestamp('1970-01-01T00:00:00Z')", True, id="seconds make a timestamp"),
        pytest.param("timestamp('2026-07-02T23:04:05Z').getHours('Europe/Berlin')", 1, id="time zones"),
        pytest.param("9007199254740993 == 9007199254740992.0", False, id="numbers compare exactly"),
    ],
)
def test_result_follows_the_specification_where_the_other_implementation_does_not(text: str, result: Any):
    assert same(ours(text, {}), result)
    assert not same(theirs(text, {}), result), "the other implementation agrees now: this belongs to the random pairs"


@pytest.mark.parametrize("text", ["1u", 'b"a"', "type(1)", '{1: "a"}[1]', '{"a": 1, "a": 2}', "body.s.matches(body.s)"])
def test_features_left_out_of_the_language_on_purpose_are_refused_at_save(text: str):
    with pytest.raises(ExpressionError):
        compile_expr(text)
    assert theirs(text, {"s": "a"}) != FAILED
