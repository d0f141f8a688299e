"""Events of a source with a schema: a verdict for each by itself, at once by the newest schema, nothing for others."""

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import pytest

from dataplane.ingest import replica as module
from dataplane.ingest.acks import Acks
from dataplane.ingest.events import Event, Item, read_events
from dataplane.ingest.problems import RefusalError, problem_body
from dataplane.ingest.replica import Replica
from dataplane.ingest.schemas import LONG_NUMBER, check_of, refuse_misfit
from dataplane.ingest.verdicts import Verdict
from dataplane.runtime.settings import settings_from
from dataplane.spec import parse_pipe_spec
from dataplane.spec.effort import MAX_BYTES, MAX_VALUES, STEPS
from dataplane.spec.keys import RANDOM_BYTES, key_digest, key_text
from dataplane.tables.records import CellRecord, KeyRecord, PipeRecord, PlanRecord, Record, SchemaRecord, TopicRecord
from tests.rig.cpu import cpu_s
from tests.rig.reports import Report

KEY, OTHER = key_text(b"s" * RANDOM_BYTES), key_text(b"o" * RANDOM_BYTES)
CELL = CellRecord("c1", 1, 1, {}, {"ingest": TopicRecord("in", 1, 4, "")})
SPEC = parse_pipe_spec(
    {"sources": {"shop": {}, "other": {}}, "destinations": {"crm": {"type": "http", "url": "http://crm.example/"}}}
)
RECORDS: tuple[Record, ...] = (
    CELL,
    PlanRecord("p", 1, SPEC),
    PipeRecord("p", 1, "t", "orders", "c1", "active", [(1, 100)]),
    KeyRecord(key_digest(KEY), 1, "p", "shop"),
    KeyRecord(key_digest(OTHER), 1, "p", "other"),
)
LIMIT = 256 * 1024
NUMBERS = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


class Recorder:
    """A producer that remembers what it was given and reports it as stored at the next poll."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self._due: list[tuple[Any, Report]] = []

    def produce(self, _topic: str, body: bytes, *record: Any, headers: object) -> None:
        assert headers
        _key, partition, report = record
        self.bodies.append(body)
        self._due.append((report, Report(partition, len(self.bodies))))

    def poll(self, _wait_s: float) -> None:
        due, self._due = self._due, []
        for report, place in due:
            report(None, place)


def schema(version: int, document: Any) -> SchemaRecord:
    return SchemaRecord("p", "shop", version, json.dumps(document))


def replica_of(folder: Path, producer: Recorder, monkeypatch: pytest.MonkeyPatch, *more: SchemaRecord) -> Replica:
    monkeypatch.setattr(module, "ingest_producer", lambda *_: producer)
    replica = Replica(settings_from({"PENSTOCK_KAFKA": "127.0.0.1:1", "PENSTOCK_VAR": str(folder)}), "ingest-1")
    for record in (*RECORDS, *more):
        replica.table.apply(record)
    return replica


def take(replica: Replica, items: list[Item], key: str = KEY) -> list[Verdict]:
    async def run() -> list[Verdict]:
        replica._loop = asyncio.get_running_loop()
        replica._acks = Acks(replica._producer, replica._on_done)
        return await replica.take(replica.route(key), items)

    return asyncio.run(run())


def sent(*bodies: Any) -> list[Item]:
    return list(read_events("application/json", json.dumps(bodies).encode(), {}, LIMIT).items)


@pytest.fixture
def producer() -> Recorder:
    return Recorder()


def test_of_a_batch_what_fits_is_kept_and_the_rest_is_told_where_it_does_not(
    tmp_path: Path, producer: Recorder, monkeypatch: pytest.MonkeyPatch
):
    replica = replica_of(tmp_path, producer, monkeypatch, schema(1, NUMBERS))
    try:
        verdicts = take(replica, sent({"n": 1}, {"n": "secret"}, {}, {"n": 2}))
    finally:
        replica._reader.close()
        replica._journal.close()
    assert [verdict.status for verdict in verdicts] == [202, 422, 422, 202]
    assert [(one.code, one.pointer, one.detail) for one in verdicts[1:3]] == [
        ("schema", "/n", '/n: the value is not of type "integer"'),
        ("schema", "/n", "/n: is required, and missing"),
    ]
    assert producer.bodies == [b'{"n": 1}', b'{"n": 2}']


def test_the_newest_version_counts_at_once_and_other_sources_are_not_asked(
    tmp_path: Path, producer: Recorder, monkeypatch: pytest.MonkeyPatch
):
    replica = replica_of(tmp_path, producer, monkeypatch, schema(1, NUMBERS))
    try:
        assert [one.status for one in take(replica, sent({"n": 1.5}))] == [422]
        assert [one.status for one in take(replica, sent("anything"), OTHER)] == [202]
        assert replica.route(OTHER).check is None
        replica.table.apply(schema(2, {"type": "object"}))
        assert [one.status for one in take(replica, sent({"n": 1.5}))] == [202]
        replica.table.apply(schema(1, NUMBERS))  # an older one that comes late
        assert [one.status for one in take(replica, sent({"n": 1.5}))] == [202]
        assert replica._lead("p", "shop").check is None, "what is read from a Kafka is never refused: it would be lost"
    finally:
        replica._reader.close()
        replica._journal.close()


def test_a_schema_that_cannot_be_run_here_refuses_nothing(caplog: pytest.LogCaptureFixture):
    assert check_of(schema(1, {"of the next release": 1})) is None
    assert "schema 1 of source=shop pipe=p is not run" in caplog.text


@pytest.mark.parametrize(
    ("media_type", "body", "ce", "status"),
    [
        pytest.param("application/json", b'{"n": 1}', {}, 0, id="json"),
        pytest.param("application/json", b"null", {}, 422, id="null"),
        pytest.param(
            "application/cloudevents+json",
            b'{"specversion": "1.0", "id": "1", "source": "s", "type": "t", "data": {"n": 1}}',
            {},
            0,
            id="the data of an envelope",
        ),
        pytest.param(
            "application/cloudevents+json",
            b'{"specversion": "1.0", "id": "1", "source": "s", "type": "t", "n": 1}',
            {},
            422,
            id="an envelope without data",
        ),
        pytest.param(
            "application/cloudevents+json",
            b'{"specversion": "1.0", "id": "1", "source": "s", "type": "t", "data_base64": "%s"}'
            % base64.b64encode(b'{"n": 1}'),
            {},
            422,
            id="bytes in an envelope",
        ),
        pytest.param(
            "text/plain", b"n=1", {"specversion": "1.0", "id": "1", "source": "s", "type": "t"}, 422, id="no json"
        ),
    ],
)
def test_what_is_looked_at_is_the_payload(media_type: str, body: bytes, ce: dict[str, str], status: int):
    check = check_of(schema(1, NUMBERS))
    assert check is not None
    [event] = read_events(media_type, body, ce, LIMIT).items
    assert isinstance(event, Event)
    if not status:
        refuse_misfit(check, event)
        return
    with pytest.raises(RefusalError) as caught:
        refuse_misfit(check, event)
    assert (caught.value.status, caught.value.code) == (status, "schema")


@pytest.mark.parametrize(
    ("value", "is_taken"),
    [
        pytest.param([0] * (MAX_VALUES - 1), True, id="as many as may be"),
        pytest.param([0] * MAX_VALUES, False, id="one more, counting the list"),
        pytest.param({"a": [{"b": 1}] * (MAX_VALUES // 2)}, False, id="deeper"),
        pytest.param({"a": "x, " * MAX_VALUES}, True, id="commas of a text"),
    ],
)
def test_an_event_has_a_bound_of_values(value: Any, is_taken: bool):
    check = check_of(schema(1, {}))
    assert check is not None
    event = Event(json.dumps(value).encode(), value, [])
    if is_taken:
        refuse_misfit(check, event)
        return
    with pytest.raises(RefusalError, match="at most 10000 values"):
        refuse_misfit(check, event)


def refused_by(document: Any, value: Any) -> str:
    """What a schema refuses an event for; "" if it does not."""
    check = check_of(schema(1, document))
    assert check is not None
    try:
        refuse_misfit(check, Event(json.dumps(value).encode(), value, []))
    except RefusalError as refusal:
        return f"{refusal.status} {refusal.code}: {refusal.detail}"
    return ""


SLOW_PATTERN = "[ab]*a[ab]{200}x"


@pytest.mark.parametrize(
    ("document", "value", "why"),
    [
        pytest.param({"pattern": SLOW_PATTERN}, "ab" * 60_000, "needs at most 19", id="a pattern over a long text"),
        pytest.param({"pattern": "^[a-z]+$"}, "ab" * 60_000, "", id="a short pattern over it"),
        pytest.param(
            {"properties": {"id": {"pattern": SLOW_PATTERN, "maxLength": 90}}}, {"id": "x" * 95, "text": "ab" * 60_000},
            "/id: the value is longer", id="a named field of bounded length",
        ),
        pytest.param(
            {"items": {"pattern": SLOW_PATTERN, "maxLength": 90}}, ["ab" * 45] * 1_500, "needs at most 19",
            id="many items of bounded length",
        ),
        pytest.param({"items": {"anyOf": [{"const": n} for n in range(90)]}}, [89] * 1_600, "", id="alternatives"),
        pytest.param(
            {"items": {"anyOf": [{"const": n} for n in range(90)]}}, [89] * 1_700, "at most 1648 values",
            id="and too many items",
        ),
        pytest.param({"multipleOf": 3}, 10**LONG_NUMBER, "digits", id="a long number"),
        pytest.param({"type": "string"}, "9" * 2 * LONG_NUMBER, "", id="a text of digits"),
    ],
)  # fmt: skip
def test_an_event_is_no_larger_than_its_schema_has_time_for(document: Any, value: Any, why: str):
    assert cpu_s(lambda: refused_by(document, value), 0.05) < 0.2
    found = refused_by(document, value)
    assert why in found
    assert found.startswith("422 schema: ") == bool(why)


@pytest.mark.parametrize(
    ("document", "value"),
    [
        pytest.param({"pattern": SLOW_PATTERN}, "ab" * (STEPS // 207 // 2 - 2), id="a pattern"),
        pytest.param({"additionalProperties": {"anyOf": [{"const": n} for n in range(90)]}},
                     {str(n): 89 for n in range(1_600)}, id="alternatives of fields"),
        pytest.param({"allOf": [{"format": "uri"}] * 1_000}, "http://" + "a" * 3_900, id="formats"),
        pytest.param({"items": {"enum": [10**40 + n for n in range(9)]}}, [10**40 + 8] * 1_600, id="long numbers"),
        pytest.param({"multipleOf": 0.01}, 10 ** (LONG_NUMBER - 1), id="a fraction of a long number"),
        pytest.param({"unevaluatedProperties": False, "allOf": [{"properties": {str(n): True}} for n in range(500)]},
                     {str(n): 1 for n in range(3_600)}, id="fields that nobody evaluated"),
    ],
)  # fmt: skip
def test_the_largest_event_that_a_schema_has_time_for_is_checked_soon(document: Any, value: Any):
    assert "needs at most" not in refused_by(document, value)
    assert cpu_s(lambda: refused_by(document, value), 0.05) < 0.2


def test_an_event_may_have_as_many_bytes_as_ever_where_nothing_reads_its_texts():
    check = check_of(schema(1, {"type": "object"}))
    assert check is not None
    assert check.limits == (MAX_VALUES, MAX_BYTES)


def test_others_have_their_turn_while_a_large_batch_is_looked_at(
    tmp_path: Path, producer: Recorder, monkeypatch: pytest.MonkeyPatch
):
    document = {"items": {"anyOf": [{"const": number} for number in range(90)]}}
    replica = replica_of(tmp_path, producer, monkeypatch, schema(1, document))
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def run() -> list[Verdict]:
        replica._loop = asyncio.get_running_loop()
        replica._acks = Acks(replica._producer, replica._on_done)
        beside = asyncio.create_task(others())
        items: list[Item] = [Event(b"[]", [89] * 1_500, []) for _ in range(16)]
        verdicts = await replica.take(replica.route(KEY), items)
        beside.cancel()
        return verdicts

    try:
        assert [verdict.status for verdict in asyncio.run(run())] == [202] * 16
    finally:
        replica._reader.close()
        replica._journal.close()
    assert turns >= 3


def test_the_problem_of_a_single_event_names_the_place():
    check = check_of(schema(1, NUMBERS))
    assert check is not None
    with pytest.raises(RefusalError) as caught:
        refuse_misfit(check, Event(b'{"n": "secret"}', {"n": "secret"}, []))
    body = json.loads(problem_body(caught.value, "1-1"))
    assert (body["status"], body["code"], body["pointer"]) == (422, "schema", "/n")
    assert "secret" not in str(body)
    plain = json.loads(problem_body(RefusalError(404, "not-found", "nothing here"), "1-1"))
    assert "pointer" not in plain
