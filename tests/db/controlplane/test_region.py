"""Rows of topics after a failover to a mirrored cluster."""

import pytest

from controlplane.region import TopicMissingOnClusterError, bind_topics
from controlplane.topics import ExistingTopic
from mgmt.models import Cell, Topic

NAME = "penstock.c1.ingest.g1"


@pytest.fixture
def cell(db: None) -> Cell:
    cell = Cell.objects.get_or_create(id="c1")[0]
    Topic.objects.filter(cell=cell).delete()
    Topic.objects.create(cell=cell, purpose="ingest", generation=1, name=NAME, topic_id="old", partitions=4)
    return cell


def test_topics_are_bound_to_the_ids_of_the_promoted_cluster_and_the_cell_is_published(cell: Cell):
    before = cell.version
    assert bind_topics({NAME: ExistingTopic(NAME, "new", 4)}) == 1
    cell.refresh_from_db()
    assert Topic.objects.get(name=NAME).topic_id == "new"
    assert cell.version == before + 1


def test_second_run_changes_nothing(cell: Cell):
    found = {NAME: ExistingTopic(NAME, "new", 4)}
    bind_topics(found)
    cell.refresh_from_db()
    before = cell.version
    assert bind_topics(found) == 0
    cell.refresh_from_db()
    assert cell.version == before


@pytest.mark.parametrize("found", [{}, {NAME: ExistingTopic(NAME, "new", 3)}], ids=["missing", "fewer partitions"])
def test_nothing_is_bound_if_a_topic_is_not_complete(cell: Cell, found: dict[str, ExistingTopic]):
    other = "penstock.c1.dead.g1"
    Topic.objects.create(cell=cell, purpose="dead", generation=1, name=other, topic_id="old", partitions=1)
    with pytest.raises(TopicMissingOnClusterError, match="needs 4 partitions"):
        bind_topics({other: ExistingTopic(other, "new", 1), **found})
    assert set(Topic.objects.filter(cell=cell).values_list("topic_id", flat=True)) == {"old"}
