"""The reference page of steps and expressions, written from the code that runs them: `make reference`."""

import json
import sys
from collections.abc import Iterator
from inspect import cleandoc
from typing import Any, Final

import msgspec

from dataplane.expr.frame import CHARS_PER_UNIT, COST_LIMIT, STAGE_LIMIT, WIDE_CHARS_PER_UNIT
from dataplane.expr.functions import FUNCTIONS, Function
from dataplane.expr.parse import MAX_COMPREHENSIONS, MAX_DEPTH, MAX_NODES, MAX_TEXT_BYTES
from dataplane.expr.values import MAX_VALUES
from dataplane.plan.examples import BODY, STEPS, SYNTAX
from dataplane.spec.steps import STEP_TYPES
from dataplane.stages import explode, steps

_HEAD: Final = """# Steps and expressions

Written from the code by `make reference`; a test keeps it so, and runs every example.

A step changes the body of one message. Steps under `normalize` are for all destinations, those under
`transform.<name>` for one. A path is names with dots between them: `order.lines.0.price`. A number is a place in an
array, `*` every element of an array or every value of an object (not in rename, explode and map). A step that cannot be
done sends the message to the dead letters with the step's number, its path and the cause; the rest goes on.
"""
_EXPRESSIONS: Final = """
# Expressions

Filters, maps and routes are written in the [Common Expression Language](https://github.com/google/cel-spec).
`body` is the message's body, `meta` what Penstock knows of it: `id`, `pipe`, `revision`, `source`, `event_time`,
`ingest_time`. The examples are over
"""
_LIMITS: Final = f"""
## Limits

When saved: {MAX_TEXT_BYTES} bytes of text, {MAX_NODES} parts (values, names, operators, calls), {MAX_DEPTH} levels,
{MAX_COMPREHENSIONS} comprehensions inside each other; patterns and time zones stand there as text.

For each message: {COST_LIMIT:,} units an expression, {STAGE_LIMIT:,} all steps of a stage together. A part run in a
comprehension takes one, so does an element searched or joined, and every {CHARS_PER_UNIT} characters read or written
({WIDE_CHARS_PER_UNIT} in a text with any character beyond ASCII). A conversion or a time takes up to 15, an absorbed
error 5, a pattern more the larger it is, and a step 3 to 32 for each place that `*` stands for. The result of a map:
{steps.MAX_VALUE_BYTES // 1024} KB and {MAX_VALUES:,} values.
"""


def page() -> str:
    """The whole page, Markdown."""
    return "\n".join([*_steps(), *_syntax(), *_functions(), _LIMITS.strip(), ""])


def _steps() -> Iterator[str]:
    yield _HEAD
    for kind in STEP_TYPES:
        op = str(kind.__struct_config__.tag)
        yield f"## {op}\n\n{cleandoc(str(kind.__doc__))}\n"
        yield f"{_fields(kind)}\n"
        yield f"```text\n{_contract(op)}\n```\n"
        yield from (_example(step, before, after) for step, before, after in STEPS if step["op"] == op)


def _fields(kind: type) -> str:
    lines = []
    for field in msgspec.inspect.type_info(kind).fields:  # type: ignore[attr-defined]
        given = "" if field.required else f", {json.dumps(field.default)} by default"
        lines.append(f"- `{field.name}`{given}")
    return "\n".join(lines)


def _contract(op: str) -> str:
    """Out, Raises and Cost, as the code's own docstring says them."""
    source = explode.explode if op == "explode" else getattr(steps, f"_{op}")
    _, _, contract = cleandoc(str(source.__doc__)).partition("\n\n")
    return contract


def _example(step: dict[str, Any], before: Any, after: Any) -> str:
    if after is None:
        result = "filtered"
    elif isinstance(after, str):
        result = f"dead: {after}"
    elif step["op"] == "explode":
        result = "\n    ".join(map(json.dumps, after))
    else:
        result = json.dumps(after)
    return f"```text\n{json.dumps(step)}\n    {json.dumps(before)}\n->  {result}\n```\n"


def _syntax() -> Iterator[str]:
    yield f"{_EXPRESSIONS.strip()} `{json.dumps(BODY)}`.\n"
    yield "| | expression | result |\n|---|---|---|"
    yield from (f"| {says} | {_code(text)} | {_code(result)} |" for says, text, result in SYNTAX)
    yield ""


def _functions() -> Iterator[str]:
    yield "## Functions\n\n| function | gives | | examples |\n|---|---|---|---|"
    for function in FUNCTIONS.values():
        examples = "<br>".join(f"{_code(text)} → {_code(result)}" for text, result in function.examples)
        yield f"| {_code(_signature(function))} | {function.gives} | {function.says} | {examples} |"
    yield ""


def _signature(function: Function) -> str:
    first, *rest = function.takes
    if function.method:
        return f"{first}.{function.name}({', '.join(rest)})"
    return f"{function.name}({', '.join(function.takes)})"


def _code(text: str) -> str:
    """In a table's cell: a bar would end it."""
    return f"`{text}`".replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(page())
