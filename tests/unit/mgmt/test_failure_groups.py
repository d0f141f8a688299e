"""Failures are alike if their responses differ only in ids; common fields are named only if other events lack them."""

import pytest

from dataplane.ledger.fields import FieldCount, FieldObservation
from mgmt.alerts.common_fields import fields_of, named_fields, with_messages
from mgmt.alerts.fingerprint import fingerprint_of, status_of

EVENTS = [FieldObservation("p", "s", 1, 100, [FieldCount("plan", 100, {"string": 100}, {"free": 40, "pro": 60})])]


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("422\norder 17 is unknown", "422\norder 18  is unknown", True),
        ('400\n{"id": "req_1a"}', '400\n{"id": "req_2b"}', True),
        ("500\nat 2026-01-01T12:00:00Z", "500\nat 2026-01-02T13:01:02Z", True),
        ("422\ntotal is missing", "422\ncurrency is missing", False),
        ("401", "401\n", True),
    ],
)
def test_responses_are_alike_if_only_ids_numbers_and_times_differ(one: str, other: str, alike: bool):
    assert (fingerprint_of(one) == fingerprint_of(other)) is alike


def test_failure_without_a_response_has_no_status_and_no_fingerprint():
    assert (status_of(""), fingerprint_of(""), status_of("no such field")) == (0, "", 0)


@pytest.mark.parametrize(
    ("messages", "named"),
    [
        pytest.param([{"plan": "free"}] * 5, [("plan", "free", 0.4)], id="shared and rare"),
        pytest.param([{"plan": "pro"}] * 5, [], id="most events have it"),
        pytest.param([{"plan": "free"}] * 4, [], id="too few messages"),
        pytest.param([{"plan": "free"}] * 5 + [{"plan": "pro"}], [], id="one message differs"),
        pytest.param([{"plan": "free"}] * 5 + [{}], [], id="one message lacks it"),
        pytest.param([{"extra": "(array)"}] * 5, [("extra", "(array)", 0.0)], id="no other event has the field"),
    ],
)
def test_field_is_named_if_all_failing_messages_share_it_and_few_events_do(
    messages: list[dict[str, str]], named: list[tuple[str, str, float]]
):
    found = named_fields(with_messages({}, messages), EVENTS)
    assert [(one["field"], one["value"], one["share"]) for one in found] == named


def test_no_field_is_named_without_a_sample_of_the_events():
    assert named_fields(with_messages({}, [{"plan": "free"}] * 5), []) == []


def test_fields_have_values_only_of_short_plain_texts():
    body = b'{"a": {"b": "x"}, "mail": "a@b.example", "phone": "0123456789", "n": 3, "on": true, "none": null, "l": []}'
    assert fields_of(body) == {
        "a": "(object)", "a.b": "x", "mail": "(string)", "phone": "(string)", "n": "(number)", "on": "true",
        "none": "(null)", "l": "(array)",
    }  # fmt: skip
    assert fields_of(b"[1]") is None
    assert fields_of(b"no JSON") is None
