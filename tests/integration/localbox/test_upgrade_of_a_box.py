"""Upgrade of a whole box from the wheel of an earlier release, while a customer sends events."""

import json
import logging
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from loadgen.scripted import Receiver
from localbox.settings import ROOT
from localbox.testing import free_ports
from tests.support.patience import until
from tests.support.sender import Sender
from tests.support.sizes import UPGRADE_FROM
from tests.support.wheels import Installation, build_earlier_wheel, build_wheel, install

log = logging.getLogger(__name__)
LIVE_S: Final = 240
ROLLOUT_S: Final = 600
RATE: Final = 50.0
EACH: Final = 200
IN_FLIGHT: Final = 64  # requests to one destination
MAKE: Final = """
import json
from mgmt.services import create_api_key, create_pipe
from mgmt.pipes.services.demo import ensure_demo_tenant, ensure_first_cell
ensure_first_cell()
tenant, alice = ensure_demo_tenant()
spec = {{"sources": {{"shop": {{}}}}, "destinations": {{"crm": {{"type": "http", "url": {url!r}}}}}}}
pipe = create_pipe(tenant=tenant, name="orders", spec=spec, author=alice)
print(json.dumps({{"pipe": pipe.id, "key": create_api_key(source=pipe.sources.get())[1]}}))
"""
LIVE: Final = """
import json
from mgmt.models import Pipe
print(json.dumps({"live": Pipe.objects.get(name="orders").revisions.filter(state="live").exists()}))
"""
RELEASES: Final = """
import json
from mgmt.models import Cell, Release, Rollout
last = Rollout.objects.order_by("id").last()
print(json.dumps({
    "cells": sorted({cell.release_id for cell in Cell.objects.all()}),
    "newest": Release.objects.order_by("registered_at").last().pk,
    "rollout": last and [last.release_id, last.state, last.why],
}))
"""
COUNTS: Final = """
import json
from dataplane.ledger.bins import Bin
from localbox.demo.ledger import read_accounts
from mgmt.models import Pipe
accounts = read_accounts(Pipe.objects.get(name="orders").id).values()
print(json.dumps({bin_.value: sum(account.count(bin_) for account in accounts) for bin_ in Bin}))
"""


@pytest.fixture
def var() -> Iterator[Path]:
    """Directory that the box's Postgres may enter after a restart, too."""
    parent = ROOT / "var" / "test"
    parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="upgrade-", dir=parent))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def shell(box: Installation, code: str) -> dict[str, Any]:
    done = checked(box.run("box", "manage", "shell", "-v", "0", "-c", code))
    words: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return words


def checked(done: subprocess.CompletedProcess[str]) -> subprocess.CompletedProcess[str]:
    assert done.returncode == 0, done.stdout[-3_000:] + done.stderr[-3_000:]
    return done


@pytest.mark.long
@pytest.mark.timeout(1_800)
def test_upgrade_under_traffic_delivers_everything_that_was_acked(tmp_path: Path, var: Path):
    """Events wait for their destination in the old release's records; the new one delivers them."""
    env = {**free_ports(), "PENSTOCK_VAR": str(var), "PENSTOCK_CACHE": str(Path("~/.cache/penstock").expanduser())}
    old = Installation(
        install(build_earlier_wheel(tmp_path / "old", UPGRADE_FROM), tmp_path / "venv-old"), tmp_path / "user", env
    )
    new = Installation(install(build_wheel(tmp_path / "new"), tmp_path / "venv-new"), tmp_path / "user", env)
    receiver = Receiver()

    def delivered() -> Counter[str]:
        return Counter(one.id for one in receiver.got["/in"] if one.answered == 204)

    try:
        checked(old.run("box", "up", "--detach"))
        made = shell(old, MAKE.format(url=receiver.url("/in")))
        until(lambda: shell(old, LIVE)["live"], "the pipe is live", LIVE_S)
        before = shell(old, RELEASES)
        with Sender(int(env["PENSTOCK_INGEST_PORT"]), made["key"], RATE) as sender:
            until(lambda: len(delivered()) >= EACH, "the old release delivers", 120)
            early = set(delivered())
            receiver.answers["/in"] = 503
            waiting_from = len(sender.acked)
            until(lambda: len(sender.acked) >= waiting_from + EACH, "events wait for their destination", 60)

            stopped = time.monotonic()
            checked(old.run("box", "down"))
            acked_by_old = len(sender.acked)
            checked(new.run("box", "up", "--detach"))
            until(lambda: len(sender.acked) > acked_by_old, "the new release acknowledges", 120)
            pause_s = time.monotonic() - stopped
            receiver.answers["/in"] = 204

            until(lambda: shell(new, RELEASES)["rollout"] is not None, "the rollout starts", 120)
            until(
                lambda: shell(new, RELEASES)["rollout"][1] not in {"running", "rolling back"},
                "the rollout ends",
                ROLLOUT_S,
                seen=lambda: json.dumps(shell(new, RELEASES)),
            )
            rolled_out = len(sender.acked)
            until(lambda: len(sender.acked) >= rolled_out + EACH, "the new release acknowledges all the while", 120)
        after = shell(new, RELEASES)
        assert after["rollout"] == [after["newest"], "done", ""]
        assert after["cells"] == [after["newest"]]
        assert after["newest"] not in before["cells"]
        checked(new.run("box", "manage", "migrate", "--check"))

        every = {one.id for one in sender.acked}
        until(lambda: set(delivered()) >= every, "all of it is delivered", 240, seen=lambda: str(len(delivered())))
        until(
            lambda: shell(new, COUNTS)["delivered"] >= len(every),
            "the ledger has all of it",
            180,
            seen=lambda: json.dumps(shell(new, COUNTS)),
        )
        counts, seen = shell(new, COUNTS), delivered()
        twice = sum(count > 1 for count in seen.values())
        log.info(
            "upgrade: %s ACKed, lost %s, twice %s, without ACKs for %.0f s", len(every), counts["lost"], twice, pause_s
        )
        assert counts["lost"] == 0
        assert counts["delivered"] == len(seen)
        assert all(seen[id_] == 1 for id_ in early)
        assert twice <= IN_FLIGHT, "more was repeated than a lane can have in flight when it ends"
    finally:
        new.run("box", "down")
        receiver.close()
