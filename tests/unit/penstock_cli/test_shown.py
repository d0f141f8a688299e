"""Texts that commands show, from the examples of the API's own documentation."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mgmt.messages.event_serializers import EVENT_LOG_EXAMPLE
from mgmt.messages.serializers import JOURNEY_EXAMPLE
from mgmt.pipes.summary_serializers import PIPE_SUMMARIES_EXAMPLE
from mgmt.replays.serializers import REPLAY_DETAIL_EXAMPLE
from penstock_cli import run_replay
from penstock_cli.connection import problem_of
from penstock_cli.errors import CliError, ExitCode
from penstock_cli.journey_words import journey_words
from penstock_cli.output import one_line, write_columns
from penstock_cli.run_replay import ReplaySelection, replay_body
from penstock_cli.sse import ServerSentEvent, server_sent_events
from penstock_cli.status import HEAD, columns_of
from penstock_cli.times import seconds_in_words, time_from
from penstock_client.models.event_log_out import EventLogOut
from penstock_client.models.journey_out import JourneyOut
from penstock_client.models.replay_detail_out import ReplayDetailOut

NOW = datetime(2026, 11, 27, 12, 0, tzinfo=UTC)


def test_journey_is_explained_in_sentences():
    lines = list(journey_words(JourneyOut.from_dict(JOURNEY_EXAMPLE)))
    assert lines[0] == "Message 019a8441-6f3c-7d51-8f0a-2b6d5c1f9e77: dead."
    assert lines[1] == "Accepted at 2025-11-14 21:11:20 UTC at source shop, stored after 3 ms."
    assert "route of revision 2: passed, to crm." in lines
    assert "Rule 1 matched: `body.order.amount > 100`, to crm." in lines
    assert "Destination crm: dead." in lines
    assert any(line.startswith("  Attempt ") for line in lines)


def test_events_of_the_api_are_understood():
    (event,) = EventLogOut.from_dict(EVENT_LOG_EXAMPLE).results
    assert event.headers.to_dict() == {"content-type": "application/json"}
    assert event.accepted_at.tzinfo


def test_status_has_a_column_for_each_figure(capsys: pytest.CaptureFixture[str]):
    results: Any = PIPE_SUMMARIES_EXAMPLE["results"]
    summary = results[0]
    write_columns(HEAD, [columns_of({**summary, "open_alerts": 2})])
    head, line = capsys.readouterr().out.splitlines()
    assert head.split()[0] == "PIPE"
    assert line.split()[0] == summary["name"]
    assert line.split()[-1] == "2"


def test_replay_is_shown_by_destination(capsys: pytest.CaptureFixture[str]):
    replay = ReplayDetailOut.from_dict(REPLAY_DETAIL_EXAMPLE)
    run_replay._show(replay)
    shown = capsys.readouterr().out
    assert f"{replay.asked} events selected" in shown
    assert all(f"{name}: {count} messages" in shown for name, count in REPLAY_DETAIL_EXAMPLE["units"].items())


def test_options_of_a_replay_are_those_of_the_api():
    empty = ReplaySelection("2h", "1h", None, [], "", [], [], [], None)
    times = {"since": "2026-11-27T10:00:00+00:00", "until": "2026-11-27T11:00:00+00:00"}
    assert replay_body(empty, NOW) == times
    whole = ReplaySelection("2h", "1h", 3, ["crm"], "true", ["k"], ["m"], [1], 5.0)
    others = {"revision": 3, "destinations": ["crm"], "where": "true", "keys": ["k"], "ids": ["m"], "revisions": [1]}
    assert replay_body(whole, NOW) == times | others | {"rate_per_s": 5.0}


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("10m", NOW - timedelta(minutes=10)),
        ("1d", NOW - timedelta(days=1)),
        ("2026-11-27T11:00:00Z", NOW - timedelta(hours=1)),
        ("2026-11-27T11:00", NOW - timedelta(hours=1)),
        ("2026-11-27T12:00:00+01:00", NOW - timedelta(hours=1)),
    ],
)
def test_time_is_a_duration_or_a_moment(text: str, moment: datetime):
    assert time_from(text, NOW) == moment


@pytest.mark.parametrize("text", ["", "10", "10 years", "yesterday"])
def test_another_time_is_refused(text: str):
    with pytest.raises(CliError, match="needs a duration"):
        time_from(text, NOW)


@pytest.mark.parametrize(
    ("status", "body", "text", "code"),
    [
        (
            400,
            {"detail": "Check it.", "code": "invalid", "errors": [{"pointer": "#/name", "detail": "needs a name"}]},
            "Check it (#/name: needs a name) [invalid]",
            ExitCode.FAILED,
        ),
        (
            403,
            {"detail": "No.", "code": "role-too-low", "errors": []},
            "No [role-too-low]. Ask an owner of the tenant for the role.",
            ExitCode.REFUSED,
        ),
        (502, "<html>", "the server returned 502 without a reason [502]", ExitCode.UNAVAILABLE),
        (429, {"detail": "Slow.", "code": "throttled"}, "Slow [throttled]", ExitCode.UNAVAILABLE),
    ],
)
def test_problem_is_one_sentence_with_its_code(status: int, body: object, text: str, code: ExitCode):
    found = problem_of(status, json.dumps(body).encode() if isinstance(body, dict) else str(body).encode())
    assert (str(found), found.code) == (text, code)


def test_stream_is_split_into_events():
    lines = ["retry: 2000", "", ":", "", "id: 1-2", "event: copy", "data: {}", "", "data: a", "data: b", ""]
    assert list(server_sent_events(lines)) == [
        ServerSentEvent("copy", "{}", "1-2"),
        ServerSentEvent("message", "a\nb", ""),
    ]


def test_durations_and_texts_are_short():
    assert [seconds_in_words(us) for us in (None, 35_400, 1_250_000)] == ["-", "35 ms", "1.2 s"]
    assert one_line("a\n  b " + "c" * 200, 10) == "a b ccccc…"
