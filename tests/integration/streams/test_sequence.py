"""Sequences on real Kafka and Spark: gaps, reorderings and repeats are found exactly, despite kills."""

import json

import pytest

from dataplane.jobs.sequence import MOST_BREAKS
from dataplane.ledger.facts import CHECKED, GAP, OUT_OF_ORDER, REPEATED, Fact
from dataplane.names import sequence_node
from tests.support.data_plane import DataPlane
from tests.support.killing import Killer
from tests.support.patience import until
from tests.support.sizes import STREAM_EVENTS, STREAM_KILLS

BATCH, KEYS = 100, 10
EVERY = 50  # events of a key between two faults
KINDS = (GAP, OUT_OF_ORDER, REPEATED)


def numbers_of(key: int, events: int) -> list[tuple[int, str]]:
    """Return the numbers of one key in order of arrival, each with its kind of break or "".

    Of each stretch of EVERY, one number never arrives, one arrives three events late, and one arrives twice.
    """
    found: list[tuple[int, str]] = []
    for start in range(0, events, EVERY):
        numbers = list(range(start, start + EVERY))
        missing, late = numbers[10 + key], numbers[30]
        found += [(n, GAP if n in (missing + 1, late + 1) else "") for n in numbers[:34] if n not in (missing, late)]
        found += [(late, OUT_OF_ORDER), *((n, "") for n in numbers[34:]), (numbers[-1], REPEATED)]
    return found


def check_breaks_are_found(plane: DataPlane, pipe: str, *, events: int, kills: int, limit_s: float) -> None:
    """Send the numbers of several keys, kill the application now and then, and compare what is reported."""
    sources = {"shop": {"key": "key", "sequence": "n"}}
    key = plane.add_pipe(pipe, {"crm": {"url": plane.receiver.url(f"/{pipe}")}}, sources=sources)
    killer = Killer(plane, f"/{pipe}")
    by_key = [numbers_of(number, events // KEYS) for number in range(KEYS)]
    sent = [(number, *one) for turn in zip(*by_key, strict=True) for number, one in enumerate(turn)]
    batches = [sent[at : at + BATCH] for at in range(0, len(sent), BATCH)]
    deadly = {len(batches) * (number + 1) // (kills + 1) for number in range(kills)}
    due: dict[str, set[str]] = {CHECKED: set(), GAP: set(), OUT_OF_ORDER: set(), REPEATED: set()}
    missing: dict[str, int] = {}
    keys: dict[str, str] = {}
    for number, batch in enumerate(batches):
        body = b"\n".join(json.dumps({"key": f"k{k}", "n": n}).encode() for k, n, _ in batch)
        status, _, text = plane.post(key, body, content_type="application/x-ndjson")
        assert status in (200, 202), text
        for (k, n, kind), answer in zip(batch, json.loads(text)["items"], strict=True):
            due[CHECKED].add(answer["position"])
            keys[answer["position"]] = f"k{k}"
            if kind:
                due[kind].add(answer["position"])
            if kind == GAP:
                missing[answer["position"]] = 0 if n % EVERY == 31 else 1
        if number in deadly:
            killer.kill()
    whole = plane.settled(pipe, due[CHECKED], limit_s)
    assert whole.lost() == 0

    def found() -> dict[str, set[str]]:
        plane.books.refresh()
        details = plane.books.details(pipe)
        return {detail: details[sequence_node("shop"), Fact.SENT, detail] for detail in due}

    until(lambda: found()[CHECKED] == due[CHECKED], "all events are compared", limit_s)
    assert found() == due
    rows = {(position, kind): row for (of, position, kind), row in plane.books.breaks.items() if of == pipe}
    every = {(position, kind): keys[position] for kind in KINDS for position in due[kind]}
    assert {place: row.key for place, row in rows.items()}.items() <= every.items()
    for kind in KINDS:  # of very many, only some are listed
        assert sum(1 for _, its in rows if its == kind) >= min(len(due[kind]), MOST_BREAKS)
    listed = {position: row.missing for (position, kind), row in rows.items() if kind == GAP}
    assert listed == {position: missing[position] for position in listed}


@pytest.mark.long
@pytest.mark.timeout(1_500)  # includes the start of the package's services
def test_breaks_of_a_sequence_are_found_exactly_although_the_application_is_killed(plane: DataPlane):
    check_breaks_are_found(plane, "sequence", events=2_000, kills=1, limit_s=200)


@pytest.mark.long
@pytest.mark.timeout(3_600)
def test_breaks_of_a_sequence_are_found_in_many_events_with_several_kills(plane: DataPlane):
    check_breaks_are_found(plane, "sequence-long", events=STREAM_EVENTS, kills=STREAM_KILLS, limit_s=1_800)
