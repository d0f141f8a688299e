"""The demo's pipe with a bit of everything: it can be made, and made again."""

import json
from io import StringIO

import pytest
from django.core.management import call_command

from mgmt.models import LookupRow, Pipe
from mgmt.services.full_demo import FULL_TEAMS

pytestmark = pytest.mark.django_db


def test_it_is_made_once_with_a_key_for_each_source():
    made = []
    for _ in range(2):
        out = StringIO()
        call_command("demo_pipe", "--url", "http://127.0.0.1:8899/", "--full", stdout=out)
        made.append(json.loads(out.getvalue()))
    assert [one["pipe"] for one in made] == [Pipe.objects.get().id] * 2
    assert made[0]["keys"].keys() == made[1]["keys"].keys() == {"hooks", "mirror"}
    assert dict(LookupRow.objects.values_list("key", "row")).keys() == FULL_TEAMS.keys()
    assert Pipe.objects.get().revisions.count() == 1
