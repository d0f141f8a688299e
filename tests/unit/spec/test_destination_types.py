"""The type of a destination or source selects its kind; without a type it is http, as in older specs."""

from typing import Any

import msgspec
import pytest

from dataplane.plan import compile_plan
from dataplane.plan.dryrun import SampleEvent, dry_run
from dataplane.spec import (
    HttpDestination,
    HttpSource,
    KafkaSource,
    LakeDestination,
    PipeSpec,
    PostgresDestination,
    S3Destination,
    SpecError,
    TableDestination,
    TopicDestination,
    beginning_of,
    destination_of,
    parse_pipe_spec,
    spec_to_builtins,
)

URL = "https://crm.example/hook"


def spec(sources: dict[str, Any] | None = None, **destinations: Any) -> dict[str, Any]:
    return {"sources": sources or {"shop": {}}, "destinations": destinations}


def bucket(**fields: Any) -> dict[str, Any]:
    return spec(a={"type": "s3", "url": "https://s3.example.com/b", "region": "auto", "access_key_id": "k"} | fields)


def database(**fields: Any) -> dict[str, Any]:
    return spec(
        a={"type": "postgres", "host": "db.example.com", "database": "shop", "user": "w", "table": "t"} | fields
    )


KEPT = spec(
    {"shop": {"key": "id"}, "old": {"type": "kafka", "cluster": "main", "topic": "orders.v1", "start": "latest"}},
    store={"type": "lake", "root": "s3a://bucket/lake"},
    feed={"type": "topic", "partitions": 2},
    users={"type": "table", "table": "users", "key": "body.id", "remove_when": "body.gone == true"},
    files={"type": "s3", "url": URL, "region": "auto", "access_key_id": "k", "prefix": "a/"},
    rows={
        "type": "postgres",
        "host": "db.example.com",
        "database": "shop",
        "user": "w",
        "table": "t",
        "columns": {"at": "meta.position", "n": "body.id"},
        "key": ["at"],
    },
)


def test_older_spec_without_types_means_http():
    parsed = parse_pipe_spec(spec(crm={"url": URL}))
    assert isinstance(parsed.destinations["crm"], HttpDestination)
    assert isinstance(parsed.sources["shop"], HttpSource)
    assert isinstance(destination_of({"url": URL}), HttpDestination)


def test_every_kind_survives_round_trips_through_builtins_and_the_wire():
    parsed = parse_pipe_spec(KEPT)
    kinds = [type(to) for to in parsed.destinations.values()]
    assert kinds == [LakeDestination, TopicDestination, TableDestination, S3Destination, PostgresDestination]
    assert isinstance(parsed.sources["old"], KafkaSource)
    assert parse_pipe_spec(spec_to_builtins(parsed)) == parsed
    assert msgspec.json.decode(msgspec.json.encode(parsed), type=PipeSpec) == parsed


@pytest.mark.parametrize(
    ("document", "path"),
    [
        pytest.param(spec(a={"type": "lake", "root": "/srv/lake"}), "destinations.a.root", id="path without a scheme"),
        pytest.param(spec(a={"type": "lake", "url": URL}), "destinations.a", id="lake with a URL"),
        pytest.param(spec(a={"type": "topic", "partitions": 0}), "destinations.a.partitions", id="no partitions"),
        pytest.param(spec(a={"type": "topic", "ordered": True}), "destinations.a", id="a field of another kind"),
        pytest.param(spec(a={"type": "table", "table": "users", "key": "body.("}), "destinations.a.key", id="key"),
        pytest.param(
            spec(a={"type": "table", "table": "u", "key": "body.id", "remove_when": "1 +"}),
            "destinations.a.remove_when",
            id="remove_when",
        ),
        pytest.param(bucket(url="https://s3.example.com/b?x=1"), "destinations.a.url", id="bucket with a query"),
        pytest.param(bucket(url="ftp://s3.example.com/b"), "destinations.a.url", id="bucket without HTTP"),
        pytest.param(bucket(region="eu:s3\n"), "destinations.a.region", id="region with other characters"),
        pytest.param(bucket(access_key_id="a:b"), "destinations.a.access_key_id", id="access key with a colon"),
        pytest.param(
            bucket(url="https://s3.example.com/b+c"), "destinations.a.url", id="bucket that is signed differently"
        ),
        pytest.param(bucket(url="https://s3.example.com//b"), "destinations.a.url", id="bucket after an empty name"),
        pytest.param(bucket(prefix="../x/"), "destinations.a.prefix", id="prefix that leaves the bucket"),
        pytest.param(bucket(prefix="/x"), "destinations.a.prefix", id="prefix with an empty name"),
        pytest.param(bucket(format="csv"), "destinations.a.format", id="unknown format"),
        pytest.param(bucket(batch={"max_events": 1_001}), "destinations.a.batch.max_events", id="too many messages"),
        *(
            pytest.param(database(host=host), "destinations.a.host", id=f"host {host!r}")
            for host in (
                "",
                "a,b",
                "/var/run/postgresql",
                "@abstract",
                "db.example.com:5432",
                "host=a port=1",
                "a b",
                "db\n",
                "postgresql://db",
                "[::1]",
                "fe80::1%eth0",
                "dbé.example.com",
                "user@db",
            )
        ),
        pytest.param(database(port=0), "destinations.a.port", id="port"),
        pytest.param(database(table="t\0"), "destinations.a.table", id="name with a null character"),
        pytest.param(database(user="é" * 32), "destinations.a.user", id="name of too many bytes"),
        pytest.param(database(columns={}), "destinations.a.columns", id="no column"),
        pytest.param(database(columns={"n": "body."}, key=[]), "destinations.a.columns.n", id="expression of a column"),
        pytest.param(database(key=["other"]), "destinations.a.key", id="key that is no column"),
        pytest.param(database(key=["child", "child"]), "destinations.a.key", id="column twice in the key"),
        pytest.param(database(key=[], on_conflict="update"), "destinations.a.on_conflict", id="update without a key"),
        pytest.param(
            database(columns={"n": "body.n"}, key=["n"], on_conflict="update"),
            "destinations.a.on_conflict",
            id="update of no column",
        ),
        pytest.param(database(sslmode="require"), "destinations.a.sslmode", id="TLS without verification"),
        pytest.param(database(ca="/etc/passwd"), "destinations.a.ca", id="path in place of certificates"),
        pytest.param(database(concurrency=17), "destinations.a.concurrency", id="too many connections"),
        pytest.param(
            spec({"s": {"type": "kafka", "cluster": "main", "topic": "a b"}}, a={"url": URL}),
            "sources.s.topic",
            id="no name of a topic",
        ),
        pytest.param(spec({"s": {"type": "amqp"}}, a={"url": URL}), "sources.s.type", id="unknown kind of source"),
    ],
)
def test_error_names_the_invalid_field_of_a_kind(document: dict[str, Any], path: str):
    with pytest.raises(SpecError) as refused:
        parse_pipe_spec(document)
    assert refused.value.path == f"$.{path}"


def test_dry_run_shows_what_would_be_stored():
    parsed = parse_pipe_spec(KEPT)
    sample = SampleEvent(b'{"id":7}', "shop", "m1", 0, 0)
    stored = dry_run(parsed, compile_plan(parsed), sample, lambda: 0).requests
    assert [(one.method, one.url, one.body) for one in stored] == [
        ("STORE", "lake", '{"id":7}'),
        ("STORE", "topic", '{"id":7}'),
        ("STORE", "look-up table users", '{"id":7}'),
        ("PUT", f"{URL}/a/", '{"id":7}'),
        ("INSERT", "postgresql://db.example.com:5432/shop public.t", '{"at":0,"n":7}'),
    ]


@pytest.mark.parametrize("text", ["earliest", "2026-11-20T08:00:00Z", "2026-11-20T08:00:00+01:00"])
def test_new_destination_may_start_in_the_past(text: str):
    parsed = parse_pipe_spec(spec(crm={"url": URL, "from": text}, feed={"type": "topic", "from": text}))
    assert [beginning_of(to) for to in parsed.destinations.values()] == [text, text]
    assert parse_pipe_spec(spec_to_builtins(parsed)) == parsed
    assert spec_to_builtins(parsed)["destinations"]["feed"]["from"] == text


def test_destination_without_a_beginning_has_no_field_that_earlier_releases_refuse():
    parsed = parse_pipe_spec(spec(crm={"url": URL}, feed={"type": "topic"}))
    assert [beginning_of(to) for to in parsed.destinations.values()] == ["", ""]
    assert not any("from" in one for one in spec_to_builtins(parsed)["destinations"].values())


@pytest.mark.parametrize(
    ("to", "text"),
    [
        pytest.param({"url": URL}, "2026-11-20T08:00:00", id="no offset"),
        pytest.param({"url": URL}, "yesterday", id="no time"),
        pytest.param({"url": URL}, "", id="empty"),
        pytest.param({"type": "topic"}, "latest", id="another word"),
        pytest.param({"type": "topic"}, 5, id="a number"),
        pytest.param({"type": "lake"}, "earliest", id="lake"),
        pytest.param({"type": "table", "table": "users", "key": "body.id"}, "earliest", id="table"),
    ],
)
def test_beginning_is_earliest_or_a_time_with_an_offset_of_an_http_or_topic_destination(to: dict[str, Any], text: Any):
    with pytest.raises(SpecError, match=r"\$\.destinations\.new"):
        parse_pipe_spec(spec(new={**to, "from": text}))
