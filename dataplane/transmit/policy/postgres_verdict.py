"""Verdict on an error of Postgres, by its SQLSTATE or, if the connection failed, by libpq's text. Pure.

Errors are about the connection or the server's state (retried), about the configuration (retried, because they would
empty the stream into dead letters), or about a row (dead). Unknown codes count as about a row, because triggers raise
their own: a destination that refuses all rows is suspended. Source: PostgreSQL's Appendix A, "Error Codes".
"""

import re
from typing import Final

from dataplane.causes import Cause
from dataplane.transmit.policy.delivery_verdict import DeliveryOutcome, DeliveryVerdict

# Feature, grantor, role, authorization, database, schema, and syntax or access rule: a missing table, a privilege.
_CONFIGURATION: Final = frozenset({"0A", "0L", "0P", "28", "3D", "3F", "42"})
# Connection, transaction state, rollback (serialization, deadlock), resources, object state, operator intervention,
# system error, snapshot too old, configuration file, foreign data wrapper, internal error.
_TEMPORARY: Final = frozenset({"08", "25", "2D", "40", "53", "55", "57", "58", "72", "F0", "HV", "XX"})
_TIMEOUT_CODE: Final = "57014"  # query canceled: by statement_timeout
# The same code and routine of the server for each row that a row-level security policy refuses. A missing right has the
# code, too, but another routine (aclcheck_error). The text would do, were it not translated (lc_messages).
_ROW_POLICY: Final = ("42501", "ExecWithCheckOptions")
_BUSY: Final = re.compile(r"too many|connection slots|starting up|shutting down|recovery|not yet accepting|terminating")
_FAILED: Final = re.compile(r'^connection failed: |connection to server at "[^"]*"(?: \([^)]*\))?, port \d+ failed: ')

ROW_REFUSED: Final = DeliveryVerdict(DeliveryOutcome.DEAD, Cause.ROW_REFUSED)
DATABASE_REFUSED: Final = DeliveryVerdict(DeliveryOutcome.RECOVERABLE, Cause.DATABASE_REFUSED)
DATABASE_ERROR: Final = DeliveryVerdict(DeliveryOutcome.RECOVERABLE, Cause.DATABASE_ERROR)
TIMEOUT: Final = DeliveryVerdict(DeliveryOutcome.RECOVERABLE, Cause.TIMEOUT)
FORBIDDEN: Final = DeliveryVerdict(DeliveryOutcome.RECOVERABLE, Cause.DESTINATION_FORBIDDEN)
NO_HOST: Final = DeliveryVerdict(DeliveryOutcome.RECOVERABLE, Cause.DNS)
RESET: Final = DeliveryVerdict(DeliveryOutcome.RECOVERABLE, Cause.RESET)
TOO_LONG: Final = DeliveryVerdict(DeliveryOutcome.RECOVERABLE, Cause.PROTOCOL)
_CONNECT: Final = DeliveryVerdict(DeliveryOutcome.RECOVERABLE, Cause.CONNECT)
_TLS: Final = DeliveryVerdict(DeliveryOutcome.RECOVERABLE, Cause.TLS)
_TLS_CERTIFICATE: Final = DeliveryVerdict(DeliveryOutcome.RECOVERABLE, Cause.TLS_CERTIFICATE)


def judge_sqlstate(sqlstate: str, routine: str = "") -> DeliveryVerdict:
    """Return the verdict for the SQLSTATE of a failed statement; "" if the connection was lost.

    `routine` is the server's function that reports the error, "" if the server does not name it.
    """
    if not sqlstate:
        return RESET
    if (sqlstate, routine) == _ROW_POLICY:
        return ROW_REFUSED
    if sqlstate == _TIMEOUT_CODE:
        return TIMEOUT
    if sqlstate[:2] in _CONFIGURATION:
        return DATABASE_REFUSED
    return DATABASE_ERROR if sqlstate[:2] in _TEMPORARY else ROW_REFUSED


def may_be_about_a_row(sqlstate: str) -> bool:
    """Return True if a row may cause the error although its code is not about rows.

    Triggers (42501), values that name objects, and damaged indexes (XX) refuse some rows only; so do row-level security
    policies of servers that do not name the routine.
    """
    return sqlstate[:2] in _CONFIGURATION or sqlstate[:2] == "XX"


def connect_failure(text: str) -> str:
    """Return the first line of libpq's text on a failed connection, without the address and control characters."""
    lines = _FAILED.sub("", text).strip().splitlines()
    return " ".join(printable(lines[0]).split()) if lines else ""


def printable(text: str) -> str:
    """Return a server's text with a space for each character that could disturb a terminal or reverse the line."""
    return "".join(char if char.isprintable() else " " for char in text)


def judge_connect_failure(reason: str) -> DeliveryVerdict:
    """Return the verdict for what `connect_failure` returns. All are retried: only the cause depends on the text."""
    if "FATAL" in reason or "authentication" in reason or "password" in reason:
        return DATABASE_ERROR if _BUSY.search(reason) else DATABASE_REFUSED
    if "certificate" in reason:
        return _TLS_CERTIFICATE
    if "SSL" in reason:
        return _TLS
    if "timeout" in reason:
        return TIMEOUT
    return RESET if "closed the connection" in reason else _CONNECT
