"""Events of a slow request are produced to the cell that has the pipe when the body is complete."""

import asyncio
from collections import Counter
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

from dataplane.ingest.app import IngestApp
from dataplane.ingest.event_results import EventResult
from dataplane.ingest.events import Item
from dataplane.ingest.quotas import TenantMeters
from dataplane.tables.control import ControlTable
from dataplane.tables.quotas import Quotas
from tests.support.http_exchange import MemoryExchange


class Moving:
    """Fake replica that migrates the pipe from c1 to c2 while the body arrives."""

    settings = SimpleNamespace(max_body_bytes=1_024, max_event_bytes=1_024, web_url="http://127.0.0.1")
    traces = None

    def __init__(self) -> None:
        self.cell = "c1"
        self.responses: Counter[int] = Counter()
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

    def migrate(self) -> None:
        self.cell = "c2"


def test_events_are_produced_to_the_cell_that_has_the_pipe_after_the_body_arrived():
    replica: Any = Moving()
    headers = {"authorization": "Bearer key", "content-type": "application/json"}
    exchange = MemoryExchange(b"[1,2]", headers, before_body=replica.migrate)
    asyncio.run(IngestApp(replica)(exchange.request))
    assert replica.taken == ["c2", "c2"]
