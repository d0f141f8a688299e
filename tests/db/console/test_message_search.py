"""Search by an id that has the form of Penstock's, but a time that no event was accepted at."""

import pytest
from django.test import Client
from django.urls import reverse

from mgmt.messages.queries.message_search import accepted_at
from mgmt.models import Pipe

pytestmark = pytest.mark.django_db
YEAR_10889 = "ffffffff-ffff-7fff-ffff-ffffffffffff"
LAST_OF_9999 = "e677d21f-dbff-7000-8000-000000000000"
FIRST_OF_10000 = "e677d21f-dc00-7000-8000-000000000000"


def test_id_beyond_the_calendar_has_no_time_of_acceptance():
    assert accepted_at(YEAR_10889) is None
    assert accepted_at(FIRST_OF_10000) is None
    last = accepted_at(LAST_OF_9999)
    assert last is not None
    assert last.isoformat(timespec="seconds") == "9999-12-31T23:59:59+00:00"


def test_search_for_an_id_beyond_the_calendar_finds_nothing_and_does_not_fail(alices: Client, pipe: Pipe):
    assert pipe.cell_id is None
    page = alices.get(reverse("console:find"), {"q": YEAR_10889})
    assert page.status_code == 200
    assert YEAR_10889 in page.content.decode()
