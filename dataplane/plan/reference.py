"""Generate the reference page of steps and expressions from the code that runs them (`make reference`)."""

import json
import sys
from collections.abc import Iterator
from inspect import cleandoc
from typing import Any, Final

import msgspec

from dataplane.expr.frame import CHARS_PER_UNIT, COST_LIMIT, STAGE_LIMIT, WIDE_CHARS_PER_UNIT
from dataplane.expr.functions import FUNCTIONS, Function
from dataplane.expr.output import MAX_VALUES
from dataplane.expr.parse import MAX_COMPREHENSIONS, MAX_DEPTH, MAX_NODES, MAX_TEXT_BYTES
from dataplane.plan.examples import BODY, STEPS, SYNTAX
from dataplane.spec.steps import STEP_TYPES
from dataplane.stages import explode, steps

_HEAD: Final = """# Steps and expressions

Generated from the code by `make reference`; do not edit this page. A test runs every example.

A step changes the body of one message. Steps under `normalize` apply to all destinations, those under
`transform.<name>` to one. A path is a list of names separated by dots: `order.lines.0.price`. A number is an index into
an array; `*` is every element of an array or every value of an object (not in rename, explode and map). If a step
fails, its message becomes a dead letter with the step's number, its path and the cause; other messages continue.
"""
_EXPRESSIONS: Final = """
# Expressions

Filters, maps and routes are written in the [Common Expression Language](https://github.com/google/cel-spec).
`body` is the message's body, `meta` its metadata: `id`, `pipe`, `revision`, `source`, `event_time`,
`ingest_time`. The input of the examples is
"""
_LIMITS: Final = f"""
## Limits

When a spec is saved: {MAX_TEXT_BYTES} bytes of text, {MAX_NODES} parts (values, names, operators, calls),
{MAX_DEPTH} levels, {MAX_COMPREHENSIONS} nested comprehensions; patterns and time zones are text constants.

For each message: {COST_LIMIT:,} units per expression, {STAGE_LIMIT:,} for all steps of a stage together. A part that
runs in a comprehension costs one unit, as does an element that is searched or joined, and every {CHARS_PER_UNIT}
characters that are read or written ({WIDE_CHARS_PER_UNIT} in a text with a non-ASCII character). A conversion or a time
costs up to 15, an absorbed error 5, a pattern more the larger it is, and a step 3 to 32 for each value that `*`
matches. The result of a map: {steps.MAX_VALUE_BYTES // 1024} KB and {MAX_VALUES:,} values.
"""


def page() -> str:
    """Return the reference page of steps and expressions, as Markdown."""
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
    """Return the Out, Raises and Cost sections of the docstring of a step's implementation."""
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
    yield from (f"| {description} | {_code(text)} | {_code(result)} |" for description, text, result in SYNTAX)
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
    """Return code for a table cell, with `|` escaped: a bar would end the cell."""
    return f"`{text}`".replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(page())
