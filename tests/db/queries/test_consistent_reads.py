"""Pages read several tables while the Observer writes: no page may show a false loss."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from mgmt.ledger.queries.ledger import accounts
from mgmt.models import Cell, FactRow, HighOffset, Pipe, SettledOffset, Topic


@pytest.mark.django_db
def test_marks_are_read_before_the_facts_they_cover(pipe: Pipe):
    pipe.cell = Cell.objects.create(id="c1")
    pipe.save()
    Topic.objects.create(cell=pipe.cell, purpose="ingest", name="penstock.c1.ingest.g1", topic_id="x", partitions=1)
    with CaptureQueriesContext(
        connection,
    ) as queries:
        accounts(pipe.id, [1])
    tables = [FactRow._meta.db_table, SettledOffset._meta.db_table, HighOffset._meta.db_table]
    order = [table for query in queries for table in tables if f'FROM "{table}"' in query["sql"]]
    assert (
        order.index(SettledOffset._meta.db_table)
        < order.index(HighOffset._meta.db_table)
        < order.index(FactRow._meta.db_table)
    )
