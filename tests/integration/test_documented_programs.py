"""Programs that the guides show, run as they are shown: against the API, a real ingest and signed deliveries.

Only addresses, keys and names of rows are replaced. A frame of a web framework is given by the test.
"""

import contextlib
import importlib
import io
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest
import requests
from django.utils import timezone
from pytest_django.live_server_helper import LiveServer

from dataplane.transmit.http.signature import sign, signer
from mgmt import services
from mgmt.models import Pipe, Subject, Tenant, User
from penstock_cli.__main__ import main
from penstock_client.api.operations import create_key
from tests.integration.test_curl_commands import ORDER_VALUE, SPEC, alice, ingest, pipe, running_ingest, tenant
from tests.support.cluster import SECRET, key_of
from tests.support.doc_blocks import documented, documented_all
from tests.support.live_ingest import LiveIngest

__all__ = ["alice", "ingest", "pipe", "running_ingest", "tenant"]  # fixtures
pytestmark = pytest.mark.django_db(transaction=True)
PASSWORD: Final = "alice-and-a-long-password"
PENSTOCK: Final = "https://penstock.example.com"
TYPED_ORDER: Final = {
    "type": "record",
    "name": "Order",
    "namespace": "com.shop",
    "fields": [
        {"name": "id", "type": {"type": "string", "logicalType": "time-uuid"}},
        {"name": "total", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
    ],
}


def run(program: str, **names: Any) -> tuple[dict[str, Any], str]:
    """Run a program with these names; return its own names, and what it printed."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(program, names)  # noqa: S102 a page of this repository
    return names, printed.getvalue()


def with_text(program: str, replaced: dict[str, str]) -> str:
    for old, new in replaced.items():
        assert old in program, (old, program)
        program = program.replace(old, new)
    return program


@pytest.fixture
def token(tenant: Tenant, alice: User) -> str:
    now = timezone.now()
    return services.create_token(tenant=tenant, user=alice, by=alice, name="ci", scope="admin", days=1, now=now)[1]


def test_generated_python_client_creates_a_pipe_and_sends(
    live_server: LiveServer, token: str, ingest: LiveIngest, monkeypatch: pytest.MonkeyPatch
):
    create = create_key.sync

    def accepted(*arguments: Any, **named: Any) -> Any:
        made = create(*arguments, **named)
        assert made is not None
        ingest.accept(arguments[0], Pipe.objects.get(id=arguments[0]).tenant_id, made.key)
        return made

    monkeypatch.setattr(create_key, "sync", accepted)
    addresses = {PENSTOCK: live_server.url, "https://ingest.penstock.example.com": ingest.url, "pst_...": token}
    program = with_text(documented("api-clients.md", "python"), addresses)
    names, printed = run(program, pipe={"name": "from-the-guide", "spec": SPEC})
    assert Pipe.objects.get(name="from-the-guide").id == names["made"].parsed.id
    assert len(printed.split()[-1]) == 36, printed


def test_confluent_serializers_register_write_and_read(
    live_server: LiveServer, tenant: Tenant, alice: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    alice.set_password(PASSWORD)
    alice.save()
    monkeypatch.chdir(tmp_path)
    Path("order.avsc").write_text(json.dumps(ORDER_VALUE))
    writing = documented("schema-registry.md", "python")
    names, _ = run(with_text(writing, {PENSTOCK: live_server.url, "alice:PASSWORD": f"alice:{PASSWORD}"}))
    assert Subject.objects.get(tenant=tenant).name == "orders-value"
    reading = documented("deliver-avro.md", "python")
    message = SimpleNamespace(value=lambda: names["payload"])
    credential = {PENSTOCK: live_server.url, "alice:PASSWORD": f"alice:{PASSWORD}"}
    assert run(with_text(reading, credential), message=message)[0]["order"] == {"id": "ord-1", "total": 12.5}


def test_backend_of_a_customer_gets_a_link_of_the_portal(live_server: LiveServer, token: str, pipe: Pipe):
    given = {
        "app": SimpleNamespace(get=lambda _: lambda view: view),
        "signed_in_customer": lambda: SimpleNamespace(name="Acme Ltd", destination="crm"),
        "render_template": lambda _, **values: values,
        "requests": requests,
        "PENSTOCK": live_server.url,
        "PIPE": pipe.id,
        "TOKEN": token,
    }
    names, _ = run(documented("customer-portal.md", "python"), **given)
    url = names["webhooks"]()["portal_url"]
    page = requests.get(url, timeout=30)
    assert page.status_code == 200
    assert "crm" in page.text


@pytest.fixture
def generated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Package `shop_events`, as `penstock generate` writes it."""
    (tmp_path / "order.avsc").write_text(json.dumps(TYPED_ORDER))
    words = ["--package", "shop_events", "--out", str(tmp_path), "--schema", f"order={tmp_path / 'order.avsc'}"]
    assert main(["generate", "--lang", "python", *words]) == 0
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "shop_events"]:
        del sys.modules[name]


def test_typed_client_sends_an_event_and_reads_its_delivery(
    generated: None, pipe: Pipe, ingest: LiveIngest, monkeypatch: pytest.MonkeyPatch
):
    sending, receiving = documented_all("typed-clients.md", "python")
    key = key_of(pipe.id)
    ingest.accept(pipe.id, pipe.tenant_id, key)
    _, printed = run(with_text(sending, {"https://ingest.example.com": ingest.url}), KEY=key)
    body, *_ = ingest.stored(pipe.id)[-1]
    assert len(printed.strip()) == 36, printed
    assert json.loads(body)["total"] == "12.50"

    monkeypatch.setenv("PENSTOCK_SIGNING_SECRET", SECRET)
    handled: list[Any] = []
    names, _ = run(f"import os\n{receiving}", seen=set(), handle=handled.append)
    sent_s = int(time.time())
    signed = {"webhook-id": "msg_1", "webhook-timestamp": str(sent_s), "ce-type": "order", "ce-id": printed.strip()}
    signed |= {"content-type": "application/json", "content-length": str(len(body))}
    for signature, wanted in (("v1,AAAA", 0), (sign([signer(SECRET)], "msg_1", sent_s, body), 1)):
        request = Request(signed | {"Webhook-Signature": signature, "Content-Length": str(len(body))}, body)
        names["do_POST"](request)
        assert len(handled) == wanted
        assert request.answers == ([] if wanted else [401])
    assert str(handled[0].total) == "12.50"


class Request:
    """Request of Python's own HTTP server."""

    def __init__(self, headers: dict[str, str], body: bytes) -> None:
        self.headers, self.rfile, self.answers = headers, io.BytesIO(body), list[int]()

    def answer(self, status: int) -> None:
        """Record the answer."""
        self.answers.append(status)
