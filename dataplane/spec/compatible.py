"""Compatibility of schemas: find changes that could refuse an event which the previous schema accepted. Pure.

A schema must never break a running sender, so the check errs on the safe side: a change that cannot be shown to be
harmless counts as breaking. tests/unit/spec/test_compatible_schemas.py verifies it with generated schemas and events.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

from dataplane.spec.effort import limits_of
from dataplane.spec.schema import expanded

MOST: Final = 50  # breaking changes that are reported
EFFORT: Final = 20_000  # comparisons of two parts; each alternative is compared with each other one
_ANY: Final = ("array", "boolean", "null", "number", "object", "string")
# Lower bounds by keyword, with the value that applies if the keyword is absent.
_LOWER: Final = {"minimum": None, "exclusiveMinimum": None, "minLength": 0, "minItems": 0, "minProperties": 0}
_UPPER: Final = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
# Keywords that have a meaning only together; the first represents the group.
_TOGETHER: Final = {"if": ("if", "then", "else"), "contains": ("contains", "minContains", "maxContains")}
_FOLLOWERS: Final = {"then": "if", "else": "if", "minContains": "contains", "maxContains": "contains"}


class BreakingChange(NamedTuple):
    """A change that could refuse a formerly accepted event: path in the new schema, field of the event, reason."""

    path: tuple[str, ...]
    field: str
    reason: str

    def __str__(self) -> str:
        return f"{self.field or 'the event'}: {self.reason}"


def changes(old: dict[str, Any], new: dict[str, Any]) -> list[BreakingChange]:
    """Return the breaking changes from `old` to `new`, as registered; empty if all events that fit `old` fit `new`."""
    before, now = expanded(old), expanded(new)
    found = dict.fromkeys(_Comparison().compare(before, now, _Place((), "")))
    return [*found, *_smaller(before, now)][:MOST]


def _smaller(old: Any, new: Any) -> "Found":
    """Yield a change if the new schema costs more to check and so has a lower limit of values or bytes."""
    for before, now, unit in zip(limits_of(old), limits_of(new), ("values", "bytes"), strict=True):
        if now < before:
            yield BreakingChange(
                (), "", f"accepts at most {now} {unit} per event now, and accepted {before}: it costs more to check"
            )


class _Place(NamedTuple):
    path: tuple[str, ...]
    field: str

    def property(self, name: str) -> "_Place":
        return _Place((*self.path, "properties", name), f"{self.field}.{name}" if self.field else name)

    def others(self) -> "_Place":
        return _Place((*self.path, "additionalProperties"), f"{self.field}.*" if self.field else "*")

    def items(self) -> "_Place":
        return _Place((*self.path, "items"), f"{self.field}[]")

    def breaks(self, reason: str, *word: str) -> BreakingChange:
        return BreakingChange((*self.path, *word), self.field, reason)


Found = Iterator[BreakingChange]
Rule = Callable[["_Comparison", dict[str, Any], dict[str, Any], str, _Place], Found]


class _Comparison:
    def __init__(self) -> None:
        self._left = EFFORT

    def compare(self, old: Any, new: Any, at: _Place) -> Found:
        """Yield what `new` refuses of `old`. A schema is the conjunction of its keywords, so each is compared alone."""
        self._left -= 1
        if self._left < 0:
            yield at.breaks("has too many alternatives to compare")
            return
        if old is False or new is True or (old == new and _text(old) == _text(new)):
            return
        if new is False:
            yield at.breaks("is no longer accepted")
            return
        old = {} if old is True else old
        if not _same(old, new, ("oneOf",)):
            old, new = _without_one_of(old), _without_one_of(new)
        if set(old) == {"anyOf"}:
            for branch in old["anyOf"]:
                yield from self.compare(branch, new, at)
            return
        for word in new:
            yield from _RULES.get(word, _unchanged)(self, old, new, word, at)

    def fits(self, old: Any, new: Any, at: _Place) -> bool:
        """Return True if no change is breaking."""
        return next(self.compare(old, new, at), None) is None


def _type(_: _Comparison, old: dict[str, Any], new: dict[str, Any], word: str, at: _Place) -> Found:
    before, now = _types(old), _listed(new[word])
    if any(kind not in now and not (kind == "integer" and "number" in now) for kind in before):
        yield at.breaks(f"needs to be {' or '.join(now)} now, and could be {' or '.join(before)}", word)


def _types(schema: dict[str, Any]) -> list[str]:
    """Return the types that a value may have, derived from `enum` or `const` if there is no `type`."""
    if "type" in schema:
        return _listed(schema["type"])
    values = _values(schema)
    return list(_ANY) if values is None else list(dict.fromkeys(map(_type_of, values)))


def _listed(types: Any) -> list[str]:
    return [types] if isinstance(types, str) else list(types)


def _type_of(value: Any) -> str:
    kinds: tuple[tuple[type, str], ...] = ((bool, "boolean"), (str, "string"), (int, "integer"), (float, "number"))
    kinds += ((list, "array"), (dict, "object"))
    return next((name for kind, name in kinds if isinstance(value, kind)), "null")


def _values(schema: dict[str, Any]) -> list[Any] | None:
    if "const" in schema:
        return [schema["const"]]
    return schema.get("enum")


def _listed_values(_: _Comparison, old: dict[str, Any], new: dict[str, Any], word: str, at: _Place) -> Found:
    before, now = _values(old), [new[word]] if word == "const" else new[word]
    if _same(old, new, (word,)):  # the schema may have both keywords, with different values
        return
    if before is None:
        yield at.breaks("accepts only listed values now, and accepted others", word)
        return
    for value in _missing(before, now):
        yield at.breaks(f"no longer accepts {_text(value)[:60]}", word)


def _missing(before: Iterable[Any], now: Iterable[Any]) -> list[Any]:
    known = set(map(_text, now))
    return [value for value in before if _text(value) not in known]


def _required(_: _Comparison, old: dict[str, Any], new: dict[str, Any], word: str, at: _Place) -> Found:
    for name in _missing(new[word], old.get(word, ())):
        yield at.property(name)._replace(path=(*at.path, word)).breaks("is required now, but was optional")


def _object(with_: _Comparison, old: dict[str, Any], new: dict[str, Any], word: str, at: _Place) -> Found:
    """Compare each named field with the rule that applied to it before, named or not; then all unnamed fields."""
    if word == "additionalProperties" and "properties" in new:
        return  # compared together with `properties`
    before, now = old.get("properties", {}), new.get("properties", {})
    others, others_now = old.get("additionalProperties", True), new.get("additionalProperties", True)
    # A pattern may name any field: with some, an unnamed field was not ruled out by additionalProperties.
    unnamed = True if old.get("patternProperties") else others
    for name in dict.fromkeys([*now, *before]):
        here = at.property(name)
        if name in before:
            yield from with_.compare(before[name], now.get(name, others_now), here)
        elif not with_.fits(unnamed, now[name], here):
            reason = "is restricted now, and could be anything before, because additionalProperties was not false"
            yield here.breaks(reason)
    same_patterns = _same(old, new, ("patternProperties",))
    yield from with_.compare(others if same_patterns else unnamed, others_now, at.others())


def _items(with_: _Comparison, old: dict[str, Any], new: dict[str, Any], word: str, at: _Place) -> Found:
    """Compare `items`. With another prefix they apply to other elements, so any old value is possible there."""
    before = old.get(word, True) if _same(old, new, ("prefixItems",)) else True
    yield from with_.compare(before, new[word], at.items())


def _at_least(_: _Comparison, old: dict[str, Any], new: dict[str, Any], word: str, at: _Place) -> Found:
    before = old.get(word, _LOWER[word])
    if before is None or new[word] > before:
        yield at.breaks(f"{word} is {new[word]} now, and was {'absent' if before is None else before}", word)


def _at_most(_: _Comparison, old: dict[str, Any], new: dict[str, Any], word: str, at: _Place) -> Found:
    before = old.get(word)
    if before is None or new[word] < before:
        yield at.breaks(f"{word} is {new[word]} now, and was {'absent' if before is None else before}", word)


def _unique(_: _Comparison, old: dict[str, Any], new: dict[str, Any], word: str, at: _Place) -> Found:
    if new[word] and not old.get(word, False):
        yield at.breaks("needs unique items now", word)


def _stated(_: _Comparison, old: dict[str, Any], new: dict[str, Any], word: str, at: _Place) -> Found:
    if new[word] != old.get(word):
        yield at.breaks(f"has another {word} now" if word in old else f"has a {word} now, and had none", word)


def _any_of(with_: _Comparison, old: dict[str, Any], new: dict[str, Any], word: str, at: _Place) -> Found:
    """Require that the old schema fits one new alternative, or that each of its own alternatives fits one."""
    if word in old and any(with_.fits(old, one, at) for one in new[word]):
        return
    for branch in old.get(word, [old]):
        if not any(with_.fits(branch, one, at) for one in new[word]):
            yield at.breaks("could be a value that none of its alternatives accepts now", word)
            return


def _all_of(_: _Comparison, old: dict[str, Any], new: dict[str, Any], word: str, at: _Place) -> Found:
    if _missing(new[word], old.get(word, ())):
        yield at.breaks(_uncheckable(word), word)


def _together(_: _Comparison, old: dict[str, Any], new: dict[str, Any], word: str, at: _Place) -> Found:
    if not _same(old, new, _TOGETHER[word]):
        yield at.breaks(_uncheckable(word), word)


def _follower(_: _Comparison, _old: dict[str, Any], _new: dict[str, Any], _word: str, _at: _Place) -> Found:
    """Yield nothing: the keyword has no meaning without its leader, whose rule compares it."""
    yield from ()


def _unevaluated(_: _Comparison, old: dict[str, Any], new: dict[str, Any], word: str, at: _Place) -> Found:
    """Require identical schemas: the keyword depends on all others in the same object."""
    if new[word] is not True and _text(old) != _text(new):
        yield at.breaks(_uncheckable(word), word)


def _unchanged(_: _Comparison, old: dict[str, Any], new: dict[str, Any], word: str, at: _Place) -> Found:
    if not _same(old, new, (word,)):
        yield at.breaks(_uncheckable(word), word)


def _uncheckable(word: str) -> str:
    return f"{word} has changed in a way that cannot be checked: keep it as it was, or remove it"


def _same(old: dict[str, Any], new: dict[str, Any], words: Iterable[str]) -> bool:
    return all((word in old) == (word in new) and _text(old.get(word)) == _text(new.get(word)) for word in words)


def _text(value: Any) -> str:
    """Return canonical JSON, which distinguishes true from 1; Python compares them as equal."""
    return json.dumps(value, sort_keys=True)


def _without_one_of(schema: dict[str, Any]) -> dict[str, Any]:
    """Replace `oneOf` by `anyOf` if its alternatives have different types, as people write nullable fields."""
    if "oneOf" not in schema or "anyOf" in schema or not _differ(schema["oneOf"]):
        return schema
    return {("anyOf" if word == "oneOf" else word): value for word, value in schema.items()}


def _differ(branches: list[Any]) -> bool:
    seen: list[str] = []
    for branch in branches:
        if not isinstance(branch, dict) or "type" not in branch:
            return False
        seen += {"number" if kind == "integer" else kind for kind in _listed(branch["type"])}
    return len(seen) == len(set(seen))


_RULES: Final[dict[str, Rule]] = {
    "type": _type,
    "enum": _listed_values,
    "const": _listed_values,
    "required": _required,
    "properties": _object,
    "additionalProperties": _object,
    "items": _items,
    **dict.fromkeys(_LOWER, _at_least),
    **dict.fromkeys(_UPPER, _at_most),
    "uniqueItems": _unique,
    "pattern": _stated,
    "format": _stated,
    "anyOf": _any_of,
    "allOf": _all_of,
    **dict.fromkeys(_TOGETHER, _together),
    **dict.fromkeys(_FOLLOWERS, _follower),
    "unevaluatedProperties": _unevaluated,
    "unevaluatedItems": _unevaluated,
}
