"""Kafka clients of the control plane are kept, replaced when they fail, and recreated in a forked child."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import pytest

from controlplane import kafka
from controlplane.kafka import KafkaClients, RecordNotStoredError
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
from pathlib import Path

client_threads = None


def note_client_threads():
    global client_threads
    names = [comm.read_text() for comm in Path("/proc/self/task").glob("*/comm")]
    client_threads = [name for name in names if name.startswith("rdk:")]


os.register_at_fork(before=note_client_threads)  # hooks run in reverse order: this one is the last before the fork
from controlplane.kafka import kafka_clients
clients = kafka_clients("127.0.0.1:1")
clients.admin(), clients.group_reader("g")
child = os.fork()
clients.admin(), clients.group_reader("g")
if child == 0:
    sys.exit()
if client_threads:
    sys.exit(f"threads of clients at the fork: {client_threads}")
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


class Silent:
    """Producer whose broker is unavailable: no report comes, all records are still queued after the flush."""

    def __init__(self) -> None:
        self.queued = 0

    def __len__(self) -> int:
        return self.queued

    def produce(self, *_record: Any, **_more: Any) -> None:
        self.queued += 1

    def poll(self, _wait_s: float) -> None:
        """Report nothing."""

    def flush(self, _wait_s: float) -> int:
        return self.queued

    def purge(self) -> None:
        self.queued = 0


class Reporting(Silent):
    """Producer whose records are stored."""

    def flush(self, _wait_s: float) -> int:
        self.queued = 0
        return 0


@pytest.fixture
def clients() -> Iterator[KafkaClients]:
    made = KafkaClients(NOBODY)
    yield made
    made.close()


def made_of(kind: type[Silent], monkeypatch: pytest.MonkeyPatch) -> list[Silent]:
    """Create all producers from now on as this kind; return the list to which each one is added."""
    made: list[Silent] = []

    def make(*_settings: Any, **_more: Any) -> Silent:
        made.append(kind())
        return made[-1]

    monkeypatch.setattr(kafka, "producer", make)
    return made


def forbidden_calls(source: str) -> set[str]:
    return {node.attr for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Attribute)} & FORBIDDEN


def test_no_long_lived_process_requests_offsets_with_an_admin_client():
    """Such a request may free memory that is still used, which crashes the process: docs/kafka-clients.md."""
    files = [file for room in LONG_LIVED for file in (ROOT / room).rglob("*.py")]
    assert len(files) > 300
    found = {str(file.relative_to(ROOT)): calls for file in files if (calls := forbidden_calls(file.read_text()))}
    assert not found, "read offsets with controlplane.kafka.KafkaClients"


def test_forbidden_call_is_found():
    assert forbidden_calls("self._admin.list_consumer_group_offsets([asked])") == {"list_consumer_group_offsets"}


def test_idle_client_is_kept(clients: KafkaClients):
    with ThreadPoolExecutor(8) as pool:
        admins = set(pool.map(lambda _: id(clients.admin()), range(64)))
        readers = set(pool.map(lambda _: id(clients.group_reader("g")), range(64)))
    assert (len(admins), len(readers)) == (1, 1)


def test_idle_producer_is_kept(clients: KafkaClients, monkeypatch: pytest.MonkeyPatch):
    made = made_of(Reporting, monkeypatch)
    for _ in range(100):
        clients.store("control", "topic", [(b"key", b"value")], timeout_s=1)
    assert len(made) == 1


def test_records_still_queued_after_the_flush_count_as_not_stored(
    clients: KafkaClients, monkeypatch: pytest.MonkeyPatch
):
    made = made_of(Silent, monkeypatch)
    for _ in range(2):
        with pytest.raises(RecordNotStoredError, match="1 of 1 records not stored"):
            clients.store("control", "topic", [(b"key", b"value")], timeout_s=1)
    assert [one.queued for one in made] == [0, 0], "each was replaced, and its queued records would arrive too late"


def test_process_forks_without_client_threads_and_its_child_creates_its_own_clients():
    """A lock that such a thread holds at the fork would be held forever in the child."""
    command = [sys.executable, "-c", FORKS]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_closed_clients_are_recreated(clients: KafkaClients):
    before = clients.admin()
    clients.close()
    assert clients.admin() is not before
