"""Every client of Penstock's own Kafka is made by dataplane.kafka_clients, so that none lacks the settings."""

import ast
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import pytest
from confluent_kafka import KafkaException

from dataplane.kafka_clients import make_admin_client, make_consumer, make_producer
from localbox.settings import ROOT

CLIENTS: Final = {"Producer", "Consumer", "AdminClient"}
PLANES: Final = ("controlplane", "dataplane", "mgmt", "platform")
TESTS: Final = tuple(f"tests/{folder}" for folder in ("e2e", "faults", "integration", "support"))
FREE: Final = {
    "dataplane/kafka_clients.py",
    "dataplane/ingest/feeds.py",  # clusters of customers, with settings of their own
    "platform/localbox/demo/account.py",  # imports nothing of Penstock, and reads the setting itself
}
FREE_IN_TESTS: Final = {
    "tests/support/kafka.py",
    "tests/support/secured.py",  # signs in as the user that a test names
    "tests/support/librdkafka.py",  # a mock broker, which has no TLS
    "tests/support/raw_headers.py",
}
SERVERS: Final = {"bootstrap.servers": "127.0.0.1:1", "log_level": 0}


def clients_made_in(source: str) -> Iterator[int]:
    """Yield the lines that make a client, or pass its class on to be called."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in CLIENTS:
                yield node.lineno
            case ast.Call(args=args, keywords=keywords, func=func) if not _is(func, "isinstance", "TypeVar"):
                given = [*args, *(keyword.value for keyword in keywords)]
                yield from (one.lineno for one in given if isinstance(one, ast.Name) and one.id in CLIENTS)
            case ast.arguments(defaults=defaults, kw_defaults=kw_defaults):
                given = [one for one in (*defaults, *kw_defaults) if one is not None]
                yield from (one.lineno for one in given if isinstance(one, ast.Name) and one.id in CLIENTS)


def _is(func: ast.expr, *names: str) -> bool:
    return isinstance(func, ast.Name) and func.id in names


def test_clients_are_found():
    code = "a = Consumer({})\nb = kafka.Producer({})\nc = partial(AdminClient, {})\n\ndef d(make=Consumer): ...\n"
    code += "isinstance(a, Consumer)\nT = TypeVar('T', Consumer, Producer)\n"
    assert sorted(clients_made_in(code)) == [1, 2, 3, 5]


def makers(folders: Iterable[str]) -> set[str]:
    """Return the files in these folders that make clients."""
    files = [file for folder in folders for file in (ROOT / folder).rglob("*.py")]
    assert len(files) > 200
    return {str(file.relative_to(ROOT)) for file in files if list(clients_made_in(file.read_text()))}


def test_only_the_factory_makes_clients():
    assert makers(PLANES) == FREE, "use dataplane.kafka_clients"


def test_clients_of_tests_sign_in_to_a_secured_kafka():
    assert makers(TESTS) == FREE_IN_TESTS, "use tests.support.kafka"


def test_spark_signs_in_wherever_it_names_brokers():
    named = "kafka." + "bootstrap.servers"
    files = [file for plane in PLANES for file in (ROOT / plane).rglob("*.py")]
    assert not [file for file in files if named in file.read_text()], "use dataplane.kafka_java.spark_kafka_options"


@pytest.mark.parametrize("make", [make_producer, make_consumer, make_admin_client])
def test_each_client_gets_the_settings(make: Callable[[dict[str, Any]], Any], monkeypatch: pytest.MonkeyPatch):
    """librdkafka refuses a CA file that does not exist, so the client got the setting."""
    settings = SERVERS | ({"group.id": "g"} if make is make_consumer else {})
    given = {"security.protocol": "SSL", "ssl.ca.location": "/nowhere/ca.pem"}
    monkeypatch.setenv("PENSTOCK_KAFKA_SETTINGS", json.dumps(given))
    with pytest.raises(KafkaException, match=r"ssl\.ca\.location failed"):
        make(settings)
    monkeypatch.delenv("PENSTOCK_KAFKA_SETTINGS")
    client = make(settings)
    if make is make_consumer:
        client.close()
