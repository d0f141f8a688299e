"""Contract of every adapter of the compute port."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane.compute.files import ComputeFiles, StateFileError
from controlplane.compute.kubernetes import KubernetesCompute
from controlplane.compute.local import LocalCompute
from controlplane.compute.memory import MemoryCompute
from controlplane.compute.pods import PodContext
from controlplane.compute.port import Compute, DesiredApplication, RunningApplication
from localbox.settings import ROOT
from tests.support.kubernetes_api import cluster

TEMPLATES = ROOT / "deploy" / "kubernetes" / "cells"
FIRST = DesiredApplication("c1", 1, "local[16,1000]", "0123456789abcdef")
SECOND = DesiredApplication("c1", 2, "spark://master:7077", "fedcba9876543210")


@pytest.fixture(params=["memory", "local", "kubernetes"])
def compute(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Compute]:
    match request.param:
        case "memory":
            yield MemoryCompute()
        case "local":
            yield LocalCompute(tmp_path)
        case _:
            with cluster(tmp_path) as there:
                yield KubernetesCompute(
                    there.api, PodContext("worker-1", "penstock", "10.0.0.1", "penstock:1.2.3"), TEMPLATES
                )


def test_submitted_application_is_observed(compute: Compute):
    compute.submit(FIRST)
    assert compute.observe("c1").desired == FIRST


def test_repeated_submit_changes_nothing_and_a_newer_epoch_replaces_it(compute: Compute):
    compute.submit(FIRST)
    compute.submit(FIRST)
    compute.submit(SECOND)
    assert compute.observe("c1").desired == SECOND


def test_stopped_cell_has_no_desired_application_and_may_be_stopped_twice(compute: Compute):
    compute.submit(FIRST)
    compute.stop("c1")
    compute.stop("c1")
    assert compute.observe("c1").desired is None


def test_cells_do_not_affect_each_other(compute: Compute):
    compute.submit(FIRST)
    compute.submit(DesiredApplication("c2", 7, "local[2,1]", "0123456789abcdef"))
    compute.stop("c2")
    assert compute.observe("c1").desired == FIRST


def test_unknown_cell_has_no_application(compute: Compute):
    assert compute.observe("c9").desired is None
    assert compute.observe("c9").running is None


def test_cell_name_that_is_a_path_is_refused(tmp_path: Path):
    with pytest.raises(ValueError, match="cell: needs"):
        LocalCompute(tmp_path).submit(DesiredApplication("../c1", 1, "local", "0123456789abcdef"))


def test_next_submit_repairs_a_corrupt_state_file(tmp_path: Path):
    compute = LocalCompute(tmp_path)
    compute.submit(FIRST)
    (tmp_path / "compute" / "c1.json").write_text("{")
    with pytest.raises(StateFileError):
        ComputeFiles(tmp_path).desired("c1")
    compute.submit(FIRST)
    assert compute.observe("c1").desired == FIRST


def test_port_shows_the_application_that_the_keeper_recorded(tmp_path: Path):
    running = RunningApplication("c1", 1, "abc", 4711, 1)
    ComputeFiles(tmp_path).started(running)
    assert LocalCompute(tmp_path).observe("c1").running == running
