"""Steps that end or multiply a message, and routes: the records produced and the facts reported."""

import base64
from pathlib import Path
from typing import Any

import msgspec
from cryptography.fernet import Fernet
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap64

from dataplane.ledger.bins import Bin, BucketFacts, derive
from dataplane.ledger.deadletter import dead_letter_reason
from dataplane.ledger.facts import ACKED, INGEST, Fact, FactKey
from dataplane.ledger.meta import MessageMeta, read_meta
from dataplane.ledger.units import partition_base
from tests.support.memory_lane import MemoryLane
from tests.support.process_lane import arrived, dead, egress, opened, plan

FILTER = {"op": "filter", "when": "body.n > 2"}
CAST = {"op": "cast", "path": "n", "to": "int"}
EXPLODE = {"op": "explode", "path": "lines"}


def bodies(lane: MemoryLane, destination: str) -> list[Any]:
    found = [(read_meta(record["headers"]), record["value"]) for record in egress(lane)]
    return [msgspec.json.decode(value) for meta, value in found if meta.destination == destination]


def metas(records: list[dict[str, Any]]) -> list[MessageMeta]:
    return [read_meta(record["headers"]) for record in records]


def children(lane: MemoryLane) -> dict[tuple[str, str, str], list[int]]:
    """Return the child numbers of each (node, fact, detail) in the fact book."""
    found: dict[tuple[str, str, str], list[int]] = {}
    for fact in lane.facts.take():
        found.setdefault((fact.node, fact.fact, fact.detail), []).append(fact.child)
    return {key: sorted(ordinals) for key, ordinals in found.items()}


def test_message_that_a_filter_rejects_ends_as_filtered(tmp_path: Path):
    lane = opened(tmp_path, plan(normalize=[FILTER]))
    lane.take(*(arrived(n, b'{"n":%d}' % n) for n in range(5)))
    assert bodies(lane, "crm") == [{"n": 3}, {"n": 4}]
    assert dead(lane) == []
    lane.store()
    assert lane.unsettled() == 0
    filed = lane.filed()
    assert (filed["normalize", "filtered", "filter"], filed["process", "sent", ""]) == (3, 2)


def test_filter_of_one_destination_does_not_affect_others(tmp_path: Path):
    lane = opened(tmp_path, plan(destinations=("crm", "lake"), transform={"crm": [FILTER]}))
    lane.take(arrived(1, b'{"n":1}'), arrived(2, b'{"n":3}'))
    assert (bodies(lane, "crm"), bodies(lane, "lake")) == ([{"n": 3}], [{"n": 1}, {"n": 3}])
    lane.store()
    filed = lane.filed()
    assert filed["transform:crm", "filtered", "filter"] == filed["transform:crm", "sent", ""] == 1
    assert filed["process", "sent", ""] == filed["transform:lake", "sent", ""] == 2


def test_filter_that_cannot_be_evaluated_is_a_failed_step(tmp_path: Path):
    lane = opened(tmp_path, plan(normalize=[CAST, FILTER]))
    lane.take(arrived(1, b'{"n":"9"}'), arrived(2, b'{"m":1}'))
    (letter,) = dead(lane)
    headers = dict(letter["headers"][1:])
    assert headers["penstock-detail"] == b"normalize[0] cast n: cast to int needs a value, got nothing"
    lane = opened(tmp_path, plan(normalize=[FILTER]))
    lane.take(arrived(1, b'{"m":1}'))
    assert dict(dead(lane)[0]["headers"][1:])["penstock-detail"] == b"normalize[0] filter when: no such field: n"


def test_first_matching_rule_decides(tmp_path: Path):
    rules = [{"when": "body.n > 5", "to": ["crm"]}, {"when": "body.n > 2", "to": ["lake", "crm"]}]
    lane = opened(tmp_path, plan(destinations=("crm", "lake"), routes={"rules": rules}))
    lane.take(*(arrived(n, b'{"n":%d}' % n) for n in (1, 3, 6)))
    assert (bodies(lane, "crm"), bodies(lane, "lake")) == ([{"n": 3}, {"n": 6}], [{"n": 3}])
    lane.store()
    filed = lane.filed()
    assert (filed["route", "filtered", "unrouted"], filed["process", "sent", ""]) == (1, 2)
    assert (filed["transform:crm", "sent", ""], filed["transform:lake", "sent", ""]) == (2, 1)


def test_all_matching_rules_are_combined_and_each_destination_gets_one_record(tmp_path: Path):
    rules = [{"when": "body.n > 2", "to": ["lake"]}, {"when": "body.n > 5", "to": ["crm", "lake"]}]
    routes = {"rules": rules, "mode": "all", "otherwise": ["rest"]}
    lane = opened(tmp_path, plan(destinations=("crm", "lake", "rest"), routes=routes))
    lane.take(*(arrived(n, b'{"n":%d}' % n) for n in (1, 3, 6)))
    assert [bodies(lane, name) for name in ("crm", "lake", "rest")] == [[{"n": 6}], [{"n": 3}, {"n": 6}], [{"n": 1}]]


def test_condition_without_a_value_sends_the_message_nowhere(tmp_path: Path):
    rules = [{"when": "true", "to": ["lake"]}, {"when": "body.n > 2", "to": ["crm"]}]
    lane = opened(tmp_path, plan(destinations=("crm", "lake"), routes={"rules": rules, "mode": "all"}))
    lane.take(arrived(1, b"{}"), arrived(2, b"\xff"))
    assert egress(lane) == []
    details = [dict(letter["headers"][1:]) for letter in dead(lane)]
    assert [(one["penstock-node"], one["penstock-cause"]) for one in details] == [
        (b"route", b"route"),
        (b"route", b"decode"),
    ]
    assert details[0]["penstock-detail"] == b"routes.rules[1].when: no such field: n"
    lane.store()
    filed = lane.filed()
    assert (filed["route", "dead", "route"], filed["route", "dead", "decode"]) == (1, 1)
    assert ("process", "sent", "") not in filed


def test_transform_changes_only_the_message_for_its_own_destination(tmp_path: Path):
    steps = [{"op": "set", "path": "who.name", "value": "***"}]
    routes = {"rules": [{"when": "true", "to": ["crm", "lake"]}]}
    for extra in ({}, {"routes": routes}, {"normalize": [CAST]}):
        lane = opened(tmp_path, plan(destinations=("crm", "lake"), transform={"crm": steps}, **extra))
        lane.take(arrived(1, b'{"n":1,"who":{"name":"Ada"}}'))
        assert bodies(lane, "crm") == [{"n": 1, "who": {"name": "***"}}]
        assert bodies(lane, "lake") == [{"n": 1, "who": {"name": "Ada"}}]


def test_route_reads_meta(tmp_path: Path):
    rules = [{"when": "meta.source == 'shop' && meta.event_time > timestamp(0)", "to": ["crm"]}]
    lane = opened(tmp_path, plan(routes={"rules": rules}))
    lane.take(arrived(1, b"{}"), arrived(2, b"{}", source="web"))
    assert [meta.position & 0xFF for meta in metas(egress(lane))] == [1]


def test_explode_makes_children_with_their_own_ids_and_the_same_position(tmp_path: Path):
    lane = opened(tmp_path, plan(normalize=[EXPLODE, {"op": "rename", "path": "lines", "to": "line"}]))
    lane.take(arrived(5, b'{"id":7,"lines":["a","b","c"]}'), arrived(6, b'{"lines":["d"]}'))
    assert bodies(lane, "crm") == [{"id": 7, "line": name} for name in "abc"] + [{"line": "d"}]
    found = metas(egress(lane))
    assert [meta.id for meta in found] == ["id-0-5.0", "id-0-5.1", "id-0-5.2", "id-0-6.0"]
    assert [meta.child for meta in found] == [0, 1, 2, 0]
    assert len({meta.position for meta in found}) == 2
    lane.store()
    assert lane.unsettled() == 0
    assert children(lane) == {
        ("ingest", "sent", "seen"): [0],
        ("normalize", "sent", "exploded"): [1, 2],
        ("process", "sent", ""): [0, 1, 2],
        ("transform:crm", "sent", ""): [0, 1, 2],
    }


def test_failed_child_is_dead_alone_with_its_own_body(tmp_path: Path):
    steps = [EXPLODE, {"op": "cast", "path": "lines.n", "to": "int"}]
    lane = opened(tmp_path, plan(normalize=steps))
    lane.take(arrived(5, b'{"lines":[{"n":"1"},{"n":"x"},{"n":"3"}]}'))
    assert bodies(lane, "crm") == [{"lines": {"n": 1}}, {"lines": {"n": 3}}]
    (letter,) = dead(lane)
    assert letter["value"] == b'{"lines":{"n":"x"}}'
    assert read_meta(letter["headers"]).id == "id-0-5.1"
    assert dict(letter["headers"][1:])["penstock-detail"].startswith(b"normalize[1] cast lines.n:")
    lane.store()
    found = children(lane)
    assert found["normalize", "dead", "step"] == [1]
    assert found["process", "sent", ""] == [0, 2]


def test_dead_letter_says_whether_an_explode_made_its_body(tmp_path: Path):
    lane = opened(tmp_path, plan(normalize=[{"op": "explode", "path": "n"}, CAST]))
    lane.take(arrived(1, b'{"n":["x"]}'), arrived(2, b'{"n":7}'))
    deaths = {read_meta(record["headers"]).id: dead_letter_reason(record["headers"]) for record in dead(lane)}
    parts = {id_: death.part for id_, death in deaths.items()}
    assert sorted(parts.values()) == [False, True]
    assert all(part == id_.endswith(".0") for id_, part in parts.items())


def test_redriven_event_that_dies_again_reports_its_life(tmp_path: Path):
    lane = opened(tmp_path, plan(normalize=[CAST]))
    lane.take(arrived(1, b'{"n":"x"}', position=partition_base(1, 0) + 9, attempt=2, life=2))
    lane.store()
    assert lane.filed()["normalize", "dead", "step/2"] == 1


def test_message_that_explodes_to_nothing_is_filtered(tmp_path: Path):
    lane = opened(tmp_path, plan(normalize=[EXPLODE]))
    lane.take(arrived(5, b'{"lines":[]}'))
    lane.store()
    assert egress(lane) == dead(lane) == []
    assert lane.filed()["normalize", "filtered", "empty"] == 1
    assert lane.unsettled() == 0


def test_no_value_is_hashed_without_the_tenants_salt(tmp_path: Path):
    steps = [{"op": "mask", "path": "mail", "how": "hash"}]
    key = Fernet.generate_key().decode()
    salt = Fernet(key).encrypt(base64.b64encode(b"one")).decode()
    lane = opened(tmp_path, plan(normalize=steps), fernet_key=key)
    lane.take(arrived(1, b'{"mail":"ada"}'))
    assert egress(lane) == []
    assert lane.windows[0].prefix == 1, "the message waits"
    hashes = []
    for _ in range(2):
        lane = opened(tmp_path, plan(normalize=steps), fernet_key=key, salt=salt)
        lane.take(arrived(1, b'{"mail":"ada"}'))
        hashes += bodies(lane, "crm")
    assert hashes[0] == hashes[1]
    assert len(hashes[0]["mail"]) == 32


lines = st.lists(st.integers(0, 9) | st.just("x"), max_size=4)


@settings(max_examples=60, deadline=None)
@given(st.lists(lines, min_size=1, max_size=5), st.sampled_from(["first", "all"]), st.booleans())
def test_every_unit_of_an_exploded_and_routed_batch_is_in_exactly_one_bin(
    tmp_path_factory: Any, batch: list[list[Any]], mode: str, otherwise: bool
):
    rules = [{"when": "body.n > 6", "to": ["crm"]}, {"when": "body.n > 3", "to": ["lake"]}]
    routes = {"rules": rules, "mode": mode, "otherwise": ["rest"] if otherwise else []}
    steps = [{"op": "explode", "path": "n"}, CAST, {"op": "filter", "when": "body.n != 5"}]
    lane = opened(
        tmp_path_factory.mktemp("var"), plan(destinations=("crm", "lake", "rest"), normalize=steps, routes=routes)
    )
    lane.take(*(arrived(n, msgspec.json.encode({"n": row}), bucket=7) for n, row in enumerate(batch)))
    lane.store()
    account = derive(books_of(lane, len(batch)))
    ended = {bin_: len(units) for bin_, units in account.upstream.items()}
    flat = [one for row in batch for one in row]
    assert ended[Bin.DEAD] == sum(one == "x" for one in flat)
    assert ended[Bin.LOST] == ended[Bin.QUEUED] == 0
    kept = [one for one in flat if one not in ("x", 5)]
    unrouted = 0 if otherwise else sum(one <= 3 for one in kept)
    assert ended[Bin.FILTERED] == sum(one == 5 for one in flat) + sum(not row for row in batch) + unrouted
    for name in ("crm", "lake", "rest"):
        bins = account.destinations.get(name)
        due = sum(len(units) for units in bins.values()) if bins else 0
        assert due == len(bodies(lane, name)), "the units due at transmit are exactly those routed there"


def books_of(lane: MemoryLane, messages: int) -> BucketFacts:
    """Return all facts that the lane filed, with the ACKs of ingest and without deliveries."""
    facts: dict[FactKey, Any] = {}
    for found in lane.facts.take():
        facts[FactKey(found.node, found.fact, found.detail, found.child)] = BitMap64.deserialize(found.positions)
    base = partition_base(1, 0)
    facts[FactKey(INGEST, Fact.SENT, ACKED)] = BitMap64(range(base, base + messages))
    topics: Any = {purpose: [(topic.name, topic.generation)] for purpose, topic in lane.cell.topics.items()}
    return BucketFacts(facts=facts, reach={}, passed={(lane.cell.topics["ingest"].name, 0): messages}, topics=topics)
