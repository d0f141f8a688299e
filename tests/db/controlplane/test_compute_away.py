"""A cluster that does not answer holds up what it would run, and nothing else."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from controlplane.compute.api_server import ApiServer
from controlplane.compute.kubernetes import KubernetesCompute
from controlplane.compute.memory import MemoryCompute
from controlplane.compute.pods import Pod
from controlplane.compute.port import Compute, Desired
from controlplane.control_topic import ControlTopic
from controlplane.provisioner.act import Hands, submit
from controlplane.provisioner.look import take_snapshot
from controlplane.provisioner.snapshot import Snapshot
from controlplane.settings import control_settings
from controlplane.topics import TopicAdmin
from mgmt.models import Cell
from mgmt.provisioning.placing import PlacingPolicy
from mgmt.provisioning.ramps import RampPolicy

pytestmark = pytest.mark.django_db


def look(compute: Compute, problems: dict[str, str] | None = None) -> Snapshot:
    return take_snapshot(
        compute=compute,
        published={},
        master="k8s://https://127.0.0.1:1",
        now=datetime.now(UTC),
        problems=problems or {},
        check_topics=False,
        policy=RampPolicy(),
        placing=PlacingPolicy(),
    )


@pytest.fixture
def away(tmp_path: Path) -> Compute:
    return KubernetesCompute(ApiServer("https://127.0.0.1:1", tmp_path), Pod("w", "penstock", "10.0.0.1", "penstock:1"))


@pytest.fixture(autouse=True)
def cells() -> None:
    Cell.objects.all().delete()
    for name in ("a", "b"):
        Cell.objects.create(id=name)


def test_cells_that_compute_does_not_answer_for_say_so_and_are_not_submitted_blindly(away: Compute):
    for cell in look(away).cells:
        assert cell.desired is None
        assert cell.problem.startswith("waiting for compute: https://127.0.0.1:1 does not answer")


def test_what_is_wrong_with_the_cell_itself_is_said_first(away: Compute):
    first, second = look(away, {"a": "topic x was deleted and made anew"}).cells
    assert first.problem == "topic x was deleted and made anew"
    assert second.problem.startswith("waiting for compute")


def test_compute_that_answers_is_no_problem():
    assert [cell.problem for cell in look(MemoryCompute()).cells] == ["", ""]


def test_what_it_refuses_waits_for_the_next_tick_and_says_why(away: Compute):
    hands = Hands(control_settings(), TopicAdmin("127.0.0.1:1"), ControlTopic("127.0.0.1:1"), away, {})
    submit(hands, Desired("a", 1, "k8s://https://127.0.0.1:1", "0123456789abcdef"))
    assert hands.refused["a"].startswith("waiting for compute: https://127.0.0.1:1 does not answer")
    first, second = look(MemoryCompute(), hands.refused).cells
    assert (first.problem, second.problem) == (hands.refused["a"], "")
