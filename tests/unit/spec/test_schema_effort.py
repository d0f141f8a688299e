"""Number of schema parts that examine one value of which an event may have many."""

from typing import Any

import pytest

from dataplane.spec.effort import SLOW, crowd

TWO: dict[str, Any] = {"anyOf": [{"type": "string"}, {"type": "null"}]}  # two alternatives and the part around them


@pytest.mark.parametrize(
    ("schema", "most"),
    [
        pytest.param(True, 0, id="anything"),
        pytest.param({"anyOf": [TWO] * 9}, 0, id="alternatives of the event itself"),
        pytest.param({"properties": {"a": TWO, "b": TWO}}, 0, id="named fields come once"),
        pytest.param({"items": TWO}, 3, id="items"),
        pytest.param({"additionalProperties": TWO}, 3, id="fields that nobody named"),
        pytest.param({"patternProperties": {"a": TWO, "b": TWO}}, 6, id="a name may fit all patterns"),
        pytest.param({"items": {"properties": {"a": TWO, "b": {}}}}, 3, id="named fields of items"),
        pytest.param({"items": {"items": TWO}}, 3, id="items of items"),
        pytest.param({"allOf": [{"items": TWO}, {"items": TWO}]}, 6, id="each looks at the items"),
        pytest.param({"items": TWO, "contains": TWO}, 6, id="twice"),
        pytest.param({"prefixItems": [TWO, TWO], "items": TWO}, 3, id="the first items come once"),
        pytest.param({"items": {"enum": ["a", "b"]}}, 1, id="texts are looked up"),
        pytest.param({"items": {"enum": ["a", None]}}, 3, id="others are compared"),
        pytest.param({"items": {"const": {"a": [1.5]}}}, 1 + SLOW, id="fractions cost more"),
        pytest.param({"items": {"minimum": 0, "maximum": 2**63}}, 1 + SLOW, id="so do very large numbers"),
    ],
)
def test_crowd_counts_the_schema_parts_at_one_value(schema: Any, most: int):
    assert crowd(schema) == most
