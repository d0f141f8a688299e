"""Scaling on all levels in a box on Spark standalone, in one run: lanes, executors, cells, and back in."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Final

import pytest

from dataplane.names import LANE_KINDS
from loadgen.scripted import Receiver
from localbox.testing import Box
from tests.support.box_lanes import ONE_OF_EACH, beating, set_policies
from tests.support.box_shell import delivered_count, query_rows, shell_json
from tests.support.patience import until
from tests.support.sender import Acked, Sender
from tests.support.spark_cluster import SparkCluster, box_on_cluster

LIVE_S: Final = 240
LANES_S: Final = 240
RELIEVED_S: Final = 300
IN_S: Final = 900  # lanes are removed ten minutes after they were last needed
RATES: Final = {"large": 300, "small": 200}
AFTERWARDS: Final = 5  # events of each pipe; those of the cell that sleeps wake it
KINDS: Final = len(LANE_KINDS)
MAKE: Final = """
import json
from mgmt.services import create_api_key, create_pipe
from mgmt.pipes.services.demo import ensure_demo_tenant, ensure_first_cell
ensure_first_cell()
tenant, alice = ensure_demo_tenant()
keys = {{}}
for name in ("large", "small"):
    spec = {{"sources": {{"shop": {{}}}}, "destinations": {{"main": {{"type": "http", "url": {url!r} + "/" + name}}}}}}
    pipe = create_pipe(tenant=tenant, name=name, spec=spec, author=alice)
    keys[name] = create_api_key(source=pipe.sources.get())[1]
print(json.dumps(keys))
"""
SEEN: Final = """
import json
from mgmt.models import Cell, Pipe, PipeRevision, PipeMigration, ScaleGroup, Seal
print(json.dumps({
    "live": PipeRevision.objects.filter(state="live").count(),
    "short": [bool(one.get("short_since_s")) for one in ScaleGroup.objects.values_list("memory", flat=True)],
    "cells": list(Cell.objects.order_by("id").values_list("id", flat=True)),
    "asleep": [cell.id for cell in Cell.objects.all() if cell.is_asleep],
    "on": dict(Pipe.objects.values_list("name", "cell")),
    "moves": list(PipeMigration.objects.values_list("pipe__name", "state", "by", "says")),
    "why": list(ScaleGroup.objects.filter(kind="process").values_list("cell", "why")),
    "sealed": Seal.objects.count(), "lost": sum(Seal.objects.values_list("lost", flat=True))}))
"""
TWO_LANES_AT_MOST: Final = {"process": {"minimum": 1, "maximum": 2, "target": 0.05}}
FIVE_MINUTES_PASS: Final = """
from mgmt.models import ScaleGroup
for row in ScaleGroup.objects.filter(cell="c1"):
    if since := row.memory.get("short_since_s"):
        ScaleGroup.objects.filter(id=row.id).update(memory=row.memory | {"short_since_s": since - 300})
print("{}")
"""
C2_MAY_SLEEP: Final = """
from django.utils import timezone
from mgmt.models import Cell, Pipe
from mgmt.pipes.services.demo import ensure_staff_user
from mgmt.services import keep_cell_for
tenant, staff = Pipe.objects.get(name="large").tenant, ensure_staff_user()
keep_cell_for(cell=Cell.objects.get(id="c2"), tenant=tenant, sleeps_after_s=60, by=staff, now=timezone.now())
print("{}")
"""
STEPS: Final = """
SELECT cell_id, action, (detail ->> 'lanes')::int FROM mgmt_controlaction
WHERE controller = 'scale' AND outcome = 'done' AND detail ->> 'kind' = 'process' ORDER BY id
"""


def seen(box: Box) -> str:
    return json.dumps(shell_json(box, SEEN))


def delivers_once(box: Box, receiver: Receiver, pipe: str, ids: set[str]) -> None:
    """Wait until every ACKed message is delivered, also in the ledger; assert that each was delivered once."""
    got = receiver.got[f"/{pipe}"]
    until(lambda: {one.id for one in got} >= ids, f"all of {pipe} is delivered", 90)
    until(lambda: delivered_count(box, pipe) >= len(ids), "the ledger has them all", 90)
    assert Counter(one.id for one in got) == Counter(ids)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.close()


def send_a_few(port: int, key: str) -> list[Acked]:
    """Send AFTERWARDS events and return their ACKs."""
    with Sender(port, key, AFTERWARDS, count=AFTERWARDS) as sender:
        until(lambda: len(sender.acked) == AFTERWARDS, "the last events are ACKed", 30)
    return sender.acked


def wait_for_executors(cluster: SparkCluster, count: int) -> None:
    """Wait until lanes use so many executors, of one core each."""
    until(lambda: cluster.cores_used() == count, f"{count} executors", LANES_S, seen=cluster.cores_used)


@pytest.mark.long
@pytest.mark.timeout(2_400)
def test_load_adds_a_lane_an_executor_and_a_cell_and_its_end_gives_lanes_and_executors_back(receiver: Receiver):
    with box_on_cluster(extra=(), PENSTOCK_CELLS_MAX="2") as (box, cluster):
        port = int(box.env["PENSTOCK_INGEST_PORT"])
        keys = shell_json(box, MAKE.format(url=receiver.url("")))
        until(lambda: shell_json(box, SEEN)["live"] == len(keys), "both pipes are live", LIVE_S)
        until(lambda: beating(box) == ONE_OF_EACH, "a lane of each kind", LANES_S, seen=lambda: beating(box))
        set_policies(box, TWO_LANES_AT_MOST)  # the only policy of this test
        wait_for_executors(cluster, KINDS)

        senders = {name: Sender(port, keys[name], rate) for name, rate in RATES.items()}
        with ExitStack() as sending:
            for sender in senders.values():
                sending.enter_context(sender)
            two = {**ONE_OF_EACH, "process": 2}
            until(lambda: beating(box) == two, "a second process lane", LANES_S, seen=lambda: beating(box))
            wait_for_executors(cluster, KINDS + 1)
            until(lambda: any(shell_json(box, SEEN)["short"]), "the cell is short of lanes", 120)

            def is_relieved() -> bool:
                shell_json(box, FIVE_MINUTES_PASS)
                return any(state == "done" for _, state, _, _ in shell_json(box, SEEN)["moves"])

            until(is_relieved, "a pipe has gone to another cell", RELIEVED_S, seen=lambda: seen(box))
            wait_for_executors(cluster, KINDS + 1 + KINDS)
            shell_json(box, C2_MAY_SLEEP)
            assert query_rows(box, STEPS) == [("c1", "scale-out", 2)]
        after = shell_json(box, SEEN)
        assert after["cells"] == ["c1", "c2"]
        assert after["on"] == {"large": "c2", "small": "c1"}
        assert [(pipe, state, by) for pipe, state, by, _ in after["moves"]] == [("large", "done", None)]

        until(lambda: beating(box) == ONE_OF_EACH, "one process lane", IN_S, seen=lambda: seen(box))
        until(lambda: shell_json(box, SEEN)["asleep"] == ["c2"], "the new cell sleeps", LANES_S, seen=lambda: seen(box))
        wait_for_executors(cluster, KINDS)
        assert query_rows(box, STEPS) == [("c1", "scale-out", 2), ("c2", "scale-in", 0), ("c1", "scale-in", 1)]

        for name, sender in senders.items():
            acked = [*sender.acked, *send_a_few(port, keys[name])]
            delivers_once(box, receiver, name, {one.id for one in acked})
        assert shell_json(box, SEEN)["lost"] == 0
