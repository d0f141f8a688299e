"""A cell short of lanes, in a whole box: another cell is created, and a pipe is migrated under traffic."""

import json
from collections import Counter
from contextlib import ExitStack
from typing import Final

import pytest

from loadgen.scripted import Receiver
from localbox.testing import Box, box_of
from tests.support.box_shell import delivered_count, shell_json
from tests.support.patience import until
from tests.support.sender import Sender

LIVE_S: Final = 240
RELIEVED_S: Final = 300
RATES: Final = {"large": 90, "small": 60}
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
    "on": dict(Pipe.objects.values_list("name", "cell")),
    "moves": list(PipeMigration.objects.values_list("pipe__name", "state", "by", "says")),
    "why": list(ScaleGroup.objects.filter(kind="process").values_list("cell", "why")),
    "sealed": Seal.objects.count(), "lost": sum(Seal.objects.values_list("lost", flat=True))}))
"""
ONE_LANE_IS_NOT_ENOUGH: Final = """
from mgmt.models import ScaleGroup
ScaleGroup.objects.filter(cell="c1", kind="process").update(maximum=1, target=0.01)
print("{}")
"""
FIVE_MINUTES_PASS: Final = """
from mgmt.models import ScaleGroup
for row in ScaleGroup.objects.filter(cell="c1"):
    if since := row.memory.get("short_since_s"):
        ScaleGroup.objects.filter(id=row.id).update(memory=row.memory | {"short_since_s": since - 300})
print("{}")
"""


def seen(box: Box) -> str:
    return json.dumps(shell_json(box, SEEN))


def delivers_once(box: Box, receiver: Receiver, pipe: str, ids: set[str]) -> None:
    """Wait until every ACKed message is delivered, also in the ledger; assert that each was delivered once."""
    got = receiver.got[f"/{pipe}"]
    until(lambda: {one.id for one in got} >= ids, f"all of {pipe} is delivered", 90)
    until(lambda: delivered_count(box, pipe) >= len(ids), "the ledger has them all", 90)
    assert Counter(one.id for one in got) == Counter(ids)


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_cell_short_of_lanes_has_a_pipe_migrated_to_a_new_cell():
    receiver = Receiver()
    with box_of(env={"PENSTOCK_CELLS_MAX": "2"}) as box:
        port = int(box.env["PENSTOCK_INGEST_PORT"])
        keys = shell_json(box, MAKE.format(url=receiver.url("")))
        until(lambda: shell_json(box, SEEN)["live"] == len(keys), "both pipes are live", LIVE_S)
        senders = {name: Sender(port, keys[name], rate) for name, rate in RATES.items()}
        with ExitStack() as sending:
            for sender in senders.values():
                sending.enter_context(sender)
            shell_json(box, ONE_LANE_IS_NOT_ENOUGH)
            until(lambda: any(shell_json(box, SEEN)["short"]), "the cell is short of lanes", 120)

            def is_relieved() -> bool:
                shell_json(box, FIVE_MINUTES_PASS)
                return any(state == "done" for _, state, _, _ in shell_json(box, SEEN)["moves"])

            until(is_relieved, "a pipe has gone to another cell", RELIEVED_S, seen=lambda: seen(box))
        after = shell_json(box, SEEN)
        assert after["cells"] == ["c1", "c2"]
        assert after["on"] == {"large": "c2", "small": "c1"}
        assert [(pipe, state, by) for pipe, state, by, _ in after["moves"]] == [("large", "done", None)]
        for name, sender in senders.items():
            delivers_once(box, receiver, name, {acked.id for acked in sender.acked})
    receiver.close()
