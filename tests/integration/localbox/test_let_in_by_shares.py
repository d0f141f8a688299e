"""A pipe that expects much, in a whole box: the Provisioner lets it in by shares while its traffic goes on."""

import http.client
import json
import threading
from collections import defaultdict
from typing import Final

import pytest

from localbox.testing import box_of
from tests.rig.box_shell import said
from tests.rig.plane import until
from tests.rig.receiver import Receiver

KEYS: Final = 12
EACH_PER_S: Final = 10
LIVE_S: Final = 240
ADMITTED_S: Final = 180
SPEC: Final = {"sources": {"shop": {"key": "user"}}}
MAKE: Final = """
import json
from mgmt.services import create_api_key, create_pipe
from mgmt.services.demo import ensure_demo_tenant, ensure_first_cell
ensure_first_cell()
tenant, alice = ensure_demo_tenant()
pipe = create_pipe(tenant=tenant, name="launch", spec=json.loads({spec!r}), author=alice, expected_per_s=120)
print(json.dumps({{"pipe": pipe.id, "key": create_api_key(source=pipe.sources.get())[1]}}))
"""
SEEN: Final = """
import json
from mgmt.models import Admission, Move, Pipe
pipe, way = Pipe.objects.get(name="launch"), Admission.objects.get(pipe__name="launch")
moves = list(Move.objects.filter(pipe=pipe).values_list("state", "moved"))
print(json.dumps({"live": pipe.revisions.filter(state="live").exists(), "share": way.share, "why": way.reason,
    "over": way.ended_at is not None, "moves": moves}))
"""


class Keyed:
    """Events of each key one after the other, each ACKed before the next; `acked[key]` is how many there were."""

    def __init__(self, port: int, key: str) -> None:
        self._port, self._key = port, key
        self._over = threading.Event()
        self.acked: defaultdict[str, int] = defaultdict(int)
        self._threads = [threading.Thread(target=self._run, args=(f"u{n}",)) for n in range(KEYS)]

    def __enter__(self) -> "Keyed":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(30)

    def _run(self, user: str) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=15)
        headers = {"authorization": f"Bearer {self._key}", "content-type": "application/json"}
        while not self._over.wait(1 / EACH_PER_S):
            body = json.dumps({"user": user, "n": self.acked[user]})
            connection.request("POST", "/v1/events", body, headers)
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 202
            self.acked[user] += 1
        connection.close()


@pytest.mark.long
@pytest.mark.timeout(900)
def test_it_is_let_in_share_by_share_and_each_key_arrives_in_its_order():
    receiver = Receiver()
    spec = SPEC | {"destinations": {"main": {"type": "http", "url": receiver.url("/in"), "ordered": True}}}
    env = {"PENSTOCK_ADMISSION_ABOVE": "100", "PENSTOCK_RAMP_HOLD_S": "5", "PENSTOCK_RAMP_EVIDENCE": "5"}
    shares: list[int] = []
    with box_of(env=env) as box:
        made = said(box, MAKE.format(spec=json.dumps(spec)))
        until(lambda: said(box, SEEN)["live"], "the pipe is live", LIVE_S)

        def is_let_in() -> bool:
            seen = said(box, SEEN)
            shares.append(seen["share"])
            return bool(seen["over"])

        with Keyed(int(box.env["PENSTOCK_INGEST_PORT"]), made["key"]) as sender:
            until(is_let_in, "all of it is let in", ADMITTED_S, seen=lambda: json.dumps(said(box, SEEN)))
        total = sum(sender.acked.values())
        until(lambda: len({one.id for one in receiver.got["/in"]}) >= total, "all of it is delivered", 60)
    assert sorted(set(shares)) == [20, 50, 100]
    came: defaultdict[str, dict[int, None]] = defaultdict(dict)
    for one in receiver.got["/in"]:
        event = json.loads(one.body)
        came[event["user"]].setdefault(event["n"])
    assert {user: list(numbers) for user, numbers in came.items()} == {
        user: list(range(count)) for user, count in sender.acked.items()
    }
    receiver.close()
