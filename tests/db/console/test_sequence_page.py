"""Sequences of a pipe: counts by source, broken sequences with their keys, masks, filters, export and API."""

import json
from datetime import datetime
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django.fixtures import DjangoAssertNumQueries
from rest_framework.test import APIClient

from controlplane.observer.merge import fact_id
from controlplane.observer.rows import save_facts
from controlplane.observer.sequence_breaks import save_breaks
from dataplane.ledger.facts import CHECKED, GAP, OUT_OF_ORDER, REPEATED, Fact, FactBook, FactKey
from dataplane.ledger.sequence_breaks import BreakKind, SequenceBreak
from dataplane.ledger.units import format_position, position_of
from dataplane.names import sequence_node
from mgmt.ledger.queries.bucket_range import bucket_at
from mgmt.models import Pipe, PipeRevision, SequenceBreakRow, User
from mgmt.services import publish_revision
from tests.db.cast import MakeClient
from tests.db.console.truth import BrowserOf, plain

pytestmark = pytest.mark.django_db
QUERIES = 16
CREATED_US = 1_767_225_600_000_000  # 2026-01-01


def broken(
    pipe: Pipe,
    now: datetime,
    kind: BreakKind,
    number: int,
    previous: int,
    missing: int = 0,
    *,
    offset: int = 1,
    is_clock: bool = False,
    ago: int = 0,
    key: str = "berlin",
) -> None:
    at_us = int(now.timestamp()) * 1_000_000 - ago * 60_000_000
    bucket, position = bucket_at(now) - ago, position_of(1, 0, offset)
    ranges = [(number - missing, number - 1)] if missing else []
    save_breaks(
        [SequenceBreak(pipe.id, 1, "shop", key, kind, bucket, position, at_us, is_clock, number, previous, ranges)]
    )


def counted(pipe: Pipe, now: datetime, **positions: range) -> None:
    facts = FactBook()
    names = {"compared": CHECKED, "gaps": GAP, "out_of_order": OUT_OF_ORDER, "repeated": REPEATED}
    for name, some in positions.items():
        facts.extend(pipe.id, bucket_at(now), FactKey(sequence_node("shop"), Fact.SENT, names[name]), some)
    save_facts({fact_id(one, 0): one.positions for one in facts.sets()})


def with_sequence(pipe: Pipe, by: User, **parts: Any) -> None:
    newest = pipe.revisions.latest("number")
    spec = json.loads(json.dumps(newest.spec))
    spec["sources"]["shop"] |= {"key": "shop", "sequence": "order.seq"}
    publish_revision(pipe=pipe, spec=spec | parts, based_on=newest.number, author=by)


def url_of(pipe: Pipe) -> str:
    return reverse("console:sequence", args=[pipe.id])


def test_page_of_a_pipe_without_a_sequence_says_how_to_set_one(alices: Client, pipe: Pipe):
    shown = alices.get(url_of(pipe)).content.decode()
    assert "No source of this pipe has a sequence." in plain(shown)
    assert reverse("console:edit_pipe", args=[pipe.id]) in shown


def test_viewer_is_not_sent_to_the_editor(browser_of: BrowserOf, viewer: User, pipe: Pipe):
    shown = plain(browser_of(viewer).get(url_of(pipe)).content.decode())
    assert "An editor can set the sequence path of a source." in shown


def test_source_without_breaks_shows_that_events_are_compared(alices: Client, pipe: Pipe, alice: User, now: datetime):
    with_sequence(pipe, alice)
    counted(pipe, now, compared=range(1_200))
    shown = plain(alices.get(url_of(pipe)).content.decode())
    assert "shop order.seq 1200 0 0 0" in shown
    assert "No breaks. In the last 1h there were no gaps, reorderings or repeats." in shown


def test_breaks_are_listed_in_words_with_what_is_missing_now(alices: Client, pipe: Pipe, alice: User, now: datetime):
    with_sequence(pipe, alice)
    counted(pipe, now, compared=range(9), gaps=range(3), out_of_order=range(1), repeated=range(2))
    broken(pipe, now, "gap", 44, 40, 3, offset=1)
    broken(pipe, now, "gap", 50, 44, 2, offset=2)
    broken(pipe, now, "gap", 52, 50, 0, offset=3)
    broken(pipe, now, "out-of-order", 51, 52, offset=4)
    broken(pipe, now, "repeated", 52, 52, offset=5)
    broken(pipe, now, "out-of-order", CREATED_US, CREATED_US + 1_500, offset=6, is_clock=True)
    html = alices.get(url_of(pipe)).content.decode()
    shown = plain(html)
    assert "shop order.seq 9 3 1 2" in shown
    for words in (
        "Gap expected 41, received 44 berlin 3 missing 41 to 43 shop",
        "Gap expected 45, received 50 berlin 2 of 5 missing 48 to 49 shop",
        "Gap expected 51, received 52 berlin arrived late shop",
        "Out of order received 51 after 52 berlin - shop",
        "Repeated received 52 again; highest so far 52 berlin - shop",
        "Out of order received 2026-01-01T00:00:00.000000Z after 2026-01-01T00:00:00.001500Z berlin - shop",
    ):
        assert words in shown
    assert reverse("console:message", args=[pipe.id, format_position(position_of(1, 0, 1))]) in html


def test_range_and_kind_filter_the_list(alices: Client, pipe: Pipe, alice: User, now: datetime):
    with_sequence(pipe, alice)
    broken(pipe, now, "gap", 44, 40, 3, offset=1, ago=120)
    broken(pipe, now, "repeated", 44, 44, offset=2)
    assert "expected 41" not in plain(alices.get(url_of(pipe)).content.decode())
    day = plain(alices.get(url_of(pipe), {"range": "24h"}).content.decode())
    assert "expected 41" in day
    assert "received 44 again" in day
    gaps = plain(alices.get(url_of(pipe), {"range": "24h", "kind": "gap"}).content.decode())
    assert "expected 41" in gaps
    assert "received 44 again" not in gaps
    counted(pipe, now, compared=range(3), gaps=range(1))
    none = plain(alices.get(url_of(pipe), {"kind": "out-of-order"}).content.decode())
    assert "No match. No break of the last 1h matches the filters." in none
    assert "No breaks" not in none


def test_source_and_key_filter_page_export_and_api(
    alices: Client, api: APIClient, pipe: Pipe, alice: User, now: datetime
):
    with_sequence(pipe, alice)
    counted(pipe, now, compared=range(3), gaps=range(2))
    broken(pipe, now, "gap", 44, 40, 3, offset=1, key="berlin")
    broken(pipe, now, "gap", 54, 50, 3, offset=2, key="bern")
    SequenceBreakRow.objects.filter(key="bern").update(source="till")
    for wanted, there, not_there in (
        ({"key": "berlin"}, "expected 41", "expected 51"),
        ({"source": "till"}, "expected 51", "expected 41"),
        ({"source": "till", "kind": "gap", "key": "bern"}, "expected 51", "expected 41"),
    ):
        shown = plain(alices.get(url_of(pipe), wanted).content.decode())
        assert there in shown
        assert not_there not in shown
        (line,) = b"".join(alices.get(url_of(pipe), wanted | {"format": "jsonl"})).splitlines()
        (one,) = api.get(f"/api/v1/pipes/{pipe.id}/sequence/", wanted).json()["results"]
        assert json.loads(line)["position"] == one["position"]
    nothing = plain(alices.get(url_of(pipe), {"key": "ber"}).content.decode())
    assert "No match. No break of the last 1h matches the filters." in nothing


def test_filters_that_postgres_cannot_compare_find_nothing(alices: Client, api: APIClient, pipe: Pipe):
    for name in ("source", "key", "kind"):
        assert alices.get(url_of(pipe), {name: "a\x00b"}).status_code == 200
    assert api.get(f"/api/v1/pipes/{pipe.id}/sequence/", {"source": "a\x00b"}).json()["results"] == []


def test_key_with_blanks_at_its_ends_is_found(alices: Client, pipe: Pipe, alice: User, now: datetime):
    with_sequence(pipe, alice)
    broken(pipe, now, "gap", 44, 40, 3, key=" padded ")
    assert b"expected 41" in alices.get(url_of(pipe), {"key": " padded "}).content


def test_masked_key_is_not_found_by_its_value(alices: Client, pipe: Pipe, alice: User, now: datetime):
    with_sequence(pipe, alice, normalize=[{"op": "mask", "path": "shop", "how": "redact"}])
    broken(pipe, now, "gap", 44, 40, 3)
    assert b"expected 41" not in alices.get(url_of(pipe), {"key": "berlin"}).content
    assert b"expected 41" in alices.get(url_of(pipe), {"key": "***"}).content


def test_key_that_the_pipe_masks_is_hidden_on_the_page_in_the_export_and_in_the_api(
    alices: Client, api: APIClient, pipe: Pipe, alice: User, now: datetime
):
    with_sequence(pipe, alice, normalize=[{"op": "mask", "path": "shop", "how": "redact"}])
    broken(pipe, now, "gap", 44, 40, 3)
    answers = [alices.get(url_of(pipe)).content, b"".join(alices.get(url_of(pipe), {"format": "csv"}))]
    for answer in (*answers, api.get(f"/api/v1/pipes/{pipe.id}/sequence/").content):
        assert b"berlin" not in answer
        assert b"***" in answer


def test_key_stays_hidden_when_a_later_revision_has_another_key_path(
    alices: Client, pipe: Pipe, alice: User, now: datetime
):
    with_sequence(pipe, alice, normalize=[{"op": "mask", "path": "shop", "how": "redact"}])
    broken(pipe, now, "gap", 44, 40, 3)
    SequenceBreakRow.objects.update(revision=2)
    newest = pipe.revisions.latest("number")
    spec = newest.spec | {"normalize": [], "sources": {"shop": {"key": "device", "sequence": "order.seq"}}}
    publish_revision(pipe=pipe, spec=spec, based_on=2, author=alice)
    PipeRevision.objects.filter(pipe=pipe, number__lt=3).update(state=PipeRevision.State.RETIRED)
    assert b"berlin" not in alices.get(url_of(pipe)).content


def test_page_shows_the_newest_breaks_and_the_export_has_all(
    alices: Client, pipe: Pipe, alice: User, now: datetime, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("mgmt.sequences.pages.MOST_SHOWN", 2)
    with_sequence(pipe, alice)
    for number in range(5):
        broken(pipe, now, "repeated", number, 9, offset=number)
    shown = plain(alices.get(url_of(pipe)).content.decode())
    assert "received 4 again" in shown
    assert "received 2 again" not in shown
    assert "3 older breaks not shown." in shown
    assert len(b"".join(alices.get(url_of(pipe), {"format": "jsonl"})).splitlines()) == 5


def test_path_without_a_number_is_not_shown_as_fine(alices: Client, pipe: Pipe, alice: User):
    with_sequence(pipe, alice)
    shown = plain(alices.get(url_of(pipe)).content.decode())
    assert "No event was compared." in shown
    assert "No breaks" not in shown


def test_breaks_that_are_no_longer_listed_are_counted(alices: Client, pipe: Pipe, alice: User, now: datetime):
    with_sequence(pipe, alice)
    counted(pipe, now, compared=range(9), gaps=range(3))
    shown = plain(alices.get(url_of(pipe)).content.decode())
    assert "3 breaks no longer listed." in shown
    assert "No breaks" not in shown


def test_another_tenant_gets_404(api: APIClient, client_of: MakeClient, charlie: User, pipe: Pipe):
    assert client_of(charlie).get(f"/api/v1/pipes/{pipe.id}/sequence/").status_code == 404


def test_export_has_all_columns(alices: Client, pipe: Pipe, alice: User, now: datetime):
    with_sequence(pipe, alice)
    broken(pipe, now, "gap", 44, 40, 3)
    (line,) = b"".join(alices.get(url_of(pipe), {"format": "jsonl"})).decode().splitlines()
    found = json.loads(line)
    assert (found["kind"], found["number"], found["previous"], found["missing"]) == ("gap", "44", "40", 3)
    assert (found["source"], found["key"], found["position"]) == ("shop", "berlin", "1-0-1")


def test_api_returns_the_numbers_of_the_page(api: APIClient, pipe: Pipe, alice: User, now: datetime):
    with_sequence(pipe, alice)
    counted(pipe, now, compared=range(9), gaps=range(1))
    broken(pipe, now, "gap", 44, 40, 3)
    found = api.get(f"/api/v1/pipes/{pipe.id}/sequence/", {"range": "1h"}).json()
    assert found["sources"] == [
        {"source": "shop", "path": "order.seq", "compared": 9, "gaps": 1, "out_of_order": 0, "repeated": 0}
    ]
    (one,) = found["results"]
    assert one.pop("at")
    assert one == {
        "kind": "gap", "source": "shop", "key": "berlin", "type": "number", "number": "44", "previous": "40",
        "missing": 3, "missing_ranges": [["41", "43"]], "position": "1-0-1",
    }  # fmt: skip
    assert api.get(f"/api/v1/pipes/{pipe.id}/sequence/", {"kind": "lost"}).status_code == 400


def test_counts_of_a_source_remain_when_its_sequence_is_removed(alices: Client, pipe: Pipe, now: datetime):
    counted(pipe, now, compared=range(5))
    assert "shop no longer set 5 0 0 0" in plain(alices.get(url_of(pipe)).content.decode())


def test_page_needs_a_bounded_number_of_queries(
    alices: Client, pipe: Pipe, alice: User, now: datetime, django_assert_max_num_queries: DjangoAssertNumQueries
):
    with_sequence(pipe, alice)
    counted(pipe, now, compared=range(50))
    for number in range(50):
        broken(pipe, now, "gap", 44, 40, 3, offset=number)
    with django_assert_max_num_queries(QUERIES):
        alices.get(url_of(pipe))
