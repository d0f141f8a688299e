"""Lake query on real Spark and Kafka: every row is stored exactly once, despite kills."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import duckdb
import pytest
from deltalake import DeltaTable

from controlplane.kafka_access.acls import KafkaRole
from dataplane.ledger.meta import META_HEADER, MessageMeta, encode_meta
from dataplane.ledger.units import position_of
from dataplane.names import WIRE_VERSION, Purpose
from dataplane.schemas.types import SchemaType
from dataplane.spec import destination_of, parse_pipe_spec
from dataplane.tables.records import DestinationRecord, PlanRecord, RegisteredSchema
from localbox.settings import ROOT, settings_from
from localbox.spark import ensure_spark, spark_env
from localbox.testing_kafka import role_env
from tests.integration.jobs.typed_orders import BIG, FIRST, ORDERS, PROBES, SECOND, TYPED, VERSIONS, encoded
from tests.support.broker import Broker
from tests.support.cluster import PIPE, TENANT, Cluster
from tests.support.doc_blocks import documented
from tests.support.kafka import admin_producer
from tests.support.patience import until
from tests.support.sizes import LAKE_KILLS

NOW_US: Final = (int(time.time()) - 86_400) // 3_600 * 3_600_000_000  # the start of an hour, yesterday
PARTITIONS: Final = 2
PATIENCE_S: Final = 400.0  # two cold starts of Spark on a busy machine
COLUMN_NAMES: Final = (
    "id", "position", "child", "pipe", "revision", "source", "event_time", "ingest_time", "body", "body_bytes",
)  # fmt: skip
COLUMNS: Final = (
    "id, position, child, pipe, revision, source, epoch_us(event_time), epoch_us(ingest_time), body, body_bytes"
)


class Lake:
    """A cell with one lake destination, and a process that runs its queries."""

    def __init__(self, kafka: str, var: Path, cell: str) -> None:
        self.var = var
        self.cluster = Cluster(kafka, cell, PARTITIONS)
        self.cluster.make_cluster_topics()
        self.cluster.make_cell_topics(())
        self.cluster.publish_cell()
        self.cluster.add_pipe(PIPE, "", {"lake": {"type": "lake"}})
        self.cluster.add_pipe(ORDERS, "", {"lake": {"type": "lake"}})
        self.path = var / "lake" / TENANT / PIPE / "lake"
        self.orders = var / "lake" / TENANT / ORDERS / "lake"
        self._producer = admin_producer({"bootstrap.servers": kafka, "acks": "all", "enable.idempotence": True})
        box = settings_from(os.environ, dotenv=None)
        ensure_spark(box)
        self._spark_env = spark_env(box)
        self._process: subprocess.Popen[bytes] | None = None
        self._probe = PROBES

    def start(self) -> None:
        command = [sys.executable, "-m", "tests.support.queries_process", self.cluster.cell, "lake"]
        with (self.var / "queries.log").open("ab") as log:
            self._process = subprocess.Popen(
                command, cwd=ROOT, env=self._env("cells"), stdout=log, stderr=log, start_new_session=True
            )

    def recompute(self, *arguments: str, pipe: str = PIPE) -> str:
        """Run the recomputation to its end and return its output."""
        command = [sys.executable, "-m", "dataplane.jobs.lake_recompute", "--pipe", pipe, "--destination", "lake"]
        done = subprocess.run(
            [*command, *arguments],
            cwd=ROOT,
            env=self._env("control"),  # as `make lake-recompute`
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3_000:]
        return done.stdout

    def _env(self, role: KafkaRole) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
        env = inherited | self.cluster.env(str(self.var), 0) | self._spark_env
        env |= {"PENSTOCK_LAKE_EVERY_S": "0.2", "PYTHONPATH": f"{ROOT}:{ROOT / 'platform'}"}
        return env | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"} | role_env(role)

    def kill(self) -> None:
        """Send SIGKILL to Python and the JVM at once."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(20)
            self._process = None

    def use_version(self, version: int) -> None:
        """Publish the orders' destination with a version of its typed columns, and wait until a row has them."""
        schema = RegisteredSchema(version, version, SchemaType.AVRO, "", json.dumps(VERSIONS[version]))
        to = destination_of(encoded(version))
        self.cluster.publish(DestinationRecord(ORDERS, "lake", self.cluster.version(), "active", to, [], schema=schema))
        until(lambda: self._probed() == f"orders-value@{version}", f"rows of version {version}", PATIENCE_S)

    def use_no_version(self) -> None:
        """Publish the orders' destination without typed columns, and wait until files are compacted without them."""
        self.cluster.publish_destinations(ORDERS, {"lake": {"type": "lake"}})
        until(lambda: self._probed() is None, "rows without typed columns", PATIENCE_S)
        before = self._compactions()
        until(lambda: self._probed() is None and self._compactions() > before, "files put together", PATIENCE_S)

    def put(self, first: int, count: int) -> None:
        """Write messages as a transmit lane does; their number is their offset in partition 0 of ingest."""
        for number in range(first, first + count):
            self._produce("lake", number, number % PARTITIONS, position=position_of(1, 0, number), destination="lake")
        assert self._producer.flush(20) == 0

    def ingest(self, count: int) -> None:
        """Write the first of these messages as ingest does."""
        for number in range(count):
            self._produce("ingest", number, 0)
        assert self._producer.flush(20) == 0

    def put_orders(self, orders: Mapping[int, bytes]) -> None:
        """Write orders as a transmit lane does, by their offset in partition 1 of ingest."""
        for number, body in orders.items():
            more: dict[str, Any] = {"position": position_of(1, 1, number), "destination": "lake"}
            self._produce("lake", number, 1, body, ORDERS, **more)
        assert self._producer.flush(20) == 0

    def _probed(self) -> str | None:
        """Put one more order, and return the version of the newest row; a control record is read some time later."""
        self._probe += 1
        self.put_orders({self._probe: b'{"id":"probe","total":0,"at":0}'})
        rows = self.order_rows("event_schema")
        return rows.popitem()[1][0] if rows else None

    def _compactions(self) -> int:
        return sum(entry["operation"] == "OPTIMIZE" for entry in DeltaTable(str(self.orders)).history())

    def ingest_orders(self, orders: Iterable[bytes]) -> None:
        """Write orders as ingest does, to partition 1."""
        for number, body in enumerate(orders):
            self._produce("ingest", number, 1, body, ORDERS)
        assert self._producer.flush(20) == 0

    def _produce(
        self, purpose: Purpose, number: int, partition: int, body: bytes = b"", pipe: str = PIPE, **more: Any
    ) -> None:
        at_us = NOW_US + number * 1_000_000
        meta = MessageMeta(WIRE_VERSION, f"id-{number}", pipe, 1, "shop", at_us, at_us, at_us // 60_000_000, **more)
        headers: list[Any] = [(META_HEADER, encode_meta(meta)), ("content-type", b"application/json")]
        topic = self.cluster.topics[purpose].name
        self._producer.produce(topic, body or b'{"n":%d}' % number, partition=partition, headers=headers)
        self._producer.poll(0)

    def order_rows(self, columns: str) -> dict[str, Any]:
        """Return these columns of the orders by id, as DuckDB reads them from the newest version of the table."""
        if not DeltaTable.is_deltatable(str(self.orders)):
            return {}
        if "event" in columns and "event" not in [one.name for one in DeltaTable(str(self.orders)).schema().fields]:
            return {}
        files = DeltaTable(str(self.orders)).file_uris()
        query = f"SELECT id, {columns} FROM read_parquet({files}, union_by_name = true) ORDER BY position"  # noqa: S608
        with duckdb.connect() as db:
            db.sql("SET TimeZone = 'UTC'")
            return {id_: row for id_, *row in db.sql(query).fetchall()}

    def rows(self, columns: str = "id") -> list[tuple[Any, ...]]:
        """Return the rows that DuckDB reads from the newest version of the table; none before the first version."""
        if not DeltaTable.is_deltatable(str(self.path)):
            return []
        files = DeltaTable(str(self.path)).file_uris()
        with duckdb.connect() as db:
            return db.sql(f"SELECT {columns} FROM read_parquet({files}) ORDER BY position").fetchall()  # noqa: S608

    def version(self) -> int | None:
        """Return the newest version of the table, None before the first."""
        return DeltaTable(str(self.path)).version() if DeltaTable.is_deltatable(str(self.path)) else None

    def compacted(self, number: int) -> bool:
        """Put one more message, as only batches with rows count, and return True if files were compacted."""
        self.put(number, 1)
        return any(entry["operation"] == "OPTIMIZE" for entry in DeltaTable(str(self.path)).history())

    def ids(self) -> list[str]:
        """Return the id of every row."""
        return [id_ for (id_,) in self.rows()]


class Reader:
    """Thread that reads in a loop and records the first duplicate or vanished row."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._ending = threading.Event()
        self.wrong = ""
        self.reads = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._ending.set()
        self._thread.join(20)

    def _run(self) -> None:
        most = 0
        while not self._ending.wait(0.05):
            ids = self._lake.ids()
            self.reads += 1
            if len(set(ids)) < len(ids):
                self.wrong = self.wrong or f"{len(ids) - len(set(ids))} rows twice"
            if len(ids) < most:
                self.wrong = self.wrong or f"{most} rows became {len(ids)}"
            most = max(most, len(ids))


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    var = tmp_path_factory.mktemp("lake")
    broker = Broker(var / "broker")
    broker.start()
    made = Lake(broker.address, var, "lake1")
    made.start()
    yield made
    made.kill()
    broker.stop()


@pytest.mark.timeout(1_500)
def test_rows_are_stored_once_with_their_columns_and_repeats_change_nothing(
    lake: Lake, capsys: pytest.CaptureFixture[str]
):
    lake.put(0, 500)
    until(lambda: len(lake.ids()) >= 500, "500 rows", PATIENCE_S)
    lake.put(400, 200)
    until(lambda: "id-599" in lake.ids(), "100 rows more", PATIENCE_S)
    assert [id_ for id_ in lake.ids() if int(id_[3:]) < 600] == [f"id-{number}" for number in range(600)]
    at_us = NOW_US + 7_000_000
    about = ("id-7", position_of(1, 0, 7), 0, PIPE, 1, "shop")
    assert lake.rows(COLUMNS)[7] == (*about, at_us, at_us, '{"n":7}', None)
    assert (lake.path / f"date={datetime.fromtimestamp(NOW_US / 1e6, UTC):%Y-%m-%d}").is_dir()
    program = documented("topic-table-and-lake-destinations.md", "python")
    assert "var/lake/ten_1/pipe_1/store" in program
    exec(program.replace("var/lake/ten_1/pipe_1/store", str(lake.path)), {})  # noqa: S102 a page of this repository
    assert re.search(r"│\s*shop\s*│\s*\d{3,}\s*│", capsys.readouterr().out)


@pytest.mark.long
@pytest.mark.timeout(1_800)
def test_kills_and_compaction_leave_every_row_once(lake: Lake):
    reader = Reader(lake)
    first = 1_000
    lake.put(900, 100)  # the first batch with rows creates the table
    for _ in range(LAKE_KILLS):
        until(lambda: lake.version() is not None, "the query runs", PATIENCE_S)
        for number in range(first, first + 2_000, 100):
            lake.put(number, 100)
            time.sleep(0.05)
        first += 2_000
        lake.kill()
        lake.start()
        lake.put(first - 300, 300)
    wanted = {f"id-{number}" for number in range(1_000, first)}
    until(lambda: wanted <= set(lake.ids()), "all rows", PATIENCE_S)
    until(lambda: lake.compacted(first), "files put together", PATIENCE_S)
    reader.close()
    assert not reader.wrong
    assert reader.reads > 20


@pytest.mark.long
@pytest.mark.timeout(900)
def test_recompute_rewrites_a_time_range_by_another_revision_and_keeps_the_rest(lake: Lake):
    lake.put(0, 100)
    until(lambda: "id-99" in lake.ids(), "100 rows", PATIENCE_S)
    before = dict(lake.rows("id, body"))
    lake.ingest(100)
    spec = {"sources": {"shop": {}}, "destinations": {"lake": {"type": "lake"}}}
    steps = [{"op": "filter", "when": "body.n != 50"}, {"op": "set", "path": "x", "value": 1}]
    lake.cluster.publish(PlanRecord(PIPE, 2, parse_pipe_spec({**spec, "normalize": steps}), lake.cluster.version()))
    until_ = datetime.fromtimestamp(NOW_US / 1e6 + 80, UTC).isoformat()
    assert "rewritten: rows" in lake.recompute("--revision", "2", "--until", until_)
    after = dict(lake.rows("id, body"))
    assert {id_: body for id_, body in after.items() if before.get(id_) != body} == {
        f"id-{number}": f'{{"n":{number},"x":1}}' for number in range(80) if number != 50
    }
    assert before.keys() - after.keys() == {"id-50"}


def typed_rows(lake: Lake) -> dict[str, Any]:
    """Return event, its `at` in microseconds, version and error by id, without the probes."""
    rows = lake.order_rows("event, epoch_us(event.at), event_schema, event_error")
    found = {}
    for id_, (event, at_us, version, error) in rows.items():
        if int(id_[3:]) < PROBES:
            others = event and {name: value for name, value in event.items() if name != "at"}
            found[id_] = (others, at_us, version and int(version.removeprefix("orders-value@")), error)
    return found


@pytest.mark.long
@pytest.mark.timeout(1_500)
def test_typed_columns_are_exact_follow_the_schema_and_are_the_same_after_a_recompute(lake: Lake):
    lake.put(0, 5)
    lake.put_orders({20: FIRST[0]})
    until(lambda: lake.order_rows("body"), "a row without typed columns", PATIENCE_S)
    lake.use_version(1)
    lake.put_orders(FIRST)
    until(lambda: len(typed_rows(lake)) == 1 + len(FIRST), "rows of version 1", PATIENCE_S)
    lake.use_version(2)
    lake.put(5, 5)
    lake.put_orders(SECOND)
    until(lambda: len(typed_rows(lake)) == 1 + len(TYPED), "rows of version 2", PATIENCE_S)
    wanted = {id_: (event and {"note": None} | event, *more) for id_, (event, *more) in TYPED.items()}
    assert typed_rows(lake) == wanted | {"id-20": (None, None, None, None)}
    bodies = lake.order_rows("body, body_bytes")
    assert (bodies["id-2"], bodies["id-3"]) == ([FIRST[2].decode(), None], [None, FIRST[3]]), "misfits keep their rows"
    spec = {"sources": {"shop": {}}, "destinations": {"lake": encoded(2)}}
    lake.cluster.publish(PlanRecord(ORDERS, 2, parse_pipe_spec(spec), lake.cluster.version()))
    lake.ingest_orders([*FIRST.values(), *SECOND.values()])
    assert "rewritten: rows" in lake.recompute("--revision", "2", pipe=ORDERS)
    again = {id_: (event, at_us, 2, error) for id_, (event, at_us, _, error) in wanted.items()}
    again["id-1"] = (None, None, 2, "/lines/0/price: is required, but missing")
    assert typed_rows(lake) == again
    lake.use_no_version()
    assert typed_rows(lake) == again
    read = DeltaTable(str(lake.orders)).to_pyarrow_table(columns=["id", "event"]).to_pylist()
    assert Decimal(BIG) in [row["event"]["total"] for row in read if row["event"]], (
        "Arrow reads files with the year 9999"
    )
    until(lambda: len(lake.ids()) >= 10, "rows of the other table", PATIENCE_S)
    table = DeltaTable(str(lake.path))
    assert [one.name for one in table.schema().fields] == [*COLUMN_NAMES, "date", "hour"], "others get no columns"
    times = f"SELECT DISTINCT type FROM parquet_schema({table.file_uris()}) WHERE name LIKE '%_time'"  # noqa: S608
    with duckdb.connect() as db:
        assert db.sql(times).fetchall() == [("INT96",)], "as before"
