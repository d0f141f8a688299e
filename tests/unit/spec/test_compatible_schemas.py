"""A compatible schema accepts every event of the version before; a breaking one names the field."""

import json
from itertools import combinations, product
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from dataplane.spec.compatible import MOST, changes
from dataplane.spec.schema import checked_schema, compile_schema

Schema = dict[str, Any]
NAMES = ("a", "b", "c")
STRING: Schema = {"type": "string"}


def obj(required: tuple[str, ...] = (), *, is_open: bool = False, **properties: Any) -> Schema:
    found: Schema = {"type": "object", "properties": properties, "required": list(required)}
    return found if is_open else found | {"additionalProperties": False}


def told(old: Schema, new: Schema) -> list[tuple[str, str]]:
    return [(one.field, "/".join(one.path)) for one in changes(old, new)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(obj(a=STRING), obj(a=STRING, b=STRING), id="a field may come"),
        pytest.param(obj(("a",), a=STRING), obj(a=STRING), id="a field may be left out"),
        pytest.param({"type": "string"}, {"type": ["string", "null"]}, id="may be null"),
        pytest.param({"type": "string"}, {"anyOf": [{"type": "string"}, {"type": "null"}]}, id="may be null, any of"),
        pytest.param({"type": "string"}, {"oneOf": [{"type": "string"}, {"type": "null"}]}, id="may be null, one of"),
        pytest.param(
            {"anyOf": [{"type": "string"}, {"type": "null"}]}, {"type": ["null", "string"]}, id="said shorter"
        ),
        pytest.param({"type": "integer"}, {"type": "number"}, id="fractions too"),
        pytest.param({"enum": ["a"]}, {"enum": ["b", "a"]}, id="one more value"),
        pytest.param({"const": "a"}, {"enum": ["b", "a"]}, id="a constant becomes a list"),
        pytest.param({"enum": ["a", "b"]}, {"type": "string"}, id="a list becomes a type"),
        pytest.param({"minimum": 2, "maxLength": 2}, {"minimum": 1, "maxLength": 3}, id="wider bounds"),
        pytest.param({"type": "array"}, {"type": "array", "minItems": 0}, id="a bound that says nothing"),
        pytest.param({"pattern": "a", "format": "uuid"}, {}, id="checks go"),
        pytest.param({"title": "A", "x-owner": "us"}, {"title": "B"}, id="notes change"),
        pytest.param(
            {"$defs": {"m": {"type": "integer"}}, "properties": {"a": {"$ref": "#/$defs/m"}}},
            {"properties": {"a": {"type": "integer"}}},
            id="a definition written out",
        ),
        pytest.param({"not": {"const": 1}}, {"not": {"const": 1}, "minLength": 0}, id="the rest as it was"),
        pytest.param({"items": {"enum": [1]}}, {"items": {"enum": [1, 2]}}, id="wider items"),
        pytest.param(obj(a=obj(b=STRING)), obj(a=obj(b=STRING, c=STRING)), id="a field deep inside"),
    ],
)
def test_schema_that_accepts_more_is_compatible(old: Schema, new: Schema):
    assert changes(old, new) == []


@pytest.mark.parametrize(
    ("old", "new", "field", "path"),
    [
        pytest.param(obj(a=STRING), obj(("a",), a=STRING), "a", "required", id="is required now"),
        pytest.param(obj(a=STRING), obj(a={"type": "integer"}), "a", "properties/a/type", id="another type"),
        pytest.param(obj(a={"type": ["string", "null"]}), obj(a=STRING), "a", "properties/a/type", id="not null"),
        pytest.param(obj(a=STRING), obj(), "a", "properties/a", id="is gone, where unknown fields are refused"),
        pytest.param(obj(is_open=True), obj(), "*", "additionalProperties", id="no unknown fields"),
        pytest.param(obj(is_open=True), obj(a=STRING, is_open=True), "a", "properties/a", id="could be anything"),
        pytest.param(
            obj(a=obj(b=STRING)), obj(a=obj(b={"const": "x"})), "a.b", "properties/a/properties/b/const", id="deep"
        ),
        pytest.param({"items": STRING}, {"items": {"maxLength": 3} | STRING}, "[]", "items/maxLength", id="items"),
        pytest.param({"enum": [1, True]}, {"enum": [1]}, "", "enum", id="true is not 1"),
        pytest.param({"type": "number"}, {"type": "integer"}, "", "type", id="no fractions"),
        pytest.param({"minimum": 1}, {"minimum": 2}, "", "minimum", id="a tighter bound"),
        pytest.param({}, {"maxItems": 2}, "", "maxItems", id="a new bound"),
        pytest.param({"pattern": "a"}, {"pattern": "b"}, "", "pattern", id="another pattern"),
        pytest.param({"type": "string"}, {"type": "string", "format": "uuid"}, "", "format", id="a format"),
        pytest.param({"anyOf": [STRING, {"type": "null"}]}, STRING, "", "type", id="an alternative goes"),
        pytest.param({"not": {"const": 1}}, {"not": {"const": 2}}, "", "not", id="outside what is compared"),
        pytest.param({}, {"propertyNames": {"maxLength": 3}}, "", "propertyNames", id="outside, and new"),
        pytest.param(
            {"contains": {"const": 1}, "minContains": 0}, {"contains": {"const": 1}}, "", "contains", id="a part goes"
        ),
        pytest.param(
            {"patternProperties": {"^x": {}}, "additionalProperties": False},
            {"additionalProperties": False},
            "*",
            "additionalProperties",
            id="fields that a pattern let in",
        ),
        pytest.param(
            {"prefixItems": [{}], "items": {"type": "null"}},
            {"items": {"type": "null"}},
            "[]",
            "items/type",
            id="a prefix",
        ),
    ],
)
def test_schema_that_may_refuse_is_breaking_and_names_the_field(old: Schema, new: Schema, field: str, path: str):
    assert told(old, new) == [(field, path)]


def test_breaking_change_gives_its_reason_in_words():
    [change] = changes(obj(amount={"type": "number"}), obj(("amount",), amount={"type": "number"}))
    assert str(change) == "amount: is required now, but was optional"


def test_number_of_reported_changes_is_limited():
    names = [f"f{number}" for number in range(2 * MOST)]
    old, new = ({"properties": {name: {"type": kind} for name in names}} for kind in ("string", "null"))
    assert len(changes(old, new)) == MOST


def test_alternatives_that_cannot_be_compared_in_time_are_breaking():
    branches = {"anyOf": [{"const": number} for number in range(2_000)]}
    other = {"anyOf": [{"const": -number} for number in range(1, 2_000)]}
    assert changes(branches, other)


# -- property tests

SMALL = [None, True, 0, 1, 1.5, 3, "", "a", "ab"]
SOME = [None, 1, 1.5, "a", "b", [], [1], {}, {"a": 1}]
PLAIN = [*SMALL, False, 2, "b", "abc", "2026-11-22"]
LISTS = [list(found) for size in range(3) for found in product(SOME, repeat=size)]
OBJECTS = [
    dict(zip(names, found, strict=True))
    for size in range(3)
    for names in combinations((*NAMES, "x"), size)
    for found in product(SOME, repeat=size)
]
DEEPER = [{"a": inner} for inner in LISTS + OBJECTS[:200]] + [[inner] for inner in OBJECTS[:200]]
# Each pair is tried with every small event: only the schemas are random.
EVENTS = [*PLAIN, *LISTS, *OBJECTS, *DEEPER, [1, 2, 3], {"a": 1, "b": 1, "c": 1}]
VALUES = st.sampled_from(SMALL + SOME)
WORDS: dict[str, SearchStrategy[Any]] = {
    "type": st.sampled_from(["object", "array", "string", "integer", "number", "boolean", "null"])
    | st.lists(
        st.sampled_from(["object", "array", "string", "integer", "number", "null"]), min_size=1, max_size=3, unique=True
    ),
    "enum": st.lists(VALUES, min_size=1, max_size=4, unique_by=json.dumps),
    "const": VALUES,
    "required": st.lists(st.sampled_from(NAMES), max_size=2, unique=True),
    **dict.fromkeys(("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"), st.sampled_from([0, 1, 1.5, 2])),
    **dict.fromkeys(
        ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), st.integers(0, 2)
    ),
    "pattern": st.sampled_from(["a", "^b"]),
    "format": st.sampled_from(["uuid", "date"]),
    "uniqueItems": st.booleans(),
    # keywords that are not compared: they have to stay or to be removed
    "multipleOf": st.sampled_from([1, 2]),
    "minContains": st.integers(0, 2),
    "maxContains": st.integers(0, 2),
    "dependentRequired": st.just({"a": ["b"]}),
}


def nested(inner: SearchStrategy[Any]) -> SearchStrategy[Schema]:
    by_name = st.dictionaries(st.sampled_from(NAMES), inner, max_size=2)
    some = st.lists(inner, min_size=1, max_size=2)
    words: dict[str, SearchStrategy[Any]] = WORDS | {
        "properties": by_name,
        "additionalProperties": inner,
        "patternProperties": st.dictionaries(st.sampled_from(["^a", "x"]), inner, max_size=1),
        "items": inner,
        **dict.fromkeys(("prefixItems", "anyOf", "oneOf", "allOf"), some),
        **dict.fromkeys(("not", "if", "then", "else", "contains", "propertyNames"), inner),
        **dict.fromkeys(("unevaluatedProperties", "unevaluatedItems"), st.just(False)),
    }
    return st.dictionaries(st.sampled_from(sorted(words)), st.none(), min_size=1, max_size=3).flatmap(
        lambda chosen: st.fixed_dictionaries({word: words[word] for word in chosen})
    )


SCHEMAS: SearchStrategy[Any] = st.recursive(st.booleans() | st.just({}) | nested(st.booleans()), nested, max_leaves=5)
ROOTS: SearchStrategy[Schema] = SCHEMAS.filter(lambda one: isinstance(one, dict))


@st.composite
def next_versions(draw: st.DrawFn, old: Any) -> Any:
    """Draw the schema with some keywords changed, removed or added, at any depth, as people change schemas."""
    if not isinstance(old, dict) or not old or draw(st.integers(0, 9)) == 0:
        return draw(SCHEMAS)
    new = dict(old)
    for word in draw(st.lists(st.sampled_from(sorted(old)), min_size=1, max_size=2, unique=True)):
        match draw(st.sampled_from(["go", "inside", "again"])), new[word]:
            case "go", _:
                del new[word]
            case "inside", dict() as inner if word in ("properties", "patternProperties"):
                new[word] = {name: draw(next_versions(one)) for name, one in inner.items()}
            case "inside", dict() | bool() as inner if word not in WORDS:
                new[word] = draw(next_versions(inner))
            case "inside", list() as inner if word in ("anyOf", "oneOf", "allOf", "prefixItems"):
                new[word] = [draw(next_versions(one)) for one in inner]
            case _, _ if word in WORDS:
                new[word] = draw(WORDS[word])
    return new | (draw(ROOTS) if draw(st.integers(0, 4)) == 0 else {})


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Schema, Schema]:
    old = draw(ROOTS)
    new = draw(next_versions(old))
    return old, new if isinstance(new, dict) else {"allOf": [new]}


def refused(old: Schema, new: Schema) -> Any:
    """Return a list with an event that fits `old` and not `new`; None if there is none."""
    before, after = (compile_schema(checked_schema(one)) for one in (old, new))
    return next(([event] for event in EVENTS if before(event) is None and after(event) is not None), None)


def as_many_as(examples: int) -> settings:
    return settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))


PATTERN: Schema = {"additionalProperties": False, "patternProperties": {"^a": True}}


@as_many_as(600)
@given(pairs())
@example((PATTERN, PATTERN | {"properties": {"a": STRING}}))  # a pattern admits fields that are not named
def test_every_event_that_fitted_before_fits_a_compatible_schema(two: tuple[Schema, Schema]):
    assert changes(*two) or refused(*two) is None


def test_schema_that_has_time_for_smaller_events_only_is_breaking():
    closed: Schema = {"additionalProperties": False, "properties": {"a": True}}
    for field in ({"pattern": "[ab]*a[ab]{200}x"}, {"items": {"anyOf": [{"const": number} for number in range(90)]}}):
        [found] = changes(closed, {**closed, "properties": {"a": True, "b": field}})
        assert "accepts at most" in found.reason
    assert changes(closed, {**closed, "properties": {"a": True, "b": {"pattern": "^[a-z]+$", "maxLength": 90}}}) == []


@as_many_as(150)
@given(ROOTS)
@example({"anyOf": [{"additionalProperties": False, "allOf": [False], "anyOf": [True]}]})  # nested alternatives
def test_schema_is_compatible_with_itself_and_with_the_empty_schema(schema: Schema):
    assert changes(schema, schema) == []
    assert changes(schema, {}) == []


@as_many_as(150)
@given(ROOTS, st.data())
def test_removal_of_a_keyword_that_no_other_depends_on_is_compatible(schema: Schema, data: st.DataObject):
    # other keywords depend on these
    leaning = {"properties", "patternProperties", "prefixItems", "if", "then", "else"}
    leaning |= {"minContains", "maxContains", "maxLength"}
    free = sorted(schema.keys() - leaning) if not schema.keys() & {"unevaluatedProperties", "unevaluatedItems"} else []
    for word in data.draw(st.lists(st.sampled_from(free), max_size=2, unique=True)) if free else ():
        assert changes(schema, {one: value for one, value in schema.items() if one != word}) == []
