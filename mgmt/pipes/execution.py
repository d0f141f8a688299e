"""Execution of a spec document: what runs the steps. Pure."""

from collections.abc import Mapping
from typing import Any, Final

LANES: Final = "lanes"


def execution_of(document: Mapping[str, Any]) -> str:
    """Return the execution that a spec document names; without one, lanes."""
    return str(document.get("execution") or LANES)
