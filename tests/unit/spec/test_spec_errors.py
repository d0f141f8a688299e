"""A spec that cannot run is refused with the path of the field at fault."""

import re
from typing import Any

import msgspec
import pytest

from dataplane.spec import PipeSpec, SpecError, parse_pipe_spec, spec_to_builtins
from dataplane.spec.error_texts import in_words

EXPLODE = {"op": "explode", "path": "lines"}
CRM = {"type": "http", "url": "https://crm.example/hook"}


def spec(**fields: Any) -> dict[str, Any]:
    return {"sources": {"shop": {}}, "destinations": {"crm": CRM}, **fields}


def shaped(*steps: dict[str, Any]) -> dict[str, Any]:
    return spec(normalize=list(steps))


def routed(when: str, *to: str, **more: Any) -> dict[str, Any]:
    return spec(routes={"rules": [{"when": when, "to": list(to)}], **more})


@pytest.mark.parametrize(
    ("document", "path"),
    [
        pytest.param(spec(color="red"), "$", id="unknown field"),
        pytest.param(spec(version=2), "$.version", id="version of the future"),
        pytest.param(spec(sources=[]), "$.sources", id="sources of the wrong type"),
        pytest.param(spec(sources={}), "$.sources", id="no source"),
        pytest.param(spec(sources={"Shop One": {}}), "$.sources", id="bad source name"),
        pytest.param(spec(sources={"shop\n": {}}), "$.sources", id="name with a final newline"),
        pytest.param(spec(sources={"s" * 41: {}}), "$.sources", id="name too long"),
        pytest.param(spec(sources={"shop": {"key": "a..b"}}), "$.sources.shop.key", id="empty segment in a path"),
        pytest.param(spec(sources={"shop": {"key": "a\n"}}), "$.sources.shop.key", id="path with a final newline"),
        pytest.param(
            spec(sources={"a": {}, "b": {"keys": "x"}}), "$.sources.b", id="unknown field of the second source"
        ),
        pytest.param(
            spec(destinations={"crm": {**CRM, "url": 3}}), "$.destinations.crm.url", id="url of the wrong type"
        ),
        pytest.param(spec(destinations={"crm": {**CRM, "type": "ftp"}}), "$.destinations.crm.type", id="unknown type"),
        pytest.param(
            spec(destinations={"ok": CRM, "crm": {**CRM, "retry": {"local_tries": 0}}}),
            "$.destinations.crm.retry.local_tries",
            id="nested limit",
        ),
        pytest.param(
            spec(destinations={"crm": {**CRM, "timeout_s": 31}}), "$.destinations.crm.timeout_s", id="timeout"
        ),
        pytest.param(spec(destinations={"C": CRM}), "$.destinations", id="bad destination name"),
        pytest.param(spec(normalize=[{"op": "explod"}]), "$.normalize[0].op", id="unknown step"),
        pytest.param(spec(normalize=[{"op": "set", "path": "a"}]), "$.normalize[0]", id="step without its value"),
        pytest.param(
            spec(normalize=[{"op": "cast", "path": "a", "to": "int", "x": 1}]), "$.normalize[0]", id="extra field"
        ),
        pytest.param(
            spec(transform={"crm": [{"op": "keep", "fields": []}]}), "$.transform.crm[0].fields", id="empty keep"
        ),
        pytest.param(spec(transform={"crn": []}), "$.transform.crn", id="transform for nobody"),
        pytest.param(
            spec(normalize=[{"op": "cast", "path": "a", "to": "int", "currency": "EUR"}]),
            "$.normalize[0].currency",
            id="currency of no money",
        ),
        pytest.param(shaped({"op": "set", "path": "$", "value": 1}), "$.normalize[0].path", id="set the body"),
        pytest.param(shaped({"op": "map", "path": "a.*", "expr": "1"}), "$.normalize[0].path", id="map to each"),
        pytest.param(shaped({"op": "rename", "path": "a", "to": "*"}), "$.normalize[0].to", id="rename to each"),
        pytest.param(shaped({"op": "keep", "fields": ["a", "b..c"]}), "$.normalize[0].fields[1]", id="keep a bad path"),
        pytest.param(shaped(EXPLODE, EXPLODE), "$.normalize[1]", id="two explodes"),
        pytest.param(spec(transform={"crm": [EXPLODE]}), "$.transform.crm[0]", id="explode after the route"),
        pytest.param(shaped({"op": "filter", "when": "body.a >"}), "$.normalize[0].when", id="half a condition"),
        pytest.param(
            spec(transform={"crm": [{"op": "map", "path": "a", "expr": "table.x"}]}),
            "$.transform.crm[0].expr",
            id="a table that nobody declared",
        ),
        pytest.param(spec(routes={"rules": []}), "$.routes.rules", id="routes without rules"),
        pytest.param(routed("1 +", "crm"), "$.routes.rules[0].when", id="a bad rule"),
        pytest.param(routed("true"), "$.routes.rules[0].to", id="a rule to nowhere"),
        pytest.param(routed("true", "crn"), "$.routes.rules[0].to", id="a rule to nobody"),
        pytest.param(routed("true", "crm", "crm"), "$.routes.rules[0].to", id="one twice"),
        pytest.param(
            routed("true", "crm", otherwise=["x"]),
            "$.routes.otherwise",
            id="otherwise",
        ),
        pytest.param(routed("true", "crm", mode="any"), "$.routes.mode", id="unknown mode"),
        pytest.param(
            spec(normalize=[{"op": "filter", "when": f"body.a{n:01000} == 1"} for n in range(66)]),
            "$",
            id="too much text of expressions",
        ),
        pytest.param(
            shaped({"op": "set", "path": "a", "value": "x" * 65_535}), "$.normalize[0].value", id="a large constant"
        ),
        pytest.param(
            shaped({"op": "default", "path": "a", "value": [{}] * 30_000}), "$.normalize[0].value", id="a large default"
        ),
        pytest.param(
            spec(
                enrich=[{"table": "t", "key": "body.a", "into": "b", "on_missing": "default", "default": "x" * 65_535}]
            ),
            "$.enrich[0].default",
            id="a large default row",
        ),
        pytest.param(
            spec(
                destinations={
                    "crm": {**CRM, "rules": [{"when": {"status": "5xx", "body": "[ab]*a[ab]{600}x"}, "then": "dead"}]}
                }
            ),
            "$.destinations.crm.rules",
            id="a pattern that would take too long to search for",
        ),
        pytest.param(b'{"sources":', "$", id="no JSON"),
        pytest.param(b'"\xff"', "$", id="no UTF-8"),
        pytest.param(b"[" * 100_000, "$", id="too deep"),
        pytest.param(b"[]", "$", id="no object"),
    ],
)
def test_error_names_the_path(document: dict[str, Any] | bytes, path: str):
    with pytest.raises(SpecError) as refused:
        parse_pipe_spec(document)
    assert refused.value.path == path
    assert refused.value.reason
    assert "[...]" not in str(refused.value)


@pytest.mark.parametrize("as_bytes", [False, True])
def test_text_and_mapping_give_the_same_error(as_bytes: bool):
    document = spec(destinations={"crm": {"type": "http"}})
    with pytest.raises(SpecError, match=r"^\$\.destinations\.crm: .*url"):
        parse_pipe_spec(msgspec.json.encode(document) if as_bytes else document)


@pytest.mark.parametrize(
    "url",
    [
        "ftp://crm.example/", "file:///etc/passwd", "gopher://x.example/", "//crm.example/hook", "crm.example/hook",
        "https://", "https:///hook", "https://user@crm.example/", "https://user:pw@crm.example/",
        "https://crm.example/#part", "https://crm.example/a b", "https://crm.example/\n", "https://crm.example\\@b.example/",
        "https://crm.example:0/", "https://crm.example:65536/", "https://crm.example:x/", "http://[::1/",
    ],
)  # fmt: skip
def test_ambiguous_urls_are_refused(url: str):
    with pytest.raises(SpecError) as refused:
        parse_pipe_spec(spec(destinations={"crm": {"type": "http", "url": url}}))
    assert refused.value.path == "$.destinations.crm.url"


@pytest.mark.parametrize("url", ["http://crm.example/", "https://crm.example:8443/a/b?c=d", "https://[2001:db8::1]/x"])
def test_plain_urls_are_accepted(url: str):
    assert parse_pipe_spec(spec(destinations={"crm": {"type": "http", "url": url}})).destinations["crm"].url == url


def test_spec_survives_a_round_trip_through_builtins():
    document = spec(
        normalize=[{"op": "set", "path": "a.b", "value": [1]}, {"op": "mask", "path": "a"}],
        transform={"crm": [{"op": "keep", "fields": ["a"]}]},
        routes={"rules": [{"when": "body.a == 1", "to": ["crm"]}], "otherwise": ["crm"]},
    )
    parsed = parse_pipe_spec(document)
    assert isinstance(parsed, PipeSpec)
    assert parse_pipe_spec(spec_to_builtins(parsed)) == parsed
    assert parse_pipe_spec(msgspec.json.encode(spec_to_builtins(parsed))) == parsed


def a_destination(**fields: Any) -> dict[str, Any]:
    return spec(destinations={"ok": CRM, "crm": {**CRM, **fields}})


@pytest.mark.parametrize(
    ("document", "path"),
    [
        pytest.param(a_destination(rate_per_s=0), "rate_per_s", id="no rate"),
        pytest.param(
            a_destination(rules=[{"when": {"status": "6xx"}, "then": "dead"}]), "rules[0].when.status", id="6xx"
        ),
        pytest.param(
            a_destination(rules=[{"when": {"status": "500-400"}, "then": "dead"}]),
            "rules[0].when.status",
            id="backwards",
        ),
        pytest.param(
            a_destination(rules=[{"when": {"status": "408"}, "then": "forget"}]), "rules[0].then", id="verdict"
        ),
        pytest.param(
            a_destination(rules=[{"when": {"status": "200", "body": "(?=x)"}, "then": "dead"}]),
            "rules[0].when.body",
            id="pattern that needs back-tracking",
        ),
        pytest.param(a_destination(batch={"format": "csv"}), "batch.format", id="format of a batch"),
        pytest.param(a_destination(auth={"type": "kerberos"}), "auth.type", id="unknown auth"),
        pytest.param(a_destination(auth={"type": "bearer", "token": "x"}), "auth", id="secret in the spec"),
        pytest.param(a_destination(auth={"type": "header", "name": "a b"}), "auth.name", id="header auth of two words"),
        pytest.param(
            a_destination(auth={"type": "header", "name": "x-key"}, headers={"X-Key": "v"}), "auth.name", id="set twice"
        ),
        pytest.param(
            a_destination(auth={"type": "basic", "username": "a:b"}), "auth.username", id="colon in a user name"
        ),
        pytest.param(
            a_destination(auth={"type": "oauth2", "token_url": "ftp://x.example/", "client_id": "c"}),
            "auth.token_url",
            id="token from nowhere",
        ),
        pytest.param(a_destination(headers={"x": 1}), "headers", id="value of the wrong type"),
        pytest.param(a_destination(headers={"x": "a\r\nb: c"}), "headers", id="line break in a value"),
        pytest.param(a_destination(headers={"x:y": "a"}), "headers", id="colon in a name"),
        pytest.param(a_destination(headers={"Content-Length": "1"}), "headers", id="libcurl's"),
        pytest.param(a_destination(headers={"Webhook-Id": "1"}), "headers", id="ours"),
        pytest.param(a_destination(headers={"Authorization": "Bearer x"}), "headers", id="a secret as a header"),
    ],
)
def test_error_names_the_invalid_setting_of_a_destination(document: dict[str, Any], path: str):
    with pytest.raises(SpecError) as refused:
        parse_pipe_spec(document)
    assert refused.value.path == f"$.destinations.crm.{path}"


def test_destination_with_every_setting_survives_a_round_trip_through_builtins():
    document = a_destination(
        rate_per_s=5.5,
        rules=[
            {"when": {"status": "200", "body": "error"}, "then": "retry"},
            {"when": {"status": "4xx"}, "then": "dead"},
        ],
        ordered=True,
        after_dead="hold",
        batch={"max_events": 10, "format": "ndjson"},
        auth={"type": "oauth2", "token_url": "https://id.example/token", "client_id": "c", "scope": "a b"},
        headers={"X-Shop": "main"},
    )
    parsed = parse_pipe_spec(document)
    assert parse_pipe_spec(spec_to_builtins(parsed)) == parsed


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        pytest.param(
            spec(normalize=[{"op": "remove", "path": "a..b"}]),
            "$.normalize[0].path: needs names separated by dots, such as order.total",
            id="path",
        ),
        pytest.param(
            spec(routes={"rules": [{"when": "true", "to": ["C R M"]}]}),
            "$.routes.rules[0].to[0]: needs 1-40 of a-z, 0-9 and '-', such as crm",
            id="name",
        ),
        pytest.param(
            spec(normalize=[{"op": "cast", "path": "a", "to": "money", "currency": "euro"}]),
            "$.normalize[0].currency: needs a currency of three capital letters, such as EUR",
            id="currency",
        ),
        pytest.param(
            spec(normalize=[{"op": "explod", "path": "a"}]),
            "$.normalize[0].op: needs one of set, remove, rename, keep, cast, default, mask, explode, peek, filter, "
            "map, got 'explod'",
            id="operation",
        ),
        pytest.param(spec(normalize=[{"op": "set"}]), "$.normalize[0]: needs the field path", id="missing"),
        pytest.param(
            spec(normalize=[{"op": "filter", "when": "body.total > 100 &&\n body.kind = 'a'"}]),
            "$.normalize[0].when: line 2, column 12: needs an operator, got `=` (equality is `==`)",
            id="expression",
        ),
    ],
)
def test_error_reason_is_written_in_words(document: dict[str, Any], reason: str):
    with pytest.raises(SpecError) as refused:
        parse_pipe_spec(document)
    assert str(refused.value) == reason


def test_every_pattern_of_the_spec_has_an_explanation_in_words():
    _, components = msgspec.json.schema_components((PipeSpec,))
    patterns = set(re.findall(r'"pattern":("(?:[^"\\]|\\.)*")', msgspec.json.encode(components).decode()))
    assert len(patterns) >= 4
    for pattern in patterns:
        text = msgspec.json.decode(pattern)
        assert in_words(f"Expected `str` matching regex {text!r}", "$.x").startswith("needs ")
