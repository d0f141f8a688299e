"""Each curl command that the console or a guide shows works when it is pasted into a shell, exactly as it is shown.

bash and curl are real, and so are the API (in this process, on a port of its own), ingest, Kafka and the table service.
A call in the code that makes a command, but whose page is not opened here, fails the test.
"""

import ast
import html
import json
import re
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import FrameType
from typing import Any, Final

import pytest
import yaml
from cryptography.fernet import Fernet
from django.db import transaction
from django.template.loader import render_to_string
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from controlplane.observer.rejections import add_rejections
from dataplane.ledger.rejections import KAFKA, RejectionReport, RejectionSample
from dataplane.names import PURPOSES, cell_topic
from dataplane.schemas.types import SchemaType
from localbox.settings import ROOT
from mgmt import services
from mgmt.alerts import failure_sample
from mgmt.alerts.services.alerts import FailureGroup, note_failures
from mgmt.delivery_tests.services import request_destination_test
from mgmt.ledger.queries.bucket_range import bucket_at
from mgmt.models import Alert, Cell, DeadLetter, Pipe, Replay, ServiceAccount, Shadow, Tenant, Topic, User
from mgmt.registry.drafts import SchemaDraft
from mgmt.web import snippets
from tests.db.console.truth import go_live
from tests.db.console.undelivered import store_dead, store_held
from tests.db.mgmt.test_access_matrix import delivery_rows, ramp_of
from tests.db.replays import publish
from tests.support.cluster import key_of
from tests.support.live_ingest import CELL, LiveIngest, live_ingest
from tests.support.shown_commands import CURL_PAGES, curl_blocks
from tests.support.table_service import TableService
from tests.support.terminal import Terminal

pytestmark = pytest.mark.django_db(transaction=True)
MAKERS: Final = ("as_curl", "changes_curl", "request_curl", "row_curl", "send_curl", "send_snippets")
READERS_SERVER: Final = "http://127.0.0.1:9000/"  # a program of the reader, in docs/verify-signatures.md
COMMAND: Final = re.compile(r"<code>(curl .*?)</code>", re.DOTALL)
ORDER: Final = {"type": "record", "name": "Order", "fields": [{"name": "total", "type": "double"}]}
SPEC: Final[dict[str, Any]] = {
    "sources": {"shop": {"type": "http"}},
    "normalize": [{"op": "peek", "name": "raw", "share": 1}],
    "destinations": {"crm": {"type": "http", "url": "https://crm.example.com/in"}},
}
FEEDING: Final = {
    "sources": {"web": {"type": "http"}},
    "destinations": {"people": {"type": "table", "table": "users", "key": "body.id"}},
}
NEW_PIPE: Final[dict[str, Any]] = {
    "action": "save", "mode": "form", "name": "web-shop", "source.name": "web", "routes": "everything",
    "destination.name": ["main"], "destination.kind": ["http"], "destination.url": ["https://main.example.com/in"],
    "sample": '{"total": 150}',
}  # fmt: skip
ORDER_VALUE: Final = {  # as in docs/schema-registry.md
    "type": "record", "name": "Order", "namespace": "com.shop",
    "fields": [{"name": "id", "type": "string"}, {"name": "total", "type": "double"}],
}  # fmt: skip
UNCHANGED: Final = ("/edit/", "/delivery/")
Place = tuple[str, int]


def made_in_the_code() -> set[Place]:
    """Return file and line of each call that makes a command for a page."""
    found = set()
    for path in sorted((ROOT / "mgmt").rglob("*.py")):
        if path.is_relative_to(ROOT / "mgmt" / "web"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in MAKERS:
                found.add((str(path.relative_to(ROOT)), node.lineno))
    return found


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> set[Place]:
    """File and line of each call that has made a command."""
    found: set[Place] = set()

    def recording(make: Callable[..., str]) -> Callable[..., str]:
        def recorded(*args: Any) -> str:
            frame: FrameType | None = sys._getframe(1)
            while frame and (name := frame.f_code.co_filename).startswith(str(ROOT / "mgmt" / "web")):
                frame = frame.f_back
            if frame:
                found.add((str(Path(name).relative_to(ROOT)), frame.f_lineno))
            return make(*args)

        return recorded

    monkeypatch.setattr(snippets, "_in_lines", recording(snippets._in_lines))
    monkeypatch.setattr(failure_sample, "request_curl", recording(failure_sample.request_curl))
    return found


class Documented:
    """Successful statuses of each operation, from the OpenAPI document."""

    def __init__(self) -> None:
        document = yaml.load((ROOT / "docs" / "openapi.yaml").read_text(), yaml.CSafeLoader)
        self._operations = [
            (re.compile(re.sub(r"\{\w+\}", "[^/]+", path)), method, {int(code) for code in one["responses"]})
            for path, methods in document["paths"].items()
            for method, one in methods.items()
            if method != "parameters"
        ]

    def statuses(self, command: str) -> set[int]:
        """Return the documented 2xx statuses of the command's request."""
        verb = re.search(r"-X (\w+)", command)
        method = verb[1].lower() if verb else "post" if re.search(r" -d |--data", command) else "get"
        path = re.search(r"https?://[^/\s]+(/[^\s?'\"]*)", command)
        assert path, command
        matching = [
            codes for pattern, verb_, codes in self._operations if verb_ == method and pattern.fullmatch(path[1])
        ]
        return {code for codes in matching for code in codes if code < 300}


@pytest.fixture
def alice(settings: Settings, live_server: LiveServer) -> User:
    settings.PENSTOCK_FERNET_KEYS = [Fernet.generate_key().decode()]
    settings.PENSTOCK_WEB_URL = live_server.url
    user = User.objects.create_user("alice", password="alice's long password")
    User.objects.filter(id=user.id).update(is_staff=True)
    return user


@pytest.fixture
def tenant(alice: User) -> Tenant:
    return services.create_tenant(name="Alice's", owner=alice)


@pytest.fixture
def pipe(tenant: Tenant, alice: User) -> Pipe:
    """Live pipe with a row of each kind."""
    pipe = services.create_pipe(tenant=tenant, name="payments", spec=SPEC, author=alice)
    publish(pipe)
    for purpose in PURPOSES:
        topic = {"name": cell_topic(CELL, purpose, 1), "topic_id": purpose, "partitions": 1}
        cell = Cell.objects.get(id=CELL)
        Topic.objects.update_or_create(cell=cell, purpose=purpose, generation=1, defaults=topic)
    return pipe


@pytest.fixture(scope="module")
def running_ingest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveIngest]:
    with live_ingest(tmp_path_factory.mktemp("ingest")) as made:
        yield made


@pytest.fixture
def ingest(running_ingest: LiveIngest, settings: Settings) -> LiveIngest:
    settings.PENSTOCK_KAFKA, settings.PENSTOCK_INGEST_URL = running_ingest.kafka, running_ingest.url
    return running_ingest


@pytest.fixture
def hosts(tmp_path: Path, settings: Settings) -> Iterator[TableService]:
    service = TableService(tmp_path / "tables")
    service.fill("tab_0", "ten_0", "first", {})
    service.start()
    settings.PENSTOCK_FERNET_KEYS = [service.key, *settings.PENSTOCK_FERNET_KEYS]
    settings.PENSTOCK_TABLES_HOSTS, settings.PENSTOCK_TABLES_URL = [service.url], service.url
    yield service
    service.kill()


@pytest.fixture
def terminal(tmp_path: Path, pipe: Pipe, tenant: Tenant, alice: User, hosts: TableService) -> Terminal:
    """Shell of Alice, with the variables that pages name."""
    now = timezone.now()
    _, token = services.create_token(tenant=tenant, user=alice, by=alice, name="laptop", scope="admin", days=1, now=now)
    folder = tmp_path / "shell"
    folder.mkdir()
    return Terminal(folder, PENSTOCK_TOKEN=token, PENSTOCK_KEY=key_of(pipe.id), KEY="u-1")


def pages(pipe: Pipe, tenant: Tenant, alice: User, hosts: TableService, position: str) -> Iterator[str]:
    """Yield the address of each page that is opened without a form; `position`: of an event of the pipe."""
    now = timezone.now()
    with transaction.atomic():
        rows = delivery_rows(pipe)
        tenant.invitations.update(email="grace@example.com")
        pipe.moves.update(state="done")
        Replay.objects.update(state="done")
        store_dead(pipe, range(20, 22), now)
        store_held(pipe, range(30, 32), now)
    rejected = _reject(pipe, tenant, alice)
    table = services.create_lookup_table(tenant=tenant, name="users")
    feeding = services.create_pipe(tenant=tenant, name="sign-ups", spec=FEEDING, author=alice)
    go_live(feeding)
    hosts.fill(table.id, tenant.id, table.name, {"u-1": (1, '{"n":1}')})
    test = request_destination_test(destination=pipe.destinations.get(), event=b"{}", by=alice, now=timezone.now())
    subject = tenant.subjects.get()
    yield from ("/", "/tokens/", "/pipes/new/", "/members/", "/usage/", "/audit/", "/alerts/", "/alerts/channels/")
    yield from ("/portals/", "/single-sign-on/")
    yield from ("/tables/", f"/tables/{table.id}/", "/schemas/", "/schemas/new/", "/schemas/links/")
    yield from (f"/schemas/{subject.id}/", f"/tests/{test.id}/", f"/usage/?pipe={pipe.id}")
    yield f"/find/?pipe={pipe.id}&field=total&op=above&value=1&range=1h"
    of_pipe: tuple[str, ...] = ("pipe", "attempts", "dead", "held", "replays", "new_replay", "shadows", "tail")
    of_pipe += (
        "patterns",
        "rejections",
        "sequence",
        "windows",
        "revisions",
        "settings",
        "edit_pipe",
        "redrive",
        "release",
    )
    for name in of_pipe:
        query = "?destination=crm" if name in ("redrive", "release") else ""
        yield reverse(f"console:{name}", args=[pipe.id]) + query
    named = {
        "message": position, "destination": "crm", "delivery": "crm", "dead_letter": rows["letter"].id,
        "rejection": rejected, "accept_rejected": rejected, "replay": rows["replay"].id, "shadow": rows["shadow"].id,
        "alert": rows["alert"].id, "minute": bucket_at(timezone.now()) - 5, "schema": "shop", "event_types": "shop",
    }  # fmt: skip
    for name, argument in named.items():
        yield reverse(f"console:{name}", args=[pipe.id, argument])
    with transaction.atomic():
        ramp_of(pipe)
    yield reverse("console:ramp", args=[pipe.id, 2])


def _reject(pipe: Pipe, tenant: Tenant, alice: User) -> int:
    """Bind an event type whose schema an event has not fitted; return the number of the kind of rejection."""
    draft = SchemaDraft(SchemaType.AVRO, json.dumps(ORDER))
    services.register_version(tenant=tenant, subject="orders", draft=draft, author=alice)
    source = pipe.sources.get()
    services.set_event_types(source=source, type_from="header:x-event-type", subjects={"order": "orders"}, by=alice)
    now = timezone.now()
    sample = RejectionSample(int(now.timestamp()) * 1_000_000, 70, '{"total": "12.50"}')
    report = RejectionReport(
        pipe.id, "shop", event_type="order", code="schema", pointer="/total", sender=KAFKA, minute=bucket_at(now),
        events=3, detail="/total: needs double, got a text", samples=[sample],
    )  # fmt: skip
    with transaction.atomic():
        add_rejections([report])
    return int(pipe.rejections.latest("pk").pk)


def commands_of(browser: Client, address: str, form: dict[str, Any] | None = None) -> list[str]:
    """Return the commands of a page, as a browser shows them."""
    answer = browser.post(address, form, follow=True) if form is not None else browser.get(address)
    assert answer.status_code == 200, (address, answer.status_code)
    return [html.unescape(shown) for shown in COMMAND.findall(answer.content.decode())]


class _Refusing(BaseHTTPRequestHandler):
    """Endpoint of a destination that answers 401."""

    def do_POST(self) -> None:
        """Read the body and refuse it."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(401)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


@pytest.fixture
def endpoint() -> Iterator[str]:
    """URL of a receiver that answers 401."""
    with HTTPServer(("127.0.0.1", 0), _Refusing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/in?key=1"
        server.shutdown()


def alert_of(pipe: Pipe, endpoint: str) -> Alert:
    """Open an alert about a dead letter of the destination crm, with its sample."""
    crm, now = pipe.destinations.get(name="crm"), timezone.now()
    crm.config = {"type": "http", "url": endpoint, "auth": {"type": "bearer"}}
    with transaction.atomic():
        store_dead(pipe, range(7, 8), now)
    sample = failure_sample.sample_of(DeadLetter.objects.get(message_id="m7"), crm)
    note_failures(failures=[FailureGroup(pipe.id, "crm", "rejected", 1, now, sample, suspended=False)], now=now)
    return Alert.objects.get(pipe=pipe, cause="rejected")


def test_each_command_of_a_page_works_as_it_is_shown(
    pipe: Pipe,
    tenant: Tenant,
    alice: User,
    ingest: LiveIngest,
    hosts: TableService,
    terminal: Terminal,
    called: set[Place],
    endpoint: str,
):
    documented, browser = Documented(), Client()
    wrong: dict[tuple[str, str], tuple[set[int], str]] = {}
    browser.force_login(alice)
    position = ingest.accept(pipe.id, pipe.tenant_id, terminal.env["PENSTOCK_KEY"])

    def try_all(page: str, commands: list[str]) -> None:
        if not commands:
            wrong[page, ""] = (set(), "the page shows no command")
        for command in commands:
            others = {ingest.url: {202}, endpoint.partition("?")[0]: {401}}
            expected = next((codes for url, codes in others.items() if url in command), documented.statuses(command))
            if page.endswith(UNCHANGED):
                expected = {409}  # `unchanged`, as documented: the form has no change yet
            statuses, printed = terminal.run(command)
            if access := re.search(r'"token":\s*"([^"]+)"', printed if "/access/" in command else ""):
                terminal.env["ACCESS_TOKEN"] = access[1]
            if len(statuses) != 1 or statuses[0] not in (expected or {200}):
                wrong[page, command] = (expected, printed)

    for address in pages(pipe, tenant, alice, hosts, position):
        try_all(address, commands_of(browser, address))
    token = {"name": "CI", "scope": "read", "pipe": pipe.id, "days": "90"}
    try_all("created token", commands_of(browser, "/tokens/", token))
    created = commands_of(browser, "/pipes/new/", NEW_PIPE)
    new = Pipe.objects.get(name="web-shop")
    ingest.accept(new.id, new.tenant_id, re.findall(r"Bearer (psk_\w+)", created[0])[0])
    try_all("created pipe", created[:1])  # the second one creates the pipe once more, under a name that is taken
    alert = alert_of(pipe, endpoint)
    (terminal.folder / "message.json").write_text("{}")
    shown = commands_of(browser, reverse("console:alert", args=[pipe.id, alert.id]))
    try_all("alert", shown)
    assert alert.sample["curl"] in shown
    assert alert.sample["curl"] in render_to_string("alerts/emails/latest_failure.txt", {"alert": alert})
    missing = made_in_the_code() - called
    assert not missing, (missing, list(wrong))
    assert not wrong, "\n\n".join(f"{page}\n{command}\n{why}" for (page, command), why in wrong.items())


# Documented refusals of commands for which the state of this test is too simple.
REFUSED: Final = {
    "https://login.acme.example": 409,  # an identity provider that does not exist
    '-X POST "$PENSTOCK/api/v1/pipes/$PIPE/replays/$REPLAY/repeat-failed/"': 409,  # nothing has failed
    "/shadows/$SHADOW/promote/": 409,  # the run is not done
    "/compare/": 409,  # the ledger has no event yet
    "avro/binary": 415,  # the source of the test has no event types
}


def commands_in(text: str) -> list[str]:
    """Return the first line of each command for a server of Penstock."""
    lines = [line.lstrip() for line in text.splitlines()]
    return [line for line in lines if line.startswith("curl ") and READERS_SERVER not in line]


def documented_commands() -> Iterator[tuple[str, str]]:
    """Yield page and text of each block of the guides that begins with curl."""
    shown = curl_blocks()
    for path in CURL_PAGES:
        found = [one.text for one in shown if one.page == path]
        assert commands_in("\n".join(found)) == commands_in(path.read_text()), path
        yield from ((path.name, text) for text in found)


def variables_of(pipe: Pipe, tenant: Tenant, alice: User, hosts: TableService) -> dict[str, str]:
    """Return the variables of the guides, which name rows that exist."""
    now = timezone.now()
    for subject in ("orders-value", "refunds-value"):
        draft = SchemaDraft(SchemaType.AVRO, json.dumps(ORDER_VALUE))
        services.register_version(tenant=tenant, subject=subject, draft=draft, author=alice)
    with transaction.atomic():
        rows = delivery_rows(pipe)
        Replay.objects.update(state="done")
        Shadow.objects.update(state="done")
        ServiceAccount.objects.update(name="old")
    account = services.create_service_account(tenant=tenant, name="ci", role="editor", by=alice, now=now)
    table = services.create_lookup_table(tenant=tenant, name="users")
    feeding = services.create_pipe(tenant=tenant, name="sign-ups", spec=FEEDING, author=alice)
    go_live(feeding)
    hosts.fill(table.id, tenant.id, table.name, {"u-1": (1, '{"n":1}')})
    key, _ = services.create_api_key(source=pipe.sources.get(), label="shop")
    token, _ = services.create_token(tenant=tenant, user=alice, by=alice, name="old", scope="read", days=1, now=now)
    return {
        "TENANT": tenant.id, "PIPE": pipe.id, "TABLE": table.id, "KEY": key.id, "TOKEN": token.id,
        "ACCOUNT": account.id, "REPLAY": rows["replay"].id, "BACKFILL": rows["backfill"].id,
        "SHADOW": rows["shadow"].id,
        "TABLE_URL": f"{hosts.url}/v1/tables/{table.id}",
        "ACCESS_TOKEN": hosts.token(table.id, tenant.id, table.name),
    }  # fmt: skip


def test_each_command_of_the_guides_works_as_it_is_shown(
    pipe: Pipe,
    tenant: Tenant,
    alice: User,
    ingest: LiveIngest,
    hosts: TableService,
    terminal: Terminal,
    live_server: LiveServer,
):
    ingest.accept(pipe.id, pipe.tenant_id, terminal.env["PENSTOCK_KEY"])
    terminal.env |= {"PENSTOCK": live_server.url, "INGEST": ingest.url}
    terminal.env |= variables_of(pipe, tenant, alice, hosts)
    spec = {**SPEC, "normalize": [{"op": "filter", "when": "body.total > 1"}]}
    (terminal.folder / "examples").symlink_to(ROOT / "examples")
    (terminal.folder / "orders.avro").write_bytes(b"")
    wrong = []
    for page, command in documented_commands():
        based_on = {"based_on": 1} if page == "shadow-runs.md" else {}
        (terminal.folder / "draft.json").write_text(json.dumps(based_on | {"spec": spec}))
        statuses, printed = terminal.run(command)
        if page == "bind-event-types.md":  # the commands of later guides need none
            services.set_event_types(source=pipe.sources.get(), type_from="", subjects={}, by=alice)
        expected = next((status for part, status in REFUSED.items() if part in command), 0)
        sound = all(status == expected if expected else 200 <= status < 300 for status in statuses)
        if len(statuses) != command.count("curl ") or not sound:
            wrong.append(f"{page}\n{command}\n{printed}")
    assert not wrong, "\n\n".join(wrong)
