"""Settings page: reports a partition with more than its share of the events, with a remedy."""

import pytest
from django.utils import timezone
from pyroaring import BitMap64

from dataplane.ledger.units import partition_base
from mgmt.ledger.queries.bucket_range import bucket_at
from mgmt.models import FactRow, Pipe, Topic, User
from tests.db.console.truth import BrowserOf, go_live

pytestmark = pytest.mark.django_db


def store(pipe: Pipe, *counts: int) -> None:
    """Store ACKed events of this minute: one count for each partition."""
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


def test_hot_partition_is_reported_with_a_remedy_even_if_its_keys_cannot_be_read(
    browser_of: BrowserOf, alice: User, pipe: Pipe, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("mgmt.messages.queries.records.READ_S", 0.2)  # no broker in this test
    store(pipe, 200, 3_600, 200)
    page = settings_page(browser_of, alice, pipe)
    assert "One partition receives 90.0" in page
    assert "Partition 1 will be the first to lag" in page
    assert "The keys cannot be read" in page
    assert "<strong>What to do:</strong>" in page


def test_evenly_distributed_pipe_shows_no_warning(browser_of: BrowserOf, alice: User, pipe: Pipe):
    store(pipe, 1_200, 1_300, 1_100)
    assert "One partition receives" not in settings_page(browser_of, alice, pipe)
