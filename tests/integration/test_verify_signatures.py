"""Receivers of examples/verify_signatures: each runs as a program and answers requests that the project signed."""

import base64
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
import requests

from dataplane.transmit.http.signature import sign, signer
from localbox.ports import free_ports
from localbox.settings import ROOT
from tests.support.patience import until

EXAMPLES: Final = ROOT / "examples" / "verify_signatures"
COMMANDS: Final[Mapping[str, list[str]]] = {
    "receive.py": [sys.executable, "receive.py"],
    "receive.mjs": ["node", "receive.mjs"],
    "receive.go": ["go", "run", "receive.go"],
    "Receive.java": ["java", "Receive.java"],
    "receive.php": ["php", "-d", "log_errors=1", "-S", "127.0.0.1:PORT", "receive.php"],
}
GO: Final = {"GOPROXY": "off", "GOTOOLCHAIN": "local"}  # the standard library is enough
LIMIT_S: Final = 240

SECRET: Final = "whsec_" + base64.b64encode(bytes(range(32))).decode()
OTHER: Final = "whsec_" + base64.b64encode(b"another secret of 24 byt").decode()
ASYMMETRIC: Final = "whsk_" + base64.b64encode(bytes(32)).decode()
BODY: Final = b'{"total": 12.5}'
NON_ASCII: Final = '{"name": "Zo\u00eb \U0001f600"}'.encode()
NON_UTF8: Final = b"\x00\xff\xfe\r\n"
VALID, INVALID = 204, 401


def signed(
    secrets: list[str], body: bytes = BODY, *, id_: str = "0199e3f4-0c6f-7000.2", age_s: int = 0
) -> dict[str, str]:
    """Return the headers of a delivery, as a lane signs it. secrets: newest first, as during a rotation."""
    at_s = int(time.time()) - age_s
    signature = sign([signer(secret) for secret in secrets], id_, at_s, body)
    return {"webhook-id": id_, "webhook-timestamp": str(at_s), "webhook-signature": signature}


def without(name: str) -> dict[str, str]:
    return {key: value for key, value in signed([SECRET]).items() if key != name}


def requests_to_try() -> dict[str, tuple[dict[str, str], bytes, int]]:
    """Return headers, body and the expected status of each request, signed now."""
    valid = signed([SECRET])
    signature = valid["webhook-signature"]
    return {
        "valid": (valid, BODY, VALID),
        "non-ASCII body": (signed([SECRET], NON_ASCII), NON_ASCII, VALID),
        "body that is not UTF-8": (signed([SECRET], NON_UTF8), NON_UTF8, VALID),
        "empty body": (signed([SECRET], b""), b"", VALID),
        "large body": (signed([SECRET], b"x" * 1_000_000), b"x" * 1_000_000, VALID),
        "rotation, the receiver has the previous secret": (signed([OTHER, SECRET]), BODY, VALID),
        "rotation, the receiver has the new secret": (signed([SECRET, OTHER]), BODY, VALID),
        "with a signature of another scheme": (signed([ASYMMETRIC, SECRET]), BODY, VALID),
        "unreadable signatures first": (valid | {"webhook-signature": f"v1 v1, v1,*** {signature}"}, BODY, VALID),
        "just within the tolerance": (signed([SECRET], age_s=270), BODY, VALID),
        "another secret": (signed([OTHER]), BODY, INVALID),
        "only another scheme": (signed([ASYMMETRIC]), BODY, INVALID),
        "right digest, another scheme": (valid | {"webhook-signature": signature.replace("v1,", "v2,")}, BODY, INVALID),
        "digest without a scheme": (valid | {"webhook-signature": signature.removeprefix("v1,")}, BODY, INVALID),
        "half of a signature": (valid | {"webhook-signature": signature[:20]}, BODY, INVALID),
        "changed body": (valid, BODY.replace(b"12.5", b"92.5"), INVALID),
        "added space": (valid, BODY + b" ", INVALID),
        "another id": (valid | {"webhook-id": "0199e3f4-0c6f-7000.3"}, BODY, INVALID),
        "another time": (valid | {"webhook-timestamp": str(int(valid["webhook-timestamp"]) + 1)}, BODY, INVALID),
        "old": (signed([SECRET], age_s=330), BODY, INVALID),
        "from the future": (signed([SECRET], age_s=-330), BODY, INVALID),
        "time that is not a number": (valid | {"webhook-timestamp": "now"}, BODY, INVALID),
        "very long time": (valid | {"webhook-timestamp": "9" * 5_000}, BODY, INVALID),
        "no id": (without("webhook-id"), BODY, INVALID),
        "no time": (without("webhook-timestamp"), BODY, INVALID),
        "no signature": (without("webhook-signature"), BODY, INVALID),
        "no headers": ({}, BODY, INVALID),
    }


@contextmanager
def running(example: str, log: Path) -> Iterator[str]:
    """Run a receiver until it accepts connections; yield its URL. A missing runtime fails the test."""
    (port,) = free_ports(1)
    command = [word.replace("PORT", str(port)) for word in COMMANDS[example]]
    if shutil.which(command[0]) is None:
        pytest.fail(f"{command[0]} is missing; CONTRIBUTING.md lists what `make test` needs")
    env = os.environ | GO | {"PENSTOCK_SIGNING_SECRET": SECRET, "PORT": str(port)}
    with log.open("wb") as output:
        # A group of its own: `go run` starts the program as a child.
        program = subprocess.Popen(command, cwd=EXAMPLES, env=env, stdout=output, stderr=output, start_new_session=True)
    url = f"http://127.0.0.1:{port}/"

    def answers() -> bool:
        assert program.poll() is None, log.read_text()
        try:
            return requests.post(url, data=b"", timeout=30).status_code == INVALID
        except requests.ConnectionError:
            return False

    try:
        until(answers, "the receiver answers", LIMIT_S)
        yield url
    finally:
        os.killpg(program.pid, 9)
        program.wait()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("example", sorted(COMMANDS))
def test_receiver_accepts_exactly_the_deliveries_that_penstock_signed(example: str, tmp_path: Path):
    log = tmp_path / "log"
    with running(example, log) as url:
        tried = requests_to_try()
        found = {
            name: requests.post(url, data=body, headers=headers, timeout=30).status_code
            for name, (headers, body, _) in tried.items()
        }
    assert found == {name: status for name, (_, _, status) in tried.items()}, log.read_text()
    assert "received 0199e3f4-0c6f-7000.2" in log.read_text(), "a valid delivery is handled"


def test_every_receiver_is_tried():
    assert {path.name for path in EXAMPLES.iterdir() if path.is_file()} == COMMANDS.keys()
