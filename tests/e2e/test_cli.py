"""A pipe in git and a developer's machine, by the command line alone, on a whole box."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from loadgen.scripted import Receiver
from localbox.settings import ROOT
from localbox.testing import Box
from tests.e2e.conftest import LIVE_MS, said_by
from tests.support.doc_blocks import documented_all
from tests.support.patience import until

pytestmark = pytest.mark.timeout(900)
DOCUMENT = """kind: Pipe
name: cli-orders
spec:
  sources: {{shop: {{}}}}
  normalize:
    - {{op: filter, when: body.n >= 0}}
  enrich:
    - {{table: shops, key: body.shop, into: shop}}
  destinations:
    books: {{url: "{url}"}}
tables:
  shops: {{rows: shops.csv, key: id}}
"""


class Developer:
    """Person with the command line, signed in to the box."""

    def __init__(self, box: Box, folder: Path, token: str) -> None:
        self.base, self.folder, self.token = box.env["PENSTOCK_WEB_URL"], folder, token
        own = {"PENSTOCK_CONFIG_DIR": str(folder / "settings"), "PENSTOCK_INGEST_URL": box.env["PENSTOCK_INGEST_URL"]}
        self.env = {"PATH": os.environ["PATH"], "PYTHONPATH": box.env["PYTHONPATH"]} | own
        folder.mkdir(exist_ok=True)
        self.run("login", "--url", self.base, "--token", token)

    def run(self, *words: str, code: int = 0, text: str = "", **env: str) -> str:
        command = [sys.executable, "-m", "penstock_cli", *words]
        done = subprocess.run(
            command, cwd=self.folder, env=self.env | env, input=text, capture_output=True, text=True, timeout=240,
            check=False,
        )  # fmt: skip
        assert done.returncode == code, f"{done.stdout}\n{done.stderr}"
        return done.stdout

    def call(self, method: str, path: str, body: Any = None) -> Any:
        headers = {"Authorization": f"Bearer {self.token}"}
        answer = httpx.request(method, f"{self.base}/api/v1/{path}", json=body, headers=headers, timeout=60)
        assert answer.is_success, answer.text
        return answer.json()

    def send_nothing(self, key: str) -> int:
        """Post no event with a key of a source; return the status."""
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/x-ndjson"}
        return httpx.post(f"{self.env['PENSTOCK_INGEST_URL']}/v1/events", content=b"", headers=headers).status_code

    @contextmanager
    def listening(self, *words: str) -> Iterator[subprocess.Popen[bytes]]:
        """Run `penstock listen` and end it with SIGKILL."""
        log = (self.folder / "listen.log").open("ab")
        command = [sys.executable, "-m", "penstock_cli", "listen", "--pipe", "cli-orders", *words]
        process = subprocess.Popen(command, cwd=self.folder, env=self.env, stdout=log, stderr=log)
        try:
            yield process
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait(20)
            log.close()


def numbers(receiver: Receiver, path: str) -> list[int]:
    return [json.loads(one.body)["n"] for one in receiver.got[path] if one.answered == 204]


def test_pipe_is_applied_events_are_listened_to_over_kill_9_and_the_export_is_equal(
    whole_box: Box, receiver: Receiver, tmp_path: Path
):
    tokens = said_by(whole_box, "tests/e2e/scene.py", "tokens", "cli")
    ours = Developer(whole_box, tmp_path / "ours", tokens["first"])
    (ours.folder / "shops.csv").write_text("id,city\ns-1,Delft\n")
    (ours.folder / "pipe.yaml").write_text(DOCUMENT.format(url=receiver.url("/books")))
    ours.run("apply", "pipe.yaml", "--yes")
    assert "nothing to do" in ours.run("apply", "pipe.yaml", "--yes")
    (row,) = ours.call("GET", "pipes/")["results"]
    pipe = row["id"]
    assert row["newest_revision"] == 1
    until(lambda: ours.call("GET", f"pipes/{pipe}/")["live_revision"] == 1, "the pipe is live", LIVE_MS / 1_000)
    key = ours.call("POST", f"pipes/{pipe}/keys/", {"source": "shop", "label": "cli"})["key"]

    until(lambda: ours.send_nothing(key) != 401, "ingest knows the key", 60)

    def send(*wanted: int) -> list[str]:
        lines = "".join(json.dumps({"n": number, "shop": "s-1"}) + "\n" for number in wanted)
        return ours.run("send", text=lines, PENSTOCK_KEY=key).split()

    local = ("--to", receiver.url("/local"), "--since", "10m")
    with ours.listening(*local):
        sent = send(*range(50))
        until(lambda: len(set(numbers(receiver, "/local"))) >= 20, "the listener forwards", 60)
    sent += send(*range(50, 150))  # nobody listens
    with ours.listening(*local):
        until(lambda: set(numbers(receiver, "/local")) == set(range(150)), "nothing is missed", 60)
    assert {one.headers["webhook-id"] for one in receiver.got["/local"]} == set(sent)

    (found,) = json.loads(ours.run("events", "--pipe", "cli-orders", sent[0], "--json"))
    assert found["message_id"] == sent[0]
    until(lambda: "Destination books: delivered" in ours.run("explain", sent[0]), "it is explained", 120)

    row = ours.call("GET", f"pipes/{pipe}/revisions/1/")
    row["spec"]["normalize"][0]["when"] = "body.n > 3"
    ours.call("POST", f"pipes/{pipe}/revisions/", {"spec": row["spec"], "based_on": 1})
    changed = ours.run("diff", "pipe.yaml", code=2)
    assert 'normalize step 1 (filter): when: "body.n > 3" becomes "body.n >= 0"' in changed

    ours.run("apply", "pipe.yaml", "--yes")
    ours.run("diff", "pipe.yaml")
    ours.run("export", "cli-orders", "--out", "out", "--rows")
    theirs = Developer(whole_box, tmp_path / "theirs", tokens["second"])
    exported = str(ours.folder / "out" / "cli-orders.yaml")
    theirs.run("apply", exported, "--yes")
    theirs.run("diff", exported)
    theirs.run("export", "cli-orders", "--out", "out", "--rows")
    for name in ("cli-orders.yaml", "shops.jsonl"):
        assert (theirs.folder / "out" / name).read_text() == (ours.folder / "out" / name).read_text()


class Shell:
    """Bash of a developer, with `penstock` on its PATH and answers of yes to every question."""

    def __init__(self, box: Box, folder: Path, **replaced: str) -> None:
        self._folder, self._replaced = folder, {"https://penstock.example.com": box.env["PENSTOCK_WEB_URL"]} | replaced
        path = f"{ROOT / 'platform' / 'bin'}:{os.environ['PATH']}"
        own = {"PENSTOCK_CONFIG_DIR": str(folder / "settings"), "PENSTOCK_INGEST_URL": box.env["PENSTOCK_INGEST_URL"]}
        self._env = {"PATH": path, "HOME": str(folder), "PYTHONPATH": box.env["PYTHONPATH"]} | own

    def run(self, block: str, most_s: int = 240, **env: str) -> tuple[int, str]:
        """Run a block of a guide; return the exit code, 124 after `most_s`, and what was printed."""
        for old, new in self._replaced.items():
            block = block.replace(old, new)
        words = ["timeout", str(most_s), "bash", "--noprofile", "--norc", "-eux", "-c", block]
        done = subprocess.run(
            words, cwd=self._folder, env=self._env | env, input="y\n" * 5, capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout + done.stderr


def test_commands_of_the_guide_run_as_they_are_shown(whole_box: Box, receiver: Receiver, tmp_path: Path):
    """Only addresses and the range of the replay are replaced. The login reads the token from its variable."""
    install, login, documents, sending, replay, listen = documented_all("command-line.md", "sh")
    assert install.startswith("pip install")  # test_start.py checks the list of packages
    token = said_by(whole_box, "tests/e2e/scene.py", "tokens", "guide")["first"]
    ours = Developer(whole_box, tmp_path / "ours", token)
    spec = {"sources": {"shop": {}}, "destinations": {"books": {"url": receiver.url("/guide")}}}
    pipe = ours.call("POST", "pipes/", {"name": "orders", "spec": spec})["id"]
    key = ours.call("POST", f"pipes/{pipe}/keys/", {"source": "shop", "label": "guide"})["key"]
    (ours.folder / "event.json").write_text('{"total": 12.5}')
    (ours.folder / "orders.ndjson").write_text('{"id": "o-2"}\n{"id": "o-3"}\n')
    replaced = {"http://localhost:3000/webhooks": receiver.url("/local"), "PENSTOCK_KEY=...": f"PENSTOCK_KEY={key}"}
    shell = Shell(whole_box, ours.folder, **replaced)

    def bodies(path: str) -> set[str]:
        return {json.loads(one.body)["id"] for one in receiver.got[path] if one.answered == 204}

    done = shell.run(login, PENSTOCK_TOKEN=token)
    assert done[0] == 0, done
    until(lambda: ours.call("GET", f"pipes/{pipe}/")["live_revision"] == 1, "the pipe is live", LIVE_MS / 1_000)
    until(lambda: ours.send_nothing(key) != 401, "ingest knows the key", 60)
    done = shell.run(documents)
    assert done[0] == 0, done
    assert (ours.folder / "pipes" / "orders.yaml").exists()
    done = shell.run(sending)
    assert done[0] == 0, done
    until(lambda: bodies("/guide") == {"o-1", "o-2", "o-3"}, "the events are delivered", 60)
    code, printed = shell.run(listen, 60)
    assert code == 124, printed  # it goes on until it is ended
    assert bodies("/local") == {"o-1", "o-2", "o-3"}, printed
    code, printed = shell.run(replay.replace("--until 1h", f"--until {datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"))
    assert code == 0, printed
    until(lambda: len(receiver.got["/guide"]) == 6, "the replay sends each once more", 240)
