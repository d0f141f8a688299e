"""A compute cluster that does not answer blocks only the applications that it would run."""

from pathlib import Path

import pytest
from msgspec import structs

from controlplane.compute.api_server import ApiServer
from controlplane.compute.kubernetes import KubernetesCompute
from controlplane.compute.pods import PodContext
from controlplane.compute.port import Compute, DesiredApplication
from controlplane.control_topic import ControlTopic
from controlplane.provisioner.act import Effects, submit
from controlplane.provisioner.decide import SubmitApplication, decide
from controlplane.provisioner.snapshot import ProvisionerSnapshot
from controlplane.settings import control_settings
from controlplane.topics import TopicCreator
from mgmt.models import Cell
from tests.db.provisioning import snapshot

pytestmark = pytest.mark.django_db


@pytest.fixture
def away(tmp_path: Path) -> Compute:
    return KubernetesCompute(
        ApiServer("https://127.0.0.1:1", tmp_path), PodContext("w", "penstock", "10.0.0.1", "penstock:1")
    )


@pytest.fixture(autouse=True)
def cells() -> None:
    Cell.objects.all().delete()
    for name in ("a", "b"):
        Cell.objects.create(id=name)


def submitted(found: ProvisionerSnapshot) -> list[str]:
    return [action.desired.cell for action in decide(found) if isinstance(action, SubmitApplication)]


def test_cells_of_an_unresponsive_cluster_say_so_and_are_not_submitted_blindly(away: Compute):
    found = snapshot(away)
    for cell in found.cells:
        assert cell.desired is None
        assert cell.problem.startswith("waiting for compute: https://127.0.0.1:1 does not respond")
    ready = [structs.replace(cell, bound=True, release="0123456789abcdef") for cell in found.cells]
    assert submitted(structs.replace(found, cells=ready)) == []
    well = [structs.replace(cell, problem="") for cell in ready]
    assert submitted(structs.replace(found, cells=well)) == ["a", "b"]


def test_problem_of_the_cell_itself_has_precedence(away: Compute):
    first, second = snapshot(away, problems={"a": "topic x was deleted and created again"}).cells
    assert first.problem == "topic x was deleted and created again"
    assert second.problem.startswith("waiting for compute")


def test_responsive_cluster_is_no_problem():
    assert [cell.problem for cell in snapshot().cells] == ["", ""]


def test_refused_submission_waits_for_the_next_tick_and_says_why(away: Compute):
    hands = Effects(control_settings(), TopicCreator("127.0.0.1:1"), ControlTopic("127.0.0.1:1"), away, {})
    submit(hands, DesiredApplication("a", 1, "k8s://https://127.0.0.1:1", "0123456789abcdef"))
    assert hands.refused["a"].startswith("waiting for compute: https://127.0.0.1:1 does not respond")
    first, second = snapshot(problems=hands.refused).cells
    assert (first.problem, second.problem) == (hands.refused["a"], "")
