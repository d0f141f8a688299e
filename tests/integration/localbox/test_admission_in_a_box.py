"""Admission of a pipe with high expected traffic, in a whole box, while its traffic continues."""

import json
from typing import Final

import pytest

from loadgen.scripted import Receiver
from localbox.testing import box_of
from tests.support.box_shell import delivered_count, shell_json
from tests.support.keyed import Keyed, numbers_of
from tests.support.patience import until

LIVE_S: Final = 240
ADMITTED_S: Final = 180
SPEC: Final = {"sources": {"shop": {"key": "user"}}}
MAKE: Final = """
import json
from mgmt.services import create_api_key, create_pipe
from mgmt.pipes.services.demo import ensure_demo_tenant, ensure_first_cell
ensure_first_cell()
tenant, alice = ensure_demo_tenant()
pipe = create_pipe(tenant=tenant, name="launch", spec=json.loads({spec!r}), author=alice, expected_per_s=120)
print(json.dumps({{"pipe": pipe.id, "key": create_api_key(source=pipe.sources.get())[1]}}))
"""
SEEN: Final = """
import json
from mgmt.models import Admission, Pipe, Redrive
pipe, way = Pipe.objects.get(name="launch"), Admission.objects.get(pipe__name="launch")
moves = list(Redrive.objects.filter(pipe=pipe).values_list("state", "moved"))
print(json.dumps({"live": pipe.revisions.filter(state="live").exists(), "share": way.share, "why": way.reason,
    "over": way.ended_at is not None, "moves": moves}))
"""


@pytest.mark.long
@pytest.mark.timeout(900)
def test_pipe_is_admitted_share_by_share_and_each_key_keeps_its_order():
    receiver = Receiver()
    spec = SPEC | {"destinations": {"main": {"type": "http", "url": receiver.url("/in"), "ordered": True}}}
    env = {"PENSTOCK_ADMISSION_ABOVE": "100", "PENSTOCK_RAMP_HOLD_S": "5", "PENSTOCK_RAMP_EVIDENCE": "5"}
    shares: list[int] = []
    with box_of(env=env) as box:
        made = shell_json(box, MAKE.format(spec=json.dumps(spec)))
        until(lambda: shell_json(box, SEEN)["live"], "the pipe is live", LIVE_S)

        def is_let_in() -> bool:
            seen = shell_json(box, SEEN)
            shares.append(seen["share"])
            return bool(seen["over"])

        with Keyed(int(box.env["PENSTOCK_INGEST_PORT"]), made["key"]) as sender:
            until(is_let_in, "all of it is let in", ADMITTED_S, seen=lambda: json.dumps(shell_json(box, SEEN)))
        total = sum(sender.acked.values())
        until(lambda: len({one.id for one in receiver.got["/in"]}) >= total, "all of it is delivered", 60)
        until(lambda: delivered_count(box, "launch") >= total, "the ledger has it all", 60)
    assert sorted(set(shares)) == [20, 50, 100]
    assert numbers_of(receiver.got["/in"]) == {user: list(range(count)) for user, count in sender.acked.items()}
    receiver.close()
