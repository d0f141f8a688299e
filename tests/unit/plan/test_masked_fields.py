"""Masked fields of a received event are found through the steps that moved their values."""

from typing import Any

import pytest

from dataplane.plan.masked_fields import (
    MOST_FIELDS,
    WHOLE_EVENT,
    MaskedField,
    hides,
    hides_all,
    masked_fields,
    masked_outputs,
    with_masks,
)

MASK = {"op": "mask", "path": "contact.email"}


def paths(*steps: dict[str, Any], **transform: list[dict[str, Any]]) -> set[str]:
    found = masked_fields({"normalize": list(steps), "transform": transform})
    return {".".join(field.path) or "$" for field in found}


def rename(path: str, to: str) -> dict[str, Any]:
    return {"op": "rename", "path": path, "to": to}


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        pytest.param([], set(), id="no mask"),
        pytest.param([MASK], {"contact.email"}, id="a mask"),
        pytest.param([rename("person", "contact"), MASK], {"contact.email", "person.email"}, id="its object was moved"),
        pytest.param([rename("mail", "contact.email"), MASK], {"contact.email", "mail"}, id="it was moved itself"),
        pytest.param(
            [rename("mail", "contact.email"), {"op": "mask", "path": "contact"}],
            {"contact", "mail"},
            id="a part was moved",
        ),
        pytest.param(
            [rename("a", "b"), rename("b", "contact"), MASK], {"contact.email", "b.email", "a.email"}, id="moved twice"
        ),
        pytest.param([MASK, rename("contact", "person")], {"contact.email"}, id="moved after the mask"),
        pytest.param([rename("other", "elsewhere"), MASK], {"contact.email"}, id="another field was moved"),
        pytest.param([{"op": "explode", "path": "contact"}, MASK], {"contact.email", "contact.*.email"}, id="exploded"),
        pytest.param([{"op": "explode", "path": "$"}, MASK], {"contact.email", "*.contact.email"}, id="exploded body"),
        pytest.param(
            [{"op": "map", "path": "contact.email", "expr": "body.mail"}, MASK], {"contact.email", "$"}, id="computed"
        ),
        pytest.param(
            [{"op": "map", "path": "contact.email", "expr": "meta.id"}, MASK], {"contact.email"}, id="not from the body"
        ),
        pytest.param(
            [{"op": "map", "path": "$", "expr": "body.inner"}, MASK], {"contact.email", "$"}, id="another body"
        ),
        pytest.param(
            [{"op": "remove", "path": "lines.0"}, {"op": "mask", "path": "lines.0.card"}],
            {"lines.*.card"},
            id="by index",
        ),
        pytest.param(
            [rename("x", "lines"), {"op": "mask", "path": "lines.*.card"}], {"lines.*.card", "x.*.card"}, id="in a list"
        ),
    ],
)
def test_masks_are_traced_to_the_received_event(steps: list[dict[str, Any]], expected: set[str]):
    assert paths(*steps) == expected


def test_masks_of_destinations_come_after_the_common_steps():
    assert paths(rename("person", "contact"), crm=[MASK], audit=[]) == {"contact.email", "person.email"}


EMAIL = MaskedField(("email",), "redact")


def put(path: str, expr: str) -> dict[str, Any]:
    return {"op": "map", "path": path, "expr": expr}


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        pytest.param([], {"email"}, id="unchanged"),
        pytest.param([rename("email", "mail")], {"email", "mail"}, id="renamed"),
        pytest.param([rename("email", "a"), rename("a", "b.c")], {"email", "a", "b.c"}, id="renamed twice"),
        pytest.param([put("user", "body.email + '!'")], {"email", "user"}, id="computed from it"),
        pytest.param([put("user", "body.name + '!'")], {"email"}, id="computed from another field"),
        pytest.param([put("user", "has(body.email) ? 1 : 2")], {"email", "user"}, id="computed from its presence"),
        pytest.param([put("user", "body[body.which]")], {"email", "user"}, id="computed from any field"),
        pytest.param([put("user", "body")], {"email", "user"}, id="computed from the whole body"),
        pytest.param([put("n", "[1].map(x, body.email)")], {"email", "n"}, id="read in a comprehension"),
        pytest.param([put("a", "body.email"), put("b", "body.a")], {"email", "a", "b"}, id="computed twice"),
        pytest.param([put("$", "{'to': body.email}")], {"email", "$"}, id="another body"),
    ],
)
def test_masks_are_traced_to_what_a_destination_receives(steps: list[dict[str, Any]], expected: set[str]):
    for spec in ({"normalize": steps}, {"transform": {"crm": steps}}):
        found = masked_outputs(spec, ["crm"], [EMAIL])["crm"]
        assert {".".join(field.path) or "$" for field in found} == expected
    assert masked_outputs({"transform": {"crm": steps}}, ["other"], [EMAIL]) == {"other": {EMAIL}}


def test_masks_are_traced_through_an_explode_and_look_ups():
    card = MaskedField(("lines", "*", "card"), "redact")
    exploded = masked_outputs({"normalize": [{"op": "explode", "path": "lines"}]}, ["crm"], [card])["crm"]
    assert {".".join(field.path) for field in exploded} == {"lines.*.card", "lines.card"}
    whole = masked_outputs(
        {"normalize": [{"op": "explode", "path": "$"}]}, ["crm"], [MaskedField(("*", "a"), "redact")]
    )["crm"]
    assert {".".join(field.path) for field in whole} == {"*.a", "a"}
    by_email = {"enrich": [{"table": "people", "key": "body.email", "into": "person"}]}
    assert {".".join(field.path) for field in masked_outputs(by_email, ["crm"], [EMAIL])["crm"]} == {"email", "person"}
    by_id = {"enrich": [{"table": "people", "key": "body.id", "into": "person"}]}
    assert masked_outputs(by_id, ["crm"], [EMAIL])["crm"] == {EMAIL}


def test_outputs_with_too_many_masks_are_hidden_whole():
    steps = [put(f"copy{number}", "body.email") for number in range(MOST_FIELDS)]
    assert hides_all(masked_outputs({"normalize": steps}, ["crm"], [EMAIL])["crm"])


def test_hash_is_hidden_whole_and_partial_mask_stays_partial():
    fields = masked_fields({"normalize": [MASK | {"how": "hash"}, MASK | {"how": "partial", "path": "card"}]})
    assert fields == {MaskedField(("contact", "email"), "redact"), MaskedField(("card",), "partial")}


def test_pipe_that_masks_too_much_hides_its_whole_events():
    fields = masked_fields({"normalize": [MASK | {"path": f"field{number}"} for number in range(MOST_FIELDS + 1)]})
    assert hides_all(fields)


@pytest.mark.parametrize(
    ("path", "hidden"),
    [("contact.email", True), ("contact", True), ("contact.email.host", True), ("contact.name", False)],
)
def test_path_is_hidden_with_its_parts_and_its_holders(path: str, hidden: bool):
    assert hides(masked_fields({"normalize": [MASK]}), path) is hidden


@pytest.mark.parametrize(
    ("event", "shown"),
    [
        pytest.param(
            {"contact": {"email": "bob@example.com", "name": "Bob"}, "id": 1},
            {"contact": {"email": "***", "name": "Bob"}, "id": 1},
            id="the value",
        ),
        pytest.param({"contact": {"email": {"to": ["bob"]}}}, {"contact": {"email": "***"}}, id="an object instead"),
        pytest.param({"contact": "bob@example.com"}, {"contact": "***"}, id="a text where an object is expected"),
        pytest.param({"contact": [{"email": "bob"}, 7]}, {"contact": ["***", "***"]}, id="a list where an object is"),
        pytest.param({"contact": None, "card": "4111111111111111"}, {"contact": None, "card": "***1111"}, id="partial"),
        pytest.param(
            {"lines": [{"iban": 1, "n": 2}, {"n": 3}]}, {"lines": [{"iban": "***", "n": 2}, {"n": 3}]}, id="each"
        ),
        pytest.param({"lines": {"0": {"iban": 1}}}, {"lines": {"0": {"iban": "***"}}}, id="each field of an object"),
        pytest.param([1, "bob"], ["***", "***"], id="another event"),
        pytest.param({"id": 1}, {"id": 1}, id="without the fields"),
    ],
)
def test_masked_values_of_a_sample_are_hidden_also_if_it_has_another_shape(event: Any, shown: Any):
    partial = {"op": "mask", "path": "card", "how": "partial"}
    fields = masked_fields({"normalize": [MASK, partial, {"op": "mask", "path": "lines.*.iban"}]})
    assert with_masks(event, fields) == shown
    assert with_masks(event, WHOLE_EVENT) == "***"
    assert with_masks(event, ()) == event
