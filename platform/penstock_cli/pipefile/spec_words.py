"""Differences of two specs in words: per source, step, look-up, route, destination. Pure."""

import json
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, Final

_STEP_LISTS: Final = ("normalize", "enrich")
_NAMED: Final = {"sources": "source", "destinations": "destination", "windows": "window"}


def spec_words(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Return one line for each difference, from the old spec to the new one; both have all defaults."""
    lines: list[str] = []
    for part, kind in _NAMED.items():
        lines += _named(kind, old.get(part) or {}, new.get(part) or {})
    for part in _STEP_LISTS:
        lines += _items(f"{part} step", old.get(part) or [], new.get(part) or [])
    lines += _routes(old.get("routes") or {}, new.get("routes") or {})
    before, after = old.get("transform") or {}, new.get("transform") or {}
    for name in sorted(before.keys() | after.keys()):
        lines += _items(f"transform step of {name}", before.get(name, []), after.get(name, []))
    rest = (old.keys() | new.keys()) - {*_NAMED, *_STEP_LISTS, "routes", "transform"}
    lines += (line for name in sorted(rest) for line in _values(name, old.get(name), new.get(name)))
    return lines


def short(value: Any) -> str:
    """Return a value as JSON, cut to a readable length."""
    text = json.dumps(value, ensure_ascii=False, sort_keys=True)
    return text if len(text) <= 100 else f"{text[:99]}…"


def _named(kind: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for name in sorted(old.keys() | new.keys()):
        if name not in old:
            yield f"{kind} {name}: added, {_about(new[name])}"
        elif name not in new:
            yield f"{kind} {name}: removed"
        else:
            yield from _values(f"{kind} {name}", old[name], new[name])


def _about(part: Any) -> str:
    place = next((part[name] for name in ("url", "topic", "table", "lake") if name in part), "")
    return (
        f"type {part.get('type', 'http')}" + (f", {place}" if place else "") if isinstance(part, dict) else short(part)
    )


def _items(kind: str, old: Sequence[Any], new: Sequence[Any]) -> Iterator[str]:
    """Yield the differences of two lists of steps; a step that moved is removed and added."""
    before_keys, after_keys = ([json.dumps(one, sort_keys=True) for one in some] for some in (old, new))
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, before_keys, after_keys, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        both = min(i2 - i1, j2 - j1)
        for k in range(both):
            before, after = old[i1 + k], new[j1 + k]
            where = f"{kind} {j1 + k + 1}"
            if _op(before) == _op(after):
                yield from _values(f"{where} ({_op(after)})", before, after)
            else:
                yield f"{where}: {short(before)} becomes {short(after)}"
        yield from (f"{kind} {i + 1}: removed, {short(old[i])}" for i in range(i1 + both, i2))
        yield from (f"{kind} {j + 1}: added, {short(new[j])}" for j in range(j1 + both, j2))


def _op(step: Any) -> str:
    return str(step.get("op") or f"table {step.get('table')}") if isinstance(step, dict) else ""


def _routes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    if not old or not new:
        if old or new:
            yield f"routes: {'added' if new else 'removed, every message is sent to all destinations'}"
        return
    yield from _items("route rule", old["rules"], new["rules"])
    for name in ("mode", "otherwise"):
        yield from _values(f"routes.{name}", old.get(name), new.get(name))


def _values(path: str, old: Any, new: Any) -> Iterator[str]:
    if old == new:
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for name in sorted(old.keys() | new.keys()):
            yield from _values(f"{path}: {name}" if ":" not in path else f"{path}.{name}", old.get(name), new.get(name))
    else:
        yield f"{path}: {short(old)} becomes {short(new)}"
