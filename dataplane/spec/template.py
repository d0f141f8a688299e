"""Request templates of destinations: texts that contain `${expression}`, and an expression for the body.

The host never comes from a message: `path` is below the destination's URL, which was checked when it was saved.
"""

import re
from typing import Annotated, Final, NamedTuple

from msgspec import Meta, Struct

from dataplane.expr import closing_brace
from dataplane.spec.checks import check_expression
from dataplane.spec.errors import SpecError

OPEN: Final = "${"
MOST_EXPRESSIONS: Final = 20  # in one text
_PATH: Final = re.compile(r"/[!-~]*")

TemplateText = Annotated[str, Meta(min_length=1, max_length=2_000)]


class RequestTemplate(Struct, forbid_unknown_fields=True, frozen=True):
    """Path, headers and body of a request, computed from the message. A part that is left out is not changed.

    path:    replaces the path and query of `url`; each value is percent-encoded as one part of it
    headers: added to the constant ones; characters of a value other than printable ASCII are percent-encoded
    body:    an expression whose value is sent as JSON
    """

    path: TemplateText | None = None
    headers: Annotated[dict[Annotated[str, Meta(min_length=1, max_length=100)], TemplateText], Meta(max_length=20)] = {}
    body: Annotated[str, Meta(min_length=1, max_length=4_000)] | None = None


class TemplatePart(NamedTuple):
    """A piece of a text: literal, or the text of an expression."""

    text: str
    is_expression: bool


def parts_of(where: str, text: str) -> list[TemplatePart]:
    """Return the parts of a text in order. An expression ends at the first brace that closes none of its own.

    Raises SpecError, with line and column within the expression, and what was expected.
    """
    found: list[TemplatePart] = []
    while OPEN in text:
        if len(found) >= 2 * MOST_EXPRESSIONS:
            raise SpecError(where, f"needs at most {MOST_EXPRESSIONS} expressions")
        literal, _, rest = text.partition(OPEN)
        end = closing_brace(rest)
        if end is None:
            raise SpecError(where, f"needs a closing brace after {OPEN}{rest[:40]}")
        check_expression(where, rest[:end])
        found += [TemplatePart(literal, False), TemplatePart(rest[:end], True)]
        text = rest[end + 1 :]
    return [part for part in [*found, TemplatePart(text, False)] if part.text]


def check_template(where: str, template: RequestTemplate) -> None:
    """Check what types cannot express, except header names. Raises SpecError, with the field under `where`."""
    if template == RequestTemplate():
        raise SpecError(where, "needs a path, headers or a body; leave it out for none")
    if template.path is not None:
        _check_path(f"{where}.path", template.path)
    for name, text in template.headers.items():
        literal = _check_text(f"{where}.headers", text)
        if not all(" " <= char <= "~" for char in literal):
            raise SpecError(f"{where}.headers", f"needs printable ASCII around the expressions of {name}")
    if template.body is not None:
        check_expression(f"{where}.body", template.body)


def _check_path(where: str, text: str) -> None:
    literal = _check_text(where, text)
    if not text.startswith("/") or not _PATH.fullmatch(literal) or "\\" in literal or "#" in literal:
        raise SpecError(where, "needs a path that begins with / and contains no white space, backslash or fragment")


def _check_text(where: str, text: str) -> str:
    """Check the expressions of a text and return its literal parts, joined."""
    return "".join(part.text for part in parts_of(where, text) if not part.is_expression)
