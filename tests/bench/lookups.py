"""Look-up tables of a million rows: time of a look-up, and time from a restart to the first one."""

import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct

from dataplane.tables.lookup_store import LookupStore
from dataplane.tables.lookups import TableRecord, encode_row, encode_table, row_key, table_key

ROWS: Final = 1_000_000
LOOKS: Final = 200_000
TABLE: Final = "tab_00000000000000000000"


class LookupFigures(Struct, frozen=True):
    """Measured times, in the units that the names give. `load_s`: from records to rows on disk, without Kafka."""

    rows: int
    load_s: float
    warm_s: float
    p50_us: float
    p99_us: float
    size_mb: float


def measure(rows: int = ROWS, looks: int = LOOKS) -> LookupFigures:
    """Load, close, reopen, and look up rows in random order, each decoded."""
    with tempfile.TemporaryDirectory(prefix="penstock-lookups-") as name:
        folder = Path(name)
        load_s = load_rows(folder, rows)
        began = time.perf_counter()
        store = LookupStore(folder)
        pinned = store.pin()
        assert pinned.row(TABLE, "customer-0") is not None
        warm_s = time.perf_counter() - began
        taken = sorted(_timed_looks(pinned.row, rows, looks))
        pinned.close()
        store.close()
        size_mb = (folder / "data.mdb").stat().st_size / 1e6
    return LookupFigures(rows, load_s, warm_s, taken[looks // 2] / 1e3, taken[looks * 99 // 100] / 1e3, size_mb)


def _timed_looks(look: object, rows: int, looks: int) -> Iterator[int]:
    assert callable(look)
    chance = random.Random(7)
    keys = [f"customer-{chance.randrange(rows)}" for _ in range(looks)]
    for key in keys:
        began = time.perf_counter_ns()
        look(TABLE, key)
        yield time.perf_counter_ns() - began


def load_rows(folder: Path, rows: int) -> float:
    """Store a table of rows in a new store; return the seconds that it took."""
    began = time.perf_counter()
    store = LookupStore(folder)
    step = 10_000
    for first in range(0, rows, step):
        store.apply([_record(n) for n in range(first, min(first + step, rows))], first + step)
    table = TableRecord(TABLE, rows, "ten", "customers")
    store.apply([(table_key(TABLE), encode_table(table))], rows + 1)
    store.close()
    return time.perf_counter() - began


def _record(n: int) -> tuple[bytes, bytes]:
    body = f'{{"name":"Customer {n}","tier":"gold","country":"DE","limit":{n},"since":"2024-01-01","tags":["a","b"]}}'
    return row_key(TABLE, f"customer-{n}"), encode_row(n + 1, body.encode())
