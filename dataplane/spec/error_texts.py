"""Translate msgspec's validation errors into texts for the author of a spec."""

import re
from typing import Any, Final

import msgspec

from dataplane.spec.names import NAME
from dataplane.spec.sources import OPERATIONAL_PATTERN, TOPIC
from dataplane.spec.steps import PATH, STEP_TYPES
from dataplane.spec.storage import ROOT

OPS: Final = tuple(str(kind.__struct_config__.tag) for kind in STEP_TYPES)
_PATTERNS: Final = {
    PATH: "needs names separated by dots, such as order.total",
    NAME: "needs 1-40 of a-z, 0-9 and '-', such as crm",
    r"^[A-Z]{3}(?!\n)$": "needs a currency of three capital letters, such as EUR",
    r"^([1-5]xx|[1-5]\d\d|[1-5]\d\d-[1-5]\d\d)(?!\n)$": "needs a status such as 200, 4xx or 500-599",
    ROOT: "needs the URL of a store, such as file:///srv/lake or s3a://bucket/lake",
    OPERATIONAL_PATTERN: "needs a type of operational events, such as penstock.alert.opened, or penstock.alert.*",
    TOPIC: "needs the name of a topic: 1-249 of a-z, A-Z, 0-9, '.', '_' and '-'",
    r"^[^:\x00-\x1f\x7f]*(?!\n)$": "needs text without colons and control characters",
}
_MATCHING: Final = re.compile(r"^Expected `str` matching regex (.+)$", re.DOTALL)
_UNKNOWN: Final = re.compile(r"^Object contains unknown field `(.*)`$", re.DOTALL)
_MISSING: Final = re.compile(r"^Object missing required field `(.*)`$", re.DOTALL)
_VALUE: Final = re.compile(r"^Invalid (?:enum )?value (.*)$", re.DOTALL)


def split_error(exc: msgspec.ValidationError) -> tuple[str, str]:
    """Return (reason, path) of a validation error."""
    reason, _, path = str(exc).rpartition(" - at `")
    reason, path = (reason, path.rstrip("`")) if reason else (str(exc), "$")
    return in_words(reason, path), path


def in_words(reason: str, path: str) -> str:
    """Return the reason without regular expressions, and with the list of possible values."""
    if found := _MATCHING.match(reason):
        return next(words for pattern, words in _PATTERNS.items() if repr(pattern) == found[1])
    if found := _MISSING.match(reason):
        return f"needs the field {found[1]}"
    if found := _UNKNOWN.match(reason):
        return f"contains the unknown field {found[1]}"
    if (found := _VALUE.match(reason)) and path.endswith(".op"):
        return f"needs one of {', '.join(OPS)}, got {found[1]}"
    return reason


def checked(value: Any, kind: Any) -> tuple[str, str] | None:
    """Return (reason, path) of the first error in a value of type `kind`; None if it is valid."""
    try:
        msgspec.convert(value, type=kind)
    except msgspec.ValidationError as exc:
        return split_error(exc)
    return None
