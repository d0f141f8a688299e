"""Every process of the whole box serves exactly the metrics that the list promises for it."""

import http.client
from contextlib import closing

from dataplane.metrics import METRICS
from localbox.catalogue import SHOWN
from localbox.testing import Box
from tests.support.patience import until
from tests.support.served_metrics import served_metrics

RUNNING = [process for process in SHOWN if process != "mirror"]  # which needs a second cluster; see its fault tests


def served(box: Box, process: str) -> set[str]:
    """Return the metric names at the process's own port."""
    return served_metrics(int(box.env["PENSTOCK_METRICS_PORT"]) + SHOWN.index(process))


def part_of(process: str) -> str:
    """Return the part of a process in the list of metrics: replicas of ingest share one."""
    return "ingest" if process.startswith("ingest-") else process


def post_with_no_key(box: Box) -> None:
    with closing(http.client.HTTPConnection("127.0.0.1", int(box.env["PENSTOCK_INGEST_PORT"]), timeout=10)) as asking:
        asking.request("POST", "/v1/events", b"{}")
        assert asking.getresponse().status == 401


def test_every_process_serves_exactly_its_listed_metrics(whole_box: Box):
    def missing() -> set[tuple[str, str]]:
        post_with_no_key(whole_box)
        wanted = {(process, metric.name) for process in RUNNING for metric in METRICS
                  if metric.part in ("every process", part_of(process))}  # fmt: skip
        found = {(process, name) for process in RUNNING for name in served(whole_box, process)}
        assert {(part_of(process), name) for process, name in found - wanted if not name.endswith("_created")} == set()
        return wanted - found

    until(lambda: not missing(), "all of it is served", 60, seen=missing)
