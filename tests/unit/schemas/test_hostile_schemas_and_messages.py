"""Hostile schemas and messages are refused with path and reason, within 50 ms each."""

import json
from collections.abc import Callable

import pytest

from dataplane.schemas.parse import parse
from dataplane.schemas.types import ParsedSchema, SchemaRejectedError, SchemaType
from dataplane.schemas.wire import check, check_json, decode, json_event
from tests.support.cpu import cpu_s
from tests.support.hostile_schemas import HostileMessage, HostileSchema, field, long, messages, record, schemas

LIMIT_S = 0.05  # of CPU time: other tests of the run share the processors
NOW_US = 1_795_564_800_000_000  # 2026-11-25
SCHEMAS, MESSAGES = schemas(), messages()


def refusal(action: Callable[[], object]) -> SchemaRejectedError:
    """Return the error of an action, which takes less CPU time than the limit."""
    errors: list[SchemaRejectedError] = []

    def refused() -> None:
        with pytest.raises(SchemaRejectedError) as caught:
            action()
        errors.append(caught.value)

    assert cpu_s(refused, LIMIT_S) < LIMIT_S
    return errors[-1]


def is_at(path: str, expected: str) -> bool:
    """Return True if the path is the expected one; `*` is the depth of a recursion."""
    return path.startswith(expected[:-1]) if expected.endswith("*") else path == expected


def test_the_corpus_has_enough_cases():
    assert len({one.title for one in SCHEMAS}) == len(SCHEMAS) >= 50
    assert len({one.title for one in MESSAGES}) == len(MESSAGES) >= 200


@pytest.mark.parametrize("case", SCHEMAS, ids=lambda case: case.title)
def test_hostile_schema_is_refused(case: HostileSchema):
    refused = refusal(lambda: parse(SchemaType.AVRO, case.text))
    assert refused.path == case.path
    assert case.reason in refused.reason


@pytest.mark.parametrize("case", MESSAGES, ids=lambda case: case.title)
def test_hostile_message_is_refused(case: HostileMessage):
    schema = parse(SchemaType.AVRO, json.dumps(case.schema))
    refused = refusal(lambda: decode(schema, case.data, NOW_US))
    assert is_at(refused.path, case.path), refused.path
    assert case.reason in refused.reason


def test_references_count_towards_the_limit_of_levels():
    """The chain itself has few levels, because each record is defined before it is used."""
    fields = []
    for n in range(150):
        inner = record(field(["null", f"R{n - 1}"] if n else "null"), name=f"R{n}")
        fields.append(field(inner, name=f"f{n}"))
    chain = parse(SchemaType.AVRO, json.dumps(record(*fields, name="Chain")))
    use = json.dumps(record(field(["null", "R149"]), name="Use"))
    assert "with every reference expanded" in refusal(lambda: parse(SchemaType.AVRO, use, {"chain": chain})).reason


def test_references_count_towards_the_limit_of_types():
    fields = [field("int", name=f"f{number}") for number in range(1_000)]
    references: dict[str, ParsedSchema] = {}
    for number in range(6):
        references[f"R{number}"] = parse(SchemaType.AVRO, json.dumps(record(*fields, name=f"R{number}")))
    whole = json.dumps(record(*(field(name, name=name) for name in references), name="Whole"))
    with pytest.raises(SchemaRejectedError, match="at most 5000 types"):
        parse(SchemaType.AVRO, whole, references)


def test_largest_accepted_message_is_checked_in_time():
    schema = parse(SchemaType.AVRO, '{"type": "array", "items": "string"}')
    data = long(9_999) + (long(100) + b"x" * 100) * 9_999 + long(0)
    assert cpu_s(lambda: check(schema, data), LIMIT_S) < LIMIT_S


def test_json_of_repeated_names_is_bounded():
    schema = parse(SchemaType.AVRO, json.dumps({"type": "array", "items": record(field("int", name="f" * 1_000))}))
    data, found = long(3_333) + long(1) * 3_333 + long(0), []
    assert cpu_s(lambda: found.append(json_event(schema, data)), LIMIT_S) < LIMIT_S
    assert len(found[0].text) < 4 * 2**20


def test_comparison_of_the_branches_of_unions_is_bounded():
    """Each value is of the last of 200 branches, so it is compared with all earlier ones."""
    branches = [record(field("int", name="a"), field("int", name=f"f{n}"), name=f"R{n}") for n in range(200)]
    schema = parse(SchemaType.AVRO, json.dumps({"type": "array", "items": branches}))
    data = long(2_000) + (long(199) + long(1) + long(1)) * 2_000 + long(0)
    assert "each counted once for each branch" in refusal(lambda: json_event(schema, data)).reason
    text = json.dumps([{"a": 1, "f199": 1}] * 2_000).encode()
    assert "each counted once for each branch" in refusal(lambda: check_json(schema, text)).reason


def test_wide_records_that_do_not_fit_are_bounded():
    """A record of 300 fields with defaults is ruled out by a field that it lacks, after a look at all of them."""
    wide = [record(*(field("int", name=f"f{k}", default=0) for k in range(300)), name=f"R{n}") for n in range(4)]
    schema = parse(SchemaType.AVRO, json.dumps({"type": "array", "items": [*wide, {"type": "map", "values": "int"}]}))
    text = json.dumps([{"zz": 1}] * 2_000).encode()
    assert "each counted once for each branch" in refusal(lambda: check_json(schema, text)).reason
    check_json(schema, json.dumps([{"zz": 1}] * 50).encode())


@pytest.mark.parametrize(
    ("kind", "one"),
    [
        ("string", long(20) + b"x" * 20),
        (["null", "string"], long(1) + long(20) + b"x" * 20),
        ({"type": "long", "logicalType": "timestamp-micros"}, long(NOW_US)),
    ],
)
def test_largest_event_is_decoded_in_time(kind: object, one: bytes):
    schema = parse(SchemaType.AVRO, json.dumps({"type": "array", "items": kind}))
    data = long(9_999) + one * 9_999 + long(0)
    found = []
    assert cpu_s(lambda: found.append(json_event(schema, data)), 2 * LIMIT_S) < 2 * LIMIT_S
    assert cpu_s(lambda: check_json(schema, found[0].text), 2 * LIMIT_S) < 2 * LIMIT_S
