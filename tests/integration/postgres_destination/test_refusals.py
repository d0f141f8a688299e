"""Refusals that are about a right, a policy or the configuration, and not always about a row."""

from typing import Any

import pytest

from dataplane.spec import PostgresDestination
from dataplane.transmit.http.sender import ResponsePart
from dataplane.transmit.policy.delivery_verdict import OK, DeliveryVerdict
from dataplane.transmit.policy.postgres_verdict import DATABASE_ERROR, DATABASE_REFUSED, ROW_REFUSED
from dataplane.transmit.postgres.sender import PostgresSender
from tests.support.insertions import changed, insert, row
from tests.support.postgres_server import PASSWORD, PostgresServer

POLICY = (
    "ALTER TABLE events ENABLE ROW LEVEL SECURITY",
    "CREATE POLICY positive ON events TO writer USING (true) WITH CHECK (n > 0)",
)
RIGHT = (
    "CREATE OR REPLACE FUNCTION ask() RETURNS trigger LANGUAGE plpgsql AS"
    " $$ BEGIN IF NEW.n < 1 THEN RAISE 'no right' USING ERRCODE = '42501'; END IF; RETURN NEW; END $$",
    "CREATE TRIGGER ask BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION ask()",
)
DAMAGE = (
    "CREATE OR REPLACE FUNCTION damage() RETURNS trigger LANGUAGE plpgsql AS"
    " $$ BEGIN IF NEW.n < 1 THEN RAISE 'broken' USING ERRCODE = 'XX002'; END IF; RETURN NEW; END $$",
    "CREATE TRIGGER damage BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION damage()",
)


@pytest.mark.parametrize(
    ("statements", "words"),
    [
        pytest.param(POLICY, "SQLSTATE 42501 InsufficientPrivilege", id="row-level security"),
        pytest.param(RIGHT, "SQLSTATE 42501 InsufficientPrivilege", id="trigger without a right"),
        pytest.param(DAMAGE, "SQLSTATE XX002 IndexCorrupted", id="internal error"),
    ],
)
def test_row_is_refused_alone_although_its_error_is_not_about_rows(
    server: PostgresServer, sender: PostgresSender, to: PostgresDestination, statements: tuple[str, ...], words: str
):
    with server.admin() as connection:
        for statement in statements:
            connection.execute(statement)
    answer = insert(sender, to, *(row(n, n=0 if n == 5 else 1) for n in range(9)))
    refused = [part for part in answer.parts if part.verdict != OK]
    assert refused == [ResponsePart(5, 6, ROW_REFUSED, words)]
    assert server.rows("SELECT position FROM events ORDER BY 1") == [(n,) for n in (0, 1, 2, 3, 4, 6, 7, 8)]


@pytest.mark.parametrize(
    ("statements", "verdict"),
    [pytest.param(RIGHT, DATABASE_REFUSED, id="42501 of a trigger"), pytest.param(DAMAGE, DATABASE_ERROR, id="XX")],
)
def test_rows_are_retried_if_none_is_accepted_and_their_error_is_not_about_rows(
    server: PostgresServer,
    sender: PostgresSender,
    to: PostgresDestination,
    statements: tuple[str, ...],
    verdict: DeliveryVerdict,
):
    with server.admin() as connection:
        for statement in statements:
            connection.execute(statement)
    answer = insert(sender, to, *(row(n, n=0) for n in range(3)))
    assert (answer.verdict, answer.parts) == (verdict, ())


@pytest.mark.parametrize(
    "using",
    [pytest.param("true", id="the new row"), pytest.param("note IS NULL", id="the row that it would replace")],
)
def test_row_that_a_policy_refuses_is_dead_although_it_is_alone(
    server: PostgresServer, sender: PostgresSender, to: PostgresDestination, using: str
):
    with server.admin() as connection:
        connection.execute("INSERT INTO events VALUES (1, 0, 1, 'kept')")
        connection.execute("ALTER TABLE events ENABLE ROW LEVEL SECURITY")
        check = "n > 0" if using == "true" else "true"
        connection.execute(f"CREATE POLICY limited ON events FOR ALL TO writer USING ({using}) WITH CHECK ({check})")
    answer = insert(sender, changed(to, on_conflict="update"), row(1, n=0))
    assert (answer.verdict, answer.message) == (ROW_REFUSED, "SQLSTATE 42501 InsufficientPrivilege")
    assert server.rows("SELECT n, note FROM events") == [(1, "kept")]


def test_right_that_is_revoked_within_a_batch_dead_letters_nothing(
    server: PostgresServer, sender: PostgresSender, to: PostgresDestination
):
    """The first half is stored; the refusals of the second half are about the right."""
    with server.admin() as connection:
        connection.execute(
            "CREATE OR REPLACE FUNCTION revoke() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN"
            " IF NEW.n = 0 THEN RAISE 'refused'; END IF;"
            " IF NEW.n = 2 THEN REVOKE INSERT ON events FROM writer; END IF; RETURN NEW; END $$"
        )
        connection.execute("CREATE TRIGGER revoke BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION revoke()")
    answer = insert(sender, to, row(0, n=1), row(1, n=2), row(2, n=1), row(3, n=0))
    assert [(part.start, part.end, part.verdict) for part in answer.parts] == [(0, 2, OK), (2, 4, DATABASE_REFUSED)]


@pytest.mark.parametrize(
    ("fields", "password", "words"),
    [
        pytest.param({}, "wrong", "password authentication failed", id="password"),
        pytest.param({"user": "nobody"}, PASSWORD, "password authentication failed", id="user"),
        pytest.param({"database": "nothing"}, PASSWORD, 'database "nothing" does not exist', id="database"),
        pytest.param({"table": "nothing"}, PASSWORD, "42P01 UndefinedTable", id="table"),
        pytest.param({"schema": "nowhere"}, PASSWORD, "42P01 UndefinedTable", id="schema"),
        pytest.param({"columns": {"nothing": "1"}, "key": ()}, PASSWORD, "42703 UndefinedColumn", id="column"),
        pytest.param({"key": ("n",)}, PASSWORD, "42P10 InvalidColumnReference", id="no unique index"),
    ],
)
def test_wrong_configuration_is_refused_with_its_reason(
    sender: PostgresSender, to: PostgresDestination, fields: dict[str, Any], password: str, words: str
):
    answer = insert(sender, changed(to, **fields), row(1), row(2), password=password)
    assert (answer.verdict, answer.parts) == (DATABASE_REFUSED, ())
    assert words in answer.message


@pytest.mark.parametrize("policy", [pytest.param((), id="no policy"), pytest.param(POLICY, id="row-level security")])
def test_user_without_the_right_to_insert_is_refused(
    server: PostgresServer, sender: PostgresSender, to: PostgresDestination, policy: tuple[str, ...]
):
    with server.admin() as connection:
        for statement in (*policy, "REVOKE INSERT ON events FROM writer"):
            connection.execute(statement)
    answer = insert(sender, to, row(1, n=0))
    assert (answer.verdict, "42501 InsufficientPrivilege" in answer.message) == (DATABASE_REFUSED, True)
