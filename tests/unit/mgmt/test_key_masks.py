"""A key that a pipe masks is not shown by alerts and pages."""

from typing import Any

import pytest

from dataplane.spec import parse_pipe_spec
from mgmt.ledger.key_masks import shown_key

EMAIL = "ann.example@example.com"


def mask(path: str, how: str = "redact") -> dict[str, Any]:
    return {"op": "mask", "path": path, "how": how}


KAFKA = {"type": "kafka", "cluster": "main", "topic": "orders"}


@pytest.mark.parametrize(
    ("source", "steps", "shown"),
    [
        pytest.param({"key": "user.email"}, [], EMAIL, id="no mask"),
        pytest.param({"key": "user.email"}, [mask("user.name")], EMAIL, id="another field is masked"),
        pytest.param({"key": "user.email"}, [mask("user.email")], "***", id="redacted"),
        pytest.param({"key": "user.email"}, [mask("user")], "***", id="its object is redacted"),
        pytest.param({"key": "user"}, [mask("user.email")], "***", id="a part of it is redacted"),
        pytest.param({"key": "users.0.email"}, [mask("users.*.email")], "***", id="each element is redacted"),
        pytest.param({"key": "user.email"}, [mask("user.email", "partial")], "***.com", id="partly masked"),
        pytest.param({"key": "user.email"}, [mask("user.email", "hash")], "***", id="hashed"),
        pytest.param(
            {"key": "user.email"},
            [{"op": "rename", "path": "user", "to": "who"}, mask("who.email")],
            "***",
            id="masked at the path that it was moved to",
        ),
        pytest.param(KAFKA, [mask("user.email")], "***", id="key of a Kafka record, and a mask"),
        pytest.param(KAFKA, [], EMAIL, id="key of a Kafka record, and no mask"),
    ],
)
def test_key_is_masked_as_the_pipe_masks_its_value(source: dict[str, Any], steps: list[Any], shown: str):
    destinations = {"crm": {"url": "https://crm.example.com/in"}}
    spec = parse_pipe_spec({"sources": {"shop": source}, "destinations": destinations, "normalize": steps})
    assert shown_key(EMAIL, spec) == shown


def test_mask_of_one_destinations_steps_counts_too():
    destinations = {"crm": {"url": "https://crm.example.com/in"}}
    document = {
        "sources": {"shop": {"key": "email"}},
        "destinations": destinations,
        "transform": {"crm": [mask("email")]},
    }
    assert shown_key(EMAIL, parse_pipe_spec(document)) == "***"
