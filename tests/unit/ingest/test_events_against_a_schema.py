"""Events of a source with a schema: checked one by one, at once by the newest version, others not at all."""

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import pytest

from dataplane.ingest import replica as module
from dataplane.ingest.acks import AckTracker
from dataplane.ingest.event_results import EventResult
from dataplane.ingest.events import Item, ReceivedEvent, read_events
from dataplane.ingest.problems import EventRejectedError, problem_body
from dataplane.ingest.replica import IngestReplica
from dataplane.ingest.schemas import check_of, reject_mismatch
from dataplane.runtime.settings import settings_from
from dataplane.schemas.json_event import LONG_NUMBER
from dataplane.spec import parse_pipe_spec
from dataplane.spec.effort import MAX_BYTES, MAX_VALUES, STEPS
from dataplane.spec.keys import RANDOM_BYTES, key_digest, key_text
from dataplane.tables.records import ApiKeyRecord, CellRecord, PipeRecord, PlanRecord, Record, SchemaRecord, TopicRecord
from tests.support.cpu import cpu_s
from tests.support.memory_replica import MemoryProducer, close_replica

KEY, OTHER = key_text(b"s" * RANDOM_BYTES), key_text(b"o" * RANDOM_BYTES)
CELL = CellRecord("c1", 1, 1, {}, {"ingest": TopicRecord("in", 1, 4, "")})
SPEC = parse_pipe_spec(
    {"sources": {"shop": {}, "other": {}}, "destinations": {"crm": {"type": "http", "url": "http://crm.example/"}}}
)
RECORDS: tuple[Record, ...] = (
    CELL,
    PlanRecord("p", 1, SPEC),
    PipeRecord("p", 1, "t", "orders", "c1", "active", [(1, 100)]),
    ApiKeyRecord(key_digest(KEY), 1, "p", "shop"),
    ApiKeyRecord(key_digest(OTHER), 1, "p", "other"),
)
LIMIT = 256 * 1024
NUMBERS = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


class Recorder(MemoryProducer):
    """Producer that keeps the bodies."""

    def __init__(self) -> None:
        super().__init__()
        self.bodies: list[bytes] = []

    def keep(self, body: bytes, headers: Any, /) -> None:
        assert headers
        self.bodies.append(body)


def schema(version: int, document: Any) -> SchemaRecord:
    return SchemaRecord("p", "shop", version, json.dumps(document))


def replica_of(folder: Path, producer: Recorder, monkeypatch: pytest.MonkeyPatch, *more: SchemaRecord) -> IngestReplica:
    monkeypatch.setattr(module, "ingest_producer", lambda *_: producer)
    replica = IngestReplica(settings_from({"PENSTOCK_KAFKA": "127.0.0.1:1", "PENSTOCK_VAR": str(folder)}), "ingest-1")
    for record in (*RECORDS, *more):
        replica.table.apply(record)
    return replica


def take(replica: IngestReplica, items: list[Item], key: str = KEY) -> list[EventResult]:
    async def run() -> list[EventResult]:
        replica._loop = asyncio.get_running_loop()
        replica._acks = AckTracker(replica._producer, replica._recorder.on_done)
        return await replica.take(replica.routes.find(key), items)

    return asyncio.run(run())


def sent(*bodies: Any) -> list[Item]:
    return list(read_events("application/json", json.dumps(bodies).encode(), {}, LIMIT).items)


@pytest.fixture
def producer() -> Recorder:
    return Recorder()


def test_batch_keeps_events_that_fit_and_reports_where_the_others_do_not(
    tmp_path: Path, producer: Recorder, monkeypatch: pytest.MonkeyPatch
):
    replica = replica_of(tmp_path, producer, monkeypatch, schema(1, NUMBERS))
    try:
        verdicts = take(replica, sent({"n": 1}, {"n": "secret"}, {}, {"n": 2}))
    finally:
        close_replica(replica)
    assert [verdict.status for verdict in verdicts] == [202, 422, 422, 202]
    assert [(one.code, one.pointer, one.detail) for one in verdicts[1:3]] == [
        ("schema", "/n", '/n: the value is not of type "integer"'),
        ("schema", "/n", "/n: is required, but missing"),
    ]
    assert producer.bodies == [b'{"n": 1}', b'{"n": 2}']


def test_newest_schema_version_applies_at_once_and_to_no_other_source(
    tmp_path: Path, producer: Recorder, monkeypatch: pytest.MonkeyPatch
):
    replica = replica_of(tmp_path, producer, monkeypatch, schema(1, NUMBERS))
    try:
        assert [one.status for one in take(replica, sent({"n": 1.5}))] == [422]
        assert [one.status for one in take(replica, sent("anything"), OTHER)] == [202]
        assert replica.routes.find(OTHER).check is None
        replica.table.apply(schema(2, {"type": "object"}))
        assert [one.status for one in take(replica, sent({"n": 1.5}))] == [202]
        replica.table.apply(schema(1, NUMBERS))  # an older version that arrives late
        assert [one.status for one in take(replica, sent({"n": 1.5}))] == [202]
        assert replica.routes.lead("p", "shop").check is None, (
            "a Kafka source's events are never refused: they would be lost"
        )
    finally:
        close_replica(replica)


def test_schema_that_cannot_run_here_refuses_nothing(caplog: pytest.LogCaptureFixture):
    assert check_of(schema(1, {"of the next release": 1})) is None
    assert "schema 1 of source=shop pipe=p is not enforced" in caplog.text


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
def test_schema_applies_to_the_payload(media_type: str, body: bytes, ce: dict[str, str], status: int):
    check = check_of(schema(1, NUMBERS))
    assert check is not None
    [event] = read_events(media_type, body, ce, LIMIT).items
    assert isinstance(event, ReceivedEvent)
    if not status:
        reject_mismatch(check, event)
        return
    with pytest.raises(EventRejectedError) as caught:
        reject_mismatch(check, event)
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
def test_event_has_a_limit_of_values(value: Any, is_taken: bool):
    check = check_of(schema(1, {}))
    assert check is not None
    event = ReceivedEvent(json.dumps(value).encode(), value, [])
    if is_taken:
        reject_mismatch(check, event)
        return
    with pytest.raises(EventRejectedError, match="at most 10000 values"):
        reject_mismatch(check, event)


def refused_by(document: Any, value: Any) -> str:
    """Return the reason for which a schema refuses an event, "" if it accepts it."""
    check = check_of(schema(1, document))
    assert check is not None
    try:
        reject_mismatch(check, ReceivedEvent(json.dumps(value).encode(), value, []))
    except EventRejectedError as refusal:
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
def test_schema_limits_the_event_size_by_its_validation_cost(document: Any, value: Any, why: str):
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
def test_largest_event_within_the_validation_budget_is_checked_quickly(document: Any, value: Any):
    assert "needs at most" not in refused_by(document, value)
    assert cpu_s(lambda: refused_by(document, value), 0.05) < 0.2


def test_schema_that_reads_no_text_keeps_the_general_size_limits():
    check = check_of(schema(1, {"type": "object"}))
    assert check is not None
    assert check.limits == (MAX_VALUES, MAX_BYTES)


def test_other_coroutines_run_while_a_large_batch_is_validated(
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

    async def run() -> list[EventResult]:
        replica._loop = asyncio.get_running_loop()
        replica._acks = AckTracker(replica._producer, replica._recorder.on_done)
        beside = asyncio.create_task(others())
        items: list[Item] = [ReceivedEvent(b"[]", [89] * 1_500, []) for _ in range(16)]
        verdicts = await replica.take(replica.routes.find(KEY), items)
        beside.cancel()
        return verdicts

    try:
        assert [verdict.status for verdict in asyncio.run(run())] == [202] * 16
    finally:
        close_replica(replica)
    assert turns >= 3


def test_problem_of_a_single_event_has_a_pointer_to_the_field():
    check = check_of(schema(1, NUMBERS))
    assert check is not None
    with pytest.raises(EventRejectedError) as caught:
        reject_mismatch(check, ReceivedEvent(b'{"n": "secret"}', {"n": "secret"}, []))
    body = json.loads(problem_body(caught.value, "1-1", "https://penstock.example"))
    assert (body["status"], body["code"], body["pointer"]) == (422, "schema", "/n")
    assert "secret" not in str(body)
    plain = json.loads(
        problem_body(EventRejectedError(404, "not-found", "nothing here"), "1-1", "https://penstock.example")
    )
    assert "pointer" not in plain
