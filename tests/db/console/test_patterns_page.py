"""What is usual of a pipe and what was not, as pages, API and explain show it."""

import json
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec
import pytest
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from mgmt.models import Finding, PatternHour, Pipe, User
from mgmt.patterns.blocks import IN_HOUR, Block, block_at, hour_of, start_of
from mgmt.queries.patterns import pattern_now
from tests.db.console.truth import BrowserOf, go_live

pytestmark = pytest.mark.django_db
SINCE: Final = datetime(2026, 11, 21, 14, 0, tzinfo=UTC)
WORDS: Final = "3 events/min where 180 to 240 are usual at this hour of the day"


@pytest.fixture
def watched(pipe: Pipe) -> Pipe:
    """Four hours as usual, and one block of the next."""
    go_live(pipe)
    hour, block = hour_of(block_at(timezone.now())), msgspec.to_builtins(Block(1_000, 990, 10, 990, 40_000))
    for back in range(1, 5):
        PatternHour.objects.create(pipe_id=pipe.id, hour=hour - back, blocks=[block] * IN_HOUR)
    PatternHour.objects.create(pipe_id=pipe.id, hour=hour, blocks=[block] + [None] * (IN_HOUR - 1))
    return pipe


def found(pipe: Pipe, **more: object) -> Finding:
    fields = {"kind": "quiet", "since": SINCE, "told_at": SINCE + timedelta(minutes=12), "words": WORDS} | more
    return Finding.objects.create(pipe=pipe, **fields)


def test_every_tab_says_what_is_unusual_now_and_leads_to_what_is_usual(alices: Client, watched: Pipe):
    found(watched)
    for tab in ("", "dead/", "patterns/"):
        page = alices.get(f"/pipes/{watched.id}/{tab}").content.decode()
        assert f'{WORDS}. <a href="/pipes/{watched.id}/patterns/">What is usual</a>' in page


def test_what_is_over_silenced_or_seen_once_is_no_note(alices: Client, watched: Pipe):
    found(watched, ended_at=SINCE + timedelta(hours=1))
    found(watched, kind="slow", told_at=None, silenced="while a release was deployed on cell c1")
    found(watched, kind="busy", told_at=None, words="seen once")
    assert "Unusual since" not in alices.get(f"/pipes/{watched.id}/").content.decode()
    page = alices.get(f"/pipes/{watched.id}/patterns/").content.decode()
    assert "while a release was deployed on cell c1" in page
    assert "seen once" not in page


def test_the_page_has_each_signal_beside_what_is_usual_and_from_when_on_it_is_told(watched: Pipe):
    now = pattern_now(watched)
    assert now
    assert now.since == start_of(hour_of(block_at(timezone.now())) * IN_HOUR)
    assert [(line.now, line.usual, line.told, line.basis) for line in now.lines] == [
        ("200", "200", "below 148 or above 270", "in the hours before"),
        ("1 %", "1 %", "above 7 %", "in the hours before"),
        ("0 s", "0 s", "above 2.5 s", "in the hours before"),
    ]


def test_a_pipe_of_which_nothing_is_known_says_when_something_will_be(alices: Client, pipe: Pipe):
    go_live(pipe)
    page = alices.get(f"/pipes/{pipe.id}/patterns/").content.decode()
    assert "Nothing is known yet" in page
    assert "Nothing so far" in page


def test_a_fragment_is_a_part_of_the_page(alices: Client, watched: Pipe):
    part = alices.get(f"/pipes/{watched.id}/patterns/?part=now", headers={"HX-Request": "true"}).content.decode()
    assert part.lstrip().startswith("<section")
    assert "Messages that failed" in part


def test_findings_are_a_file(alices: Client, watched: Pipe):
    found(watched)
    answer = alices.get(f"/pipes/{watched.id}/patterns/", {"format": "jsonl"})
    (row,) = (json.loads(line) for line in b"".join(answer).splitlines())
    assert (row["kind"], row["words"], row["ended_at"]) == ("quiet", WORDS, None)


def test_the_api_answers_with_the_same(alices: Client, watched: Pipe):
    found(watched)
    answer = alices.get(f"/api/v1/pipes/{watched.id}/patterns/").json()
    assert [signal["name"] for signal in answer["signals"]] == ["volume", "failures", "lag"]
    assert [(row["kind"], row["words"]) for row in answer["findings"]] == [("quiet", WORDS)]


def test_the_api_says_nothing_of_a_pipe_of_which_nothing_is_known(alices: Client, pipe: Pipe):
    assert alices.get(f"/api/v1/pipes/{pipe.id}/patterns/").json() == {"since": None, "signals": [], "findings": []}


def test_charlie_finds_neither_page_nor_answer(browser_of: BrowserOf, charlie: User, watched: Pipe):
    for path in (f"/pipes/{watched.id}/patterns/", f"/api/v1/pipes/{watched.id}/patterns/"):
        assert browser_of(charlie).get(path).status_code == 404


def test_explain_says_what_is_unusual(watched: Pipe, capsys: pytest.CaptureFixture[str]):
    found(watched)
    call_command("explain", watched.id)
    assert f"{WORDS}\n" in capsys.readouterr().out
