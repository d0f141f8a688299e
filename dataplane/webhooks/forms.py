"""Form-encoded bodies as JSON values.

The fields become an object in their order; a field that occurs several times becomes an array. GitHub and the
interactions of Slack send JSON in the only field of a form, `payload`.
"""

import re
from typing import Final

MAX_FIELDS: Final = 1_000
PAYLOAD: Final = "payload"
_ESCAPES: Final = re.compile(rb"(?:%[0-9A-Fa-f]{2})+")


class FormError(ValueError):
    """The body is not a form, or has too many fields."""


def form_fields(body: bytes) -> list[tuple[str, str]]:
    """Return names and values in the order of the body. Raises FormError.

    urllib's parse_qsl is not used: it raises and catches an exception for each `%` without two hexadecimal digits.
    """
    if body.count(b"&") >= MAX_FIELDS:
        raise FormError(f"needs at most {MAX_FIELDS} fields of a form, got more")
    if not body.isascii():
        raise FormError("needs a form in ASCII with percent-encoded UTF-8")
    return [_field(pair) for pair in body.split(b"&")] if body else []


def _field(pair: bytes) -> tuple[str, str]:
    name, equals, value = pair.replace(b"+", b" ").partition(b"=")
    if not equals:
        raise FormError("needs a form: name=value, divided by &")
    try:
        return _ESCAPES.sub(_unescaped, name).decode(), _ESCAPES.sub(_unescaped, value).decode()
    except UnicodeDecodeError as exc:
        raise FormError("needs a form in ASCII with percent-encoded UTF-8") from exc


def _unescaped(found: re.Match[bytes]) -> bytes:
    return bytes.fromhex(found[0].replace(b"%", b"").decode())


def read_form(body: bytes) -> dict[str, str | list[str]]:
    """Return the fields of a form as a JSON value. Raises FormError."""
    found: dict[str, str | list[str]] = {}
    for name, value in form_fields(body):
        known = found.get(name)
        if isinstance(known, list):
            known.append(value)
        else:
            found[name] = value if known is None else [known, value]
    return found


def payload_of(fields: dict[str, str | list[str]]) -> str:
    """Return the text of the field `payload` of a form that has no other; "" for all other forms."""
    only = fields.get(PAYLOAD) if len(fields) == 1 else None
    return only if isinstance(only, str) else ""
