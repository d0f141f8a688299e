"""Baseline and findings of a pipe, as pages, API and `explain` show them."""

import json
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec
import pytest
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from mgmt.models import Finding, PatternHour, Pipe, User
from mgmt.patterns.blocks import IN_HOUR, PatternBlock, block_at, hour_of, start_of
from mgmt.patterns.queries import pattern_now
from tests.db.console.truth import BrowserOf, go_live

pytestmark = pytest.mark.django_db
SINCE: Final = datetime(2026, 11, 21, 14, 0, tzinfo=UTC)
WORDS: Final = "3 events/min where 180 to 240 are usual at this hour of the day"


@pytest.fixture
def watched(pipe: Pipe) -> Pipe:
    """Pipe with four normal hours, and one block of the next."""
    go_live(pipe)
    hour, block = hour_of(block_at(timezone.now())), msgspec.to_builtins(PatternBlock(1_000, 990, 10, 990, 40_000))
    for back in range(1, 5):
        PatternHour.objects.create(pipe_id=pipe.id, hour=hour - back, blocks=[block] * IN_HOUR)
    PatternHour.objects.create(pipe_id=pipe.id, hour=hour, blocks=[block] + [None] * (IN_HOUR - 1))
    return pipe


def found(pipe: Pipe, **more: object) -> Finding:
    fields = {"kind": "quiet", "since": SINCE, "told_at": SINCE + timedelta(minutes=12), "words": WORDS} | more
    return Finding.objects.create(pipe=pipe, **fields)


def test_every_tab_shows_current_findings_and_links_to_the_baseline(alices: Client, watched: Pipe):
    found(watched)
    for tab in ("", "dead/", "patterns/"):
        page = alices.get(f"/pipes/{watched.id}/{tab}").content.decode()
        assert f'{WORDS}. <a href="/pipes/{watched.id}/patterns/">View baseline</a>' in page


def test_ended_silenced_and_unconfirmed_findings_show_no_note(alices: Client, watched: Pipe):
    found(watched, ended_at=SINCE + timedelta(hours=1))
    found(watched, kind="slow", told_at=None, silenced="while a release was deployed on cell c1")
    found(watched, kind="busy", told_at=None, words="seen once")
    assert "Unusual since" not in alices.get(f"/pipes/{watched.id}/").content.decode()
    page = alices.get(f"/pipes/{watched.id}/patterns/").content.decode()
    assert "while a release was deployed on cell c1" in page
    assert "seen once" not in page


def test_each_signal_has_its_baseline_and_reporting_threshold(watched: Pipe):
    now = pattern_now(watched)
    assert now
    assert now.since == start_of(hour_of(block_at(timezone.now())) * IN_HOUR)
    assert [(line.now, line.usual, line.threshold, line.basis) for line in now.lines] == [
        ("200", "200", "below 148 or above 270", "in the hours before"),
        ("1 %", "1 %", "above 7 %", "in the hours before"),
        ("0 s", "0 s", "above 2.5 s", "in the hours before"),
    ]


def test_pipe_without_a_baseline_says_when_one_will_exist(alices: Client, pipe: Pipe):
    go_live(pipe)
    page = alices.get(f"/pipes/{pipe.id}/patterns/").content.decode()
    assert "No baseline yet" in page
    assert "No anomalies so far" in page


def test_fragment_is_a_section_of_the_page(alices: Client, watched: Pipe):
    part = alices.get(f"/pipes/{watched.id}/patterns/?part=now", headers={"HX-Request": "true"}).content.decode()
    assert part.lstrip().startswith("<section")
    assert "Messages that failed" in part


def test_findings_have_a_file_export(alices: Client, watched: Pipe):
    found(watched)
    answer = alices.get(f"/pipes/{watched.id}/patterns/", {"format": "jsonl"})
    (row,) = (json.loads(line) for line in b"".join(answer).splitlines())
    assert (row["kind"], row["words"], row["ended_at"]) == ("quiet", WORDS, None)


def test_api_returns_the_same_signals_and_findings(alices: Client, watched: Pipe):
    found(watched)
    answer = alices.get(f"/api/v1/pipes/{watched.id}/patterns/").json()
    assert [signal["name"] for signal in answer["signals"]] == ["volume", "failures", "lag"]
    assert [(row["kind"], row["words"]) for row in answer["findings"]] == [("quiet", WORDS)]


def test_api_returns_nothing_for_a_pipe_without_a_baseline(alices: Client, pipe: Pipe):
    assert alices.get(f"/api/v1/pipes/{pipe.id}/patterns/").json() == {"since": None, "signals": [], "findings": []}


def test_other_tenant_gets_404_from_page_and_api(browser_of: BrowserOf, charlie: User, watched: Pipe):
    for path in (f"/pipes/{watched.id}/patterns/", f"/api/v1/pipes/{watched.id}/patterns/"):
        assert browser_of(charlie).get(path).status_code == 404


def test_explain_reports_current_findings(watched: Pipe, capsys: pytest.CaptureFixture[str]):
    found(watched)
    call_command("explain", watched.id)
    assert f"{WORDS}\n" in capsys.readouterr().out
