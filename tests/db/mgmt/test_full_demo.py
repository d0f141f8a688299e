"""The full demo pipe can be created, and created again."""

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command

from dataplane.ledger.meta import MessageMeta
from dataplane.plan import compile_plan
from dataplane.plan.about import about
from dataplane.spec import parse_pipe_spec
from mgmt.models import LookupRow, Pipe
from mgmt.pipes.services.full_demo import FULL_TEAMS, full_spec

pytestmark = pytest.mark.django_db


def test_full_demo_pipe_is_created_once_with_a_key_for_each_source():
    made = []
    for _ in range(2):
        out = StringIO()
        call_command("demo_pipe", "--url", "http://127.0.0.1:8899/", "--full", stdout=out)
        made.append(json.loads(out.getvalue()))
    assert [one["pipe"] for one in made] == [Pipe.objects.get().id] * 2
    assert made[0]["keys"].keys() == made[1]["keys"].keys() == {"hooks", "mirror"}
    assert dict(LookupRow.objects.values_list("key", "row")).keys() == FULL_TEAMS.keys()
    assert Pipe.objects.get().revisions.count() == 1


@pytest.mark.parametrize(
    ("source", "body", "ways"),
    [
        pytest.param("window:teams", {"window": "teams", "by": {"team.name": "code"}}, {"lake"}, id="a result"),
        pytest.param("hooks", {"payload": {}, "team": {"name": "code"}}, {"lake", "receiver"}, id="an event"),
    ],
)
def test_window_results_are_routed_only_to_the_lake(source: str, body: dict[str, Any], ways: set[str]):
    plan = compile_plan(parse_pipe_spec(full_spec("http://127.0.0.1:8899/")))
    assert plan.route is not None
    meta = MessageMeta(1, "id", "pipe_1", 1, source, 0, 0, 0)
    assert set(plan.route(body, about(meta))) == ways
