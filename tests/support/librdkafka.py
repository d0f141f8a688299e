"""Functions of librdkafka that its Python client lacks: the mock broker, fatal errors, the number of clients made.

Real brokers show what a broker does; the mock is killed and restarted within milliseconds, hundreds of times.
"""

import ctypes
import json
from pathlib import Path
from typing import Any, Final

import confluent_kafka
from confluent_kafka import Producer

BROKER: Final = 1
_LIBRARIES: Final = Path(confluent_kafka.__file__).parent.parent / "confluent_kafka.libs"


def librdkafka() -> ctypes.CDLL:
    """Return the library that the Python client has loaded."""
    (path,) = _LIBRARIES.glob("librdkafka-*")
    return ctypes.CDLL(str(path))


def handle_of(client: Any) -> ctypes.c_void_p:
    """Return the `rd_kafka_t *` of a client: the first field after those of every Python object."""
    return ctypes.c_void_p.from_address(id(client) + object.__basicsize__)


def fail_for_good(producer: Producer) -> None:
    """Raise a fatal error through librdkafka's test interface."""
    library = librdkafka()
    library.rd_kafka_test_fatal_error.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p]
    assert library.rd_kafka_test_fatal_error(handle_of(producer), 59, b"planted") == 0  # UNKNOWN_PRODUCER_ID


def clients_made() -> int:
    """Return how many clients this process has made, including this one: librdkafka numbers their names."""
    seen: list[str] = []
    settings = {"bootstrap.servers": "127.0.0.1:1", "statistics.interval.ms": 10, "log_level": 0}
    asking = Producer(settings | {"stats_cb": seen.append})
    while not seen:
        asking.poll(0.1)
    return int(json.loads(seen[0])["name"].rpartition("-")[2])


def client_threads() -> int:
    """Return the number of librdkafka threads in this process."""
    return sum(_name_of(task).startswith("rdk:") for task in Path("/proc/self/task").iterdir())


def _name_of(task: Path) -> str:
    """Return the thread's name, or "" if it has ended since it was listed."""
    try:
        return (task / "comm").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


class MockCluster:
    """One mock broker in this process. `address`: where other clients connect, as long as this object lives."""

    def __init__(self) -> None:
        self._owner = Producer({"bootstrap.servers": "x", "test.mock.num.brokers": 1, "log_level": 0})
        (broker,) = self._owner.list_topics(timeout=10).brokers.values()
        self.address = f"{broker.host}:{broker.port}"
        self._library = librdkafka()
        self._library.rd_kafka_handle_mock_cluster.restype = ctypes.c_void_p
        self._library.rd_kafka_handle_mock_cluster.argtypes = [ctypes.c_void_p]
        self._cluster = self._library.rd_kafka_handle_mock_cluster(handle_of(self._owner))

    def make_topic(self, name: str) -> None:
        """Create a topic with the mock's number of partitions, the first with one record."""
        self._owner.produce(name, b"x", partition=0)
        assert self._owner.flush(10) == 0

    def kill(self) -> None:
        """Close all connections and accept none."""
        self._set("down")

    def start(self) -> None:
        """Accept connections again."""
        self._set("up")

    def _set(self, state: str) -> None:
        change = getattr(self._library, f"rd_kafka_mock_broker_set_{state}")
        change.argtypes = [ctypes.c_void_p, ctypes.c_int32]
        assert change(self._cluster, BROKER) == 0
