"""The full demo pipe: two sources, a filter, a look-up, a window and three kinds of destinations."""

from typing import Any, Final

from django.db import transaction

from mgmt.lookups.row_files import checked_row
from mgmt.lookups.services import create_lookup_table, upload_rows
from mgmt.models import LookupTable, Pipe
from mgmt.pipes.services.demo import ensure_demo_tenant, ensure_pipe_to_receiver

TEAMS: Final = "teams"
# Team by kind of event; other kinds get the default of the look-up.
FULL_TEAMS: Final = {
    **dict.fromkeys(("push", "pull_request", "pull_request_review", "check_run", "create", "delete"), "code"),
    **dict.fromkeys(("issues", "issue_comment", "discussion", "label", "milestone"), "talk"),
}
_OF_EVENT: Final = 'meta.source != "window:teams"'


@transaction.atomic
def ensure_full_demo_pipe(*, url: str, name: str) -> Pipe:
    """Return the full demo pipe; create or update its look-up table."""
    tenant, _ = ensure_demo_tenant()
    table = LookupTable.objects.filter(tenant=tenant, name=TEAMS, state=LookupTable.State.LIVE).first()
    table = table or create_lookup_table(tenant=tenant, name=TEAMS)
    rows = (checked_row(number, event, {"name": team}) for number, (event, team) in enumerate(FULL_TEAMS.items(), 1))
    upload_rows(table=table, rows=rows, mode="replace")
    return ensure_pipe_to_receiver(name=name, spec=full_spec(url))


def full_spec(url: str) -> dict[str, Any]:
    """Return the spec: two sources, a filter, a look-up, a window, routes to three kinds of destinations.

    The lake gets all messages, closed windows included; the other rules match events only.
    """
    return {
        "sources": {"hooks": {}, "mirror": {"key": "payload.repository.full_name"}},
        "normalize": [
            {"op": "filter", "when": 'body.event != "star"'},
            {"op": "remove", "path": "payload.repository.owner"},
        ],
        "enrich": [
            {"table": TEAMS, "key": "body.event", "into": "team", "on_missing": "default", "default": {"name": "all"}}
        ],
        "windows": {
            "teams": {
                "span": {"kind": "tumbling", "size_s": 10},
                "by": ["team.name"],
                "late_s": 5,
                "values": {"repositories": {"op": "distinct", "of": "payload.repository.full_name"}},
            }
        },
        "routes": {
            "mode": "all",
            "rules": [
                {"when": f'{_OF_EVENT} && body.team.name == "code"', "to": ["receiver"]},
                {"when": "true", "to": ["lake"]},
                {
                    "when": f'{_OF_EVENT} && has(body.payload.action) && body.payload.action == "created"',
                    "to": ["feed"],
                },
            ],
        },
        "transform": {"feed": [{"op": "keep", "fields": ["event", "team", "payload.action"]}]},
        "destinations": {
            "receiver": {"type": "http", "url": url},
            "lake": {"type": "lake"},
            "feed": {"type": "topic", "partitions": 2},
        },
    }
