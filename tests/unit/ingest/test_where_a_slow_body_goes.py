"""Where a key leads may change while a body is on its way: its events go where the key leads when it has come."""

import asyncio
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

from dataplane.ingest.app import IngestApp
from dataplane.ingest.events import Item
from dataplane.ingest.quotas import Meters
from dataplane.ingest.verdicts import Verdict
from dataplane.tables.control import ControlTable
from dataplane.tables.quotas import Quotas


class Moving:
    """Stands where the replica does: the pipe is moved from c1 to c2 while the body comes."""

    settings = SimpleNamespace(max_body_bytes=1_024, max_event_bytes=1_024, web_url="http://127.0.0.1")
    traces = None

    def __init__(self) -> None:
        self.cell = "c1"
        self.taken: list[str] = []
        self.meters = Meters(ControlTable(), Quotas(), 1 << 20)

    def route(self, _: str) -> Any:
        return SimpleNamespace(pipe=SimpleNamespace(pipe="p", tenant="t", cell=self.cell))

    def within_quota(self, _: Any, items: Iterable[Item], count: int) -> Iterable[Item]:
        assert count
        return items

    async def take(self, route: Any, items: Iterable[Item]) -> list[Verdict]:
        taken = [route.pipe.cell for _ in items]
        self.taken += taken
        return [Verdict(202, "id") for _ in taken]

    async def __call__(self) -> bytes:
        self.cell = "c2"
        return b"[1,2]"

    def response_bytes(self, *_: Any) -> None:
        """Nobody reads it."""


def test_its_events_go_to_the_cell_that_the_pipe_is_on_now():
    both: Any = Moving()
    headers = {"authorization": "Bearer key", "content-type": "application/json", "content-length": "5"}
    request = SimpleNamespace(path="/v1/events", method="POST", headers=headers)
    asyncio.run(IngestApp(both).__rsgi__(request, both))
    assert both.taken == ["c2", "c2"]
