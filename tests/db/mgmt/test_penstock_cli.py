"""`penstock generate` against the API: subjects, versions, references and sources become classes."""

import json
from pathlib import Path
from typing import Any

import pytest
from pytest_django.live_server_helper import LiveServer

from dataplane.schemas.types import SchemaType
from mgmt.models import Pipe, Tenant, User
from mgmt.registry.drafts import SchemaDraft, SchemaReference
from mgmt.services import create_tenant, register_version, set_event_types
from penstock_cli.__main__ import main
from tests.db.mgmt.registry_schemas import V1, V2, record

pytestmark = pytest.mark.django_db(transaction=True)
PASSWORD = "alice's long password"


@pytest.fixture(autouse=True)
def _signed_in(live_server: LiveServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_CONFIG_DIR", str(tmp_path / "settings"))
    monkeypatch.setenv("PENSTOCK_URL", live_server.url)
    monkeypatch.setenv("PENSTOCK_USER", "alice")
    monkeypatch.setenv("PENSTOCK_PASSWORD", PASSWORD)


@pytest.fixture
def orders(tenant: Tenant, alice: User) -> str:
    for schema in (V1, V2):
        register(tenant, alice, "orders-value", schema)
    return "orders-value"


def register(tenant: Tenant, author: User, subject: str, schema: Any, *references: SchemaReference) -> None:
    draft = SchemaDraft(SchemaType.AVRO, json.dumps(schema), references)
    register_version(tenant=tenant, subject=subject, draft=draft, author=author)


def generate(out: Path, *words: str, lang: str = "python") -> int:
    return main(["generate", "--lang", lang, "--out", str(out), *words])


def events(out: Path) -> str:
    return (out / "penstock_events" / "events.py").read_text()


def test_newest_version_of_a_subject_becomes_a_class(orders: str, tmp_path: Path, capsys: Any):
    assert generate(tmp_path, "--subject", f"order={orders}") == 0
    assert 'EVENT_TYPE: _typing.ClassVar[str] = "order"' in events(tmp_path)
    assert 'SCHEMA: _typing.ClassVar[str] = "orders-value@2"' in events(tmp_path)
    assert "note: str | None = None" in events(tmp_path)
    assert capsys.readouterr().out == f"wrote 7 files to {tmp_path}: order\n"


def test_named_version_becomes_a_class_and_the_subject_is_its_event_type(orders: str, tmp_path: Path):
    assert generate(tmp_path, "--subject", f"{orders}@1") == 0
    assert 'EVENT_TYPE: _typing.ClassVar[str] = "orders-value"' in events(tmp_path)
    assert "note" not in events(tmp_path)


def test_schemas_that_a_subject_refers_to_become_classes(tenant: Tenant, alice: User, tmp_path: Path):
    register(tenant, alice, "customers", record("com.shop.Customer", name="string"))
    reference = SchemaReference("com.shop.Customer", "customers", 1)
    register(tenant, alice, "visits", record("com.shop.Visit", customer="com.shop.Customer"), reference)
    assert generate(tmp_path, "--subject", "visits") == 0
    assert "customer: Customer" in events(tmp_path)
    assert "class Customer(_codecs.EventPart):" in events(tmp_path)


def test_all_event_types_of_a_source_become_classes(
    tenant: Tenant, alice: User, orders: str, pipe: Pipe, tmp_path: Path
):
    register(tenant, alice, "refunds", record("Refund", amount="double"))
    subjects = {"order": orders, "refund": "refunds"}
    set_event_types(source=pipe.sources.get(), type_from="header:ce-type", subjects=subjects, by=alice)
    assert generate(tmp_path, "--source", f"{pipe.id}/shop") == 0
    assert '"order": Order,' in events(tmp_path)
    assert '"refund": Refund,' in events(tmp_path)


def test_check_fails_after_a_new_version_and_writes_nothing(
    tenant: Tenant, alice: User, orders: str, tmp_path: Path, capsys: Any
):
    assert generate(tmp_path, "--subject", orders) == 0
    assert generate(tmp_path, "--subject", orders, "--check") == 0
    before = events(tmp_path)
    extra = {"type": ["null", "string"], "default": None}
    register(tenant, alice, orders, record(id="string", total="double", note=extra, extra=extra))
    capsys.readouterr()
    assert generate(tmp_path, "--subject", orders, "--check") == 1
    assert capsys.readouterr().err == f"penstock: {tmp_path}: is not up to date: penstock_events/events.py\n"
    assert events(tmp_path) == before


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--subject", "missing"], "missing: needs a subject that exists and has a version"),
        (["--subject", "orders-value@9"], "[not-found]"),
        (["--source", "pip_x/shop"], "[not-found]"),
        (["--source", "pip_x"], "pip_x: needs the id of a pipe and the name of a source"),
        (["--schema", "order.avsc"], "order.avsc: needs an event type and a file"),
        (["--schema", "order=missing.avsc"], "missing.avsc: cannot be read"),
        ([], "needs at least one event type"),
    ],
)  # fmt: skip
def test_error_is_one_sentence(orders: str, words: list[str], reason: str, tmp_path: Path, capsys: Any):
    assert generate(tmp_path / "out", *words) == 1
    shown = capsys.readouterr().err
    assert shown.startswith("penstock: ")
    assert reason in shown
    assert shown.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_subject_of_another_tenant_is_not_found(charlie: User, tenant: Tenant, tmp_path: Path, capsys: Any):
    theirs = create_tenant(name="theirs", owner=charlie)
    register(theirs, charlie, "secret", V1)
    assert generate(tmp_path / "out", "--subject", "secret") == 1
    assert "needs a subject that exists" in capsys.readouterr().err


def test_tenant_is_chosen_where_a_subject_is_in_several(
    alice: User, tenant: Tenant, orders: str, tmp_path: Path, capsys: Any
):
    second = create_tenant(name="second", owner=alice)
    register(second, alice, orders, record("com.second.Order", other="long"))
    assert generate(tmp_path, "--subject", orders) == 1
    assert "choose one with --tenant" in capsys.readouterr().err
    assert generate(tmp_path, "--subject", orders, "--tenant", str(second.id)) == 0
    assert "other: int" in events(tmp_path)


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("PENSTOCK_PASSWORD", "wrong", "[authentication-failed]"),
        ("PENSTOCK_USER", "", "Run `penstock login`"),
        ("PENSTOCK_URL", "ftp://x", "needs the URL of the console"),
        ("PENSTOCK_URL", "http://127.0.0.1:1", "refused"),
    ],
)  # fmt: skip
def test_wrong_environment_is_reported(
    orders: str, name: str, value: str, reason: str, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv(name, value)
    assert generate(tmp_path / "out", "--subject", orders) in (1, 3, 4)
    shown = capsys.readouterr().err
    assert reason in shown
    assert "Basic" not in shown
    assert PASSWORD not in shown
