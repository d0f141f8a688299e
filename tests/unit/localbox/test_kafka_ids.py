"""Kafka's storage tool parses its own arguments, so an id must not look like an option."""

import uuid

from hypothesis import given
from hypothesis import strategies as st

from localbox.services.kafka import cluster_id


@given(st.uuids())
def test_no_cluster_id_begins_with_a_dash(chance: uuid.UUID):
    assert len(cluster_id(chance)) == 22
    assert not cluster_id(chance).startswith("-")


def test_id_that_would_begin_with_a_dash_is_changed():
    assert cluster_id(uuid.UUID(int=0xFB << 120))[0] != "-"
