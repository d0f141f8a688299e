"""Reads of pages on a secured broker name a missing right, whichever way the brokers refuse, until it is granted."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

import pytest
from pytest_django import Settings

from controlplane.kafka_access.acls import Acl, role_acls, role_user
from controlplane.kafka_access.apply import KafkaAccess
from dataplane.kafka_clients import make_admin_client
from dataplane.spec.kafka_security import VARIABLE
from localbox.services.kafka_tls import ADMIN
from mgmt.messages.queries import readers
from mgmt.messages.queries.readers import ReadRightMissingError, RecordUnavailableError, close_readers
from mgmt.messages.queries.records import messages_since, newest_messages, newest_of_key, read_record, read_records
from mgmt.tail.hub import TailHub
from mgmt.tail.viewer import TailViewer
from tests.support.broker import Broker
from tests.support.patience import until
from tests.support.secured import SignedIn

TOPIC: Final = "penstock.c1.ingest.g1"
WEB: Final = role_user("web")
READS: Final[dict[str, Callable[[], object]]] = {
    "the newest": lambda: list(newest_messages(TOPIC, [0], 5)),
    "since a time": lambda: list(messages_since(TOPIC, [0], datetime.now(UTC) - timedelta(hours=1))),
    "of a key": lambda: newest_of_key(TOPIC, 0, b"a"),
    "one": lambda: read_record(TOPIC, 0, 0, pipes=()),
    "some": lambda: read_records(TOPIC, {0: [0]}, pipes=()),
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    broker = Broker(tmp_path_factory.mktemp("broker"), {"PENSTOCK_KAFKA_TLS": "true"})
    broker.start()
    try:
        assert broker.tls is not None
        admin = SignedIn(broker.address, broker.tls.settings_of(ADMIN))
        admin.make_topic(TOPIC)
        assert admin.write(TOPIC) == ""
        yield broker
    finally:
        broker.kill()


@pytest.fixture
def access(broker: Broker, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[KafkaAccess]:
    """Let this process sign in as the role of pages, and change the ACLs of the role as the administrator."""
    assert broker.tls is not None
    settings.PENSTOCK_KAFKA = broker.address
    monkeypatch.setattr(readers, "CHECK_S", 5.0)  # a busy broker answers late
    monkeypatch.setenv(VARIABLE, str(broker.tls.settings_file(WEB)))
    security = broker.tls.settings_of(ADMIN)
    close_readers()
    yield KafkaAccess(make_admin_client({"bootstrap.servers": broker.address, "log_level": 3}, security))
    close_readers()


def newest_is_read() -> bool:
    try:
        return len(list(newest_messages(TOPIC, [0], 5))) == 1
    except RecordUnavailableError:
        return False


@pytest.mark.parametrize("acls", [[], [Acl(WEB, "topic", TOPIC, "describe")]], ids=["no right", "only to describe"])
def test_each_read_names_the_missing_right_and_succeeds_once_it_is_granted(access: KafkaAccess, acls: list[Acl]):
    access.set_acls(WEB, role_acls("web"))
    until(newest_is_read, limit_s=30)
    access.set_acls(WEB, acls)
    close_readers()
    until(lambda: not newest_is_read(), limit_s=30)
    for name, read in READS.items():
        with pytest.raises(RecordUnavailableError) as raised:
            read()
        assert isinstance(raised.value, ReadRightMissingError), name
    access.set_acls(WEB, role_acls("web"))
    until(newest_is_read, limit_s=30)


def test_live_tail_names_the_missing_right(access: KafkaAccess, broker: Broker):
    access.set_acls(WEB, [])
    hub, viewer = TailHub(broker.address), TailViewer("pipe_1")
    hub.join(TOPIC, viewer)
    try:
        until(lambda: "contact the operator" in hub.trouble, limit_s=30)
        access.set_acls(WEB, role_acls("web"))
        until(lambda: not hub.trouble, limit_s=30)
    finally:
        hub.leave(TOPIC, viewer)
