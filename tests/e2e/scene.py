"""Fills a box with pipes worth looking at; prints one JSON line: what may be sent with which key.

    python tests/e2e/scene.py http://127.0.0.1:9999     (the receiver; in the box's environment)

/fine answers 204, /refuses a 4xx, /busy a 5xx: the receiver is told so by the test. Nobody listens at /away's port.
"""

import json
import sys
from typing import Any

import django

django.setup()

from mgmt import services  # noqa: E402
from mgmt.models import Membership, Pipe, User  # noqa: E402
from mgmt.services.demo import ensure_demo_tenant, ensure_staff_user  # noqa: E402

PASSWORD = "a long password for looking"
NOBODY = "http://127.0.0.1:9/away"


def main(receiver: str) -> dict[str, Any]:
    """Make the people and the pipes; safe to run once a box."""
    tenant, alice = ensure_demo_tenant()
    for user in (alice, ensure_staff_user()):
        user.set_password(PASSWORD)
        user.save(update_fields=["password"])
    services.create_tenant(name="Second", owner=alice)
    vera = User.objects.create_user("vera", password=PASSWORD)
    services.add_member(tenant=tenant, user=vera, role=Membership.Role.VIEWER)
    User.objects.create_user("dora", password=PASSWORD)  # of no tenant
    specs = {
        "orders": {"crm": f"{receiver}/fine", "audit": f"{receiver}/refuses"},
        "refunds": {"books": f"{receiver}/busy"},
        "visits": {"counter": NOBODY},
        "archive": {"lake": f"{receiver}/fine"},
        "quiet": {"main": f"{receiver}/fine"},
    }
    steps = [{"op": "rename", "path": "order.total", "to": "order.amount"}, {"op": "remove", "path": "order.note"}]
    keys = {name: _make(tenant, alice, name, urls, steps) for name, urls in specs.items()}
    return {"keys": keys, "password": PASSWORD}


def close(name: str) -> None:
    """Close a pipe, for its page."""
    services.close_pipe(pipe=Pipe.objects.get(name=name))


def _make(tenant: Any, author: User, name: str, urls: dict[str, str], steps: list[dict[str, str]]) -> str:
    destinations = {where: {"type": "http", "url": url} for where, url in urls.items()}
    spec = {"sources": {"shop": {"event_time": "created_at"}}, "normalize": steps, "destinations": destinations}
    pipe = services.create_pipe(tenant=tenant, name=name, spec=spec, author=author)
    source = pipe.sources.get()
    old, _ = services.create_api_key(source=source, label="old till")
    services.revoke_api_key(key=old)
    return services.create_api_key(source=source, label="shop")[1]


if __name__ == "__main__":
    if sys.argv[1] == "close":
        close(sys.argv[2])
    else:
        sys.stdout.write(json.dumps(main(sys.argv[1])))
