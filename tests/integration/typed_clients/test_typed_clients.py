"""Generated clients of every language: compiled with warnings, they send to a real ingest and receive from a real lane.

The programs in `drivers` are the same in each language: they send three kinds of events, and receive them with their
own HTTP server. A proxy loses the answer of the first request and refuses the second one.
"""

import base64
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from dataplane.tables.records import EventTypesRecord, RegisteredSchema
from dataplane.transmit.http.signature import sign, signer
from localbox.ports import free_ports
from localbox.settings import ROOT
from tests.support.cluster import SECRET, TENANT
from tests.support.event_types import subject
from tests.support.flaky_front import RETRY_AFTER_S, FlakyFront
from tests.support.lane_plane import LanePlane
from tests.support.typed_clients import SCHEMAS, write_schemas

DRIVERS: Final = Path(__file__).parent / "drivers"
PENSTOCK: Final = ROOT / "platform" / "bin" / "penstock"
NODE: Final = Path(__file__).parent / "node"
GO: Final = {"GOPROXY": "off", "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local"}  # the standard library is enough
LIMIT_S: Final = 240
UUID: Final = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LanePlane]:
    running = LanePlane(Path(tmp_path_factory.mktemp("clients")))
    running.wait_ready()
    yield running
    running.close()


def run(words: Sequence[str | Path], folder: Path, **env: str) -> str:
    """Run a program; return its output. A missing one fails the test with what to install."""
    if shutil.which(str(words[0])) is None:
        pytest.fail(f"{words[0]} is missing; CONTRIBUTING.md lists what `make test` needs")
    ran = subprocess.run(
        words, cwd=folder, env=os.environ | env, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    assert ran.returncode == 0, f"{' '.join(map(str, words))}:\n{ran.stdout[-6000:]}\n{ran.stderr[-6000:]}"
    return ran.stdout


def generate(language: str, package: str, folder: Path) -> Path:
    """Generate a client by the command line; return its folder."""
    out = folder / "client"
    schemas = [word for given in write_schemas(folder) for word in ("--schema", given)]
    run([PENSTOCK, "generate", "--lang", language, "--package", package, "--out", out, *schemas], folder)
    return out


class Journey:
    """A pipe with a source of three event types, and a program that sends to it and receives from it."""

    def __init__(self, plane: LanePlane, name: str) -> None:
        port = free_ports(1)[0]
        records = [
            subject(
                f"{name}-{one.subject}",
                RegisteredSchema(place, 1, one.schema.type, one.schema.fingerprint, one.schema.document),
                tenant=TENANT,
            )
            for place, one in enumerate(SCHEMAS, 1)
        ]
        subjects = {one.event_type: f"{name}-{one.subject}" for one in SCHEMAS}
        plane.cluster.publish(*records, EventTypesRecord(name, "shop", 1, "header:ce-type", subjects))
        key = plane.add_pipe(name, {"crm": {"url": f"http://127.0.0.1:{port}/"}})
        self.front = FlakyFront(plane.port)
        self.arguments = [self.front.url, key, str(port), SECRET, *asymmetric()]

    def run(self, words: Sequence[str | Path], folder: Path, **env: str) -> dict[str, Any]:
        """Run the program and return what it reports."""
        try:
            found: dict[str, Any] = json.loads(run([*words, *self.arguments], folder, **env))
            return found
        finally:
            self.front.close()

    def check(self, seen: dict[str, Any], invalid: str = "/amount") -> None:
        """Check what the program and the proxy saw, which is the same in every language.

        invalid: pointer of a price with too many digits, as seen from what is checked first
        """
        assert seen["invalid"] == invalid, "a value that the schema refuses cannot be created"
        assert seen["refused"] == [{"status": 422, "code": "schema", "pointer": "/price/currency"}], seen["refused"]
        assert len(seen["accepted"]) == len(set(seen["accepted"])) == 4
        assert seen["accepted"][:2] == seen["ids"], "the TimeUuid of an event is its id"
        assert seen["received"].keys() == set(seen["accepted"])
        assert seen["deliveries"] >= 8, f"each event is stored twice: {self.front.requests}"
        assert seen["tampered"] == seen["deliveries"], "a changed body is refused"
        assert seen["asymmetric"] == [True, False], "signatures by ed25519 are verified"
        found = {one["type"]: json.loads(one["json"]) for one in seen["received"].values()}
        assert found.keys() == {"order", "everything", "refund"}
        assert found["everything"] == everything("Right") | {"child": everything("Left")}
        assert found["refund"] == REFUND
        orders = [json.loads(seen["received"][id_]["json"]) for id_ in seen["ids"]]
        assert orders == [order(id_, amount) for id_, amount in zip(seen["ids"], ("12.50", "9999999.99"), strict=True)]
        self._check_requests()

    def _check_requests(self) -> None:
        first, refused, third, *_ = self.front.requests
        assert {one.media_type for one in self.front.requests} == {"application/cloudevents-batch+json"}
        assert first.ids == refused.ids == third.ids, "a repeat has the same ids"
        assert third.at_s - refused.at_s >= RETRY_AFTER_S, "Retry-After is honoured"


def asymmetric() -> list[str]:
    """Return a public key, the current time, and the signature of `{}` with the id `msg_1`."""
    key = Ed25519PrivateKey.generate()
    private, public = key.private_bytes_raw(), key.public_key().public_bytes_raw()
    sent_s = int(time.time())
    signature = sign([signer("whsk_" + base64.b64encode(private).decode())], "msg_1", sent_s, b"{}")
    return ["whpk_" + base64.b64encode(public).decode(), str(sent_s), signature]


def order(id_: str, amount: str) -> dict[str, Any]:
    return {
        "id": id_,
        "price": {"amount": amount, "currency": "EUR"},
        "count": 3,
        "serial": 9_007_199_254_740_993,
        "state": "PAID",
        "placed_at": "2026-11-25T08:00:00.123457Z",
        "tags": ["a", 'b"\u2028\u00fc\U0001f600'],
    }


def everything(side: str) -> dict[str, Any]:
    """`side`: of the two records of the union, which have the same fields; only the second one must be named."""
    return {
        "nothing": None,
        "flag": True,
        "small": -(2**31),
        "large": 2**63 - 1,
        "single": 1.5,
        "double": 0.1,
        "raw": "\x00\u00ff",
        "digest": "abcd",
        "uuid": UUID,
        "date": "2026-11-25",
        "timestamp_millis": "2026-11-25T08:00:00.123Z",
        "timestamp_micros": "2026-11-25T08:00:00.123457Z",
        "timestamp_nanos": "2026-11-25T08:00:00Z",
        "local_timestamp_micros": "2026-11-25T08:00:00.000005",
        "time_micros": "08:00:00.000001",
        "time_millis": "08:00:00",
        "prices": {"EUR": "12.50"},
        "either": {"x": 1} if side == "Left" else {"com.shop.Right": {"x": 1}},
        "maybe": None,
    }


REFUND: Final = {
    "refund-id": UUID,
    "amount": 12.5,
    "at": "2026-11-25T08:00:00Z",
    "kind": "part of it",
    "count": 10,
    "lines": [{"sku": "s"}, {}],
    "extra": {"a": 1},
    "free": {"x": [1.5, None]},
    '$weird name\u00e9"': True,
}


@pytest.mark.timeout(300)
def test_python_client_sends_and_receives(plane: LanePlane, tmp_path: Path):
    client = generate("python", "shop_events", tmp_path)
    shutil.copy(DRIVERS / "driver.py", client)
    run([sys.executable, "-m", "mypy", "--strict", "--config-file=", "."], client, MYPYPATH="", PYTHONPATH="")
    journey = Journey(plane, "python")
    journey.check(journey.run([sys.executable, "-W", "error", "driver.py"], client, PYTHONPATH=""))


@pytest.mark.timeout(300)
def test_typescript_client_sends_and_receives(plane: LanePlane, tmp_path: Path):
    client = generate("typescript", "shop-events", tmp_path)
    shutil.copy(DRIVERS / "samples.ts", client / "src")
    shutil.copy(DRIVERS / "driver.mjs", client)
    run(["node", typescript_compiler()], client)
    journey = Journey(plane, "typescript")
    journey.check(journey.run(["node", "driver.mjs"], client))


@pytest.mark.timeout(300)
def test_java_client_sends_and_receives(plane: LanePlane, tmp_path: Path):
    client = generate("java", "com.shop.events", tmp_path)
    shutil.copy(DRIVERS / "Driver.java", client)
    sources = [str(path) for path in sorted(client.rglob("*.java"))]
    run(["javac", "-Xlint:all", "-Werror", "-d", "out", *sources], client)
    journey = Journey(plane, "java")
    journey.check(journey.run(["java", "-cp", "out", "Driver"], client))


@pytest.mark.timeout(600)
def test_go_client_sends_and_receives(plane: LanePlane, tmp_path: Path):
    client = generate("go", "shopevents", tmp_path)
    (client / "cmd").mkdir()
    shutil.copy(DRIVERS / "main.go", client / "cmd")
    assert run(["gofmt", "-l", "."], client) == "", "generated code is formatted"
    run(["go", "build", "-o", "driver", "./cmd"], client, **GO)
    journey = Journey(plane, "go")
    journey.check(journey.run([client / "driver"], client), "/price/amount")


def typescript_compiler() -> Path:
    """Return the compiler of the lock file; `make test` installs it."""
    compiler = NODE / "node_modules" / "typescript" / "bin" / "tsc"
    if not compiler.exists():
        pytest.fail(f"TypeScript is missing: run `npm ci` in {NODE.relative_to(ROOT)}, as `make typescript` does")
    return compiler
