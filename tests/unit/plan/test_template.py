"""Request templates: for any content of a message, the request is sent to the destination's host."""

from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.ledger.meta import MessageMeta
from dataplane.names import WIRE_VERSION
from dataplane.plan import StageError
from dataplane.plan.template import CompiledTemplate, RenderedRequest
from dataplane.spec import RequestTemplate, SpecError, parse_pipe_spec
from tests.support.cpu import cpu_s

URL = "https://api.example.com/in?a=1"
META = MessageMeta(WIRE_VERSION, "m1", "p", 3, "shop", 1_790_000_000_000_000, 1_790_000_000_000_000, 0)


def made(template: RequestTemplate, body: Any) -> RenderedRequest:
    return CompiledTemplate(URL, template)(META, msgspec.json.encode(body))


def test_path_headers_and_body_are_rendered_from_the_message():
    template = RequestTemplate(
        path="/customers/${body.id}/orders?from=${meta.source}&at=${meta.event_time}",
        headers={"X-Title": "order ${body.n} of ${body.title}"},
        body='{"text": body.title, "all": [body.n, true]}',
    )
    request = made(template, {"id": "a/b c", "n": 7, "title": "Ä"})
    assert request.url == ("https://api.example.com/customers/a%2Fb%20c/orders?from=shop&at=2026-09-21T14%3A13%3A20Z")
    assert request.headers == ["X-Title: order 7 of %C3%84"]
    assert msgspec.json.decode(request.body or b"") == {"text": "Ä", "all": [7, True]}


def test_parts_without_a_template_are_unchanged():
    assert made(RequestTemplate(headers={"X-Id": "${meta.id}"}), {}) == RenderedRequest(URL, ["X-Id: m1"], None)


@pytest.mark.parametrize(
    ("value", "text"),
    [("x", "x"), (5, "5"), (1.5, "1.5"), (True, "true"), ("${body.v}", "$%7Bbody.v%7D".replace("$", "%24"))],
)
def test_value_is_inserted_as_text_and_not_expanded_again(value: object, text: str):
    assert made(RequestTemplate(path="/${body.v}"), {"v": value}).url == f"https://api.example.com/{text}"


@given(st.text(min_size=1))
def test_no_value_leaves_its_path_segment_or_adds_a_header(value: str):
    template = RequestTemplate(path="/a/${body.v}/b?q=${body.v}", headers={"X-V": "${body.v}"})
    if value in (".", ".."):
        with pytest.raises(StageError):
            made(template, {"v": value})
        return
    request = made(template, {"v": value})
    parts = urlsplit(request.url)
    assert (parts.scheme, parts.netloc, parts.fragment) == ("https", "api.example.com", "")
    first, name, last = parts.path.split("/")[1:]
    assert (first, unquote(name), last) == ("a", value, "b")
    assert unquote(parts.query) == f"q={value}"
    (line,) = request.headers
    assert line.isascii()
    assert line.isprintable()


@pytest.mark.parametrize(
    ("template", "body", "detail"),
    [
        pytest.param(RequestTemplate(path="/${body.id}"), {}, "path: no such field: id", id="no field"),
        pytest.param(
            RequestTemplate(path="/${body.id}"), {"id": ""}, "path: needs a value that is not empty", id="empty"
        ),
        pytest.param(RequestTemplate(path="/${body.id}"), {"id": None}, "path: needs a string, a number", id="null"),
        pytest.param(RequestTemplate(path="/${body.id}"), {"id": [1]}, "path: needs a string, a number", id="list"),
        pytest.param(RequestTemplate(path="/a/${body.id}/b"), {"id": ".."}, "path: the path must not", id="dots"),
        pytest.param(
            RequestTemplate(path="/a/.${body.id}"), {"id": "."}, "path: the path must not", id="dots in two parts"
        ),
        pytest.param(
            RequestTemplate(path="/${body.id}"), {"id": "x" * 9_000}, "path: the path needs at most", id="long path"
        ),
        pytest.param(
            RequestTemplate(headers={"X-A": "${body.id}"}), {"id": "x" * 9_000}, "headers.X-A: a header", id="long"
        ),
        pytest.param(RequestTemplate(body="body.none"), {}, "body: no such field: none", id="body"),
        pytest.param(RequestTemplate(body="1.0 / 0.0"), {}, "body: JSON cannot represent", id="infinity"),
    ],
)
def test_rendering_error_names_the_field(template: RequestTemplate, body: object, detail: str):
    with pytest.raises(StageError) as refused:
        made(template, body)
    assert refused.value.cause == "template"
    assert refused.value.detail.startswith(detail)


def test_all_expressions_of_a_request_share_the_cost_limit_of_a_message():
    costly = "${string(body.l.all(x, body.l.size() > x))}"
    template = RequestTemplate(path=f"/{costly}", headers={f"X-{n}": f"{costly}{costly}" for n in range(20)})
    body = {"l": list(range(4_000))}
    assert made(RequestTemplate(path=f"/{costly}"), body).url.endswith("/true")
    with pytest.raises(StageError, match="the stage costs more than"):
        made(template, body)


def test_long_value_is_refused_before_it_is_encoded():
    for template in (RequestTemplate(path="/${body.v}"), RequestTemplate(headers={"X-V": "${body.v}"})):
        compiled, body = CompiledTemplate(URL, template), msgspec.json.encode({"v": "\u20ac" * 80_000})

        def make(compiled: CompiledTemplate = compiled, body: bytes = body) -> None:
            with pytest.raises(StageError, match="characters"):
                compiled(META, body)

        assert cpu_s(make, 0.01) < 0.02


def test_body_that_is_not_json_is_decoded_only_if_the_template_needs_it():
    assert CompiledTemplate(URL, RequestTemplate(path="/${meta.id}"))(META, b"\x00").url == "https://api.example.com/m1"
    with pytest.raises(StageError, match="not JSON"):
        CompiledTemplate(URL, RequestTemplate(path="/${body.id}"))(META, b"\x00")


def parsed(template: object, **to: object) -> None:
    destination = {"type": "http", "url": URL, "template": template, **to}
    parse_pipe_spec({"sources": {"shop": {}}, "destinations": {"crm": destination}})


@pytest.mark.parametrize(
    "template",
    [
        {"path": "/a/${body.id}"},
        {"path": '/${ {"a": "}"}.a }'},
        {"path": "/${'}'}/b"},
        {"headers": {"X-Id": "$ {} ${meta.id}"}},
        {"path": "/${ body.a // }\n + '}' }/b"},
        {"path": '/${ r\'}\' + """}""" }/${{\'a\': {}}.a.b}'},
        {"body": '{"a": body}'},
    ],
)
def test_valid_template_is_accepted(template: object):
    parsed(template)


@pytest.mark.parametrize(
    ("template", "to", "field", "reason"),
    [
        ({}, {}, "", "needs a path, headers or a body"),
        ({"path": "a/${body.id}"}, {}, ".path", "begins with /"),
        ({"path": "/a b"}, {}, ".path", "white space"),
        ({"path": "/a#${body.id}"}, {}, ".path", "fragment"),
        ({"path": "/a\\b"}, {}, ".path", "backslash"),
        ({"path": "/${body.}"}, {}, ".path", "column"),
        ({"path": "/${nobody.id}"}, {}, ".path", "needs one of body, meta"),
        ({"path": "/${body.id"}, {}, ".path", "closing brace"),
        ({"path": "/" + "${body.a}" * 21}, {}, ".path", "at most 20 expressions"),
        ({"body": "body +"}, {}, ".body", "column"),
        ({"headers": {"X-A": "é"}}, {}, ".headers", "printable ASCII"),
        ({"headers": {"X-A": "a\nX-B: ${body.id}"}}, {}, ".headers", "printable ASCII"),
        ({"headers": {"X A": "x"}}, {}, ".headers", "header name"),
        ({"headers": {"webhook-id": "x"}}, {}, ".headers", "Penstock sets"),
        ({"headers": {"Penstock-Replay": "x"}}, {}, ".headers", "Penstock sets"),
        ({"headers": {"Authorization": "${body.token}"}}, {}, ".headers", "secret"),
        ({"headers": {"x-a": "x"}}, {"headers": {"X-A": "y"}}, ".headers", "constant headers"),
        ({"path": "/x"}, {"batch": {}}, "", "a batch"),
        ({"headers": {"X-Key": "x"}}, {"auth": {"type": "header", "name": "x-key"}}, None, "must not be one of"),
        ({"pfad": "/x"}, {}, "", "unknown field"),
    ],
)
def test_invalid_template_is_refused_with_its_path_and_reason(
    template: object, to: dict[str, object], field: str | None, reason: str
):
    with pytest.raises(SpecError) as refused:
        parsed(template, **to)
    where = ".auth.name" if field is None else f".template{field}"
    assert refused.value.path == f"$.destinations.crm{where}"
    assert reason in refused.value.reason
