"""The settings page tells of a partition that takes more than its share, with the cure."""

import pytest
from django.utils import timezone
from pyroaring import BitMap64

from dataplane.ledger.units import partition_base
from mgmt.models import FactRow, Pipe, Topic, User
from mgmt.queries.span import bucket_at
from tests.db.console.truth import BrowserOf, go_live

pytestmark = pytest.mark.django_db


def store(pipe: Pipe, *counts: int) -> None:
    """ACKed events of this minute, so many in each partition."""
    go_live(pipe)
    Topic.objects.filter(cell_id="c1", purpose="ingest").update(partitions=len(counts))
    positions = BitMap64()
    for partition, count in enumerate(counts):
        positions.add_range(partition_base(1, partition), partition_base(1, partition) + count)
    FactRow.objects.create(
        pipe_id=pipe.id, bucket=bucket_at(timezone.now()), node="ingest", fact="sent", detail="acked",
        audit_partition=0, positions=positions.serialize(), count=len(positions),
    )  # fmt: skip


def settings_page(browser_of: BrowserOf, user: User, pipe: Pipe) -> str:
    return browser_of(user).get(f"/pipes/{pipe.id}/settings/").content.decode()


def test_a_hot_partition_is_told_with_the_cure_even_while_its_keys_cannot_be_read(
    browser_of: BrowserOf, alice: User, pipe: Pipe, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("mgmt.queries.records.READ_S", 0.2)  # no brokers here
    store(pipe, 200, 3_600, 200)
    page = settings_page(browser_of, alice, pipe)
    assert "One partition takes 90.0" in page
    assert "partition 1 will be the first to lag" in page
    assert "Its keys cannot be read" in page
    assert "<strong>Cure:</strong>" in page


def test_nothing_is_said_of_a_pipe_that_spreads_well(browser_of: BrowserOf, alice: User, pipe: Pipe):
    store(pipe, 1_200, 1_300, 1_100)
    assert "One partition takes" not in settings_page(browser_of, alice, pipe)
