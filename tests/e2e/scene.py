"""Fills a box with pipes worth looking at; prints one JSON line: what may be sent with which key.

    python tests/e2e/scene.py all http://127.0.0.1:9999               (the receiver; in the box's environment)
    python tests/e2e/scene.py pipe repairs http://127.0.0.1:9999/crm
    python tests/e2e/scene.py close archive

/fine answers 204, /refuses a 4xx, /busy a 5xx: the receiver is told so by the test. Nobody listens where visits go.
"""

import json
import socket
import sys
from collections.abc import Callable
from typing import Any

import django

django.setup()

from mgmt import services  # noqa: E402
from mgmt.models import Membership, Pipe, Tenant, User  # noqa: E402
from mgmt.services.demo import ensure_demo_tenant, ensure_staff_user  # noqa: E402

PASSWORD = "a long password for looking"


def everything(receiver: str) -> dict[str, Any]:
    """Make the people and the pipes; to be run once a box."""
    tenant, alice = _people()
    services.create_tenant(name="Second", owner=alice)
    vera = User.objects.create_user("vera", password=PASSWORD)
    services.add_member(tenant=tenant, user=vera, role=Membership.Role.VIEWER)
    User.objects.create_user("dora", password=PASSWORD)  # of no tenant
    specs = {
        "orders": {"crm": f"{receiver}/fine", "audit": f"{receiver}/refuses"},
        "refunds": {"books": f"{receiver}/busy"},
        "visits": {"counter": nobody()},
        "archive": {"lake": f"{receiver}/fine"},
        "quiet": {"main": f"{receiver}/fine"},
    }
    steps = [{"op": "rename", "path": "order.total", "to": "order.amount"}, {"op": "remove", "path": "order.note"}]
    keys = {name: _make(tenant, alice, name, urls, steps) for name, urls in specs.items()}
    return {"keys": keys, "password": PASSWORD}


def nobody() -> str:
    """An address at which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{taken.getsockname()[1]}/away"


def one_pipe(name: str, url: str) -> dict[str, Any]:
    """A pipe with the one destination crm."""
    tenant, alice = _people()
    key = _make(tenant, alice, name, {"crm": url}, [])
    return {"key": key, "pipe": Pipe.objects.get(tenant=tenant, name=name).id, "password": PASSWORD}


def close(name: str) -> dict[str, Any]:
    """Close a pipe, for its page."""
    services.close_pipe(pipe=Pipe.objects.get(name=name))
    return {}


def _people() -> tuple[Tenant, User]:
    tenant, alice = ensure_demo_tenant()
    for user in (alice, ensure_staff_user()):
        user.set_password(PASSWORD)
        user.save(update_fields=["password"])
    return tenant, alice


def _make(tenant: Any, author: User, name: str, urls: dict[str, str], steps: list[dict[str, str]]) -> str:
    destinations = {where: {"type": "http", "url": url} for where, url in urls.items()}
    spec = {"sources": {"shop": {"event_time": "created_at"}}, "normalize": steps, "destinations": destinations}
    pipe = services.create_pipe(tenant=tenant, name=name, spec=spec, author=author)
    source = pipe.sources.get()
    old, _ = services.create_api_key(source=source, label="old till")
    services.revoke_api_key(key=old)
    return services.create_api_key(source=source, label="shop")[1]


if __name__ == "__main__":
    deeds: dict[str, Callable[..., dict[str, Any]]] = {"all": everything, "pipe": one_pipe, "close": close}
    sys.stdout.write(json.dumps(deeds[sys.argv[1]](*sys.argv[2:])))
