"""Kafka clients of the control plane are kept, replaced when they fail, and made anew in a forked child."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import pytest

from controlplane import kafka
from controlplane.kafka import KafkaClients, NotStoredError
from localbox.settings import ROOT

NOBODY: Final = "127.0.0.1:1"
LONG_LIVED: Final = ("controlplane", "dataplane", "mgmt", "platform")
FORBIDDEN: Final = {
    "list_offsets",
    "list_consumer_group_offsets",
    "alter_consumer_group_offsets",
    "describe_consumer_groups",
    "delete_consumer_groups",
    "delete_consumer_group_offsets",
}

FORKS: Final = """
import os, sys
from controlplane.kafka import kafka_clients
clients = kafka_clients("127.0.0.1:1")
parents = clients.admin(), clients.group_reader("g")
child = os.fork()
if child == 0:
    sys.exit(clients.admin() is parents[0] or clients.group_reader("g") is parents[1])
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) or clients.admin() is not parents[0])
"""


class Silent:
    """A producer whose broker is away: nothing is reported, everything is still queued when the flush ends."""

    def __init__(self) -> None:
        self.queued = 0

    def __len__(self) -> int:
        return self.queued

    def produce(self, *_record: Any, **_more: Any) -> None:
        self.queued += 1

    def poll(self, _wait_s: float) -> None:
        """Nothing is reported."""

    def flush(self, _wait_s: float) -> int:
        return self.queued

    def purge(self) -> None:
        self.queued = 0


class Reporting(Silent):
    """A producer whose records are stored."""

    def flush(self, _wait_s: float) -> int:
        self.queued = 0
        return 0


@pytest.fixture
def clients() -> Iterator[KafkaClients]:
    made = KafkaClients(NOBODY)
    yield made
    made.close()


def made_of(kind: type[Silent], monkeypatch: pytest.MonkeyPatch) -> list[Silent]:
    """Return the list to which every producer is added that is made from now on, of this kind."""
    made: list[Silent] = []

    def make(*_settings: Any, **_more: Any) -> Silent:
        made.append(kind())
        return made[-1]

    monkeypatch.setattr(kafka, "producer", make)
    return made


def forbidden_calls(source: str) -> set[str]:
    return {node.attr for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Attribute)} & FORBIDDEN


def test_no_long_lived_process_asks_for_offsets_with_an_admin_client():
    """Such a request may free memory that is still used, which ends the process: decision 0661."""
    files = [file for room in LONG_LIVED for file in (ROOT / room).rglob("*.py")]
    assert len(files) > 300
    found = {str(file.relative_to(ROOT)): calls for file in files if (calls := forbidden_calls(file.read_text()))}
    assert not found, "read offsets with controlplane.kafka.KafkaClients"


def test_a_forbidden_call_is_found():
    assert forbidden_calls("self._admin.list_consumer_group_offsets([asked])") == {"list_consumer_group_offsets"}


def test_an_idle_client_is_kept(clients: KafkaClients):
    with ThreadPoolExecutor(8) as pool:
        admins = set(pool.map(lambda _: id(clients.admin()), range(64)))
        readers = set(pool.map(lambda _: id(clients.group_reader("g")), range(64)))
    assert (len(admins), len(readers)) == (1, 1)


def test_an_idle_producer_is_kept(clients: KafkaClients, monkeypatch: pytest.MonkeyPatch):
    made = made_of(Reporting, monkeypatch)
    for _ in range(100):
        clients.store("control", "topic", [(b"key", b"value")], timeout_s=1)
    assert len(made) == 1


def test_what_is_still_queued_when_the_flush_ends_is_not_stored(clients: KafkaClients, monkeypatch: pytest.MonkeyPatch):
    made = made_of(Silent, monkeypatch)
    for _ in range(2):
        with pytest.raises(NotStoredError, match="1 of 1 records not stored"):
            clients.store("control", "topic", [(b"key", b"value")], timeout_s=1)
    assert [one.queued for one in made] == [0, 0], "each was replaced, and what it still held would come too late"


def test_a_forked_child_makes_its_own_clients_and_ends():
    command = [sys.executable, "-c", FORKS]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_closed_clients_are_made_again(clients: KafkaClients):
    before = clients.admin()
    clients.close()
    assert clients.admin() is not before
