"""Dead letters and held messages: lists, filters and exports; redriving, aborting, pausing and resuming."""

import json
from datetime import datetime, timedelta
from html import unescape
from urllib.parse import parse_qsl, urlsplit

import pytest
from django.test import Client
from django.urls import reverse

from dataplane.causes import Cause
from dataplane.ledger.meta import MessageMeta
from mgmt.deliveries.pages import dead_letters as dead_views
from mgmt.deliveries.services.destinations import change_destination_state
from mgmt.messages.queries.records import StoredRecord
from mgmt.models import DeadLetter, Destination, LaneSignal, OffsetSet, Pipe, Redrive, User
from mgmt.services import pause_destination, pause_pipe
from tests.db.console.truth import BrowserOf, Truth, go_live
from tests.db.console.undelivered import store_dead, store_held

pytestmark = pytest.mark.django_db


@pytest.fixture
def storm(pipe: Pipe, now: datetime) -> Pipe:
    """Five rejected by crm two hours ago, two expired just now, one that failed in a step."""
    go_live(pipe)
    store_dead(pipe, range(5), now - timedelta(hours=2))
    store_dead(pipe, range(5, 7), now - timedelta(minutes=1), cause="expired")
    store_dead(pipe, range(7, 8), now - timedelta(minutes=1), cause="step", where="")
    return pipe


def url_of(name: str, pipe: Pipe, *args: object) -> str:
    return reverse(f"console:{name}", args=[pipe.id, *args])


def rows_of(page: str) -> int:
    return page.count('data-label="Response"')


def test_dead_page_begins_with_groups_by_cause_and_destination(alices: Client, storm: Pipe):
    page = alices.get(url_of("dead", storm)).content.decode()
    heaps = page.split('id="heaps"')[1].split('id="letters"')[0]
    assert "Returned 4xx, which is final" in heaps
    assert f"{url_of('redrive', storm)}?destination=crm&amp;cause=rejected" in heaps
    assert "pipe steps" in heaps
    assert heaps.count("Redrive …") == 2
    assert f"{url_of('redrive', storm)}?cause=step" in heaps
    assert heaps.count("Run again through @1 …") == 1


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ({}, 8),
        ({"destination": "crm"}, 7),
        ({"cause": "expired"}, 2),
        ({"within": "1 h"}, 3),
        ({"key": "k0"}, 4),
        ({"messages": "m1, m3 m99"}, 2),
        ({"cause": "no-such", "within": "soon"}, 8),
    ],
)
def test_dead_letters_are_filtered_by_url_parameters(alices: Client, storm: Pipe, query: dict[str, str], rows: int):
    assert rows_of(alices.get(url_of("dead", storm), query).content.decode()) == rows


def test_older_link_pages_through_all_dead_letters_without_gaps(
    alices: Client, storm: Pipe, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(dead_views, "MOST", 3)
    seen, address = 0, url_of("dead", storm)
    while address:
        page = alices.get(address).content.decode()
        seen += rows_of(page)
        address = page.partition('">Older</a>')[0].rpartition('href="')[2] if "Older</a>" in page else ""
    assert seen == 8


def test_file_export_contains_the_filtered_dead_letters(alices: Client, storm: Pipe):
    answer = alices.get(url_of("dead", storm), {"format": "jsonl", "cause": "expired"})
    lines = [json.loads(line) for line in b"".join(answer.streaming_content).splitlines()]  # type: ignore[attr-defined]
    assert [line["message_id"] for line in lines] == ["m6", "m5"]


def test_dead_letter_page_escapes_the_response_and_says_why_the_body_is_unreadable(alices: Client, storm: Pipe):
    letter = DeadLetter.objects.get(message_id="m1")
    page = alices.get(url_of("dead_letter", storm, letter.id)).content.decode()
    assert "401 Unauthorized" in page
    assert "<script>alert" not in page
    assert "the brokers do not respond" in page
    assert reverse("console:cause", args=["rejected"]) in page
    assert f"{url_of('redrive', storm)}?destination=crm&amp;messages=m1" in page


def test_dead_letter_without_message_says_where_to_look(alices: Client, storm: Pipe, monkeypatch: pytest.MonkeyPatch):
    meta = MessageMeta(1, "m1", storm.id, 1, "shop", 0, 0, 29_000_000)
    record = StoredRecord(meta, (), b"", 0, is_reference=True)
    monkeypatch.setattr("mgmt.deliveries.pages.dead_letters.read_record", lambda *_, **__: record)
    letter = DeadLetter.objects.get(message_id="m1")
    page = alices.get(url_of("dead_letter", storm, letter.id)).content.decode()
    assert "The message is too large to be stored with its dead letter." in page


def test_redrive_is_previewed_and_started_once(alices: Client, storm: Pipe, alice: User):
    url, chosen = url_of("redrive", storm), {"destination": "crm", "cause": "rejected"}
    preview = alices.get(url, chosen).content.decode()
    assert "Redrive 5 dead letters to crm" in preview
    assert not Redrive.objects.exists()
    assert alices.post(url, chosen | {"rate_per_s": "20"}).status_code == 302
    move = Redrive.objects.get()
    assert (move.total, move.rate_per_s, move.by, move.what) == (5, 20.0, alice, "redrive")
    again = alices.post(url, chosen | {"rate_per_s": "20"})
    assert again.status_code == 422
    assert "already being sent" in again.content.decode()
    assert Redrive.objects.count() == 1
    page = alices.get(url_of("dead", storm)).content.decode()
    assert "running" in page
    assert page.count("redriven") == 5


def test_events_that_ended_in_the_steps_run_again_through_the_live_revision(alices: Client, storm: Pipe):
    url = url_of("redrive", storm)
    assert "Run 1 dead letter again through orders@1" in alices.get(url, {"cause": "step"}).content.decode()
    assert alices.post(url, {"cause": "step", "rate_per_s": "20"}).status_code == 302
    move = Redrive.objects.get()
    assert (move.destination, move.total, move.what) == ("", 1, "redrive")


def test_events_are_not_run_again_while_the_pipe_would_hold_them(alices: Client, storm: Pipe):
    pause_pipe(pipe=storm)
    answer = alices.post(url_of("redrive", storm), {"cause": "step", "rate_per_s": "20"})
    assert answer.status_code == 422
    assert "Resume it first" in answer.content.decode()
    assert not Redrive.objects.exists()


def test_dead_letters_without_a_redrive_are_counted_with_what_helps(alices: Client, storm: Pipe, now: datetime):
    store_dead(storm, range(20, 23), now, cause="route", where="")
    OffsetSet.objects.filter(cause="route").delete()  # as stored by an earlier release, or after an explode
    page = alices.get(url_of("dead", storm), {"cause": "route"}).content.decode()
    heaps = page.split('id="heaps"')[1].split('id="letters"')[0]
    assert "No dead letters." not in heaps
    assert "A routing rule failed" in heaps
    assert "send the events again" in heaps
    refused = alices.post(url_of("redrive", storm), {"cause": "route", "rate_per_s": "20"})
    assert refused.status_code == 422
    assert "Only a part of these events is stored" in refused.content.decode()


@pytest.mark.parametrize("where", ["", "crm"])
def test_every_cause_has_a_help_page_a_filter_and_an_action(alices: Client, pipe: Pipe, now: datetime, where: str):
    go_live(pipe)
    for number, cause in enumerate(Cause):
        store_dead(pipe, range(number, number + 1), now - timedelta(minutes=1), cause=cause, where=where)
    for number, cause in enumerate(Cause):
        assert alices.get(reverse("console:cause", args=[cause])).status_code == 200
        page = alices.get(url_of("dead", pipe), {"cause": cause}).content.decode()
        heaps, letters = page.split('id="heaps"')[1].split('id="letters"')
        assert f'title="m{number}"' in letters, cause
        assert rows_of(letters) == 1
        assert reverse("console:cause", args=[cause]) in heaps
        action = unescape(heaps.split('btn-primary" href="')[1].split('"')[0])
        assert alices.get(action).status_code == 200
        chosen = dict(parse_qsl(urlsplit(action).query))
        assert alices.post(urlsplit(action).path, chosen | {"rate_per_s": "20"}).status_code == 302, cause
        move = Redrive.objects.latest("created_at", "id")
        assert (move.destination, move.chosen["cause"], move.total) == (where, cause, 1)
    assert not OffsetSet.objects.exists()


def test_redriven_dead_letter_is_delivered_once_its_destination_accepted_it(alices: Client, storm: Pipe, alice: User):
    alices.post(url_of("redrive", storm), {"destination": "crm", "cause": "expired", "rate_per_s": "20"})
    alices.post(url_of("redrive", storm), {"cause": "step", "rate_per_s": "20"})
    letter, stepped = DeadLetter.objects.get(message_id="m5"), DeadLetter.objects.get(message_id="m7")
    states = alices.get(url_of("dead", storm)).content.decode()
    assert states.count('state-wait">redriven<') == 3
    Truth(storm).fact(letter.bucket, "transmit:crm", "delivered", [5])
    Truth(storm).fact(stepped.bucket, "process", "sent", [7])
    states = alices.get(url_of("dead", storm)).content.decode()
    assert states.count('state-wait">redriven<') == 1
    assert states.count('state-fine">delivered<') == 1
    assert states.count('state-fine">passed the steps<') == 1
    assert "delivered</span>" in alices.get(url_of("dead_letter", storm, letter.id)).content.decode()


@pytest.mark.parametrize("rate", ["0", "-3", "fast", "99999999"])
def test_invalid_redrive_rate_is_refused(alices: Client, storm: Pipe, rate: str):
    answer = alices.post(url_of("redrive", storm), {"destination": "crm", "rate_per_s": rate})
    assert answer.status_code == 422
    assert not Redrive.objects.exists()


def test_redrive_is_aborted(alices: Client, storm: Pipe):
    alices.post(url_of("redrive", storm), {"destination": "crm", "rate_per_s": "1"})
    move = Redrive.objects.get()
    assert alices.post(url_of("abort_redrive", storm, move.id)).status_code == 302
    move.refresh_from_db()
    assert move.state == "aborting"
    assert "stopping" in alices.get(url_of("dead", storm)).content.decode()


def test_pause_lists_held_messages_and_resume_releases_them(alices: Client, storm: Pipe, now: datetime):
    assert "No held messages" in alices.get(url_of("held", storm)).content.decode()
    assert alices.post(url_of("pause_destination", storm, "crm")).status_code == 302
    store_held(storm, range(12), now - timedelta(minutes=42))
    page = alices.get(url_of("held", storm)).content.decode()
    assert "Resume and release 12" in page
    assert "paused by alice" in page
    assert "42\u202fmin" in page or "43\u202fmin" in page, "the age is in whole minutes and may advance during the test"
    assert "12 messages held" in alices.get(url_of("destination", storm, "crm")).content.decode()
    assert alices.post(url_of("resume_destination", storm, "crm")).status_code == 302
    assert Destination.objects.get().state == "active"
    assert "being delivered" in alices.get(url_of("held", storm)).content.decode()


def test_selected_held_messages_are_previewed_and_released_once(
    alices: Client, storm: Pipe, now: datetime, alice: User
):
    alices.post(url_of("pause_destination", storm, "crm"))
    store_held(storm, range(100, 112), now - timedelta(minutes=42))
    url = url_of("release", storm)
    assert f"{url}?destination=crm" in alices.get(url_of("held", storm)).content.decode()
    page = alices.get(url, {"destination": "crm", "key": "k1"}).content.decode()
    assert "Release 6 held messages" in page
    assert "<code>m101</code>" in page
    assert "<code>m102</code>" not in page
    assert "No held messages match" in alices.get(url, {"destination": "crm", "messages": "m7"}).content.decode()
    chosen = {"destination": "crm", "messages": "m100, m101", "rate_per_s": "5"}
    assert alices.post(url, chosen).headers["location"] == url_of("held", storm)
    move = Redrive.objects.get()
    assert (move.total, move.what, move.through, move.by) == (2, "release", True, alice)
    again = alices.post(url, chosen)
    assert (again.status_code, Redrive.objects.count()) == (422, 1)
    assert "is already being sent" in again.content.decode()


def test_redrive_of_step_failures_is_refused_with_a_remedy(alices: Client, storm: Pipe):
    DeadLetter.objects.filter(message_id__in=["m1", "m2"]).update(node="transform:crm", cause="step")
    page = alices.get(url_of("redrive", storm), {"destination": "crm", "messages": "m1,m2"}).content.decode()
    assert "2 more failed in a step" in page
    assert reverse("console:edit_pipe", args=[storm.id]) in page
    refused = alices.post(url_of("redrive", storm), {"destination": "crm", "cause": "step", "rate_per_s": "5"})
    assert refused.status_code == 422
    assert "send the events again with the same ids" in refused.content.decode()


def test_destination_page_shows_the_slow_lane(alices: Client, storm: Pipe, now: datetime):
    said = {"pipe_id": storm.id, "destination": "crm", "at": now - timedelta(minutes=30), "breaker": "closed"}
    LaneSignal.objects.create(**said, writer="transmit-slow-0", slow=True)
    page = url_of("destination", storm, "crm")
    assert "use a separate queue" in alices.get(page).content.decode()
    LaneSignal.objects.update(slow=False)
    assert "use a separate queue" not in alices.get(page).content.decode()


def test_suspended_destination_shows_cause_and_remedy(alices: Client, storm: Pipe):
    row = Destination.objects.get()
    change_destination_state(row=row, was=["active"], becomes="suspended", cause="storm", reason="returned 401")
    page = alices.get(url_of("destination", storm, "crm")).content.decode()
    assert "rejected many messages in a row (returned 401)" in page
    assert reverse("console:cause", args=["storm"]) in page


def test_open_breaker_shows_the_next_probe_and_a_stale_one_shows_nothing(alices: Client, storm: Pipe, now: datetime):
    said = {"pipe_id": storm.id, "destination": "crm", "reason": "connect: refused"}
    LaneSignal.objects.create(**said, writer="transmit-0", at=now, breaker="closed")
    LaneSignal.objects.create(**said, writer="transmit-1", at=now, breaker="open", until=now + timedelta(seconds=9))
    page = url_of("destination", storm, "crm")
    assert "Next probe at" in alices.get(page).content.decode()
    LaneSignal.objects.update(at=now - timedelta(hours=1))
    assert "circuit breaker" not in alices.get(page).content.decode()


def test_pipe_is_paused_and_resumed_as_a_whole(alices: Client, storm: Pipe):
    alices.post(url_of("pause_pipe", storm))
    assert "This pipe is paused" in alices.get(url_of("pipe", storm)).content.decode()
    alices.post(url_of("resume_pipe", storm))
    storm.refresh_from_db()
    assert storm.state == "active"


def test_viewer_reads_dead_and_held_messages_and_may_change_nothing(browser_of: BrowserOf, viewer: User, storm: Pipe):
    vera = browser_of(viewer)
    letter = DeadLetter.objects.get(message_id="m7")
    pause_destination(destination=Destination.objects.get())
    for url in (url_of("dead", storm), url_of("held", storm), url_of("dead_letter", storm, letter.id)):
        page = vera.get(url).content.decode()
        for word in ("Redrive …", "Resume", "Pause"):
            assert word not in page, (url, word)
    assert vera.get(url_of("redrive", storm), {"destination": "crm"}).status_code == 403
    assert vera.get(url_of("release", storm), {"destination": "crm"}).status_code == 403
    assert vera.post(url_of("resume_destination", storm, "crm")).status_code == 403
    assert vera.post(url_of("pause_pipe", storm)).status_code == 403


@pytest.mark.parametrize(
    "path",
    [
        "dead/0/",
        f"dead/{10**30}/",
        "moves/no-such/abort/",
        "redrive/?destination=no-such",
        "release/?destination=no-such",
    ],
)
def test_unknown_dead_letter_redrive_or_destination_is_not_found(alices: Client, storm: Pipe, path: str):
    url = f"/pipes/{storm.id}/{path}"
    assert (alices.post(url) if "abort" in path else alices.get(url)).status_code == 404


def test_other_tenant_gets_404_for_a_dead_letter(browser_of: BrowserOf, charlie: User, storm: Pipe):
    letter = DeadLetter.objects.first()
    assert letter
    assert browser_of(charlie).get(url_of("dead_letter", storm, letter.id)).status_code == 404


def test_home_sums_held_messages_of_all_rounds_in_one_line(
    alices: Client, pipe: Pipe, bucket: int, now: datetime, browser_of: BrowserOf
):
    go_live(pipe)
    found = Truth(pipe)
    found.moved(bucket, list(range(6)))
    found.passed(6)
    found.fact(bucket, "transmit:crm", "held", [0, 1, 2], "0")
    found.fact(bucket, "transmit:crm", "held", [3, 4, 5], "1")
    store_held(pipe, range(3), now - timedelta(hours=2))
    store_held(pipe, range(3, 6), now)
    home = alices.get("/").content.decode()
    assert home.count("crm: held") == 1
    assert f'<a href="{url_of("held", pipe)}">6</a>' in home


def test_flow_shows_a_paused_destination(alices: Client, storm: Pipe):
    alices.post(url_of("pause_destination", storm, "crm"))
    flow = alices.get(url_of("pipe", storm)).content.decode().split('id="flow"')[1].split("</section>")[0]
    assert "paused" in flow
