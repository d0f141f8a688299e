"""Rows of messages: a row that is too large is refused before it is built."""

import tracemalloc

import pytest

from dataplane.ledger.meta import MessageMeta
from dataplane.plan import StageError
from dataplane.plan.rows import MAX_ROW_BYTES, CompiledRow
from dataplane.spec import PostgresDestination

META = MessageMeta(1, "id-1", "p", 1, "shop", 0, 0, 0, position=7)


def row_of(columns: dict[str, str]) -> CompiledRow:
    return CompiledRow(PostgresDestination("db.example.com", "shop", "writer", "orders", columns=columns, key=()))


def test_row_has_the_value_of_each_column():
    row = row_of({"at": "meta.position", "n": "body.n", "all": "body"})
    assert row(META, b'{"n":1.50,"t":"\xc3\xa9"}') == '{"at":7,"n":1.5,"all":{"n":1.5,"t":"é"}}'.encode()


def test_error_names_the_column():
    with pytest.raises(StageError, match="column n: ") as caught:
        row_of({"at": "meta.position", "n": "0.0 / 0.0"})(META, b"{}")
    assert caught.value.cause == "row"


def test_columns_that_repeat_the_body_are_refused_before_a_large_row_is_built():
    row, body = row_of({f"c{n}": "body" for n in range(100)}), b'{"t":"%s"}' % (b"x" * (MAX_ROW_BYTES // 2))
    tracemalloc.start()
    try:
        with pytest.raises(StageError, match="needs values of at most 1048576 bytes"):
            row(META, body)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak_bytes < 8 * MAX_ROW_BYTES
