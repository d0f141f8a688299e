"""The requested demo run, read from the environment."""

from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct

from localbox.demo.payloads import SHIPPED
from localbox.errors import BoxError
from localbox.settings import var_of


class DemoRequest(Struct, frozen=True):
    """The requested run, from the variables that make passes on. `rate`: events per second, 0 for no limit."""

    events: Path
    rate: float
    count: int
    batch: int
    once: bool
    full: bool
    var: Path


def demo_request_from(env: Mapping[str, str]) -> DemoRequest:
    """Read the request from the environment. Raises BoxError, naming the variable, for an invalid value."""
    once = env.get("ONCE", "") not in ("", "0")
    return DemoRequest(
        events=Path(env.get("EVENTS") or SHIPPED).expanduser(),
        rate=_number(env, "RATE", "100" if once else "20", float),
        count=int(_number(env, "COUNT", "1000", int)),
        batch=max(1, int(_number(env, "BATCH", "1", int))),
        once=once,
        full=_is_full(env),
        var=var_of(env) / "once",
    )


def _is_full(env: Mapping[str, str]) -> bool:
    if (kind := env.get("PIPE", "")) not in ("", "full"):
        raise BoxError(f"PIPE: needs to be left out, or full, got {kind!r}")
    return kind == "full"


def _number(env: Mapping[str, str], name: str, default: str, kind: Callable[[str], float]) -> float:
    text = env.get(name) or default
    try:
        number = kind(text)
    except ValueError as exc:
        raise BoxError(f"{name}: needs a number, got {text!r}") from exc
    if number < 0:
        raise BoxError(f"{name}: needs 0 or more, got {text}")
    return number
