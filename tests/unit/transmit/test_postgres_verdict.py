"""Errors of Postgres are about a row, about the configuration, or temporary; only the first ones dead-letter."""

import pytest

from dataplane.causes import Cause
from dataplane.transmit.policy.delivery_verdict import DeliveryOutcome, DeliveryVerdict
from dataplane.transmit.policy.postgres_verdict import (
    DATABASE_REFUSED,
    ROW_REFUSED,
    connect_failure,
    judge_connect_failure,
    judge_sqlstate,
    may_be_about_a_row,
)

AGAIN, DEAD = DeliveryOutcome.RECOVERABLE, DeliveryOutcome.DEAD
AT: str = 'connection failed: connection to server at "203.0.113.9", port 5432 failed: '


@pytest.mark.parametrize(
    ("sqlstate", "outcome", "cause"),
    [
        ("", AGAIN, Cause.RESET),
        ("08006", AGAIN, Cause.DATABASE_ERROR),
        ("25006", AGAIN, Cause.DATABASE_ERROR),  # a read-only standby
        ("40001", AGAIN, Cause.DATABASE_ERROR),
        ("40P01", AGAIN, Cause.DATABASE_ERROR),
        ("53100", AGAIN, Cause.DATABASE_ERROR),  # disk full
        ("53300", AGAIN, Cause.DATABASE_ERROR),
        ("55P03", AGAIN, Cause.DATABASE_ERROR),
        ("57P01", AGAIN, Cause.DATABASE_ERROR),
        ("58030", AGAIN, Cause.DATABASE_ERROR),
        ("XX000", AGAIN, Cause.DATABASE_ERROR),
        ("57014", AGAIN, Cause.TIMEOUT),
        ("0A000", AGAIN, Cause.DATABASE_REFUSED),
        ("28P01", AGAIN, Cause.DATABASE_REFUSED),
        ("3D000", AGAIN, Cause.DATABASE_REFUSED),
        ("3F000", AGAIN, Cause.DATABASE_REFUSED),
        ("42501", AGAIN, Cause.DATABASE_REFUSED),
        ("42P01", AGAIN, Cause.DATABASE_REFUSED),
        ("42703", AGAIN, Cause.DATABASE_REFUSED),
        ("21000", DEAD, Cause.ROW_REFUSED),
        ("22001", DEAD, Cause.ROW_REFUSED),
        ("22P02", DEAD, Cause.ROW_REFUSED),
        ("22P05", DEAD, Cause.ROW_REFUSED),
        ("23502", DEAD, Cause.ROW_REFUSED),
        ("23505", DEAD, Cause.ROW_REFUSED),
        ("44000", DEAD, Cause.ROW_REFUSED),
        ("54000", DEAD, Cause.ROW_REFUSED),  # a value is too large for an index
        ("P0001", DEAD, Cause.ROW_REFUSED),
        ("ZX001", DEAD, Cause.ROW_REFUSED),  # of a trigger
    ],
)
def test_sqlstate_decides_the_verdict(sqlstate: str, outcome: DeliveryOutcome, cause: Cause):
    verdict = judge_sqlstate(sqlstate)
    assert (verdict.outcome, verdict.cause) == (outcome, cause)


@pytest.mark.parametrize(
    ("routine", "verdict"),
    [
        pytest.param("ExecWithCheckOptions", ROW_REFUSED, id="row-level security policy"),
        pytest.param("aclcheck_error", DATABASE_REFUSED, id="missing right"),
        pytest.param("exec_stmt_raise", DATABASE_REFUSED, id="trigger"),
        pytest.param("", DATABASE_REFUSED, id="not named by the server"),
    ],
)
def test_routine_distinguishes_a_refused_row_from_a_missing_right(routine: str, verdict: DeliveryVerdict):
    assert judge_sqlstate("42501", routine) is verdict
    assert judge_sqlstate("42P01", routine) is DATABASE_REFUSED


@pytest.mark.parametrize(
    ("sqlstate", "may"), [("42501", True), ("42P01", True), ("XX002", True), ("40001", False), ("57014", False)]
)
def test_some_errors_of_other_classes_may_be_about_a_row(sqlstate: str, may: bool):
    assert may_be_about_a_row(sqlstate) is may


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ('FATAL:  password authentication failed for user "writer"', Cause.DATABASE_REFUSED),
        (
            'FATAL:  no pg_hba.conf entry for host "203.0.113.9", user "w", SSL off',
            Cause.DATABASE_REFUSED,
        ),
        ('FATAL:  database "shop" does not exist', Cause.DATABASE_REFUSED),
        ("fe_sendauth: no password supplied", Cause.DATABASE_REFUSED),
        ("FATAL:  sorry, too many clients already", Cause.DATABASE_ERROR),
        ("FATAL:  remaining connection slots are reserved for roles with SUPERUSER", Cause.DATABASE_ERROR),
        ("FATAL:  the database system is starting up", Cause.DATABASE_ERROR),
        ("FATAL:  the database system is not yet accepting connections", Cause.DATABASE_ERROR),
        ("SSL error: certificate verify failed", Cause.TLS_CERTIFICATE),
        ('server certificate for "a" does not match host name "b"', Cause.TLS_CERTIFICATE),
        ("server does not support SSL, but SSL was required", Cause.TLS),
        ("Connection refused\n\tIs the server running on that host?", Cause.CONNECT),
        ("server closed the connection unexpectedly\n\tThis probably means", Cause.RESET),
        ("timeout expired", Cause.TIMEOUT),
        ("", Cause.CONNECT),
    ],
)
def test_text_of_a_failed_connection_decides_its_cause_and_every_one_is_retried(text: str, cause: Cause):
    reason = connect_failure(AT + text)
    assert reason == " ".join(text.split("\n", maxsplit=1)[0].split())
    verdict = judge_connect_failure(reason)
    assert (verdict.outcome, verdict.cause) == (AGAIN, cause)


def test_text_of_a_server_cannot_disturb_a_terminal_or_reverse_a_line():
    assert connect_failure(AT + "FATAL:  \x1b[2Jno\u202e\x07 database") == "FATAL: [2Jno database"


def test_name_of_the_host_does_not_decide_the_cause():
    text = 'connection failed: connection to server at "ssl-certificate-timeout", port 5432 failed: Connection refused'
    assert judge_connect_failure(connect_failure(text)).cause == Cause.CONNECT
