"""Backup, loss and restore of a whole box, with messages that wait for their destination."""

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from loadgen.scripted import Receiver
from localbox.testing import Box, box_of
from tests.support.box_shell import shell_json
from tests.support.patience import until
from tests.support.sender import Sender

LIVE_S: Final = 240
EACH: Final = 150
MAKE: Final = """
import json
from mgmt.services import create_api_key, create_pipe
from mgmt.deliveries.services.destinations import set_credential
from mgmt.models import Destination
from mgmt.pipes.services.demo import ensure_demo_tenant, ensure_first_cell
ensure_first_cell()
tenant, alice = ensure_demo_tenant()
spec = {{"sources": {{"shop": {{}}}}, "destinations": {{"crm": {{"type": "http", "url": {url!r},
    "auth": {{"type": "bearer"}}}}}}}}
pipe = create_pipe(tenant=tenant, name="orders", spec=spec, author=alice)
set_credential(destination=Destination.objects.get(pipe=pipe), credential={{"value": "secret"}}, by=alice)
print(json.dumps({{"pipe": pipe.id, "key": create_api_key(source=pipe.sources.get())[1]}}))
"""
LIVE: Final = """
import json
from mgmt.models import Pipe
print(json.dumps({"live": Pipe.objects.get(name="orders").revisions.filter(state="live").exists()}))
"""
COUNTS: Final = """
import json
from dataplane.ledger.bins import Bin
from localbox.demo.ledger import read_accounts
from mgmt.models import Pipe
accounts = read_accounts(Pipe.objects.get(name="orders").id).values()
print(json.dumps({bin_.value: sum(account.count(bin_) for account in accounts) for bin_ in Bin}))
"""


def send(box: Box, key: str, count: int) -> set[str]:
    """Send at least so many events and return the ids of the ACKed ones."""
    with Sender(int(box.env["PENSTOCK_INGEST_PORT"]), key, 100.0) as sender:
        until(lambda: len(sender.acked) >= count, "the events are ACKed", 60)
    return {acked.id for acked in sender.acked}


@pytest.mark.long
@pytest.mark.timeout(900)
def test_restored_box_delivers_what_was_acked_before_the_backup_and_its_ledger_agrees(tmp_path: Path):
    receiver = Receiver()
    archive = tmp_path / "box.tar.gz"

    def delivered() -> Counter[str]:
        return Counter(one.id for one in receiver.got["/in"] if one.answered == 204)

    with box_of() as box:
        made = shell_json(box, MAKE.format(url=receiver.url("/in")))
        until(lambda: shell_json(box, LIVE)["live"], "the pipe is live", LIVE_S)
        before = send(box, made["key"], EACH)
        until(lambda: set(delivered()) >= before, "the first events are delivered", 60)
        until(lambda: shell_json(box, COUNTS)["delivered"] >= len(before), "the ledger has them", 60)
        receiver.answers["/in"] = 503
        waiting = send(box, made["key"], EACH)
        running = box.command("backup", str(archive))
        assert running.returncode == 1
        assert "stop it first" in running.stderr
        box.stop()
        done = box.command("backup", str(archive))
        assert done.returncode == 0, done.stdout + done.stderr
        refused = box.command("restore", str(archive))
        assert refused.returncode == 1
        assert "must be empty for a restore" in refused.stderr
        for path in box.var.iterdir():  # the disk is lost
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        done = box.command("restore", str(archive))
        assert done.returncode == 0, done.stdout + done.stderr
        receiver.answers["/in"] = 204
        box.start()
        after = send(box, made["key"], EACH)  # with the key of before

        every = before | waiting | after
        until(lambda: set(delivered()) >= every, "all of it is delivered", 240, seen=lambda: str(len(delivered())))
        until(
            lambda: shell_json(box, COUNTS)["delivered"] >= len(every),
            "the ledger has all of it",
            120,
            seen=lambda: json.dumps(shell_json(box, COUNTS)),
        )
        counts = shell_json(box, COUNTS)
        assert counts["delivered"] == len(every)
        assert counts["lost"] == 0
        assert {one.headers["authorization"] for one in receiver.got["/in"]} == {"Bearer secret"}
        assert all(delivered()[id_] == 1 for id_ in before)  # what the ledger had counted is not sent again
    receiver.close()
