"""What transmit does with a message: one send at a time per unit, settled by its verdict, never by hope."""

from pathlib import Path

import pytest
from cryptography.fernet import Fernet
from standardwebhooks import Webhook

from dataplane.ledger.audit import decode_attempts
from dataplane.ledger.meta import read_meta
from dataplane.record_limits import CLIENT_MAX_BYTES
from dataplane.spec import ResponseRule, Retry, When
from dataplane.transmit import answers
from dataplane.transmit.attempts import SAMPLE
from dataplane.transmit.sender import Answer
from tests.rig.memory_lane import MemoryMessage, message
from tests.rig.transmitting import NODE, SECRET, destination, opened, without_kafka


@pytest.fixture(autouse=True)
def _without_kafka(monkeypatch: pytest.MonkeyPatch) -> None:
    without_kafka(monkeypatch)


def test_a_delivered_message_is_settled_and_signed(tmp_path: Path):
    lane, work, sender = opened(tmp_path, destination())
    lane.take(message(5, b'{"a":1}'))
    work.turn()
    url, headers, body, timeout_ms = sender.requests[0]
    assert (url, body, timeout_ms) == ("http://crm.example/", b'{"a":1}', 15_000)
    named = dict(header.split(": ", 1) for header in headers if ": " in header)
    assert named["penstock-position"] == "0-0-5"
    assert Webhook(SECRET).verify(body, {name.lower(): value for name, value in named.items()}) == {"a": 1}
    assert lane.unsettled() == 1
    sender.answer(204)
    work.turn()
    assert lane.unsettled() == 0
    assert lane.filed() == {(NODE, "delivered", ""): 1}
    assert not lane.outbox.sent
    work.close()


def test_a_refused_message_is_dead_once_its_record_is_stored(tmp_path: Path):
    lane, work, sender = opened(tmp_path, destination(retry=Retry(local_tries=5)))
    lane.take(message(5, b'{"a":1}'))
    work.turn()
    sender.answer(400)
    work.turn()
    assert len(sender.requests) == 1, "never retried"
    (record,) = lane.outbox.of(lane.cell.topics["dead"].name)
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


def test_a_dead_letter_and_its_attempt_carry_what_was_answered(tmp_path: Path):
    lane, work, sender = opened(tmp_path, destination())
    lane.take(message(5))
    work.turn()
    sender.answer(422, body=b"no such order" + b"." * 3_000)
    work.turn()
    work.report()
    (record,) = lane.outbox.of(lane.cell.topics["dead"].name)
    assert dict(record["headers"])["penstock-answer"] == b"422\nno such order" + b"." * 2_035
    (told,) = lane.outbox.of(lane.cell.topics["attempts"].name)
    (attempt,) = decode_attempts(told["value"]).attempts
    assert (attempt.answer, attempt.gives_up_us) == ("no such order" + "." * 499, 0)
    work.close()


def test_a_200_that_means_failure_is_caught_by_a_rule(tmp_path: Path):
    rule = ResponseRule(When("200", "denied"), "dead")
    lane, work, sender = opened(tmp_path, destination(rules=[rule]))
    lane.take(message(5), message(6))
    work.turn()
    sender.answer(200, body=b"access denied", count=1)
    sender.answer(200, body=b"fine")
    work.turn()
    lane.store()
    assert lane.filed() == {(NODE, "dead", "by-rule"): 1, (NODE, "delivered", ""): 1}
    work.close()


def test_a_message_that_meets_a_410_is_held_not_buried(tmp_path: Path):
    lane, work, sender = opened(tmp_path, destination())
    lane.take(message(5))
    work.turn()
    sender.answer(410)
    work.turn()
    lane.store()
    (record,) = lane.outbox.of(lane.cell.topics["held"].name)
    assert read_meta(record["headers"]).attempt == 1
    assert lane.filed() == {(NODE, "held", "1"): 1}
    assert lane.unsettled() == 0
    work.close()


def test_a_constant_header_goes_out_with_every_request(tmp_path: Path):
    lane, work, sender = opened(tmp_path, destination(headers={"X-Shop": "main"}))
    lane.take(message(5))
    work.turn()
    assert "X-Shop: main" in sender.requests[0][1]
    work.close()


@pytest.mark.parametrize(("status", "curl_code"), [(500, 0), (429, 0), (302, 0), (0, 7), (0, 28)])
def test_what_may_yet_be_delivered_is_parked_as_the_next_round(tmp_path: Path, status: int, curl_code: int):
    lane, work, sender = opened(tmp_path, destination())
    lane.take(message(5))
    work.turn()
    sender.answer(status, curl_code)
    work.turn()
    (record,) = lane.outbox.of(lane.cell.topics["retry-in"].name)
    meta = read_meta(record["headers"])
    assert (meta.attempt, meta.id) == (1, "id-0-5")
    assert meta.not_before_us > meta.first_us > 0
    assert lane.unsettled() == 1
    lane.store()
    assert lane.unsettled() == 0
    assert lane.filed() == {(NODE, "parked", "1"): 1}
    work.close()


def test_a_message_whose_span_is_over_is_dead_and_says_so(tmp_path: Path):
    lane, work, sender = opened(tmp_path, destination(retry=Retry(local_tries=1, span_s=60)))
    lane.take(message(5, attempt=6, first_us=1_700_000_000_000_000))
    work.turn()
    sender.answer(503)
    work.turn()
    lane.store()
    assert lane.filed() == {(NODE, "dead", "expired"): 1}
    work.close()


def test_local_tries_come_before_parking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(answers, "local_pause_s", lambda *_: 0.0)
    lane, work, sender = opened(tmp_path, destination(retry=Retry(local_tries=3)))
    lane.take(message(5))
    for _ in range(3):
        work.turn()
        sender.answer(500)
        work.turn()
    assert len(sender.requests) == 3
    assert len({tuple(h for h in headers if h.startswith("webhook-id")) for _, headers, _, _ in sender.requests}) == 1
    assert len(lane.outbox.of(lane.cell.topics["retry-in"].name)) == 1
    work.close()


def test_what_was_settled_before_a_crash_is_filed_again_and_not_sent_again(tmp_path: Path):
    lane, work, sender = opened(tmp_path, destination())
    lane.take(message(5), message(6))
    work.turn()
    sender.answer(204, count=1)
    work.turn()  # killed here: 5 is settled and not committed
    again, other, next_sender = opened(tmp_path, destination())
    again.take(message(5), message(6))
    other.turn()
    assert [request[1] for request in next_sender.requests] == [sender.requests[1][1]], "only the one in flight"
    assert again.filed() == {(NODE, "delivered", ""): 1}
    assert again.unsettled() == 1
    work.close()
    other.close()


def test_what_another_lane_settled_meanwhile_is_not_sent_again_when_the_partition_comes_back(tmp_path: Path):
    one, first, first_sender = opened(tmp_path, destination())
    other, second, second_sender = opened(tmp_path, destination())
    one.take(message(5))
    first.turn()
    first_sender.answer(204)
    first.turn()
    one.lose(0)
    first.turn()

    other.take(message(6))
    second.turn()
    second_sender.answer(204)
    second.turn()  # and is killed before it commits
    second.close()

    one.ours.add(0)
    one.take(message(6))
    first.turn()
    assert len(first_sender.requests) == 1, "6 was delivered by the other lane"
    assert one.unsettled() == 0
    first.close()


def test_a_unit_that_comes_twice_is_sent_once_and_settles_both(tmp_path: Path):
    lane, work, sender = opened(tmp_path, destination())
    lane.take(message(5, position=77), message(6, position=77), message(7, position=77, destination="crm"))
    work.turn()
    assert len(sender.requests) == 1
    sender.answer(204)
    work.turn()
    assert lane.unsettled() == 0
    work.close()


def test_a_removed_destination_cancels(tmp_path: Path):
    lane, work, sender = opened(tmp_path, destination(state="removed"))
    lane.take(message(5))
    work.turn()
    assert not sender.requests
    assert lane.filed() == {(NODE, "cancelled", ""): 1}
    assert lane.unsettled() == 0
    work.close()


def test_what_lanes_died_of_is_dead_and_never_sent(tmp_path: Path):
    lane, work, sender = opened(tmp_path, destination())
    lane.condemn(message(5, b"{}"))
    lane.store()
    assert (sender.requests, lane.unsettled()) == ([], 0)
    assert lane.filed() == {(NODE, "dead", "crashes-lane"): 1}
    work.close()


def test_a_message_for_a_destination_not_known_yet_waits_for_its_record(tmp_path: Path):
    lane, work, sender = opened(tmp_path)
    lane.take(message(5))
    work.turn()
    assert not sender.requests
    assert lane.unsettled() == 1
    lane.table.apply(destination())
    work.turn()
    assert len(sender.requests) == 1
    work.close()


def test_a_changed_address_takes_what_is_queued(tmp_path: Path):
    lane, work, sender = opened(tmp_path, destination(concurrency=1))
    lane.take(message(5), message(6))
    work.turn()
    lane.table.apply(destination(version=2, concurrency=1, url="http://new.example/"))
    sender.answer(204)
    work.turn()
    work.turn()
    assert [request[0] for request in sender.requests] == ["http://crm.example/", "http://new.example/"]
    work.close()


def test_one_destination_at_its_limit_holds_up_no_other(tmp_path: Path):
    lane, work, sender = opened(tmp_path, destination(concurrency=2), destination("lake"))
    lane.take(*(message(n) for n in range(5)), *(message(n, destination="lake") for n in range(5, 8)))
    work.turn()
    urls = [request[0] for request in sender.requests]
    assert (urls.count("http://crm.example/"), urls.count("http://lake.example/")) == (2, 3)
    work.close()


@pytest.mark.parametrize("asleep", [True, False], ids=["slept past its session", "lost the partition"])
def test_no_send_begins_that_may_be_somebody_elses(tmp_path: Path, asleep: bool):
    lane, work, sender = opened(tmp_path, destination())
    lane.take(message(5))
    if asleep:
        lane.asleep = True
    else:
        lane.lose(0)
    work.turn()
    assert not sender.requests
    assert work.in_flight() == 0
    work.close()


def test_what_was_forgotten_before_it_began_is_sent_when_it_is_read_again(tmp_path: Path):
    lane, work, sender = opened(tmp_path, destination(concurrency=1))
    lane.take(message(5), message(6))
    work.turn()
    lane.lose(0)
    sender.answer(204)
    work.turn()
    lane.ours.add(0)
    lane.take(message(6))
    work.turn()
    assert [dict(h.split(": ", 1) for h in r[1] if ": " in h)["webhook-id"] for r in sender.requests] == [
        "id-0-5",
        "id-0-6",
    ]
    work.close()


def test_a_drain_that_is_over_parks_what_began_and_leaves_the_rest_uncommitted(tmp_path: Path):
    lane, work, _sender = opened(tmp_path, destination(concurrency=1))
    lane.take(message(5), message(6))
    work.turn()
    work.give_back()
    lane.store()
    assert work.in_flight() == 0
    assert lane.windows[0].prefix == 6
    assert lane.filed() == {(NODE, "parked", "1"): 1}
    work.close()


def test_a_secret_that_cannot_be_opened_stops_its_destination_only(tmp_path: Path):
    other_key = Fernet(Fernet.generate_key()).encrypt(SECRET.encode()).decode()
    lane, work, sender = opened(tmp_path, destination(secrets=(other_key,)), destination("lake"))
    lane.take(message(5), message(6, destination="lake"))
    work.turn()
    assert [request[0] for request in sender.requests] == ["http://lake.example/"]
    lane.table.apply(destination(version=2))
    work.turn()
    assert len(sender.requests) == 2, "it goes on once the secret is mended"
    lane.table.apply(destination(version=3, secrets=("junk",)))
    work.turn()
    work.close()


def test_the_attempts_of_a_checkpoint_never_outgrow_a_record(tmp_path: Path):
    lane, work, sender = opened(tmp_path, destination())
    lane.take(message(5, id="x" * 200))
    work.turn()
    answer = Answer(sender.begun[0], 500, 0, "", "127.0.0.1", False, 1, 2, 3, 4, 5, "\u4e2d".encode() * 1_000)
    total = 20_000
    for _ in range(total):
        work._book.failed(sender.begun[0], answer, "parked", "r" * 200)
    work.report()
    values = [record["value"] for record in lane.outbox.of(lane.cell.topics["attempts"].name)]
    assert sum(len(decode_attempts(value).attempts) for value in values) == total
    assert max(map(len, values)) < CLIENT_MAX_BYTES * 0.9
    work.close()


def test_every_failure_is_told_and_of_the_successes_a_sample_with_their_number(tmp_path: Path):
    lane, work, sender = opened(tmp_path, destination())
    lane.take(*(message(n) for n in range(60)))
    work.turn()
    sender.answer(204, count=50)
    sender.answer(400)
    work.turn()
    work.report()
    (record,) = lane.outbox.of(lane.cell.topics["attempts"].name)
    told = decode_attempts(record["value"])
    assert told.delivered == 50
    assert [attempt.outcome for attempt in told.attempts].count("dead") == 10
    assert [attempt.outcome for attempt in told.attempts].count("delivered") == SAMPLE
    work.report()
    assert len(lane.outbox.of(lane.cell.topics["attempts"].name)) == 1, "nothing new, nothing told"
    work.close()


def test_an_unreadable_envelope_is_buried_whole(tmp_path: Path):
    lane, work, sender = opened(tmp_path, destination())
    lane.take(MemoryMessage(0, 5, b"payload", [("content-type", b"x")]), message(6))
    work.turn()
    assert len(sender.requests) == 1
    (record,) = lane.outbox.of(lane.cell.topics["dead"].name)
    assert (record["value"], record["headers"][-1]) == (b"payload", ("penstock-cause", b"envelope"))
    work.close()


def test_every_try_is_noted_for_its_pipe_with_the_bytes_that_were_sent(tmp_path: Path):
    lane, work, sender = opened(tmp_path, destination(retry=Retry(local_tries=1)))
    lane.take(message(5, b'{"a":1}'), message(6, b"{}"))
    work.turn()
    sender.answer(503)
    sender.answer(204)
    work.turn()
    lane.usage.hasten()
    usage = lane.usage.take_if_due()
    assert usage is not None
    assert [(one.units, one.size_bytes, one.effort) for one in usage.pipes] == [(2, 9, 2)]
    work.close()
