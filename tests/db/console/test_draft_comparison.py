"""Comparison of a draft with the live revision, in the editor and the API: counts, examples, limits and refusals."""

import json
import re
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from pyroaring import BitMap64
from pytest_django.fixtures import Settings
from rest_framework.test import APIClient

from dataplane.ledger.meta import MessageMeta
from dataplane.ledger.units import format_position, position_of
from mgmt import sandbox
from mgmt.messages.queries import last_event
from mgmt.messages.queries.last_event import NoEventError, PlacedEvent, newest_positions
from mgmt.messages.queries.records import StoredRecord
from mgmt.models import FactRow, Pipe, PipeRevision, User
from mgmt.pipes.queries import comparison
from mgmt.sandbox import SandboxBusy, TooManyAtOnce
from mgmt.services import adopt_live_spec, create_pipe
from mgmt.web import throttling
from tests.db.cast import MakeClient, MakeSpec
from tests.db.console.truth import BrowserOf, go_live

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}
Stored = Callable[..., None]
BUCKET = 29_000_000


@pytest.fixture
def live(pipe: Pipe) -> Pipe:
    """Pipe with a live revision."""
    PipeRevision.objects.filter(pipe=pipe).update(state="ramping")
    assert adopt_live_spec(revision=pipe.revisions.get())
    return pipe


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch) -> Stored:
    """Store events, newest first, that the comparison reads instead of those of Kafka."""

    def store(*bodies: bytes, source: str = "shop", unread: int = 0) -> None:
        events = [placed(number, body, source) for number, body in enumerate(bodies)]

        def read(_pipe: Pipe, most: int, *, most_bytes: int) -> tuple[list[PlacedEvent], int]:
            assert (most, most_bytes) == (100, 256 * 1024 + 1)
            return events, len(events) + unread

        monkeypatch.setattr(comparison, "newest_events", read)

    return store


def placed(number: int, body: bytes, source: str) -> PlacedEvent:
    now_us = time.time_ns() // 1_000
    meta = MessageMeta(1, f"m{number}", "pipe", 1, source, now_us, now_us, BUCKET)
    return PlacedEvent(position_of(1, 0, number), StoredRecord(meta, (), body, len(body), datetime.now().astimezone()))


def draft(a_spec: MakeSpec, **more: Any) -> dict[str, Any]:
    return {**a_spec(), **more}


def compare(api: APIClient, pipe: Pipe, spec: Any) -> Any:
    return api.post(f"/api/v1/pipes/{pipe.id}/compare/", {"spec": spec}, format="json")


def compare_in_editor(browser: Client, pipe: Pipe, spec: Any, **more: Any) -> str:
    sent = {"mode": "json", "action": "compare", "based_on": "1", "spec": json.dumps(spec), "sample": "{}"} | more
    answer = browser.post(reverse("console:edit_pipe", args=[pipe.id]), sent)
    assert answer.status_code == 200
    return answer.content.decode()


CAST = [{"op": "cast", "path": "total", "to": "int"}]


def test_each_event_is_counted_once_and_differences_have_examples(
    api: APIClient, live: Pipe, a_spec: MakeSpec, stored: Stored
):
    stored(b'{"total":1}', b'{"total":"2"}', b'{"total":"x"}', b'{"total":3}')
    answer = compare(api, live, draft(a_spec, normalize=CAST))
    assert answer.status_code == 200, answer.content
    found = answer.json()
    assert found["counts"] == {"same": 2, "changed": 1, "rerouted": 0, "rejected": 1, "recovered": 0}
    assert found["summary"] == "2 same, 1 changed, 0 re-routed, 1 rejected"
    assert (found["live"], found["found"], found["compared"], found["left_out"]) == (1, 4, 4, [])
    changed, rejected = found["examples"]
    assert (changed["kind"], changed["message_id"], changed["position"]) == ("changed", "m1", "1-0-1")
    assert changed["url"] == f"/api/v1/pipes/{live.id}/messages/1-0-1/"
    assert [(line["kind"], line["text"]) for line in changed["lines"]] == [
        ("same", "to crm: POST https://crm.example.com/in"), ("same", "{"), ("gone", '  "total": "2"'),
        ("new", '  "total": 2'), ("same", "}"),
    ]  # fmt: skip
    assert (rejected["live_to"], rejected["draft_to"]) == (["crm"], [])
    assert rejected["reason"].startswith("rejected: a step failed: step 1, cast total: ")
    assert live.revisions.count() == 1


def test_events_of_a_source_that_the_draft_lacks_are_rejected(
    api: APIClient, live: Pipe, a_spec: MakeSpec, stored: Stored
):
    stored(b"{}")
    found = compare(api, live, draft(a_spec, sources={"web": {}})).json()
    assert found["counts"]["rejected"] == 1
    assert found["examples"][0]["reason"] == "not accepted: the revision has no source shop"


def test_notes_name_what_is_not_compared(api: APIClient, live: Pipe, a_spec: MakeSpec, stored: Stored):
    stored(b"{}")
    plain = compare(api, live, a_spec()).json()["notes"]
    impure = compare(api, live, draft(a_spec, dedup={"paths": ["id"], "window_s": 60})).json()["notes"]
    assert [note.split()[0] for note in plain] == ["Delivery"]
    assert impure[0].startswith("Duplicates are not looked for")
    later = compare(api, live, draft(a_spec, execution="bulk")).json()["notes"]
    assert later[0] == (
        "Execution changes from streaming to bulk. This changes no message; "
        "messages are delivered about a second later."
    )
    sends = a_spec() | {"destinations": {"crm": {"url": "https://crm.example.com/in", "original_body": True}}}
    assert compare(api, live, sends).json()["notes"][0].endswith("as received the JSON is compared.")


def test_examples_are_limited_and_counts_are_not(api: APIClient, live: Pipe, a_spec: MakeSpec, stored: Stored):
    stored(*[b'{"total":"%d"}' % number for number in range(30)])
    found = compare(api, live, draft(a_spec, normalize=CAST)).json()
    assert found["counts"]["changed"] == 30
    assert [one["message_id"] for one in found["examples"]] == [f"m{number}" for number in range(10)]


def test_events_that_are_too_large_or_gone_are_counted_apart(
    api: APIClient, live: Pipe, a_spec: MakeSpec, stored: Stored
):
    stored(b"{}", b'"%s"' % (b"x" * 256 * 1024), unread=2)
    found = compare(api, live, a_spec()).json()
    assert (found["found"], found["compared"]) == (4, 1)
    assert found["left_out"] == [
        "Not read: 2 events, which are too old or did not arrive in time.",
        "Too large to compare: 1 event of more than 256 KiB.",
    ]


@pytest.mark.parametrize("body", [b"", b"no json", b'"\xff"', b"[" * 5_000, b"1e999"])
def test_hostile_event_is_compared_like_any_other(
    api: APIClient, live: Pipe, a_spec: MakeSpec, stored: Stored, body: bytes
):
    stored(body)
    assert compare(api, live, a_spec()).json()["counts"]["same"] == 1
    assert compare(api, live, draft(a_spec, normalize=CAST)).json()["compared"] == 1


# -- refusals


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        pytest.param(
            {"normalize": [{"op": "filter", "when": "body.a >"}]}, "#/spec/normalize/0/when", id="an expression"
        ),
        pytest.param({"normalize": [{"op": "exec", "code": "1"}]}, "#/spec/normalize/0/op", id="an unknown step"),
        pytest.param({"enrich": [{"table": "no", "key": "body.a", "into": "b"}]}, "#/spec/enrich/0/table", id="table"),
        pytest.param(
            {"destinations": {"crm": {"type": "http", "url": "http://169.254.169.254/"}}},
            "#/spec/destinations/crm/url",
            id="a forbidden address",
        ),
    ],
)  # fmt: skip
def test_invalid_draft_is_refused_at_its_field_before_events_are_read(
    api: APIClient,
    live: Pipe,
    a_spec: MakeSpec,
    monkeypatch: pytest.MonkeyPatch,
    change: dict[str, Any],
    pointer: str,
):
    monkeypatch.setattr(comparison, "newest_events", lambda *_, **__: pytest.fail("events were read"))
    answer = compare(api, live, draft(a_spec, **change))
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, pointer)


@pytest.mark.parametrize("spec", [[], "text", {"sources": {}}, {"a": [[[[[]]]]] * 50}])
def test_anything_but_a_spec_is_refused(api: APIClient, live: Pipe, spec: Any):
    assert compare(api, live, spec).status_code in (400, 422)


def test_pipe_of_another_tenant_is_not_found_and_nothing_is_read(
    client_of: MakeClient, browser_of: BrowserOf, charlie: User, live: Pipe, a_spec: MakeSpec,
    monkeypatch: pytest.MonkeyPatch,
):  # fmt: skip
    monkeypatch.setattr(comparison, "newest_events", lambda *_, **__: pytest.fail("events were read"))
    assert compare(client_of(charlie), live, a_spec()).status_code == 404
    url = reverse("console:edit_pipe", args=[live.id])
    assert browser_of(charlie).post(url, {"mode": "json", "action": "compare", "spec": "{}"}).status_code == 404


def test_viewer_may_compare_as_they_may_read_messages_and_may_not_edit(
    client_of: MakeClient, browser_of: BrowserOf, viewer: User, live: Pipe, a_spec: MakeSpec, stored: Stored
):
    stored(b"{}")
    assert compare(client_of(viewer), live, a_spec()).status_code == 200
    url = reverse("console:edit_pipe", args=[live.id])
    assert browser_of(viewer).post(url, {"mode": "json", "action": "compare", "spec": "{}"}).status_code == 403


def test_comparison_needs_a_live_revision_and_an_event(
    api: APIClient, alices: Client, pipe: Pipe, a_spec: MakeSpec, monkeypatch: pytest.MonkeyPatch
):
    answer = compare(api, pipe, a_spec())
    assert (answer.status_code, answer.json()["code"]) == (409, "not-comparable")
    assert "No revision of this pipe is live yet." in answer.json()["detail"]
    PipeRevision.objects.filter(pipe=pipe).update(state="live")
    assert "This pipe has no events yet. Send one" in compare(api, pipe, a_spec()).json()["detail"]
    assert "This pipe has no events yet. Send one" in compare_in_editor(alices, pipe, a_spec())
    monkeypatch.setattr(comparison, "newest_events", lambda *_, **__: ([], 7))
    assert "older than the retention time" in compare(api, pipe, a_spec()).json()["detail"]


def test_unreachable_kafka_is_503_in_the_api_and_a_sentence_in_the_editor(
    api: APIClient, alices: Client, live: Pipe, a_spec: MakeSpec, settings: Settings
):
    settings.PENSTOCK_KAFKA = "127.0.0.1:1"
    api.raise_request_exception = False
    place_on_a_cell(live)
    fact(live, BUCKET, [(0, 3)])
    answer = compare(api, live, a_spec())
    assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
    assert answer.json()["detail"] == "The pipe's newest events cannot be read: the brokers do not respond."
    assert int(answer["Retry-After"]) > 0
    assert "The newest events cannot be read: the brokers do not respond." in compare_in_editor(alices, live, a_spec())


# -- limits


def slow_draft(a_spec: MakeSpec) -> dict[str, Any]:
    """Return a draft that needs some 0.3 s of CPU time for SLOW_EVENT: each of its 30 transforms needs about 10 ms."""
    names = {f"crm{number}": "https://crm.example.com/in" for number in range(30)}
    steps = [{"op": "filter", "when": "body.l.all(x, x >= 0)"}] * 10
    return {**a_spec(**names), "transform": dict.fromkeys(names, steps)}


SLOW_EVENT = b'{"l":%s}' % str(list(range(5_000))).encode()


def test_comparison_over_the_limit_of_one_event_names_the_limit(
    api: APIClient, alices: Client, live: Pipe, a_spec: MakeSpec, stored: Stored, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sandbox, "TRY_S", 0.05)
    stored(SLOW_EVENT)
    answer = compare(api, live, slow_draft(a_spec))
    assert (answer.status_code, answer.json()["code"]) == (422, "too-expensive")
    assert "CPU time and was stopped" in answer.json()["detail"]
    assert "CPU time and was stopped" in compare_in_editor(alices, live, slow_draft(a_spec))


def test_comparison_out_of_time_reports_what_it_has_and_why_it_stopped(
    api: APIClient, live: Pipe, a_spec: MakeSpec, stored: Stored, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sandbox, "COMPARE_SLICE_S", 0.0)
    monkeypatch.setattr(comparison, "COMPARE_S", 0.0)
    stored(b"{}", b"{}", b"{}")
    found = compare(api, live, a_spec()).json()
    assert (found["compared"], found["summary"]) == (1, "1 same, 0 re-routed, 0 rejected")
    assert found["left_out"] == [
        "Not compared: 2 events. Comparing takes longer than 0 s. Use simpler steps to compare more events."
    ]


def test_expensive_event_does_not_cost_the_ones_before_it(
    api: APIClient, live: Pipe, a_spec: MakeSpec, stored: Stored, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sandbox, "TRY_S", 0.05)
    monkeypatch.setattr(sandbox, "COMPARE_SLICE_S", 0.0)
    stored(b'{"l":[]}', SLOW_EVENT, b'{"l":[]}')
    found = compare(api, live, slow_draft(a_spec)).json()
    assert found["compared"] == 1
    assert found["left_out"][0].startswith("Not compared: 2 events. This took more than")


def test_large_events_are_compared_in_several_jobs(
    api: APIClient, live: Pipe, a_spec: MakeSpec, stored: Stored, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(comparison, "MOST_JOB_BYTES", 1_000)
    sizes: list[int] = []
    compare_events = sandbox.compare_events

    def counted(live_spec: Any, draft_spec: Any, samples: Sequence[Any], **more: Any) -> Any:
        sizes.append(len(samples))
        return compare_events(live_spec, draft_spec, samples, **more)

    monkeypatch.setattr(sandbox, "compare_events", counted)
    stored(*[b'"%s"' % (b"x" * size) for size in (400, 400, 400, 2_000, 10)])
    assert compare(api, live, a_spec()).json()["compared"] == 5
    assert sizes == [2, 1, 1, 1]


@pytest.mark.parametrize(
    ("refusal", "status", "code"),
    [
        pytest.param(SandboxBusy("Try again in a few seconds."), 503, "busy", id="the server is busy"),
        pytest.param(TooManyAtOnce("Wait until one is done."), 429, "too-many-at-once", id="the user has too many"),
    ],
)
def test_comparison_without_a_free_worker_is_refused_with_retry_after(
    api: APIClient, live: Pipe, a_spec: MakeSpec, stored: Stored, monkeypatch: pytest.MonkeyPatch, refusal: Exception,
    status: int, code: str,
):  # fmt: skip
    def refuse(*_: Any, **__: Any) -> None:
        raise refusal

    stored(b"{}")
    compare(api, live, a_spec())  # the spec is known from now on
    monkeypatch.setattr(sandbox.trials(), "run", refuse)
    api.raise_request_exception = False
    answer = compare(api, live, a_spec())
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert int(answer["Retry-After"]) > 0


def test_comparisons_of_a_user_have_a_limit_that_api_and_editor_share(
    api: APIClient, alices: Client, live: Pipe, a_spec: MakeSpec, stored: Stored, monkeypatch: pytest.MonkeyPatch
):
    limit = throttling.COMPARISONS._replace(most=2)
    monkeypatch.setattr(throttling.ComparisonThrottle, "limit", limit)
    monkeypatch.setattr("mgmt.pipes.pages.edit.COMPARISONS", limit)
    stored(b"{}")
    assert [compare(api, live, a_spec()).status_code for _ in range(3)] == [200, 200, 429]
    assert "You compared too often. Compare again in" in compare_in_editor(alices, live, a_spec())


# -- the editor


def test_editor_shows_the_counts_and_examples_with_links_to_their_messages(
    alices: Client, live: Pipe, a_spec: MakeSpec, stored: Stored
):
    stored(b'{"total":1}', b'{"total":"2"}', b'{"total":"<b>"}')
    page = compare_in_editor(alices, live, draft(a_spec, normalize=CAST))
    assert "1 same, 1 changed, 0 re-routed, 1 rejected" in page
    assert "in the draft and in the live revision @1" in page
    assert '<span class="gone">  &quot;total&quot;: &quot;2&quot;</span>' in page
    assert '<span class="new">  &quot;total&quot;: 2</span>' in page
    links = re.findall(r'<a href="([^"]+/messages/[^"]+)"', page)
    assert links == [reverse("console:message", args=[live.id, format_position(position_of(1, 0, n))]) for n in (1, 2)]
    assert "<b>" not in page.partition('id="comparison"')[2].partition("</section>")[0]
    assert live.revisions.count() == 1


def test_editor_without_a_comparison_offers_one_and_a_new_pipe_does_not(alices: Client, live: Pipe):
    page = alices.get(reverse("console:edit_pipe", args=[live.id])).content.decode()
    assert "Compare with the last 100 events</button>" in page
    assert "Compare with the last 100 events" not in alices.get("/pipes/new/").content.decode()


def test_faulty_draft_is_marked_at_its_field_instead_of_compared(alices: Client, live: Pipe, stored: Stored):
    stored(b"{}")
    url = reverse("console:edit_pipe", args=[live.id])
    form = {
        "mode": "form", "action": "compare", "based_on": "1", "sample": "{}", "source.name": "shop",
        "source.was": "shop", "destination.name": "crm", "destination.was": "crm", "destination.url": "",
    }  # fmt: skip
    page = alices.post(url, form).content.decode()
    assert "Correct the marked fields, then compare again." in page
    assert re.findall(r'id="([a-z0-9-]+)"[^>]* autofocus', page) == ["destination-0-url"]
    fragment = alices.post(url, form | {"destination.url": "https://a.example.com/in"}, headers=HTMX).content.decode()
    assert "<html" not in fragment
    assert "0 same, 1 changed" in fragment


def test_editor_says_when_the_draft_has_changed_since_the_comparison(
    alices: Client, live: Pipe, a_spec: MakeSpec, stored: Stored
):
    stored(b"{}")
    page = compare_in_editor(alices, live, a_spec())
    compared = re.findall(r'name="compared" value="(\w+)"', page)[0]
    same = compare_in_editor(alices, live, a_spec(), action="try", compared=compared)
    other = compare_in_editor(alices, live, draft(a_spec, normalize=CAST), action="try", compared=compared)
    assert "The draft has changed since. Compare again." not in same
    assert "The draft has changed since. Compare again." in other


# -- positions of the newest events


def place_on_a_cell(pipe: Pipe) -> None:
    PipeRevision.objects.filter(pipe=pipe).update(state="ramping")
    go_live(pipe)


def fact(pipe: Pipe, bucket: int, places: Sequence[tuple[int, int]], *, audit: int = 0, detail: str = "acked") -> None:
    positions = BitMap64(position_of(1, *place) for place in places)
    FactRow.objects.create(
        pipe_id=pipe.id, bucket=bucket, node="ingest", fact="sent", detail=detail, audit_partition=audit,
        positions=positions.serialize(), count=len(positions),
    )  # fmt: skip


def names(positions: Sequence[int]) -> list[str]:
    return [format_position(one) for one in positions]


def test_newest_positions_are_taken_from_the_newest_minutes_and_all_partitions_in_turn(pipe: Pipe):
    fact(pipe, BUCKET, [(0, 1), (0, 2)])
    fact(pipe, BUCKET + 1, [(0, 3), (0, 4), (2, 9)])
    fact(pipe, BUCKET + 1, [(1, 7)], audit=1)
    fact(pipe, BUCKET + 2, [(0, 5)], detail="seen")  # accepted by nobody
    assert names(newest_positions(pipe, 3)) == ["1-2-9", "1-1-7", "1-0-4"]
    assert names(newest_positions(pipe, 5)) == ["1-2-9", "1-1-7", "1-0-4", "1-0-3", "1-0-2"]
    assert len(newest_positions(pipe, 100)) == 6


def test_newest_positions_are_of_the_pipe_alone(pipe: Pipe, alice: User, a_spec: MakeSpec):
    other = create_pipe(tenant=pipe.tenant, name="other", spec=a_spec(), author=alice)
    fact(other, BUCKET, [(0, 1)])
    assert newest_positions(pipe, 10) == []
    with pytest.raises(NoEventError):
        last_event.newest_events(pipe, 10, most_bytes=100)
