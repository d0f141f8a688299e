"""The reference page is generated from the code, and its examples are correct."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from dataplane.expr import EvaluationError, compile_expr, to_json
from dataplane.expr.functions import FUNCTIONS
from dataplane.plan.examples import BODY, STEPS, SYNTAX
from dataplane.plan.reference import page
from dataplane.plan.stage import CompiledStage, StageError, decode
from dataplane.spec import parse_pipe_spec
from dataplane.spec.steps import STEP_TYPES
from dataplane.stages.steps import DROPPED

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "steps-and-expressions.md"
FUNCTION_EXAMPLES = [example for function in FUNCTIONS.values() for example in function.examples]


def test_reference_page_is_generated_from_the_code():
    assert PAGE.read_text() == page(), "run `make reference`"


def test_every_step_and_every_function_has_an_example():
    assert {step["op"] for step, _, _ in STEPS} == {kind.__struct_config__.tag for kind in STEP_TYPES}
    assert all(function.examples and function.says.endswith(".") for function in FUNCTIONS.values())


@pytest.mark.parametrize(("step", "before", "after"), STEPS, ids=lambda value: json.dumps(value)[:60])
def test_step_does_what_its_example_shows(step: dict[str, Any], before: Any, after: Any):
    spec = parse_pipe_spec(
        {
            "sources": {"shop": {}},
            "destinations": {"crm": {"type": "http", "url": "https://crm.example/"}},
            "normalize": [step],
        }
    )
    stage = CompiledStage("normalize", spec.normalize)
    if isinstance(after, str):
        with pytest.raises(StageError) as failed:
            stage.before(copy.deepcopy(before))
        assert failed.value.detail == f"normalize[0] {step['op']} {after}"
        return
    made = stage.before(copy.deepcopy(before))
    if stage.explodes:
        made = [decode(child) for child in stage.explode(made)]
    assert made is DROPPED if after is None else made == after


@pytest.mark.parametrize(("text", "result"), [*[(text, result) for _, text, result in SYNTAX], *FUNCTION_EXAMPLES])
def test_expression_gives_the_result_of_its_example(text: str, result: str):
    try:
        value = to_json(compile_expr(text)(copy.deepcopy(BODY)), 1_000)
    except EvaluationError as exc:
        assert str(exc) == result  # noqa: PT017
    else:
        assert json.dumps(value, separators=(",", ":"), ensure_ascii=False) == result
