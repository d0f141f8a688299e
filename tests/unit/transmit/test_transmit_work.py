"""The transmit lane sends a unit once at a time, and only the verdict settles it."""

import itertools
import time
from collections import Counter
from pathlib import Path

import pytest
from cryptography.fernet import Fernet
from standardwebhooks import Webhook

from dataplane.ledger.audit import decode_attempts
from dataplane.ledger.meta import read_meta
from dataplane.ledger.units import position_of
from dataplane.names import Purpose
from dataplane.record_limits import CLIENT_MAX_BYTES
from dataplane.spec import ResponseMatch, ResponseRule, RetryPolicy
from dataplane.transmit.http.sender import HttpResponse
from dataplane.transmit.outcomes import responses
from dataplane.transmit.outcomes.attempts import MOST_QUIET, SAMPLE
from tests.support.memory_lane import MemoryMessage, message
from tests.support.transmitting import NODE, SECRET, destination, opened, without_kafka


@pytest.fixture(autouse=True)
def _without_kafka(monkeypatch: pytest.MonkeyPatch) -> None:
    without_kafka(monkeypatch)


def test_delivered_message_is_settled_and_signed(tmp_path: Path):
    lane, work, sender = opened(tmp_path, destination())
    lane.take(message(5, b'{"a":1}'))
    work.poll()
    url, headers, body, timeout_ms = sender.requests[0]
    assert (url, body, timeout_ms) == ("http://crm.example/", b'{"a":1}', 15_000)
    named = dict(header.split(": ", 1) for header in headers if ": " in header)
    assert named["penstock-position"] == "0-0-5"
    assert Webhook(SECRET).verify(body, {name.lower(): value for name, value in named.items()}) == {"a": 1}
    assert lane.unsettled() == 1
    sender.answer(204)
    work.poll()
    assert lane.unsettled() == 0
    assert lane.filed() == {(NODE, "delivered", ""): 1}
    assert not lane.producer.sent
    work.close()


@pytest.mark.parametrize(("status", "topic"), [(500, "retry-in"), (400, "dead")])
def test_failed_messages_of_a_spread_key_keep_their_key_and_the_partitions_of_their_events(
    tmp_path: Path, status: int, topic: Purpose
):
    lane, work, sender = opened(tmp_path, destination())
    lane.take(*(message(number, key=b"crm\0k", position=position_of(1, number, 9)) for number in range(4)))
    work.poll()
    sender.answer(status)
    work.poll()
    found = lane.producer.of(lane.cell.topics[topic].name)
    assert [(record["key"], record["partition"]) for record in found] == [(b"crm\0k", number) for number in range(4)]
    work.close()


def test_refused_message_is_dead_once_its_record_is_stored(tmp_path: Path):
    lane, work, sender = opened(tmp_path, destination(retry=RetryPolicy(local_tries=5)))
    lane.take(message(5, b'{"a":1}'))
    work.poll()
    sender.answer(400)
    work.poll()
    assert len(sender.requests) == 1, "never retried"
    (record,) = lane.producer.of(lane.cell.topics["dead"].name)
    headers = dict(record["headers"][1:])
    assert (record["value"], headers["penstock-node"], headers["penstock-cause"]) == (
        b'{"a":1}',
        b"transmit:crm",
        b"rejected",
    )
    assert lane.unsettled() == 1, "not before it is stored"
    lane.store()
    assert lane.unsettled() == 0
    assert lane.filed() == {(NODE, "dead", "rejected"): 1}
    work.close()


def test_dead_letter_and_its_attempt_carry_the_response(tmp_path: Path):
    lane, work, sender = opened(tmp_path, destination())
    lane.take(message(5))
    work.poll()
    sender.answer(422, body=b"no such order" + b"." * 3_000)
    work.poll()
    work.report()
    (record,) = lane.producer.of(lane.cell.topics["dead"].name)
    assert dict(record["headers"])["penstock-answer"] == b"422\nno such order" + b"." * 2_035
    (told,) = lane.producer.of(lane.cell.topics["attempts"].name)
    (attempt,) = decode_attempts(told["value"]).attempts
    assert (attempt.answer, attempt.gives_up_us) == ("no such order" + "." * 499, 0)
    work.close()


def test_200_that_means_failure_is_caught_by_a_rule(tmp_path: Path):
    rule = ResponseRule(ResponseMatch("200", "denied"), "dead")
    lane, work, sender = opened(tmp_path, destination(rules=[rule]))
    lane.take(message(5), message(6))
    work.poll()
    sender.answer(200, body=b"access denied", count=1)
    sender.answer(200, body=b"fine")
    work.poll()
    lane.store()
    assert lane.filed() == {(NODE, "dead", "by-rule"): 1, (NODE, "delivered", ""): 1}
    work.close()


def test_410_holds_the_message_and_does_not_dead_letter_it(tmp_path: Path):
    lane, work, sender = opened(tmp_path, destination())
    lane.take(message(5))
    work.poll()
    sender.answer(410)
    work.poll()
    lane.store()
    (record,) = lane.producer.of(lane.cell.topics["held"].name)
    assert read_meta(record["headers"]).attempt == 1
    assert lane.filed() == {(NODE, "held", "1"): 1}
    assert lane.unsettled() == 0
    work.close()


def test_constant_header_is_sent_with_every_request(tmp_path: Path):
    lane, work, sender = opened(tmp_path, destination(headers={"X-Shop": "main"}))
    lane.take(message(5))
    work.poll()
    assert "X-Shop: main" in sender.requests[0][1]
    work.close()


@pytest.mark.parametrize(("status", "curl_code"), [(500, 0), (429, 0), (302, 0), (0, 7), (0, 28)])
def test_recoverable_failure_schedules_a_retry_as_the_next_round(tmp_path: Path, status: int, curl_code: int):
    lane, work, sender = opened(tmp_path, destination())
    lane.take(message(5))
    work.poll()
    sender.answer(status, curl_code)
    work.poll()
    (record,) = lane.producer.of(lane.cell.topics["retry-in"].name)
    meta = read_meta(record["headers"])
    assert (meta.attempt, meta.id) == (1, "id-0-5")
    assert meta.not_before_us > meta.first_us > 0
    assert lane.unsettled() == 1
    lane.store()
    assert lane.unsettled() == 0
    assert lane.filed() == {(NODE, "parked", "1"): 1}
    work.close()


def test_message_past_its_retry_span_is_dead_as_expired(tmp_path: Path):
    lane, work, sender = opened(tmp_path, destination(retry=RetryPolicy(local_tries=1, span_s=60)))
    lane.take(message(5, attempt=6, first_us=1_700_000_000_000_000))
    work.poll()
    sender.answer(503)
    work.poll()
    lane.store()
    assert lane.filed() == {(NODE, "dead", "expired"): 1}
    work.close()


def test_local_retries_come_before_a_global_retry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(responses, "local_pause_s", lambda *_: 0.0)
    lane, work, sender = opened(tmp_path, destination(retry=RetryPolicy(local_tries=3)))
    lane.take(message(5))
    for _ in range(3):
        work.poll()
        sender.answer(500)
        work.poll()
    assert len(sender.requests) == 3
    assert len({tuple(h for h in headers if h.startswith("webhook-id")) for _, headers, _, _ in sender.requests}) == 1
    assert len(lane.producer.of(lane.cell.topics["retry-in"].name)) == 1
    work.close()


def test_unit_settled_before_a_crash_is_reported_again_and_not_sent_again(tmp_path: Path):
    lane, work, sender = opened(tmp_path, destination())
    lane.take(message(5), message(6))
    work.poll()
    sender.answer(204, count=1)
    work.poll()  # killed here: 5 is settled and not committed
    again, other, next_sender = opened(tmp_path, destination())
    again.take(message(5), message(6))
    other.poll()
    assert [request[1] for request in next_sender.requests] == [sender.requests[1][1]], "only the one in flight"
    assert again.filed() == {(NODE, "delivered", ""): 1}
    assert again.unsettled() == 1
    work.close()
    other.close()


def test_unit_settled_by_another_lane_is_not_sent_again_when_the_partition_returns(tmp_path: Path):
    one, first, first_sender = opened(tmp_path, destination())
    other, second, second_sender = opened(tmp_path, destination())
    one.take(message(5))
    first.poll()
    first_sender.answer(204)
    first.poll()
    one.lose(0)
    first.poll()

    other.take(message(6))
    second.poll()
    second_sender.answer(204)
    second.poll()  # and is killed before it commits
    second.close()

    one.ours.add(0)
    one.take(message(6))
    first.poll()
    assert len(first_sender.requests) == 1, "6 was delivered by the other lane"
    assert one.unsettled() == 0
    first.close()


def test_repeated_unit_is_sent_once_and_settles_every_copy(tmp_path: Path):
    lane, work, sender = opened(tmp_path, destination())
    lane.take(message(5, position=77), message(6, position=77), message(7, position=77, destination="crm"))
    work.poll()
    assert len(sender.requests) == 1
    sender.answer(204)
    work.poll()
    assert lane.unsettled() == 0
    work.close()


def test_removed_destination_cancels_its_messages(tmp_path: Path):
    lane, work, sender = opened(tmp_path, destination(state="removed"))
    lane.take(message(5))
    work.poll()
    assert not sender.requests
    assert lane.filed() == {(NODE, "cancelled", ""): 1}
    assert lane.unsettled() == 0
    work.close()


def test_poison_message_is_dead_and_never_sent(tmp_path: Path):
    lane, work, sender = opened(tmp_path, destination())
    lane.condemn(message(5, b"{}"))
    lane.store()
    assert (sender.requests, lane.unsettled()) == ([], 0)
    assert lane.filed() == {(NODE, "dead", "crashes-lane"): 1}
    work.close()


def test_message_for_an_unknown_destination_waits_for_its_record(tmp_path: Path):
    lane, work, sender = opened(tmp_path)
    lane.take(message(5))
    work.poll()
    assert not sender.requests
    assert lane.unsettled() == 1
    lane.table.apply(destination())
    work.poll()
    assert len(sender.requests) == 1
    work.close()


def test_changed_address_applies_to_queued_messages(tmp_path: Path):
    lane, work, sender = opened(tmp_path, destination(concurrency=1))
    lane.take(message(5), message(6))
    work.poll()
    lane.table.apply(destination(version=2, concurrency=1, url="http://new.example/"))
    sender.answer(204)
    work.poll()
    work.poll()
    assert [request[0] for request in sender.requests] == ["http://crm.example/", "http://new.example/"]
    work.close()


def test_destination_at_its_limit_blocks_no_other(tmp_path: Path):
    lane, work, sender = opened(tmp_path, destination(concurrency=2), destination("lake"))
    lane.take(*(message(n) for n in range(5)), *(message(n, destination="lake") for n in range(5, 8)))
    work.poll()
    urls = [request[0] for request in sender.requests]
    assert (urls.count("http://crm.example/"), urls.count("http://lake.example/")) == (2, 3)
    work.close()


@pytest.mark.parametrize("asleep", [True, False], ids=["slept past its session", "lost the partition"])
def test_no_send_starts_for_a_message_that_another_lane_may_own(tmp_path: Path, asleep: bool):
    lane, work, sender = opened(tmp_path, destination())
    lane.take(message(5))
    if asleep:
        lane.asleep = True
    else:
        lane.lose(0)
    work.poll()
    assert not sender.requests
    assert work.in_flight() == 0
    work.close()


def test_message_forgotten_before_its_send_is_sent_when_it_is_read_again(tmp_path: Path):
    lane, work, sender = opened(tmp_path, destination(concurrency=1))
    lane.take(message(5), message(6))
    work.poll()
    lane.lose(0)
    sender.answer(204)
    work.poll()
    lane.ours.add(0)
    lane.take(message(6))
    work.poll()
    assert [dict(h.split(": ", 1) for h in r[1] if ": " in h)["webhook-id"] for r in sender.requests] == [
        "id-0-5",
        "id-0-6",
    ]
    work.close()


def test_drain_timeout_schedules_started_sends_for_retry_and_leaves_the_rest_uncommitted(tmp_path: Path):
    lane, work, _sender = opened(tmp_path, destination(concurrency=1))
    lane.take(message(5), message(6))
    work.poll()
    work.on_drain_timeout()
    lane.store()
    assert work.in_flight() == 0
    assert lane.windows[0].prefix == 6
    assert lane.filed() == {(NODE, "parked", "1"): 1}
    work.close()


def test_unreadable_secret_stops_only_its_destination(tmp_path: Path):
    other_key = Fernet(Fernet.generate_key()).encrypt(SECRET.encode()).decode()
    lane, work, sender = opened(tmp_path, destination(secrets=(other_key,)), destination("lake"))
    lane.take(message(5), message(6, destination="lake"))
    work.poll()
    assert [request[0] for request in sender.requests] == ["http://lake.example/"]
    lane.table.apply(destination(version=2))
    work.poll()
    assert len(sender.requests) == 2, "it continues once the secret is fixed"
    lane.table.apply(destination(version=3, secrets=("junk",)))
    work.poll()
    work.close()


def test_attempts_of_a_checkpoint_never_exceed_the_size_of_a_record(tmp_path: Path):
    lane, work, sender = opened(tmp_path, destination())
    lane.take(message(5, id="x" * 200))
    work.poll()
    answer = HttpResponse(sender.begun[0], 500, 0, "", "127.0.0.1", False, 1, 2, 3, 4, 5, "\u4e2d".encode() * 1_000)
    total = 20_000
    for _ in range(total):
        work._book.failed(sender.begun[0], answer, "parked", "r" * 200)
    work.report()
    values = [record["value"] for record in lane.producer.of(lane.cell.topics["attempts"].name)]
    assert sum(len(decode_attempts(value).attempts) for value in values) == total
    assert max(map(len, values)) < CLIENT_MAX_BYTES * 0.9
    work.close()


def test_every_failure_is_reported_and_a_sample_of_the_successes_with_their_number(tmp_path: Path):
    lane, work, sender = opened(tmp_path, destination())
    lane.take(*(message(n) for n in range(60)))
    work.poll()
    sender.answer(204, count=50)
    sender.answer(400)
    work.poll()
    work.report()
    (record,) = lane.producer.of(lane.cell.topics["attempts"].name)
    told = decode_attempts(record["value"])
    assert told.delivered == 50
    assert [attempt.outcome for attempt in told.attempts].count("dead") == 10
    assert [attempt.outcome for attempt in told.attempts].count("delivered") == SAMPLE
    work.report()
    assert len(lane.producer.of(lane.cell.topics["attempts"].name)) == 1, "nothing new, nothing reported"
    work.close()


def test_quiet_destination_is_in_the_sample_next_to_busy_ones_once_in_ten_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    now_s = [1_000.0]
    monkeypatch.setattr(time, "time_ns", lambda: int(now_s[0] * 1e9))
    lane, work, sender = opened(tmp_path, destination("busy"), destination("quiet"))
    offsets = itertools.count()

    def sampled() -> Counter[str]:
        """Deliver many messages of busy, then two of quiet; return the sampled attempts of each."""
        lane.take(*(message(next(offsets), destination="busy") for _ in range(2 * SAMPLE)))
        work.poll()
        sender.answer(204)
        work.poll()
        lane.take(*(message(next(offsets), destination="quiet") for _ in range(2)))
        work.poll()
        wants = sender.wants_details(sender.begun[0])
        sender.answer(204)
        work.poll()
        work.report()
        record = lane.producer.of(lane.cell.topics["attempts"].name)[-1]
        found = decode_attempts(record["value"])
        assert found.delivered == 2 * SAMPLE + 2
        counted = Counter(attempt.destination for attempt in found.attempts)
        assert wants == bool(counted["quiet"]), "the sender reads the details of what is sampled"
        return counted

    assert sampled() == {"busy": SAMPLE, "quiet": 1}
    now_s[0] += 5
    assert sampled() == {"busy": SAMPLE}
    now_s[0] += 6
    assert sampled() == {"busy": SAMPLE, "quiet": 1}
    work.close()


def test_number_of_quiet_destinations_in_the_sample_of_a_checkpoint_is_limited(tmp_path: Path):
    names = [f"d{number}" for number in range(SAMPLE + MOST_QUIET + 5)]
    lane, work, sender = opened(tmp_path, *(destination(name) for name in names))
    lane.take(*(message(offset, destination=name) for offset, name in enumerate(names)))
    work.poll()
    sender.answer(204)
    work.poll()
    work.report()
    (record,) = lane.producer.of(lane.cell.topics["attempts"].name)
    assert len(decode_attempts(record["value"]).attempts) == SAMPLE + MOST_QUIET
    work.close()


def test_message_with_an_unreadable_envelope_is_dead_lettered_whole(tmp_path: Path):
    lane, work, sender = opened(tmp_path, destination())
    lane.take(MemoryMessage(0, 5, b"payload", [("content-type", b"x")]), message(6))
    work.poll()
    assert len(sender.requests) == 1
    (record,) = lane.producer.of(lane.cell.topics["dead"].name)
    assert (record["value"], record["headers"][-1]) == (b"payload", ("penstock-cause", b"envelope"))
    work.close()


def test_files_of_a_lost_partition_are_closed_and_those_of_others_stay_open(tmp_path: Path):
    lane, work, sender = opened(tmp_path, destination())
    lane.take(message(5, partition=0), message(6, partition=1))
    work.poll()
    sender.answer(204)
    work.poll()
    lane.lose(0)
    work.poll()
    assert list(work._ends._memories) == [1]
    work.close()


def test_every_attempt_counts_in_the_usage_of_its_pipe_with_the_bytes_sent(tmp_path: Path):
    lane, work, sender = opened(tmp_path, destination(retry=RetryPolicy(local_tries=1)))
    lane.take(message(5, b'{"a":1}'), message(6, b"{}"))
    work.poll()
    sender.answer(503, count=1)
    work.poll()
    sender.answer(204)
    work.poll()
    lane.usage.hasten()
    usage = lane.usage.take_if_due()
    assert usage is not None
    assert [(one.units, one.size_bytes, one.effort) for one in usage.pipes] == [(2, 9, 2)]
    work.close()


def test_local_retries_and_successes_beyond_the_sample_count_in_the_usage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(responses, "local_pause_s", lambda *_: 0.0)
    lane, work, sender = opened(tmp_path, destination(retry=RetryPolicy(local_tries=2)))
    lane.take(*(message(number, b"{}") for number in range(SAMPLE + 5)))
    for _ in range(2):
        work.poll()
        sender.answer(503, count=1)
        sender.answer(204)
        work.poll()
    lane.usage.hasten()
    usage = lane.usage.take_if_due()
    assert usage is not None
    assert len(sender.requests) == SAMPLE + 6
    assert [(one.units, one.size_bytes) for one in usage.pipes] == [(SAMPLE + 6, 2 * (SAMPLE + 6))]
    work.close()
