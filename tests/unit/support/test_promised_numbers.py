"""Numbers that pages of docs/proof promise. Their tests use the constants, so that a changed one would go unnoticed."""

from datetime import timedelta

import pytest

from controlplane import leases
from dataplane.ingest import ledger_reporter
from dataplane.process import dead_letter_rate, dependencies
from dataplane.runtime.kafka import SESSION_TIMEOUT_MS
from dataplane.runtime.producers import replaceable
from dataplane.runtime.settings import settings_from
from dataplane.spec.loops import MAX_HOPS
from dataplane.transmit.policy import limits
from mgmt.cells.queries import overdue_tasks


@pytest.mark.parametrize(
    ("found", "promised"),
    [
        pytest.param(dependencies.WAIT_S, 10, id="seconds that messages wait for a missing dependency"),
        pytest.param(MAX_HOPS, 8, id="deliveries by Penstock of an event"),
        pytest.param(limits.RETRIES_A_SEND, 0.1, id="local retries of a send"),
        pytest.param(ledger_reporter.MOST_UNREPORTED, 1_000_000, id="ACKed events without a report"),
        pytest.param((replaceable.MOST, replaceable.WITHIN_S), (5, 60), id="replaced producers of a replica"),
        pytest.param(dead_letter_rate.SPAN_S, 60, id="seconds over which failed steps are counted"),
        pytest.param(leases.LASTS, timedelta(minutes=1), id="time of a lease"),
        pytest.param(overdue_tasks.PATIENCE, timedelta(seconds=15), id="time without a beat before the incident"),
        pytest.param(SESSION_TIMEOUT_MS, 6_000, id="session of a lane"),
    ],
)
def test_promised_number_is_the_one_that_the_code_uses(found: object, promised: object):
    assert found == promised


def test_pipe_is_held_if_half_of_a_hundred_messages_fail():
    settings = settings_from({"PENSTOCK_VAR": "/nowhere"})
    assert (settings.dead_percent, settings.dead_least) == (50, 100)
