"""One suite for every adapter of the compute port."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane.compute.files import BrokenFileError, ComputeFiles
from controlplane.compute.kubernetes import KubernetesCompute
from controlplane.compute.local import LocalCompute
from controlplane.compute.memory import MemoryCompute
from controlplane.compute.pods import Pod
from controlplane.compute.port import Compute, Desired, Running
from localbox.settings import ROOT
from tests.rig.kubernetes_api import cluster

TEMPLATES = ROOT / "deploy" / "kubernetes" / "cells"
FIRST = Desired("c1", 1, "local[16,1000]", "0123456789abcdef")
SECOND = Desired("c1", 2, "spark://master:7077", "fedcba9876543210")


@pytest.fixture(params=["memory", "local", "kubernetes"])
def compute(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Compute]:
    match request.param:
        case "memory":
            yield MemoryCompute()
        case "local":
            yield LocalCompute(tmp_path)
        case _:
            with cluster(tmp_path) as there:
                yield KubernetesCompute(there.api, Pod("worker-1", "penstock", "10.0.0.1", "penstock:1.2.3"), TEMPLATES)


def test_what_is_submitted_is_what_is_observed(compute: Compute):
    compute.submit(FIRST)
    assert compute.observe("c1").desired == FIRST


def test_submitting_again_changes_nothing_and_a_newer_epoch_takes_its_place(compute: Compute):
    compute.submit(FIRST)
    compute.submit(FIRST)
    compute.submit(SECOND)
    assert compute.observe("c1").desired == SECOND


def test_a_stopped_cell_is_asked_for_no_more_and_stopping_twice_is_fine(compute: Compute):
    compute.submit(FIRST)
    compute.stop("c1")
    compute.stop("c1")
    assert compute.observe("c1").desired is None


def test_cells_do_not_touch_each_other(compute: Compute):
    compute.submit(FIRST)
    compute.submit(Desired("c2", 7, "local[2,1]", "0123456789abcdef"))
    compute.stop("c2")
    assert compute.observe("c1").desired == FIRST


def test_an_unknown_cell_has_nothing(compute: Compute):
    assert compute.observe("c9").desired is None
    assert compute.observe("c9").running is None


def test_a_cell_is_no_path(tmp_path: Path):
    with pytest.raises(ValueError, match="cell: needs"):
        LocalCompute(tmp_path).submit(Desired("../c1", 1, "local", "0123456789abcdef"))


def test_a_broken_wish_is_mended_by_the_next_submit(tmp_path: Path):
    compute = LocalCompute(tmp_path)
    compute.submit(FIRST)
    (tmp_path / "compute" / "c1.json").write_text("{")
    with pytest.raises(BrokenFileError):
        ComputeFiles(tmp_path).desired("c1")
    compute.submit(FIRST)
    assert compute.observe("c1").desired == FIRST


def test_what_the_keeper_notes_is_what_the_port_shows(tmp_path: Path):
    running = Running("c1", 1, "abc", 4711, 1.5, 1)
    ComputeFiles(tmp_path).started(running)
    assert LocalCompute(tmp_path).observe("c1").running == running
