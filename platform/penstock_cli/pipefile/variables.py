"""`${NAME}` in the texts of a document: replaced from the environment, so that a file in git holds no secret. Pure."""

import re
from collections.abc import Mapping
from typing import Any, Final

from penstock_cli.errors import CliError

_VARIABLE: Final = re.compile(r"\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def replaced(value: Any, env: Mapping[str, str], path: str = "$") -> Any:
    """Return a value with every `${NAME}` replaced; `$${` is the text `${`. Raises CliError for a missing variable."""
    if isinstance(value, str):
        return _VARIABLE.sub(lambda found: _text(found, env, path), value)
    if isinstance(value, dict):
        return {name: replaced(part, env, f"{path}.{name}") for name, part in value.items()}
    if isinstance(value, list):
        return [replaced(part, env, f"{path}[{number}]") for number, part in enumerate(value)]
    return value


def escaped(value: Any) -> Any:
    """Return a value whose texts `replaced` returns unchanged."""
    if isinstance(value, str):
        return value.replace("${", "$${")
    if isinstance(value, dict):
        return {name: escaped(part) for name, part in value.items()}
    return [escaped(part) for part in value] if isinstance(value, list) else value


def variable_name(*parts: str) -> str:
    """Return the name of a variable from the names of a pipe, a destination and a field."""
    return re.sub(r"[^A-Z0-9]+", "_", "_".join(parts).upper()).strip("_")


def _text(found: re.Match[str], env: Mapping[str, str], path: str) -> str:
    name = found[1]
    if name is None:
        return "${"
    if not env.get(name):
        raise CliError(f"{path}: needs the variable {name}", hint=f"Set {name} in the environment.")
    return env[name]
