"""A cell of one tenant, in a whole box: it sleeps without messages, and the next message wakes it."""

import http.client
import json
import logging
from collections import Counter
from typing import Final

import pytest

from controlplane.compute.processes import members
from loadgen.scripted import Receiver
from localbox.testing import Box, box_of
from tests.support.box_shell import delivered_count, shell_json
from tests.support.patience import until

SLEEPS_AFTER_S: Final = 60
LIVE_S: Final = 240
log = logging.getLogger(__name__)
MAKE: Final = """
import json
from datetime import UTC, datetime
from mgmt.services import create_api_key, create_pipe, keep_cell_for
from mgmt.pipes.services.demo import ensure_demo_tenant, ensure_first_cell
cell = ensure_first_cell()
tenant, alice = ensure_demo_tenant()
keep_cell_for(cell=cell, tenant=tenant, sleeps_after_s={after}, by=alice, now=datetime.now(UTC))
spec = {{"sources": {{"shop": {{}}}}, "destinations": {{"main": {{"type": "http", "url": {url!r}}}}}}}
pipe = create_pipe(tenant=tenant, name="rare", spec=spec, author=alice)
print(json.dumps({{"key": create_api_key(source=pipe.sources.get())[1]}}))
"""
SEEN: Final = """
import json
from controlplane.compute.files import ComputeFiles
from controlplane.settings import control_settings
from mgmt.models import Cell, CellVerdict, PipeRevision, ScaleGroup
from mgmt.cells.queries.control import cell_lines
from django.utils import timezone
cell = Cell.objects.get()
running = ComputeFiles(control_settings().var).running(cell.id)
print(json.dumps({"live": PipeRevision.objects.filter(state="live").exists(), "asleep": cell.is_asleep,
    "epoch": cell.epoch, "runs": running is not None, "incarnation": running.incarnation if running else "",
    "verdict": str(CellVerdict.objects.values_list("state", flat=True).first()),
    "heard": sum(cell_lines(timezone.now())[0].heard.values()),
    "why": list(ScaleGroup.objects.filter(cell=cell).values_list("why", flat=True))}))
"""


def post(port: int, key: str, event: dict[str, int]) -> str:
    """Post an event and return the id of its ACK."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=15)
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    connection.request("POST", "/v1/events", json.dumps(event), headers)
    answer = connection.getresponse()
    assert answer.status == 202
    id_: str = json.loads(answer.read())["id"]
    connection.close()
    return id_


def seen(box: Box) -> str:
    return json.dumps(shell_json(box, SEEN))


@pytest.mark.long
@pytest.mark.timeout(900)
def test_cell_sleeps_without_messages_and_wakes_for_the_next_message():
    receiver = Receiver()
    with box_of() as box:
        port = int(box.env["PENSTOCK_INGEST_PORT"])
        key = shell_json(box, MAKE.format(url=receiver.url("/in"), after=SLEEPS_AFTER_S))["key"]
        until(lambda: shell_json(box, SEEN)["live"], "the pipe is live", LIVE_S)
        acked = {post(port, key, {"n": n}) for n in range(5)}
        until(lambda: {one.id for one in receiver.got["/in"]} >= acked, "the first are delivered", 60)
        application = shell_json(box, SEEN)["incarnation"]
        assert members(application), "its processes are found"

        def sleeps() -> bool:
            now = shell_json(box, SEEN)
            return now["asleep"] and not now["runs"] and not now["heard"]

        until(sleeps, "nothing of it runs any more", SLEEPS_AFTER_S + 120, seen=lambda: seen(box))
        assert members(application) == []
        before = shell_json(box, SEEN)
        assert before["verdict"] == "stable", "a sleeping cell is stable"
        acked |= {post(port, key, {"n": n}) for n in range(5, 8)}
        took = until(
            lambda: {one.id for one in receiver.got["/in"]} >= acked, "it is awake", 120, seen=lambda: seen(box)
        )
        after = shell_json(box, SEEN)
        assert (after["asleep"], after["epoch"]) == (False, before["epoch"] + 1)
        log.info("the first message waited for %.1f s", took)
        until(lambda: delivered_count(box, "rare") == len(acked) == 8, "the ledger has them all", 60)
    assert Counter(one.id for one in receiver.got["/in"]) == Counter(acked), "each is delivered once"
    receiver.close()
