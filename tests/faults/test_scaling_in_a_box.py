"""A policy, the Autoscaler, the cell's record, its driver, its lanes: the whole chain in a box, under traffic."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from localbox.testing import ROOT, Box
from tests.rig.data_plane import until
from tests.rig.demo_traffic import DemoTraffic, demo_box

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]
RATE, COUNT = 100.0, 9_000
POLICY = """
from django.utils import timezone
from mgmt.models import ScaleGroup
from mgmt.services import set_scale_policy
from mgmt.services.demo import ensure_staff_user
for group in ScaleGroup.objects.filter(kind__in=["process", "transmit"]):
    policy = dict(minimum={lanes}, maximum={lanes}, target=0.75, goal_s=5.0)
    set_scale_policy(group=group, by=ensure_staff_user(), now=timezone.now(), **policy)
"""
LANES = """
SELECT kind, count(*) FROM mgmt_heartbeat
WHERE state = 'running' AND at > now() - interval '4 seconds' AND kind IN ('process', 'transmit') GROUP BY kind
"""
DEEDS = "SELECT DISTINCT action, outcome FROM mgmt_controlaction WHERE controller = 'scale' ORDER BY 1"


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Box]:
    with demo_box(tmp_path / "var") as running:
        yield running


def asked(box: Box, query: str) -> list[Any]:
    with psycopg.connect(box.env["DATABASE_URL"]) as connection:
        return connection.execute(query.encode()).fetchall()


def scale_to(box: Box, lanes: int) -> None:
    done = box.run(sys.executable, str(ROOT / "manage.py"), "shell", "-c", POLICY.format(lanes=lanes))
    assert done.returncode == 0, done.stderr
    wanted = {("process", lanes), ("transmit", lanes)}
    until(lambda: set(asked(box, LANES)) == wanted, f"{lanes} lanes of each kind beat", 120)
    until(lambda: asked(box, "SELECT holder FROM mgmt_lease") == [("",)], "the lease is given back", 90)


def test_a_policy_makes_two_lanes_of_one_and_one_again_and_nothing_is_lost(box: Box):
    traffic = DemoTraffic(box, rate=RATE, count=COUNT)
    until(lambda: asked(box, "SELECT id FROM mgmt_scalegroup"), "the Autoscaler has looked at the cell", 90)
    scale_to(box, 2)
    scale_to(box, 1)
    assert traffic.goes_on, "both changes came under traffic"
    traffic.wait(240)
    traffic.assert_accounted()
    assert asked(box, DEEDS) == [("scale-in", "done"), ("scale-out", "done")]
