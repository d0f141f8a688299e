"""Events for the stateful queries of a cell, as process lanes write them, and what DuckDB computes from them.

Event times are out of order, some events are late, keys are skewed, and some taps are repeated, as by a killed lane.
"""

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import duckdb
import msgspec
import numpy as np
import pyarrow as pa
from confluent_kafka import TopicPartition

from dataplane.ledger.meta import META_HEADER, MessageMeta, encode_meta
from dataplane.ledger.units import format_position, parse_position, place_of, position_of
from dataplane.names import WIRE_VERSION
from dataplane.plan.taps import CompiledTap, TapClock, digest_partition, encode_clock, encode_tap, key_of
from dataplane.process.dedup import ASK_HEADER, DedupQuestion, verdict_of
from dataplane.spec.windows import WINDOW_SOURCE, WindowSpec
from tests.support.cluster import PIPE, Cluster
from tests.support.kafka import admin_consumer, admin_producer

START_US: Final = 1_772_359_200_000_000  # 2026-03-01T10:00:00Z
SPAN_US: Final = 1_800 * 1_000_000  # of all ingest times
CLOCKS: Final = 100
PARTITIONS: Final = 4
LATE_S, GAP_S, SIZE_S = 30, 5, 60
SHOPS, USERS = 2_000, 1_000
WINDOWS: Final[dict[str, Any]] = {
    "by-shop": {
        "span": {"kind": "tumbling", "size_s": SIZE_S},
        "by": ["shop"],
        "late_s": LATE_S,
        "values": {
            "total": {"op": "sum", "of": "amount"},
            "least": {"op": "min", "of": "amount"},
            "most": {"op": "max", "of": "amount"},
            "users": {"op": "distinct", "of": "user"},
        },
    },
    "visits": {
        "span": {"kind": "session", "gap_s": GAP_S},
        "by": ["user"],
        "late_s": LATE_S,
        "values": {"total": {"op": "reduce", "of": "amount", "expr": "body.acc + body.value"}},
    },
}
# Spark forgets an identity after twice its class of windows by the wall clock: two days, longer than any run.
DEDUP: Final = {"paths": ["order"], "window_s": 86_400}
_RESULTS: Final = """
WITH taken AS (SELECT * FROM events WHERE ingest_us - at_us <= {late_us}),
ordered AS (SELECT *, at_us - lag(at_us) OVER (PARTITION BY user ORDER BY at_us) AS since FROM taken),
visits AS (
    SELECT *, sum(CASE WHEN since < {gap_us} THEN 0 ELSE 1 END) OVER so_far AS visit
    FROM ordered WINDOW so_far AS (PARTITION BY user ORDER BY at_us ROWS UNBOUNDED PRECEDING)
)
SELECT 'by-shop' AS name, shop AS key, at_us // {size_us} * {size_us} AS start_us, start_us + {size_us} AS end_us,
    count(*) AS events, sum(amount) AS total, min(amount) AS least, max(amount) AS most, count(DISTINCT user) AS users
FROM taken GROUP BY shop, start_us
UNION ALL
SELECT 'visits', user, min(at_us), max(at_us) + {gap_us}, count(*), sum(amount), NULL, NULL, NULL
FROM visits GROUP BY user, visit
"""
_VERDICTS: Final = "SELECT number, first(number) OVER (PARTITION BY order_id ORDER BY sent) AS first FROM events"


class Events:
    """Generated events: arrays by number, and `order`, the sequence in which lanes write them."""

    def __init__(self, count: int) -> None:
        chance = np.random.default_rng(7)
        self.count = count
        self.ingest_us = START_US + np.arange(count, dtype=np.int64) * SPAN_US // count
        delay_s = np.where(chance.random(count) < 0.9, chance.random(count) * 10, chance.random(count) * 40)
        self.at_us = self.ingest_us - (delay_s * 1e6).astype(np.int64)
        self.shop = (chance.random(count) ** 5 * SHOPS).astype(np.int64)
        self.user = (chance.random(count) ** 4 * USERS).astype(np.int64)
        self.amount = chance.integers(1, 1_000, count)
        self.order_id = (chance.random(count) ** 3 * count / 2).astype(np.int64)
        self.is_tapped_twice = chance.random(count) < 0.01
        bounds = np.linspace(0, count, min(CLOCKS, count) + 1, dtype=np.int64)
        self.chunks = [first + chance.permutation(end - first) for first, end in pairwise(bounds)]
        self.order = np.concatenate(self.chunks)

    def position(self, number: int) -> int:
        """Return the position of an event on the ingest topic."""
        return position_of(1, number % PARTITIONS, number // PARTITIONS)

    @staticmethod
    def number_of(position: int) -> int:
        """Return the number of the event at a position."""
        place = place_of(position)
        return place.offset * PARTITIONS + place.partition

    def table(self) -> pa.Table:
        """Return the events; `sent`: their place in the sequence in which lanes write them."""
        sent = np.empty(self.count, dtype=np.int64)
        sent[self.order] = np.arange(self.count)
        columns = ("ingest_us", "at_us", "shop", "user", "amount", "order_id")
        named = {name: getattr(self, name) for name in columns}
        return pa.table({"number": np.arange(self.count), "sent": sent} | named)


def write(events: Events, cluster: Cluster) -> None:
    """Write the events' taps, with the clock between them, and their questions to dedup, as process lanes do."""
    producer = admin_producer({"bootstrap.servers": cluster.kafka, "acks": "all", "linger.ms": 5, "log_level": 3})
    taps, dedup = cluster.topics["taps"], cluster.topics["dedup"]
    windows = [CompiledTap(name, msgspec.convert(window, type=WindowSpec)) for name, window in WINDOWS.items()]
    question = (ASK_HEADER, msgspec.msgpack.encode(DedupQuestion(DEDUP["window_s"] * 1_000_000, None)))  # type: ignore[operator]

    def send(topic: str, value: bytes, key: bytes | None, partition: int, headers: list[Any]) -> None:
        while True:
            try:
                producer.produce(topic, value, key, partition=partition, headers=headers)
            except BufferError:
                producer.poll(0.1)
            else:
                return

    for chunk in events.chunks:
        for number in chunk.tolist():
            meta = _meta(events, number)
            body = {name: int(getattr(events, name)[number]) for name in ("shop", "user", "amount")}
            for window in windows:
                if (tap := window.tap(meta, body)) is not None:
                    key = key_of(tap)
                    for _ in range(2 if events.is_tapped_twice[number] else 1):
                        send(taps.name, encode_tap(tap), key, digest_partition(key, taps.partitions), [])
            identity = b"%016d" % events.order_id[number]
            send(dedup.name, b"{}", identity, 0, [(META_HEADER, encode_meta(meta)), question])
        is_last = chunk is events.chunks[-1]
        clock = TapClock(START_US + 100 * SPAN_US if is_last else int(events.ingest_us[chunk.max() + 1]))
        for partition in range(taps.partitions):
            send(taps.name, encode_clock(clock), None, partition, [])
        producer.poll(0)
    assert producer.flush(120) == 0


def _meta(events: Events, number: int) -> MessageMeta:
    at_us, ingest_us = int(events.at_us[number]), int(events.ingest_us[number])
    minute = ingest_us // 60_000_000
    return MessageMeta(
        WIRE_VERSION, f"e{number}", PIPE, 1, "shop", at_us, ingest_us, minute, position=events.position(number)
    )


class Answers:
    """Results and verdicts that the queries have written to the ingest topic.

    results:  body by id. All bodies under one id must be equal
    first:    number of the event that each event repeats, its own if it passes, -1 if it has no verdict
    returned: numbers of the judged events of each partition, in the order in which each came first
    """

    def __init__(self, events: Events, cluster: Cluster) -> None:
        self.results: dict[str, bytes] = {}
        self.first = np.full(events.count, -1, dtype=np.int64)
        self.returned: list[list[int]] = [[] for _ in range(PARTITIONS)]
        for message in _records(cluster):
            headers = message.headers() or []
            meta = msgspec.msgpack.decode(headers[0][1], type=MessageMeta)
            if meta.source.startswith(WINDOW_SOURCE):
                assert self.results.setdefault(meta.id, message.value()) == message.value(), "one id has two results"
            elif (verdict := verdict_of(headers)) is not None:
                self._note(meta, verdict, message.partition())

    def _note(self, meta: MessageMeta, verdict: str, partition: int) -> None:
        number = Events.number_of(meta.position)
        first = Events.number_of(parse_position(verdict)) if verdict else number
        if self.first[number] < 0:
            self.returned[partition].append(number)
        assert self.first[number] in (-1, first), f"two verdicts about {format_position(meta.position)}"
        self.first[number] = first

    def table(self) -> pa.Table:
        """Return the results of all windows."""
        rows = [_row(json.loads(body)) for body in self.results.values()]
        return pa.Table.from_pylist(rows, schema=_RESULT)


_RESULT: Final = pa.schema(
    [("name", pa.string())]
    + [(name, pa.int64()) for name in ("key", "start_us", "end_us", "events", "total", "least", "most", "users")]
)


def _row(result: Mapping[str, Any]) -> dict[str, Any]:
    (key,) = result["by"].values()
    span = {"start_us": _micros(result["start"]), "end_us": _micros(result["end"])}
    return {"name": result["window"], "key": key, "events": result["events"], **span, **result["values"]}


def _micros(text: str) -> int:
    at = datetime.fromisoformat(text)
    return int(at.timestamp()) * 1_000_000 + at.microsecond


def _records(cluster: Cluster) -> Iterator[Any]:
    ingest = cluster.topics["ingest"]
    reader = admin_consumer({"bootstrap.servers": cluster.kafka, "group.id": "campaign", "log_level": 0})
    ends = {
        number: reader.get_watermark_offsets(TopicPartition(ingest.name, number), timeout=30)[1]
        for number in range(ingest.partitions)
    }
    reader.assign([TopicPartition(ingest.name, number, 0) for number in ends])
    left = {number for number, end in ends.items() if end}
    while left:
        for message in reader.consume(10_000, 1.0):
            assert message.error() is None
            yield message
            if message.offset() + 1 >= ends[message.partition()]:
                left.discard(message.partition())
    reader.close()


def differences(events: Events, answers: Answers, var: Path) -> dict[str, int]:
    """Return the rows of DuckDB's answer, and how many of them ours lacks, or has in excess."""
    with duckdb.connect(str(var / "events.duckdb")) as db:
        db.register("events", events.table())
        db.register("ours", answers.table())
        db.register("judged", pa.table({"number": np.arange(events.count), "first": answers.first}))
        limits = {"late_us": LATE_S * 1_000_000, "gap_us": GAP_S * 1_000_000, "size_us": SIZE_S * 1_000_000}
        db.execute(f"CREATE TABLE results AS {_RESULTS.format(**limits)}")
        db.execute(f"CREATE TABLE verdicts AS {_VERDICTS}")
        return {
            "results": _count(db, "TABLE results"),
            "results: missing": _count(db, "TABLE results EXCEPT ALL TABLE ours"),
            "results: wrong": _count(db, "TABLE ours EXCEPT ALL TABLE results"),
            "verdicts": _count(db, "TABLE verdicts"),
            "verdicts: missing": _count(db, "TABLE verdicts EXCEPT ALL TABLE judged"),
            "verdicts: wrong": _count(db, "TABLE judged EXCEPT ALL TABLE verdicts"),
        }


def _count(db: duckdb.DuckDBPyConnection, query: str) -> int:
    (count,) = db.execute(f"SELECT count(*) FROM ({query})").fetchone() or (0,)  # noqa: S608
    return int(count)
