"""Rows in a real Postgres: once by key, and refused rows alone, without their values."""

import json

from dataplane.ledger.meta import MessageMeta
from dataplane.plan.rows import CompiledRow
from dataplane.spec import PostgresDestination, parse_pipe_spec
from dataplane.transmit.http.sender import HttpPolicy, ResponsePart
from dataplane.transmit.policy.delivery_verdict import OK
from dataplane.transmit.policy.postgres_verdict import DATABASE_REFUSED, ROW_REFUSED
from dataplane.transmit.postgres.request import MAX_REFUSED
from dataplane.transmit.postgres.sender import PostgresSender
from tests.support.doc_blocks import documented_all
from tests.support.insertions import LOOPBACK, changed, insert, row
from tests.support.postgres_server import HOST, USER, PostgresServer
from tests.support.trust import Trust


def test_rows_are_inserted_once_by_their_key(server: PostgresServer, sender: PostgresSender, to: PostgresDestination):
    answers = [insert(sender, to, *(row(n) for n in numbers)) for numbers in (range(5), range(3, 8))]
    assert [(one.verdict, one.parts, one.address) for one in answers] == [(OK, (), HOST)] * 2
    assert server.rows("SELECT position FROM events ORDER BY 1") == [(n,) for n in range(8)]
    assert server.rows("SELECT DISTINCT application_name FROM pg_stat_activity WHERE usename = 'writer'") == [
        ("penstock",)
    ]


def test_rows_without_a_key_are_appended(server: PostgresServer, sender: PostgresSender, to: PostgresDestination):
    server.make_table("log", "n int, note text")
    plain = changed(to, table="log", columns={"n": "body.n", "note": "body.note"}, key=())
    for _ in range(2):
        assert insert(sender, plain, row(1)).verdict == OK
    assert server.rows("SELECT n, note FROM log") == [(1, "a"), (1, "a")]


def test_update_keeps_the_last_row_of_a_key_also_within_a_batch(
    server: PostgresServer, sender: PostgresSender, to: PostgresDestination
):
    newest = changed(to, on_conflict="update")
    answer = insert(sender, newest, row(1, 1), row(2, 1), row(1, 2), row(1, 3))
    assert {part.verdict for part in answer.parts} <= {OK}
    assert server.rows("SELECT position, n FROM events ORDER BY 1") == [(1, 3), (2, 1)]


def test_refused_row_is_dead_alone_and_its_values_are_not_shown(
    server: PostgresServer, sender: PostgresSender, to: PostgresDestination
):
    rows = [row(n) for n in range(9)]
    rows[2], rows[7] = row(2, n="secret"), row(7, n=None)
    answer = insert(sender, to, *rows)
    dead = [part for part in answer.parts if part.verdict != OK]
    assert dead == [
        ResponsePart(2, 3, ROW_REFUSED, "SQLSTATE 22P02 InvalidTextRepresentation"),
        ResponsePart(7, 8, ROW_REFUSED, "SQLSTATE 23502 NotNullViolation column n"),
    ]
    assert sum(part.end - part.start for part in answer.parts) == 9
    assert server.rows("SELECT position FROM events ORDER BY 1") == [(n,) for n in (0, 1, 3, 4, 5, 6, 8)]


def test_text_with_a_null_character_is_a_refused_row(sender: PostgresSender, to: PostgresDestination):
    answer = insert(sender, to, row(1, note="a\0b"))
    assert (answer.verdict, answer.message) == (ROW_REFUSED, "SQLSTATE 22P05 UntranslatableCharacter")


def test_table_that_refuses_all_rows_gives_most_of_them_back(
    server: PostgresServer, sender: PostgresSender, to: PostgresDestination
):
    answer = insert(sender, to, *(row(n, None) for n in range(200)))
    assert [part.verdict for part in answer.parts] == [ROW_REFUSED] * MAX_REFUSED + [DATABASE_REFUSED]
    assert (answer.parts[-1].start, answer.parts[-1].end) == (MAX_REFUSED, 200)


def test_each_refused_row_of_a_small_batch_counts(sender: PostgresSender, to: PostgresDestination):
    answer = insert(sender, to, row(1, None), row(2, None))
    assert [(part.start, part.verdict) for part in answer.parts] == [(0, ROW_REFUSED), (1, ROW_REFUSED)]


def test_statement_of_the_guide_creates_a_table_for_its_destination(server: PostgresServer, trust: Trust):
    _, _, statement = documented_all("topic-table-and-lake-destinations.md", "sql")
    with server.admin() as connection:
        connection.execute(statement)
        connection.execute("GRANT SELECT, INSERT ON orders TO writer")
    document = json.loads(documented_all("topic-table-and-lake-destinations.md", "json")[-1])["rows"]
    here = {"host": HOST, "port": server.port, "user": USER, "ca": trust.ca_file.read_text()}
    to = parse_pipe_spec({"sources": {"shop": {}}, "destinations": {"rows": document | here}}).destinations["rows"]
    assert isinstance(to, PostgresDestination)
    meta = MessageMeta(1, "id-1", "p", 1, "shop", 0, 0, 0, position=7)
    made = CompiledRow(to)(meta, b'{"order":{"id":"a-1","total":2.50}}')
    sender = PostgresSender(HttpPolicy(LOOPBACK))
    try:
        assert insert(sender, to, made, made).verdict == OK
    finally:
        sender.close()
    found = server.rows("SELECT position, order_id, total::text, event->'order'->>'id' FROM orders")
    assert found == [(7, "a-1", "2.5", "a-1")]
