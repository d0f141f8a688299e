"""Recomputation of a lake table on real Spark and Kafka: one customer's rows, with dedup and windows."""

import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

import duckdb
import pytest
from deltalake import DeltaTable

from dataplane.ingest.stamp import key_bytes
from dataplane.ledger.meta import META_HEADER, MessageMeta, encode_meta
from dataplane.ledger.units import format_position, position_of
from dataplane.names import WIRE_VERSION
from dataplane.plan.panes import WindowResult
from dataplane.plan.taps import CompiledTap, key_digest, key_values, result_id
from dataplane.process.dedup import JUDGED, VERDICT_HEADER
from dataplane.spec import parse_pipe_spec
from dataplane.spec.windows import WINDOW_SOURCE
from dataplane.tables.records import PlanRecord
from localbox.settings import ROOT, settings_from
from localbox.spark import ensure_spark, spark_env
from localbox.testing_kafka import role_env
from tests.support.broker import Broker
from tests.support.cluster import TENANT, Cluster
from tests.support.kafka import admin_producer

SALES: Final = "pipe_sales"
SPEC: Final[dict[str, Any]] = {
    "sources": {"shop": {}},
    "destinations": {"lake": {"type": "lake"}},
    "dedup": {"paths": ["order"], "window_s": 3_600},
    "windows": {
        "by-region": {
            "span": {"kind": "tumbling", "size_s": 60},
            "by": ["region"],
            "values": {"n": {"op": "count"}, "total": {"op": "sum", "of": "amount"}},
        }
    },
}
CORRECTED: Final = [{"op": "filter", "when": "body.amount < 100"}, {"op": "set", "path": "x", "value": 1}]
HOUR_US: Final = (int(datetime.now(UTC).timestamp()) - 86_400) // 3_600 * 3_600_000_000  # an hour of yesterday
MINUTES: Final = 3
END: Final = datetime.fromtimestamp(HOUR_US / 1e6 + 60 * MINUTES + 60, UTC).isoformat()


class Sale(NamedTuple):
    """Event of the test. `repeats`: number of the event whose order it repeats."""

    number: int
    customer: str
    region: str
    amount: int
    repeats: int | None = None

    @property
    def minute(self) -> int:
        return self.number // 10

    @property
    def at_us(self) -> int:
        return HOUR_US + self.minute * 60_000_000 + self.number % 10 * 1_000_000

    @property
    def body(self) -> bytes:
        order = self.number if self.repeats is None else self.repeats
        return json.dumps({"order": order, "region": self.region, "amount": self.amount}).encode()


# Customer `a` buys in both regions; three of its amounts are to be filtered, one of them of a repeated event.
SALES_MADE: Final = [
    Sale(
        number,
        "abc"[number % 3],
        ("north", "south")[number % 2],
        500 if number in {6, 15, 24} else number,
        number - 4 if number % 7 == 6 else None,
    )
    for number in range(10 * MINUTES)
]


def counted(of: list[Sale], *, corrected: str = "") -> dict[tuple[int, str], tuple[int, int]]:
    """Return events and total by minute and region, without repeats, and without what is filtered for a customer."""
    found: defaultdict[tuple[int, str], list[int]] = defaultdict(list)
    for sale in of:
        if sale.repeats is None and not (sale.customer == corrected and sale.amount >= 100):
            found[sale.minute, sale.region].append(sale.amount)
    return {key: (len(amounts), sum(amounts)) for key, amounts in found.items()}


class Table:
    """The lake table of the sales, and the command that recomputes it."""

    def __init__(self, kafka: str, var: Path) -> None:
        self._var, self._path = var, var / "lake" / TENANT / SALES / "lake"
        self.cluster = Cluster(kafka, "recompute1", 2)
        self.cluster.make_cluster_topics()
        self.cluster.make_cell_topics(())
        self.cluster.publish_cell()
        self.cluster.add_pipe(SALES, "", SPEC["destinations"], **{k: SPEC[k] for k in ("dedup", "windows")})
        corrected = parse_pipe_spec({**SPEC, "normalize": CORRECTED})
        self.cluster.publish(PlanRecord(SALES, 2, corrected, self.cluster.version()))
        self._producer = admin_producer({"bootstrap.servers": kafka, "acks": "all"})
        self._offsets = [0, 0]
        box = settings_from(os.environ, dotenv=None)
        ensure_spark(box)
        self._env = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
        self._env |= self.cluster.env(str(var), 0) | spark_env(box)
        self._env |= {"PYTHONPATH": f"{ROOT}:{ROOT / 'platform'}", "PYSPARK_PYTHON": sys.executable}
        self._env |= {"SPARK_LOCAL_IP": "127.0.0.1"} | role_env("control")  # as `make lake-recompute`

    def store(self, sale: Sale) -> int:
        """Put an event on the ingest topic, as ingest does; return its position."""
        meta = self._meta(f"sale-{sale.number}", "shop", sale.at_us)
        return self._put(sale.number % 2, meta, sale.body, key_bytes(SALES, sale.customer))

    def judge(self, sale: Sale, position: int, first: int | None) -> None:
        """Return an event to the ingest topic, as the dedup query does."""
        meta = self._meta(f"sale-{sale.number}", "shop", sale.at_us)
        meta.position = position
        verdict = JUDGED if first is None else (VERDICT_HEADER, format_position(first).encode())
        body = sale.body if first is None else b""
        self._put(sale.number % 2, meta, body, key_bytes(SALES, sale.customer), verdict)

    def send_result(self, minute: int, region: str, n: int, total: int) -> None:
        """Put the result of a window on the ingest topic, as the windows query does."""
        window = CompiledTap("by-region", parse_pipe_spec(SPEC).windows["by-region"])
        start_us, end_us = (HOUR_US + one * 60_000_000 for one in (minute, minute + 1))
        digest = key_digest(SALES, "by-region", window.definition, key_values([region]))
        start, end = (
            datetime.fromtimestamp(us / 1e6, UTC).isoformat().replace("+00:00", "Z") for us in (start_us, end_us)
        )
        body: dict[str, Any] = {"window": "by-region", "start": start, "end": end, "by": {"region": region}}
        body |= {"events": n, "values": {"n": n, "total": total}}
        meta = self._meta(result_id(digest, WindowResult(start_us, end_us, n, {})), f"{WINDOW_SOURCE}by-region", end_us)
        self._put(0, meta, json.dumps(body, separators=(",", ":")).encode(), key_bytes(SALES, f'["{region}"]'))

    def recompute(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the command to its end."""
        command = [sys.executable, "-m", "dataplane.jobs.lake_recompute", "--pipe", SALES, "--destination", "lake"]
        return subprocess.run(
            [*command, *arguments], cwd=ROOT, env=self._env, capture_output=True, text=True, timeout=400, check=False
        )

    def rows(self) -> dict[str, tuple[int, dict[str, Any]]]:
        """Return revision and body of each row by id, as DuckDB reads them; an id of two rows fails the test."""
        files = DeltaTable(str(self._path)).file_uris()
        with duckdb.connect() as db:
            found = db.sql(f"SELECT id, revision, body FROM read_parquet({files})").fetchall()  # noqa: S608
        assert len({id_ for id_, *_ in found}) == len(found)
        return {id_: (revision, json.loads(body)) for id_, revision, body in found}

    def _meta(self, id_: str, source: str, at_us: int) -> MessageMeta:
        return MessageMeta(WIRE_VERSION, id_, SALES, 1, source, at_us, at_us, at_us // 60_000_000)

    def _put(self, partition: int, meta: MessageMeta, body: bytes, key: bytes | None, *more: tuple[str, bytes]) -> int:
        headers: list[Any] = [(META_HEADER, encode_meta(meta)), ("content-type", b"application/json"), *more]
        topic = self.cluster.topics["ingest"].name
        self._producer.produce(topic, body, key=key, partition=partition, headers=headers)
        assert self._producer.flush(20) == 0
        self._offsets[partition] += 1
        return position_of(1, partition, self._offsets[partition] - 1)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Table]:
    var = tmp_path_factory.mktemp("recompute")
    broker = Broker(var / "broker")
    broker.start()
    yield Table(broker.address, var)
    broker.stop()


def totals(rows: dict[str, tuple[int, dict[str, Any]]]) -> dict[tuple[int, str], tuple[int, int]]:
    """Return events and total of the rows of results, by minute and region."""
    bodies = [body for _, body in rows.values() if "window" in body]
    found = {}
    for body in bodies:
        minute = round((datetime.fromisoformat(body["start"]).timestamp() - HOUR_US / 1e6) / 60)
        found[minute, body["by"]["region"]] = (body["values"]["n"], body["values"]["total"])
    return found


@pytest.mark.long
@pytest.mark.timeout(1_500)
def test_rows_and_windows_of_one_customer_are_recomputed_and_repeats_have_no_row(table: Table):
    positions = [table.store(sale) for sale in SALES_MADE]
    for sale in SALES_MADE:
        table.judge(sale, positions[sale.number], None if sale.repeats is None else positions[sale.repeats])
    truth = counted(SALES_MADE)
    for (minute, region), (n, total) in truth.items():
        is_wrong = (minute, region) == (1, "north")  # as if an event had been late then
        table.send_result(minute, region, n - 1 if is_wrong else n, total)

    done = table.recompute("--revision", "1", "--until", END)
    assert done.returncode == 0, done.stderr[-3_000:]
    first = table.rows()
    events = {f"sale-{sale.number}": (1, json.loads(sale.body)) for sale in SALES_MADE if sale.repeats is None}
    assert {id_: row for id_, row in first.items() if id_.startswith("sale-")} == events
    assert totals(first) == truth

    done = table.recompute("--revision", "2", "--until", END, "--key", "a")
    assert done.returncode == 0, done.stderr[-3_000:]
    second = table.rows()
    wanted = {
        id_: (2, body | {"x": 1}) if SALES_MADE[int(id_[5:])].customer == "a" else (revision, body)
        for id_, (revision, body) in events.items()
        if SALES_MADE[int(id_[5:])].customer != "a" or body["amount"] < 100
    }
    assert {id_: row for id_, row in second.items() if id_.startswith("sale-")} == wanted
    assert totals(second) == counted(SALES_MADE, corrected="a") != truth
    changed = {id_ for id_ in second if not id_.startswith("sale-") and second[id_] != first[id_]}
    others = [second[id_] == first[id_] for id_ in second if not id_.startswith("sale-") and id_ not in changed]
    assert 0 < len(changed) < len(truth), "only results that include the customer's filtered events"
    assert all(others)
    assert {second[id_][0] for id_ in changed} == {2}

    table.store(Sale(10 * MINUTES + 10, "b", "north", 1))
    done = table.recompute("--revision", "1")
    assert done.returncode == 2
    assert "1 of its events wait" in done.stderr
    assert table.rows() == second
