"""Events of a slow request are produced to the cell that has the pipe when the body is complete."""

import asyncio
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

from dataplane.ingest.app import IngestApp
from dataplane.ingest.event_results import EventResult
from dataplane.ingest.events import Item
from dataplane.ingest.quotas import TenantMeters
from dataplane.tables.control import ControlTable
from dataplane.tables.quotas import Quotas


class Moving:
    """Fake replica that migrates the pipe from c1 to c2 while the body arrives."""

    settings = SimpleNamespace(max_body_bytes=1_024, max_event_bytes=1_024, web_url="http://127.0.0.1")
    traces = None

    def __init__(self) -> None:
        self.cell = "c1"
        self.taken: list[str] = []
        self.routes = SimpleNamespace(find=self._find)
        self.meters = TenantMeters(ControlTable(), Quotas(), 1 << 20)

    def _find(self, _: str) -> Any:
        return SimpleNamespace(pipe=SimpleNamespace(pipe="p", tenant="t", cell=self.cell), gate=None)

    def within_quota(self, _: Any, items: Iterable[Item], count: int) -> Iterable[Item]:
        assert count
        return items

    async def take(self, route: Any, items: Iterable[Item]) -> list[EventResult]:
        taken = [route.pipe.cell for _ in items]
        self.taken += taken
        return [EventResult(202, "id") for _ in taken]

    async def __call__(self) -> bytes:
        self.cell = "c2"
        return b"[1,2]"

    def response_bytes(self, *_: Any) -> None:
        """Ignore the response."""


def test_events_are_produced_to_the_cell_that_has_the_pipe_after_the_body_arrived():
    both: Any = Moving()
    headers = {"authorization": "Bearer key", "content-type": "application/json", "content-length": "5"}
    request = SimpleNamespace(path="/v1/events", method="POST", headers=headers)
    asyncio.run(IngestApp(both).__rsgi__(request, both))
    assert both.taken == ["c2", "c2"]
