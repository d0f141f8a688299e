"""Rollouts to the ingest replicas of a box: a bad release is rolled back automatically, a good one reaches all."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx
import psutil
import pytest

from controlplane.compute.releases import ReleaseStore
from dataplane.names import RELEASE_VARIABLE, WIRE_VERSION
from localbox.testing import Box, box_of
from tests.support.box_shell import shell_json
from tests.support.changed_builds import changed, replacing
from tests.support.patience import until

REPLICAS: Final = ("ingest-1", "ingest-2")
PROGRAMS: Final = ("postgres", "redis", "kafka", "migrate", "bootstrap", "worker", "beat", "observer", *REPLICAS)
ROLL_OUT: Final = """
from datetime import UTC, datetime
from mgmt.models import Cell
from mgmt.services import register_release, request_rollout
now = datetime.now(UTC)
release = register_release(release={release!r}, wire={wire}, about="", now=now, for_ingest=True)
Cell.objects.update(release=release)  # cells have no lanes here
request_rollout(release=release, author=None, now=now)
print("{{}}")
"""
SEEN: Final = """
import json
from mgmt.models import Cell, Rollout
row, rollout = Cell.with_ingest.filter(id="ingest").first(), Rollout.objects.order_by("id").last()
print(json.dumps({
    "release": row and row.release_id, "canary": row and row.canary_id, "rollout": rollout and rollout.state,
    "why": rollout and rollout.why,
    "steps": [(one.place, one.state, one.why) for one in rollout.steps.all()] if rollout else [],
}))
"""
SLOW: Final = 240


@pytest.fixture
def box() -> Iterator[Box]:
    with box_of(*PROGRAMS, env={"PENSTOCK_ROLLOUT_WATCH_S": "10"}) as running:
        yield running


class Rollouts:
    """Rollouts to a box to which requests without a key are sent meanwhile."""

    def __init__(self, box: Box) -> None:
        self._box, self._url = box, f"http://127.0.0.1:{box.settings.ports['PENSTOCK_INGEST_PORT']}/v1/events"
        self.statuses: set[int] = set()

    def seen(self) -> dict[str, Any]:
        return shell_json(self._box, SEEN)

    def running(self) -> list[str]:
        """Return the releases of the replicas' processes."""
        return [psutil.Process(self._box.pid(name)).environ()[RELEASE_VARIABLE] for name in REPLICAS]

    def roll_out(self, release: str) -> dict[str, Any]:
        """Roll the release out, until the rollout ends; return what is seen then."""
        shell_json(self._box, ROLL_OUT.format(release=release, wire=WIRE_VERSION))

        def ended() -> bool:
            self.statuses |= {httpx.post(self._url, content=b"{}").status_code for _ in range(20)}
            return self.seen()["rollout"] in ("done", "rolled back")

        until(ended, "the end of the rollout", SLOW, seen=lambda: json.dumps(self.seen()))
        return self.seen()


@pytest.mark.timeout(900)
def test_bad_release_returns_from_the_first_replica_and_a_good_one_reaches_all(box: Box, tmp_path: Path):
    store, rollouts = ReleaseStore(box.var), Rollouts(box)
    until(lambda: rollouts.seen()["release"], "ingest has its first release", 60)
    old = rollouts.seen()["release"]
    assert rollouts.running() == [old, old]
    second = box.pid("ingest-2")

    key = '        key = key_of(headers.get("authorization"))\n        route = self._replica.routes'
    planted = '        raise RuntimeError("planted")\n' + key
    bad = rollouts.roll_out(store.pack(changed(tmp_path / "bad", "ingest/app.py", replacing(key, planted))))
    assert (bad["rollout"], bad["release"], bad["canary"]) == ("rolled back", old, None)
    assert "responses were internal errors" in bad["why"]
    assert rollouts.running() == [old, old]
    assert box.pid("ingest-2") == second, "only the first replica had the bad release"
    assert rollouts.statuses == {401, 500}

    rollouts.statuses.clear()
    new = store.pack(changed(tmp_path / "good", "ingest/app.py", replacing('"alive"', '"living"')))
    good = rollouts.roll_out(new)
    assert (good["rollout"], good["release"], good["canary"]) == ("done", new, None), good
    assert rollouts.running() == [new, new]
    assert rollouts.statuses == {401}, "no request failed"
