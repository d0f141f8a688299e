"""Rejected events are counted by reason and sender, bounded, with a few samples that show no masked value."""

import json
from typing import Any

import pytest

from dataplane.ingest.problems import EventRejectedError
from dataplane.ingest.rejections import (
    BODY_CHARS,
    DETAIL_CHARS,
    MOST_KINDS,
    MOST_OF_PIPE,
    MOST_SAMPLED_BYTES,
    MOST_SAMPLES,
    POINTER_CHARS,
    REPORT_S,
    SAMPLES_OF_KIND,
    TYPE_CHARS,
    RejectedEvent,
    RejectionBook,
    RejectionKey,
    is_counted,
    pointer_kind,
    sample_body,
    shortened,
    shown_place,
)
from dataplane.ingest.strictjson import parse
from dataplane.ledger.audit import AUDIT_VERSION, AuditRecord, decode_audit
from dataplane.ledger.rejections import OTHER, RejectionReport, RejectionSample
from dataplane.ledger.report_parts import encode_parts
from dataplane.plan.masked_fields import WHOLE_EVENT, MaskedField
from dataplane.record_limits import REPORT_BYTES

KEY = RejectionKey("p", "shop", "order", "schema", "/total", "abcd", 7)
MASKS = {MaskedField(("contact", "email"), "redact")}


class Clock:
    """Clock that the test moves."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def rejected(key: RejectionKey = KEY, detail: str = "", body: str | None = None) -> RejectedEvent:
    return RejectedEvent(key, detail, None if body is None else RejectionSample(1, 2, body))


def taken(book: RejectionBook) -> list[RejectionReport]:
    book.hasten()
    return book.take_if_due()


def test_events_are_counted_by_kind_and_minute_with_the_newest_detail():
    book = RejectionBook()
    book.add(rejected(detail="first"))
    book.add(rejected(detail="second"))
    book.add(rejected(KEY._replace(minute=8)))
    book.add(rejected(KEY._replace(sender="other")))
    assert taken(book) == [
        RejectionReport(*KEY, 2, "second"),
        RejectionReport(*KEY._replace(minute=8), 1, ""),
        RejectionReport(*KEY._replace(sender="other"), 1, ""),
    ]
    assert taken(book) == [], "each event is reported once"


def test_report_is_due_some_seconds_after_the_last_one_and_only_if_there_is_something_to_report():
    clock = Clock()
    book = RejectionBook(clock)
    clock.now_s = REPORT_S
    found = [(book.is_due, len(book.take_if_due()))]
    book.add(rejected())
    found.append((book.is_due, len(book.take_if_due())))
    book.add(rejected())
    found.append((book.is_due, len(book.take_if_due())))
    clock.now_s = 2 * REPORT_S
    found.append((book.is_due, len(book.take_if_due())))
    assert found == [(False, 0), (True, 1), (False, 0), (True, 1)]


def test_a_few_samples_of_each_kind_are_kept():
    book = RejectionBook()
    for number in range(SAMPLES_OF_KIND):
        assert book.wants_sample(KEY)
        book.add(rejected(body=str(number)))
    assert not book.wants_sample(KEY)
    book.add(rejected(body="one too many"))
    assert book.wants_sample(KEY._replace(minute=8)), "another kind"
    (report,) = taken(book)
    assert (report.events, [one.body for one in report.samples]) == (SAMPLES_OF_KIND + 1, ["0", "1"])


def test_pipe_with_very_many_kinds_is_counted_together_and_leaves_room_for_others():
    book = RejectionBook()
    for number in range(3 * MOST_OF_PIPE):
        book.add(rejected(KEY._replace(pointer=f"/{number}x", sender=str(number)), body="x"))
    book.add(rejected(KEY._replace(pipe="q")))
    reports = taken(book)
    (rest,) = [one for one in reports if one.event_type == OTHER]
    assert (rest.pointer, rest.sender, rest.events) == ("", OTHER, 2 * MOST_OF_PIPE)
    assert sum(one.events for one in reports if one.pipe == "p") == 3 * MOST_OF_PIPE
    assert len(reports) == MOST_OF_PIPE + 2
    assert [one.pipe for one in reports if one.pipe != "p"] == ["q"]


def test_memory_is_bounded_whatever_is_rejected():
    book = RejectionBook()
    pipes = 2 * MOST_KINDS // MOST_OF_PIPE
    for pipe in range(pipes):
        for number in range(MOST_OF_PIPE):
            book.add(rejected(KEY._replace(pipe=str(pipe), pointer=f"/{number}x"), body="x"))
    reports = taken(book)
    assert sum(one.events for one in reports) == pipes * MOST_OF_PIPE
    assert len(reports) <= MOST_KINDS + pipes
    assert sum(len(one.samples) for one in reports) == MOST_SAMPLES


def test_largest_report_is_split_within_the_limit_of_a_record():
    book = RejectionBook()
    for number in range(MOST_KINDS):
        key = RejectionKey(str(number // MOST_OF_PIPE), "s", "t" * TYPE_CHARS, "schema", "/" + "p" * 199, "a" * 16, 7)
        book.add(rejected(key._replace(pointer=f"/{number}{'p' * 180}"), "d" * DETAIL_CHARS, "b" * BODY_CHARS))
    reports = taken(book)
    audit = AuditRecord(
        AUDIT_VERSION, "", "ingest-1", "ingest", 1, [], [], [], [], run="r", sequence=3, rejections=reports
    )
    parts = encode_parts(audit)
    assert max(map(len, parts)) <= REPORT_BYTES
    decoded = [decode_audit(part) for part in parts]
    assert [one for part in decoded for one in part.rejections] == reports
    assert [part.sequence for part in decoded] == list(range(3, 3 + len(parts)))


@pytest.mark.parametrize(
    ("status", "code", "counted"),
    [
        (400, "json-invalid", True),
        (413, "event-too-large", True),
        (415, "media-type", True),
        (422, "schema", True),
        (401, "key-invalid", False),
        (401, "key-expired", False),
        (401, "signature-invalid", True),  # its sender knows the URL of the source
        (429, "quota-exceeded", False),
        (503, "unavailable", False),
        (500, "internal", False),
    ],
)
def test_refusals_are_counted_unless_access_a_quota_or_a_retry_ends_them(status: int, code: str, counted: bool):
    assert is_counted(EventRejectedError(status, code, "")) == counted


def test_pointers_of_items_of_an_array_are_one_kind():
    assert pointer_kind("/lines/0/sku") == pointer_kind("/lines/17/sku") == "/lines/*/sku"
    assert pointer_kind("/lines/0") == "/lines/*"
    assert pointer_kind("/2nd/x1") == "/2nd/x1"
    assert pointer_kind("") == ""
    assert len(pointer_kind("/" + "a" * 999)) == POINTER_CHARS


def sample(event: Any, masks: Any = (), pointer: str = "") -> str:
    body = json.dumps(event).encode()
    return sample_body(body, parse(body), masks, pointer)


def test_sample_shows_the_event_without_its_masked_values():
    event = {"contact": {"email": "bob@example.com"}, "total": "12"}
    assert json.loads(sample(event)) == event
    assert json.loads(sample(event, MASKS)) == {"contact": {"email": "***"}, "total": "12"}
    assert sample(event, WHOLE_EVENT) == ""


@pytest.mark.parametrize(
    ("pointer", "shown"),
    [
        pytest.param("/contact/email/bob@example.com", "/contact/email", id="key of a masked object"),
        pytest.param("/contact/email", "/contact/email", id="the masked value"),
        pytest.param("/contact/name", "/contact/name", id="next to it"),
        pytest.param("/contact", "/contact", id="around it"),
        pytest.param("", "", id="whole event"),
    ],
)
def test_place_of_an_error_names_no_part_of_a_masked_value(pointer: str, shown: str):
    detail = f"{pointer or 'the event'}: needs int, got a text"
    assert shown_place(pointer, detail, MASKS) == (shown, f"{shown or 'the event'}: needs int, got a text")
    assert shown_place(pointer, detail, ()) == (pointer, detail)
    assert shown_place(pointer, detail, WHOLE_EVENT) == ("", "the event: needs int, got a text")


@pytest.mark.parametrize("pointer", ["/mail", "/a~1b", "/lines/0/mail"])
def test_value_at_the_place_of_the_error_is_hidden_if_the_pipe_masks_anything(pointer: str):
    event = {"mail": "bob@example.com", "a/b": "bob@example.com", "lines": [{"mail": "bob@example.com"}], "n": 1}
    shown = sample(event, MASKS, pointer)
    assert shown.count("bob@") == 2
    assert shown.count("***") == 1
    assert "bob@" in sample(event, (), pointer)


def test_body_that_is_not_json_is_shown_as_text_only_if_nothing_is_masked():
    assert sample_body(b'{"id": 1', None, ()) == '{"id": 1'
    assert sample_body(b'{"id": 1', None, MASKS) == ""
    assert sample_body(b"\x00\x00\x00\x00\x07\xff", None, ()) == "", "Avro"
    assert sample_body(b"a\x00b", None, ()) == "ab"
    assert len(sample_body(b"x" * 20_000, None, ())) == BODY_CHARS


def test_large_events_are_shortened_and_stay_json():
    event = {"text": "x" * 5_000, "lines": [{"n": number} for number in range(2_000)], "d": [[[[[[[[[[1]]]]]]]]]]}
    shown = json.loads(sample(event))
    assert shown["text"] == "x" * 200 + "..."
    assert shown["lines"] == [{"n": number} for number in range(50)]
    assert sample({str(number): "y" * 900 for number in range(60)}).count("...") == 10
    assert sample_body(b'"' + b"x" * MOST_SAMPLED_BYTES + b'"', "x", ()) == ""
    assert shortened({"k" * 9: 1}, 5, 3) == {"kkk": 1}
