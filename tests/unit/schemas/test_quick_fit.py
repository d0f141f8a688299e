"""The quick check of JSON by Avro accepts only what a reader accepts, and it accepts usual events."""

import gc
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import msgspec
import pytest

from dataplane.schemas.avro import AvroType, tree_of
from dataplane.schemas.bad_value import BadValueError
from dataplane.schemas.from_values import ValueReader, exact_number
from dataplane.schemas.parse import parse
from dataplane.schemas.quick_fit import MOST_FIELDS, QuickFit, _leaf, quick_fit
from dataplane.schemas.types import SchemaType
from dataplane.schemas.wire import avro_to_json
from dataplane.spec.effort import MAX_VALUES
from loadgen.measured import EVENT
from localbox.testing import ROOT
from tests.bench.gate import AVRO
from tests.support.hostile_schemas import record
from tests.unit.schemas.test_avro_values import random_events

NOW_US = 1_795_564_800_000_000  # 2026-11-25
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}
MICROS = {"type": "long", "logicalType": "timestamp-micros"}
TIME_UUID = {"type": "string", "logicalType": "time-uuid"}


def field(name: str, type_: Any) -> dict[str, Any]:
    return {"name": name, "type": type_}


MONEY = record(field("amount", DECIMAL), field("currency", "string"), name="Money", logicalType="money")
OTHERS: tuple[Any, ...] = (
    None, True, 0, -1, 1 << 31, 1 << 63, 1.5, 0.1, 1e308, "", "x", "é", "NaN", "12.30", "1234.5", "12.345", "-0",
    "2026-11-25T08:00:00Z", "2026-02-30T08:00:00Z", "2026-11-25T08:00:00.1234567Z", "2026-11-25", "24:00:00",
    "6ba7b810-9dad-11d1-80b4-00c04fd430c8", "0192f3a4-5b6c-7d8e-9f01-23456789abcd", [], {}, [1], {"a": 1},
)  # fmt: skip
RAW = ("0.1000000000000000055511151231257827", "1e5", "123456789012345.6", "1E400", "-0.0")


def tree(schema: Any) -> AvroType:
    return tree_of(parse(SchemaType.AVRO, json.dumps(schema)).document)


def compiled(schema: Any) -> QuickFit:
    made = quick_fit(tree(schema))
    assert made is not None
    return made


def is_quick(schema: Any, value: Any, text: bytes | None = None) -> bool:
    body = json.dumps(value).encode() if text is None else text
    return compiled(schema)(body, NOW_US)


def is_read(node: AvroType, text: bytes) -> bool:
    try:
        ValueReader(NOW_US).read(node, msgspec.json.Decoder(float_hook=exact_number).decode(text))
    except BadValueError:
        return False
    return True


def changed(rng: random.Random, value: Any) -> Any:
    """Return the value with one part of it replaced, removed or added."""
    if isinstance(value, dict) and value and rng.random() < 0.8:
        key = rng.choice(list(value))
        match rng.randrange(4):
            case 0:
                return {name: one for name, one in value.items() if name != key}
            case 1:
                return value | {"another": rng.choice(OTHERS)}
        return value | {key: changed(rng, value[key])}
    if isinstance(value, list) and value and rng.random() < 0.8:
        place = rng.randrange(len(value))
        return [*value[:place], changed(rng, value[place]), *value[place + 1 :]]
    return rng.choice(OTHERS)


def variants(rng: random.Random, text: bytes) -> Iterator[bytes]:
    """Yield an event, and the event with wrong or unusual parts."""
    yield text
    for _ in range(6):
        other = json.dumps(changed(rng, json.loads(text)))
        yield other.encode()
        yield other.replace("0.1", rng.choice(RAW), 1).encode()


def test_quick_check_accepts_nothing_that_a_reader_refuses():
    rng = random.Random(7)
    accepted = refused = usual = events = 0
    for schema, data in random_events(11, 1_500):
        node = tree_of(schema.document)
        check = quick_fit(node)
        if check is None:
            continue
        text = avro_to_json(schema, data)
        events += 1
        for number, body in enumerate(variants(rng, text)):
            try:
                is_accepted = check(body, NOW_US)
            except BadValueError:  # a number that ingest refuses before
                is_accepted = False
            usual += is_accepted and number == 0
            accepted += is_accepted
            refused += not is_accepted
            assert not is_accepted or is_read(node, body), (schema.document, body)
    assert min(accepted, refused) > 1_000, "both occur"
    assert usual > 0.6 * events


def check_unions() -> None:
    """Check all values with unions of each three types of Avro, some times in the same memory."""
    types = (
        "null", "int", "double", "string", DECIMAL, MICROS, {"type": "array", "items": "int"},
        {"type": "map", "values": DECIMAL}, {"type": "enum", "name": "E", "symbols": ["x", "y"]}, MONEY,
        record(field("a", ["null", "long"]), name="A"),
    )  # fmt: skip
    bodies = [json.dumps(value).encode() for value in OTHERS]
    for _ in range(5):
        quick_fit.cache_clear()
        for branches in combinations(types, 3):
            check = quick_fit(tree(list(branches)))
            accepted = [body for body in bodies if check is not None and check(body, NOW_US)]
            assert all(is_read(tree(list(branches)), body) for body in accepted), branches
    gc.collect()


def test_decoders_of_schemas_do_not_corrupt_memory():
    """Types of customers are compiled by an extension in C, and one of its features does that."""
    script = "from tests.unit.schemas.test_quick_fit import check_unions as run; run()"
    command = [sys.executable, "-X", "faulthandler", "-c", script]
    env = os.environ | {"PYTHONMALLOC": "debug", "PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run(command, check=False, env=env, cwd=ROOT, capture_output=True)
    assert ended.returncode == 0, ended.stderr[-2_000:].decode(errors="replace")


@pytest.mark.parametrize(
    ("schema", "fits", "others"),
    [
        (DECIMAL, ["1", "-123.45", "12.3", 7], ["1234", "1.234", "", "NaN", "1e9", None, True]),
        (MICROS, ["2026-11-25T08:00:00Z", "2026-11-25T08:00:00.123456+01:00", 7], ["2026-11-31T08:00:00Z", "x", 1.5]),
        (TIME_UUID, ["0192f3a4-5b6c-7d8e-9f01-23456789abcd"], ["6ba7b810-9dad-41d1-80b4-00c04fd430c8", "x", 3]),
        (MONEY, [{"amount": "1.50", "currency": "EUR"}], [{"amount": "1.50", "currency": "euro"}, {"amount": "1"}]),
        ("double", [1.5, 0.1, 3], ["x", True, None]),
        ("string", ["", "é"], [1, None]),
        (["null", "string"], [None, "x"], [1, {"string": 1}]),
        ({"type": "map", "values": "int"}, [{}, {"a": 1}], [{"a": "x"}, []]),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, ["A"], ["B", 1, ["A"], {"A": 1}]),
    ],
    ids=lambda value: str(value)[:60] if isinstance(value, dict | str) else "",
)
def test_usual_values_are_accepted_and_wrong_ones_are_not(schema: Any, fits: list[Any], others: list[Any]):
    assert [is_quick(schema, value) for value in fits] == [True] * len(fits)
    assert [is_quick(schema, value) for value in others] == [False] * len(others)
    assert not any(is_read(tree(schema), json.dumps(value).encode()) for value in others)


def test_numbers_that_a_double_does_not_hold_are_left_to_the_reader():
    for text in (b"123456789012.345", b"123456789012345.67"):
        assert is_quick("double", None, text)
        assert is_read(tree("double"), text)
    inexact = b"0.1000000000000000055511151231257827"
    assert not is_quick("double", None, inexact)
    assert not is_read(tree("double"), inexact)


def test_time_uuid_is_compared_with_our_clock():
    ahead = "01a9f3a4-5b6c-7d8e-9f01-23456789abcd"
    assert not is_quick(TIME_UUID, ahead)
    assert not is_read(tree(TIME_UUID), json.dumps(ahead).encode())


def test_field_with_a_default_may_be_missing():
    schema = record(field("a", "int"), {"name": "b", "type": "int", "default": 3})
    assert is_quick(schema, {"a": 1})
    assert is_quick(schema, {"a": 1, "b": 2})
    assert not is_quick(schema, {"b": 2})
    assert not is_quick(schema, {"a": 1, "c": 2})


def test_value_that_names_its_branch_is_left_to_the_reader():
    schema = ["null", record(field("int", ["null", "int"]), name="R"), "int"]
    assert quick_fit(tree(schema)) is None
    assert is_read(tree(schema), b'{"int": 3}')
    optional = ["null", {"type": "map", "values": {"type": "map", "values": "int"}}]
    assert is_quick(optional, {"maps": {"a": 1}})
    assert not is_quick(optional, {"map": {"a": 1}})
    assert not is_read(tree(optional), b'{"map": {"a": 1}}')


def test_schema_whose_branches_must_be_tried_one_after_another_has_no_quick_check():
    one, other = (record(field("a", "int"), name=name) for name in ("One", "Other"))
    assert quick_fit(tree([one, other])) is None


def test_recursive_schema_is_checked_to_the_end():
    schema = record(field("next", ["null", "R"]), name="R")
    assert is_quick(schema, {"next": {"next": {"next": None}}})
    assert not is_quick(schema, {"next": {"next": {"next": 1}}})


def test_event_of_too_many_values_is_left_to_the_reader():
    schema = {"type": "array", "items": record(*({"name": f"f{n}", "type": "int", "default": 0} for n in range(99)))}
    fits, exceeds = MAX_VALUES // 200, MAX_VALUES // 100 + 1
    assert is_quick(schema, [{}] * (fits // 2))
    assert not is_quick(schema, [{}] * exceeds)
    assert not is_read(tree(schema), json.dumps([{}] * exceeds).encode())


def test_wide_record_is_checked_quickly_up_to_a_limit():
    def wide(count: int) -> Any:
        return record(*(field(f"f{n}", "double") for n in range(count)))

    assert is_quick(wide(MOST_FIELDS), {f"f{n}": 1.5 for n in range(MOST_FIELDS)})
    assert quick_fit(tree(wide(MOST_FIELDS + 1))) is None, "its type would take too much memory"


def test_checks_of_schemas_share_the_types_of_their_leaves():
    """A class takes kilobytes, and a tenant may use many schemas."""
    _leaf.cache_clear()
    for number in range(3):
        quick_fit(tree(record(*(field(f"f{number}_{n}", DECIMAL) for n in range(50)))))
    assert _leaf.cache_info().misses == 1


@pytest.mark.parametrize(
    "missing",
    [
        {"name": "xs", "type": {"type": "array", "items": "int"}, "default": [1] * 3_000},
        {"name": "xs", "type": record(field("a", "int"), name="A"), "default": {"a": 1}},
    ],
)
def test_default_with_content_is_left_to_the_reader(missing: Any):
    assert not is_quick(record(missing), {})
    assert is_read(tree(record(missing)), b"{}")


def test_missing_empty_default_is_accepted():
    schema = record({"name": "xs", "type": {"type": "array", "items": "int"}, "default": []})
    assert is_quick(schema, {})


def test_union_of_several_types_of_text_is_left_to_the_reader():
    enums = [{"type": "enum", "name": f"E{n}", "symbols": [f"s{n}"]} for n in range(50)]
    assert quick_fit(tree({"type": "array", "items": enums})) is None
    assert not is_read(tree({"type": "array", "items": enums}), json.dumps(["s49"] * 150).encode())


def test_event_of_the_benchmark_passes_the_quick_check():
    assert is_quick(AVRO, json.loads(EVENT))
