"""Protocol of table queries: which hosts are asked for a key, and the time in a row's version."""

from dataplane.ledger.meta import MessageMeta
from dataplane.names import WIRE_VERSION
from dataplane.tables.query_protocol import changed_at, hosts_for
from dataplane.transmit.records.table_row import row_version

HOSTS = ["http://a", "http://b", "http://c"]


def test_every_host_is_asked_once_and_the_first_depends_on_the_key():
    orders = [hosts_for("tab_1", f"key-{n}", HOSTS) for n in range(100)]
    assert all(sorted(order) == HOSTS for order in orders)
    assert {order[0] for order in orders} == set(HOSTS)
    assert hosts_for("tab_1", "key-1", HOSTS) == orders[1]


def test_no_host_is_asked_if_there_is_none():
    assert hosts_for("tab_1", "key", []) == []


def test_time_of_change_is_the_ingest_time_of_the_event_that_wrote_the_row():
    meta = MessageMeta(WIRE_VERSION, "m", "p", 1, "shop", 1, 1_795_780_800_250_000, 1, position=123_456_789)
    assert changed_at(row_version(meta)) == "2026-11-27T12:00:00.250000Z"


def test_version_of_a_manual_row_contains_no_time():
    assert changed_at(1) is None
    assert changed_at(10**12) is None, "more than the changes of any table"
