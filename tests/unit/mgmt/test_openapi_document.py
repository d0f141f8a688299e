"""docs/openapi.yaml is worth generating clients from: each field and parameter is described, with a valid example."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator, FormatChecker  # type: ignore[import-untyped]

from controlplane.observer.notices import notification_text
from dataplane.ingest.event_results import EventResult
from dataplane.ingest.events import _READERS
from dataplane.ingest.problems import ProblemBody
from dataplane.names import EVENTS_PATH
from mgmt.models import Alert, AlertChannel, Notification, Pipe
from mgmt.web.problems import MEDIA_TYPE

DOCUMENT = Path(__file__).parents[3] / "docs" / "openapi.yaml"
METHODS = {"get", "post", "put", "patch", "delete"}
LOOK_AROUND = re.compile(r"\(\?[=!<]")


@pytest.fixture(scope="module")
def document() -> Any:
    return yaml.load(DOCUMENT.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 both safe


def operations(document: Any) -> Iterator[tuple[str, Any]]:
    for group in ("paths", "webhooks"):
        for path, methods in document[group].items():
            for method, operation in methods.items():
                assert method in METHODS, path
                yield f"{method} {path}", operation


def fields(schema: Any) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a schema, also of nested ones."""
    if isinstance(schema, dict):
        if isinstance(schema.get("properties"), dict):
            yield from schema["properties"].items()
        for value in schema.values():
            yield from fields(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from fields(value)


def parts(value: Any, where: str = "#") -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(value, dict):
        yield where, value
        for name, part in value.items():
            yield from parts(part, f"{where}/{name}")
    elif isinstance(value, list):
        for number, part in enumerate(value):
            yield from parts(part, f"{where}/{number}")


def test_each_field_has_a_description(document: Any):
    schemas = document["components"]["schemas"].items()
    bare = [f"{body}.{name}" for body, one in schemas for name, field in fields(one) if not field.get("description")]
    assert not bare, "add a help_text, or an entry in mgmt/web/document/fields"


def test_each_body_and_operation_has_a_description(document: Any):
    assert not [name for name, one in document["components"]["schemas"].items() if not _is_described(one)]
    assert not [name for name, one in operations(document) if not (one.get("description") and one.get("summary"))]


def _is_described(schema: Any) -> bool:
    return bool(schema.get("description") or "enum" in schema)


def test_each_parameter_has_a_description_and_an_example(document: Any):
    found = [(f"{name}: {one['name']}", one) for name, op in operations(document) for one in op.get("parameters", [])]
    assert not [name for name, one in found if not one.get("description")]
    assert not [name for name, one in found if "example" not in one]


def test_each_plain_field_has_an_example(document: Any):
    bare = [
        f"{body}.{name}"
        for body, one in document["components"]["schemas"].items()
        for name, field in fields(one)
        if _types(field) & {"string", "integer", "number", "boolean"} and "examples" not in field
    ]
    assert not bare


def _types(field: Any) -> set[str]:
    kind = field.get("type", [])
    return {kind} if isinstance(kind, str) else set(kind)


def test_each_example_is_valid(document: Any):
    wrong = []
    for where, part in parts(document):
        examples: Any = part.get("examples") if isinstance(part.get("examples"), list) else []
        if "schema" in part and "example" in part:
            checked, examples = part["schema"], [part["example"]]
        else:
            checked = part
        root = {**checked, "components": document["components"]}  # the target of its references
        validator = Draft202012Validator(root, format_checker=FormatChecker())
        wrong += [f"{where}: {error.message}" for one in examples for error in validator.iter_errors(one)]
    assert not wrong


def test_each_response_is_described(document: Any):
    bare = [
        f"{name} {status}"
        for name, one in operations(document)
        for status, response in one["responses"].items()
        if not response.get("description")
    ]
    assert not bare


def test_refusals_are_problems_and_name_their_codes(document: Any):
    for name, one in operations(document):
        for status, response in one["responses"].items():
            if "/api/v1/" in name and status >= "400" and "schema/" not in name.split("/api/v1/")[1][:8]:
                assert list(response["content"]) == [MEDIA_TYPE], name
                assert "`" in response["description"], f"{name} {status}"


def test_waits_are_documented(document: Any):
    for name, one in operations(document):
        for status, response in one["responses"].items():
            if status in ("429", "503") and "webhooks" not in name and "/v1/" in name:
                assert "Retry-After" in response["headers"], f"{name} {status}"


def test_patterns_need_no_look_around(document: Any):
    patterns = [part["pattern"] for _, part in parts(document) if isinstance(part.get("pattern"), str)]
    assert patterns
    assert not [one for one in patterns if LOOK_AROUND.search(one)]


def test_operations_have_one_tag_that_is_described_or_named(document: Any):
    known = [tag["name"] for tag in document["tags"]]
    assert len(known) == len(set(known)) > 10
    used = {tag for _, one in operations(document) for tag in one["tags"]}
    assert used == set(known)
    assert all(len(one["tags"]) == 1 for _, one in operations(document))


def test_unions_of_the_spec_are_told_apart_by_their_type(document: Any):
    schemas = document["components"]["schemas"]
    destinations = schemas["PipeSpec"]["properties"]["destinations"]["additionalProperties"]
    assert set(destinations["discriminator"]["mapping"]) == {"http", "lake", "topic", "table", "s3", "postgres"}
    assert len(destinations["oneOf"]) == 6
    unions = [part for _, part in parts(schemas) if "discriminator" in part]
    assert all("oneOf" in one for one in unions)


def test_no_object_is_a_default(document: Any):
    """The generator of Python clients drops a type that has one."""
    assert not [
        where
        for where, part in parts(document["components"])
        if isinstance(part.get("default"), dict) and part["default"]
    ]


def test_lists_with_pages_have_one_style(document: Any):
    """`limit` and `cursor` in the query, `next` and `previous` in the body."""
    schemas = document["components"]["schemas"]
    for name, one in operations(document):
        content = one["responses"].get("200", {}).get("content", {})
        ref = content.get("application/json", {}).get("schema", {}).get("$ref", "").rpartition("/")[2]
        query = {p["name"] for p in one.get("parameters", []) if p["in"] == "query"}
        if "next" in schemas.get(ref, {}).get("properties", {}):
            assert {"limit", "cursor"} <= query, name
            assert {"next", "previous", "results"} <= set(schemas[ref]["properties"]), name


def test_posts_take_idempotency_keys_except_reads_streams_and_mails(document: Any):
    without = {
        one["operationId"]
        for name, one in operations(document)
        if name.startswith("post /api/") and not any(p["name"] == "Idempotency-Key" for p in one.get("parameters", []))
    }
    assert without == {
        "dry_run",
        "compare_draft",
        "check_schema_version",
        "preview_move",
        "upload_lookup_rows",
        "invite_member",
        "resend_invitation",
        "test_single_sign_on",
    }


def test_unsafe_methods_of_a_session_need_the_csrf_token(document: Any):
    for name, one in operations(document):
        if "/api/" in name and not name.startswith("get"):
            assert {"session": [], "csrf": []} in one["security"], name


def test_ingest_section_matches_ingest(document: Any):
    operation = document["paths"][EVENTS_PATH]["post"]
    schemas = document["components"]["schemas"]
    assert set(_READERS) < set(operation["requestBody"]["content"])
    assert set(schemas["EventAckOut"]["properties"]) == set(EventResult.__struct_fields__)
    assert set(schemas["EventProblemOut"]["properties"]) == set(ProblemBody.__struct_encode_fields__)


def test_alert_notice_matches_the_observer(document: Any):
    alert = Alert(pipe=Pipe(id="pipe_1", name="orders", tenant_id="ten_1"), id="alert_1")
    alert.opened_at = alert.last_at = datetime(2026, 1, 31, 12, tzinfo=UTC)
    sent = notification_text(Notification(alert=alert, channel=AlertChannel(), what="opened"))
    assert set(document["components"]["schemas"]["AlertNotice"]["properties"]) == set(sent)
