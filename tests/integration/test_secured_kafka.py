"""A box whose Kafka has TLS, SCRAM and ACLs: each program has the permissions that it needs, a tenant only its own."""

import http.client
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from deltalake import DeltaTable

from controlplane.kafka_access.acls import customer_groups, role_user
from dataplane.names import CONTROL_TOPIC, LOOKUP_TOPIC, OPERATIONAL_TOPIC, cell_topic, output_topic
from localbox.services.kafka_tls import ADMIN
from localbox.spark import spark_env
from localbox.state import last_json_line
from localbox.testing import ROOT, Box, box_of
from tests.support.box_shell import delivered_count, query_rows
from tests.support.doc_blocks import documented
from tests.support.patience import until
from tests.support.secured import SignedIn, settings_in

pytestmark = pytest.mark.long
EVENTS: Final = 20
OTHER: Final = output_topic("pipe_of_another_tenant", "feed")
DENIED: Final = re.compile(
    r"\w+_AUTHORIZATION_FAILED|\w*AuthorizationException|Not authorized to access|authorization failed", re.IGNORECASE
)


@pytest.fixture(scope="module")
def box() -> Iterator[Box]:
    env = {"PENSTOCK_KAFKA_TLS": "true", "PIPE": "full", "PENSTOCK_LAKE_EVERY_S": "2"}
    with box_of(extra=("receiver", "demo-pipe"), env=env) as box:
        yield box


@pytest.fixture(scope="module")
def pipe(box: Box) -> dict[str, Any]:
    made = last_json_line(box.settings.logs / "demo-pipe.log")
    live = "select 1 from mgmt_piperevision where pipe_id = %s and state = 'live'"
    until(lambda: query_rows(box, live, made["pipe"]), "the pipe is live", 240)
    return made


@pytest.fixture(scope="module")
def sent(box: Box, pipe: dict[str, Any]) -> int:
    """Post events that every destination gets; return their number."""
    event = {"event": "push", "payload": {"action": "created", "repository": {"full_name": "a/b"}}}
    for number in range(EVENTS):
        headers = {"authorization": f"Bearer {pipe['key']}", "content-type": "application/json"}
        body = json.dumps(event | {"n": number}).encode()
        connection = http.client.HTTPConnection("127.0.0.1", box.settings.ports["PENSTOCK_INGEST_PORT"], timeout=20)
        connection.request("POST", "/v1/events", body, headers)
        assert connection.getresponse().status == 202
        connection.close()
    return EVENTS


@pytest.fixture(scope="module")
def feed(pipe: dict[str, Any]) -> str:
    return output_topic(pipe["pipe"], "feed")


def user(box: Box, name: str) -> SignedIn:
    text = (box.var / "kafka" / "access" / f"{name}.json").read_text()
    return SignedIn(box.env["PENSTOCK_KAFKA"], settings_in(text))


def access_command(box: Box, *words: str) -> str:
    """Run the command as the administrator of the box's Kafka; return its last line."""
    admin = {"PENSTOCK_KAFKA_SETTINGS": str(box.var / "kafka" / "access" / f"{ADMIN}.json")}
    env = box.env | spark_env(box.settings) | admin
    return last_line([sys.executable, "manage.py", "kafka_access", *words], env)


def last_line(command: list[str], env: dict[str, str]) -> str:
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def granted(box: Box, pipe: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(access_command(box, "customer", "--tenant", pipe["tenant"]))
    user(box, ADMIN).make_topic(OTHER)
    user(box, ADMIN).write(OTHER)
    return made


@pytest.fixture
def customer(box: Box, granted: dict[str, Any]) -> SignedIn:
    security = user(box, ADMIN).security
    own = {"sasl.username": granted["username"], "sasl.password": granted["password"]}
    return SignedIn(box.env["PENSTOCK_KAFKA"], security | own)


def test_events_pass_ingest_and_lanes_and_the_observer_counts_them(box: Box, sent: int):
    until(lambda: delivered_count(box, "demo") >= 3 * sent, "three deliveries of each event", 180)


def test_spark_queries_read_and_write(box: Box, sent: int):
    """The lake query reads; the window query reads and writes its results, which then reach the lake, too."""

    def bodies() -> list[str]:
        logs = [path.parent for path in (box.var / "lake").rglob("_delta_log/*.json")]  # of the first commit
        return DeltaTable(logs[0].parent).to_pyarrow_table(columns=["body"])["body"].to_pylist() if logs else []

    until(lambda: sum(body.startswith('{"event"') for body in bodies()) >= sent, "a row of each event", 180)
    until(lambda: any(body.startswith('{"window"') for body in bodies()), "the row of a window", 180)


def test_no_program_lacks_a_permission(box: Box, sent: int):
    until(lambda: delivered_count(box, "demo") >= 3 * sent, "three deliveries of each event", 180)
    time.sleep(5)  # tasks that run every few seconds
    logs = {path.name: DENIED.findall(path.read_text(errors="replace")) for path in box.settings.logs.glob("*.log")}
    assert {"worker.log", "observer.log", "ingest-1.log", "cell-c1.log"} <= set(logs)
    assert not {name: found for name, found in logs.items() if found}


def test_tenant_reads_its_own_topic_with_its_own_groups(
    box: Box, pipe: dict[str, Any], customer: SignedIn, sent: int, feed: str
):
    assert customer.topics() == {feed}
    assert not customer.follow(feed, customer_groups(pipe["tenant"]) + "app")
    assert customer.follow(feed, "app") == "GROUP_AUTHORIZATION_FAILED"
    assert customer.follow(feed, "penstock.c1.transmit") == "GROUP_AUTHORIZATION_FAILED"


def test_consumer_of_the_guide_reads_the_tenants_topic(
    box: Box, granted: dict[str, Any], customer: SignedIn, sent: int, feed: str
):
    replaced = {
        "kafka.example.com:9093": box.env["PENSTOCK_KAFKA"],
        "customer-ten_...": granted["username"],
        '"..."': json.dumps(granted["password"]),
        "ca.pem": customer.security["ssl.ca.location"],
        "ten_....": granted["group_prefix"],
        "penstock.out.pipe-....feed": feed,
    }
    program = documented("managed-kafka.md", "python")
    for old, new in replaced.items():
        assert old in program, old
        program = program.replace(old, new)
    names: dict[str, Any] = {}
    exec(program, names)  # noqa: S102 a page of this repository
    try:
        until(lambda: (found := names["consumer"].poll(1)) is not None and found.error() is None, "a record", 60)
    finally:
        names["consumer"].close()


@pytest.mark.parametrize("topic", [OTHER, CONTROL_TOPIC, LOOKUP_TOPIC, cell_topic("c1", "ingest", 1)])
def test_tenant_reads_no_other_topic(box: Box, pipe: dict[str, Any], customer: SignedIn, topic: str):
    assert topic in user(box, ADMIN).topics()
    assert customer.read(topic, customer_groups(pipe["tenant"]) + "app") == "TOPIC_AUTHORIZATION_FAILED"


def test_tenant_writes_nothing(customer: SignedIn, feed: str):
    for topic in (feed, OTHER, CONTROL_TOPIC):
        assert customer.write(topic) == "TOPIC_AUTHORIZATION_FAILED"


def test_consumers_of_a_tenant_are_slowed_down_above_their_quota(
    box: Box, pipe: dict[str, Any], customer: SignedIn, feed: str
):
    throttled: list[float] = []
    cells = user(box, role_user("cells"))
    assert not cells.write(feed, (os.urandom(1_000) for _ in range(200)))
    arguments = ("customer", "--tenant", pipe["tenant"], "--keep-password", "--bytes-per-s")
    access_command(box, *arguments, "1000")
    try:
        group = customer_groups(pipe["tenant"]) + "quick"
        settings = {
            "throttle_cb": lambda event: throttled.append(event.throttle_time),
            "max.partition.fetch.bytes": 50_000,
        }
        with customer.consumer(group, **settings) as consumer:
            consumer.subscribe([feed])

            def is_throttled() -> bool:
                consumer.poll(0.2)
                return any(throttled)

            until(is_throttled, "Kafka throttles the consumer", 60)
    finally:
        access_command(box, *arguments, str(100 * 1024 * 1024))


@pytest.mark.parametrize(
    ("role", "does", "topic", "allowed"),
    [
        ("ingest", "write", cell_topic("c1", "ingest", 1), True),
        ("ingest", "read", cell_topic("c1", "ingest", 1), False),
        ("ingest", "write", CONTROL_TOPIC, False),
        ("ingest", "write", OTHER, False),
        ("ingest", "write", OPERATIONAL_TOPIC, False),
        ("ingest", "read", OPERATIONAL_TOPIC, True),
        ("web", "read", OTHER, True),
        ("web", "write", cell_topic("c1", "ingest", 1), False),
        ("tables", "read", LOOKUP_TOPIC, True),
        ("tables", "read", OTHER, False),
        ("tables", "write", CONTROL_TOPIC, False),
    ],
)
def test_role_may_do_only_its_work(
    box: Box, granted: dict[str, Any], sent: int, role: Any, does: str, topic: str, allowed: bool
):
    if does == "write" and allowed:
        topic = output_topic("nowhere", "x") if role != "ingest" else "penstock.c9.ingest.g1"
        user(box, ADMIN).make_topic(topic)  # a record of a test on a topic of the cell would stop its lanes
    if does == "read" and topic == OPERATIONAL_TOPIC:
        assert not user(box, ADMIN).write(topic), "no operational event has been published"
    groups = {"web": "penstock.show", "tables": "penstock-lookup-keeper", "ingest": "penstock-control-reader"}
    client = user(box, role_user(role))
    error = client.write(topic) if does == "write" else client.read(topic, groups[role])
    assert error == ("" if allowed else "TOPIC_AUTHORIZATION_FAILED")


def test_wrong_password_and_unknown_authority_are_refused_with_the_reason(box: Box, tmp_path: Path):
    servers, security = box.env["PENSTOCK_KAFKA"], user(box, role_user("web")).security
    assert not SignedIn(servers, security).refused()
    wrong = SignedIn(servers, {**security, "sasl.password": "wrong"}).refused()
    assert "Authentication failed" in wrong
    without = {name: value for name, value in security.items() if name != "ssl.ca.location"}
    assert "certificate verify failed" in SignedIn(servers, without).refused()


def test_client_does_not_connect_under_a_name_that_the_certificate_lacks(box: Box):
    """`127.1` is another name of 127.0.0.1; a port that is closed would give another reason."""
    port = box.settings.ports["PENSTOCK_KAFKA_PORT"]
    reason = SignedIn(f"127.1:{port}", user(box, role_user("web")).security).refused()
    assert "certificate verify failed" in reason


def test_revoked_tenant_cannot_sign_in(box: Box, granted: dict[str, Any]):
    words = ["create_tenant", "--name", "Second", "--owner-email", "second@example.com"]
    name = json.loads(last_line([sys.executable, "manage.py", *words], box.env))["tenant"]
    made = json.loads(access_command(box, "customer", "--tenant", name))
    own = {"sasl.username": made["username"], "sasl.password": made["password"]}
    signed_in = SignedIn(box.env["PENSTOCK_KAFKA"], user(box, ADMIN).security | own)
    assert not signed_in.refused()
    assert not signed_in.topics()
    assert json.loads(access_command(box, "customer", "--tenant", name, "--revoke"))["revoked"]
    assert "Authentication failed" in signed_in.refused()
