"""The files under examples/, each run as their README says: create a pipe by the API, send, receive and verify."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import requests

from localbox.ports import free_ports
from localbox.testing import ROOT, Box
from tests.e2e.conftest import said_by
from tests.e2e.editing import send
from tests.support.patience import until

pytestmark = pytest.mark.timeout(600)
EXAMPLES: Final = ROOT / "examples"
ONE_MORE: Final = {"created_at": "2026-03-14T09:30:00Z", "customer": {"id": "c-3"}, "total": 200.0}
COMMAND: Final = {".py": [sys.executable], ".sh": ["sh"]}


def run(example: str, *arguments: str, env: dict[str, str], stdin: str = "") -> list[str]:
    """Run an example with only these variables; return the lines that it prints."""
    path = EXAMPLES / example
    command = [*COMMAND[path.suffix], str(path), *arguments]
    env |= {"PATH": os.environ["PATH"]}
    done = subprocess.run(command, env=env, input=stdin, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def new_token(box: Box) -> str:
    """Create a token of alice by the API, as its page in the console does."""
    api = f"{box.env['PENSTOCK_WEB_URL']}/api/v1"
    alice = requests.Session()
    alice.auth = ("alice", said_by(box, "tests/e2e/scene.py", "people")["password"])
    tenant = alice.get(f"{api}/me/", timeout=30).json()["tenants"][0]["id"]
    body: dict[str, Any] = {"name": "examples", "scope": "publish", "expires_in_days": 1}
    answer = alice.post(f"{api}/tenants/{tenant}/tokens/", json=body, timeout=30)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["token"])


def create_pipe(box: Box, url: str, var: Path) -> dict[str, str]:
    """Create the example's pipe as alice, delivering to `url`; return the variables that the script prints."""
    body = json.loads((EXAMPLES / "pipe.json").read_text())
    body["spec"]["destinations"]["books"]["url"] = url
    body["name"] = "examples"  # other tests of this box have a pipe with the name of the file
    (var / "pipe.json").write_text(json.dumps(body))
    env = {"PENSTOCK_URL": box.env["PENSTOCK_WEB_URL"], "PENSTOCK_TOKEN": new_token(box)}
    lines = run("create_pipe.py", str(var / "pipe.json"), env=env)
    return dict(line.removeprefix("export ").split("=", 1) for line in lines)


@contextmanager
def receiving(port: int, secret: str, into: Path) -> Iterator[None]:
    """Run the receiver; its messages are written to a file."""
    env = {"PORT": str(port), "PENSTOCK_SIGNING_SECRET": secret}
    with into.open("w") as out, subprocess.Popen([sys.executable, EXAMPLES / "receive.py"], env=env, stdout=out) as one:
        try:
            yield
        finally:
            one.terminate()


def test_examples_create_a_pipe_send_events_and_verify_the_signed_messages(whole_box: Box, tmp_path: Path):
    (port,) = free_ports(1)
    url, received = f"http://127.0.0.1:{port}/orders", tmp_path / "received"
    made = create_pipe(whole_box, url, tmp_path)
    env = {"PENSTOCK_INGEST_URL": whole_box.env["PENSTOCK_INGEST_URL"], "PENSTOCK_KEY": made["PENSTOCK_KEY"]}
    with receiving(port, made["PENSTOCK_SIGNING_SECRET"], received):
        first, filtered, second = run("send.py", env=env, stdin=(EXAMPLES / "orders.jsonl").read_text())
        (answer,) = run("send.sh", env=env, stdin=json.dumps(ONE_MORE))
        until(lambda: len(received.read_text().splitlines()) >= 3, "three messages", 90, seen=received.read_text)
        assert send(url, "none", {"signed": "by nobody"}) == 401
    bodies = {id_: json.loads(body) for id_, body in (line.split(" ", 1) for line in received.read_text().splitlines())}
    assert bodies.keys() == {first, second, json.loads(answer)["id"]}
    assert filtered not in bodies
    assert bodies[first]["customer"] == {"id": "c-1"}
    assert [bodies[id_]["vat"] for id_ in (first, second, json.loads(answer)["id"])] == [21.0, 10.5, 42.0]


def test_readme_of_the_examples_lists_every_file():
    text = (EXAMPLES / "README.md").read_text()
    names = {path.name for path in EXAMPLES.iterdir()} - {"README.md", "__pycache__"}
    assert {name for name in names if f"]({name})" not in text and f"`{name}/`" not in text} == set()
