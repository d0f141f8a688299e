"""Schema page of a source: instructions, trial and registration, and each breaking change with its path."""

import json
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django.fixtures import DjangoAssertNumQueries

from mgmt.models import Pipe, SourceSchema, User
from mgmt.services import close_pipe, register_schema
from tests.db.console.truth import BrowserOf

pytestmark = pytest.mark.django_db
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"id": {"type": "string"}}}
QUERIES = 16


@pytest.fixture(autouse=True)
def _no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mgmt.messages.queries.records.READ_S", 0.05)


@pytest.fixture
def url(pipe: Pipe) -> str:
    return reverse("console:schema", args=[pipe.id, "shop"])


def posted(browser: Client, url: str, document: Any, action: str = "register") -> Any:
    text = document if isinstance(document, str) else json.dumps(document)
    return browser.post(url, {"schema": text, "action": action})


def test_settings_link_to_a_page_with_instructions(alices: Client, pipe: Pipe, url: str, alice: User):
    settings = reverse("console:settings", args=[pipe.id])
    assert f'href="{url}">No schema<' in alices.get(settings).content.decode()
    shown = alices.get(url).content.decode()
    assert "accepts any JSON" in shown
    assert "/sources/shop/schemas/" in shown
    register_schema(source=pipe.sources.get(), document=SCHEMA, author=alice)
    assert f'href="{url}">Schema, version 1<' in alices.get(settings).content.decode()


def test_schema_is_tried_and_then_registered(alices: Client, url: str):
    tried = posted(alices, url, SCHEMA, "try").content.decode()
    assert "The schema is valid" in tried
    assert not SourceSchema.objects.exists()
    assert posted(alices, url, SCHEMA)["Location"] == url
    shown = alices.get(url).content.decode()
    assert "Version 1 registered" in shown
    assert "alice" in shown
    assert "Identical to version" in alices.post(url, {"schema": json.dumps(SCHEMA)}, follow=True).content.decode()


def test_breaking_change_is_named_and_input_is_kept(alices: Client, pipe: Pipe, url: str, alice: User):
    register_schema(source=pipe.sources.get(), document=SCHEMA, author=alice)
    for action in ("try", "register"):
        answer = posted(alices, url, SCHEMA | {"required": ["id"]}, action)
        assert answer.status_code == 409
        shown = answer.content.decode()
        assert "<code>id</code> is required now" in shown
        assert "&quot;required&quot;: [&quot;id&quot;]" in shown
    assert SourceSchema.objects.count() == 1


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ("{", "needs JSON: line 1 column 2"),
        ({"type": "strin"}, "<code>/type</code> needs types of"),
        ({"pattern": "(?=a)"}, "linear time"),
        ("<script>alert(1)</script>", "&lt;script&gt;"),
    ],
)
def test_invalid_schema_is_refused_at_its_field(alices: Client, url: str, document: Any, words: str):
    answer = posted(alices, url, document)
    assert answer.status_code == 422
    assert words in answer.content.decode()


def test_viewer_reads_the_schema_and_other_tenant_gets_404(
    browser_of: BrowserOf, viewer: User, charlie: User, url: str, pipe: Pipe
):
    shown = browser_of(viewer).get(url)
    assert shown.status_code == 200
    assert "<textarea" not in shown.content.decode()
    assert posted(browser_of(viewer), url, SCHEMA).status_code == 403
    assert browser_of(charlie).get(url).status_code == 404
    assert posted(browser_of(charlie), url, SCHEMA).status_code == 404
    assert browser_of(viewer).get(url.replace("/shop/", "/none/")).status_code == 404


def test_closed_pipe_and_kafka_source_have_no_schema_form(alices: Client, pipe: Pipe, url: str):
    close_pipe(pipe=pipe)
    assert "<textarea" not in alices.get(url).content.decode()
    assert posted(alices, url, SCHEMA).status_code == 409


def test_page_has_a_constant_query_count_for_one_version_and_many(
    alices: Client, pipe: Pipe, url: str, alice: User, django_assert_num_queries: DjangoAssertNumQueries
):
    source = pipe.sources.get()
    register_schema(source=source, document=SCHEMA, author=alice)
    with django_assert_num_queries(QUERIES):
        alices.get(url)
    for number in range(2, 9):
        register_schema(source=source, document=SCHEMA | {"title": str(number)}, author=alice)
    with django_assert_num_queries(QUERIES):
        alices.get(url)
