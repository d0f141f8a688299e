"""Execution of a spec document: what runs the steps. Pure."""

from collections.abc import Mapping
from typing import Any, Final

STREAMING: Final = "streaming"


def execution_of(document: Mapping[str, Any]) -> str:
    """Return the execution that a spec document names; without one, streaming."""
    return str(document.get("execution") or STREAMING)
