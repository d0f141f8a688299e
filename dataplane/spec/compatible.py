"""Whether a source's next schema takes every event that the one before took. Pure.

A running sender must never be broken by a schema, so the answer errs on one side: what cannot be shown to be harmless
is breaking, and says so. tests/unit/spec/test_compatible_schemas.py has the proof by generated schemas and events.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

from dataplane.spec.effort import limits_of
from dataplane.spec.schema import expanded

MOST: Final = 50  # breaking changes that are told
EFFORT: Final = 20_000  # comparisons of one part with another: alternatives are compared each with each
_ANY: Final = ("array", "boolean", "null", "number", "object", "string")
# Bounds by their word, with what holds where none is stated.
_LOWER: Final = {"minimum": None, "exclusiveMinimum": None, "minLength": 0, "minItems": 0, "minProperties": 0}
_UPPER: Final = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
# Words that mean something together only: the first stands for all.
_TOGETHER: Final = {"if": ("if", "then", "else"), "contains": ("contains", "minContains", "maxContains")}
_FOLLOWERS: Final = {"then": "if", "else": "if", "minContains": "contains", "maxContains": "contains"}


class Breaking(NamedTuple):
    """One change that could refuse an event that was taken: its place in the new schema, the event's field, why."""

    path: tuple[str, ...]
    field: str
    reason: str

    def __str__(self) -> str:
        return f"{self.field or 'the event'}: {self.reason}"


def changes(old: dict[str, Any], new: dict[str, Any]) -> list[Breaking]:
    """What is breaking in `new`, both as they were registered; nothing if every event that fits `old` fits `new`."""
    before, now = expanded(old), expanded(new)
    found = dict.fromkeys(_Comparison().compare(before, now, _Place((), "")))
    return [*found, *_smaller(before, now)][:MOST]


def _smaller(old: Any, new: Any) -> "Found":
    """A schema that takes longer to check has time for smaller events only."""
    for before, now, what in zip(limits_of(old), limits_of(new), ("values", "bytes"), strict=True):
        if now < before:
            yield Breaking(
                (), "", f"takes events of at most {now} {what} now, and took {before}: it costs more to check"
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

    def breaks(self, reason: str, *word: str) -> Breaking:
        return Breaking((*self.path, *word), self.field, reason)


Found = Iterator[Breaking]
Rule = Callable[["_Comparison", dict[str, Any], dict[str, Any], str, _Place], Found]


class _Comparison:
    def __init__(self) -> None:
        self._left = EFFORT

    def compare(self, old: Any, new: Any, at: _Place) -> Found:
        """A conjunction is implied if each word of it is: each of the new one's is looked at by itself."""
        self._left -= 1
        if self._left < 0:
            yield at.breaks("has more alternatives than can be compared")
            return
        if old is False or new is True or (old == new and _text(old) == _text(new)):
            return
        if new is False:
            yield at.breaks("is not taken any more")
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
        """Whether nothing is breaking."""
        return next(self.compare(old, new, at), None) is None


def _type(_: _Comparison, old: dict[str, Any], new: dict[str, Any], word: str, at: _Place) -> Found:
    before, now = _types(old), _listed(new[word])
    if any(kind not in now and not (kind == "integer" and "number" in now) for kind in before):
        yield at.breaks(f"needs to be {' or '.join(now)} now, and could be {' or '.join(before)}", word)


def _types(schema: dict[str, Any]) -> list[str]:
    """What a value may be; read off its values where they are listed."""
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
    if _same(old, new, (word,)):  # it may stand beside the other word, whose values are not these
        return
    if before is None:
        yield at.breaks("takes listed values only now, and took others", word)
        return
    for value in _missing(before, now):
        yield at.breaks(f"does not take {_text(value)[:60]} any more", word)


def _missing(before: Iterable[Any], now: Iterable[Any]) -> list[Any]:
    known = set(map(_text, now))
    return [value for value in before if _text(value) not in known]


def _required(_: _Comparison, old: dict[str, Any], new: dict[str, Any], word: str, at: _Place) -> Found:
    for name in _missing(new[word], old.get(word, ())):
        yield at.property(name)._replace(path=(*at.path, word)).breaks("is required now, and could be left out")


def _object(with_: _Comparison, old: dict[str, Any], new: dict[str, Any], word: str, at: _Place) -> Found:
    """Named fields against what held for them before, named or not; then all that neither names."""
    if word == "additionalProperties" and "properties" in new:
        return  # the other word's turn looks at both
    before, now = old.get("properties", {}), new.get("properties", {})
    others, others_now = old.get("additionalProperties", True), new.get("additionalProperties", True)
    # A pattern may name any field: with some, an unnamed field was not ruled out by additionalProperties.
    unnamed = True if old.get("patternProperties") else others
    for name in dict.fromkeys([*now, *before]):
        here = at.property(name)
        if name in before:
            yield from with_.compare(before[name], now.get(name, others_now), here)
        elif not with_.fits(unnamed, now[name], here):
            reason = "has a shape now, and events could carry anything there, as additionalProperties was not false"
            yield here.breaks(reason)
    same_patterns = _same(old, new, ("patternProperties",))
    yield from with_.compare(others if same_patterns else unnamed, others_now, at.others())


def _items(with_: _Comparison, old: dict[str, Any], new: dict[str, Any], word: str, at: _Place) -> Found:
    """Without the same prefix they hold for other places, so nothing is known of these."""
    before = old.get(word, True) if _same(old, new, ("prefixItems",)) else True
    yield from with_.compare(before, new[word], at.items())


def _at_least(_: _Comparison, old: dict[str, Any], new: dict[str, Any], word: str, at: _Place) -> Found:
    before = old.get(word, _LOWER[word])
    if before is None or new[word] > before:
        yield at.breaks(f"{word} is {new[word]} now, and was {'not there' if before is None else before}", word)


def _at_most(_: _Comparison, old: dict[str, Any], new: dict[str, Any], word: str, at: _Place) -> Found:
    before = old.get(word)
    if before is None or new[word] < before:
        yield at.breaks(f"{word} is {new[word]} now, and was {'not there' if before is None else before}", word)


def _unique(_: _Comparison, old: dict[str, Any], new: dict[str, Any], word: str, at: _Place) -> Found:
    if new[word] and not old.get(word, False):
        yield at.breaks("needs items that differ now", word)


def _stated(_: _Comparison, old: dict[str, Any], new: dict[str, Any], word: str, at: _Place) -> Found:
    if new[word] != old.get(word):
        yield at.breaks(f"has another {word} now" if word in old else f"has a {word} now, and had none", word)


def _any_of(with_: _Comparison, old: dict[str, Any], new: dict[str, Any], word: str, at: _Place) -> Found:
    """All of the old schema must fit into one of the new alternatives, or each of its own into one."""
    if word in old and any(with_.fits(old, one, at) for one in new[word]):
        return
    for branch in old.get(word, [old]):
        if not any(with_.fits(branch, one, at) for one in new[word]):
            yield at.breaks("could be what none of its alternatives takes now", word)
            return


def _all_of(_: _Comparison, old: dict[str, Any], new: dict[str, Any], word: str, at: _Place) -> Found:
    if _missing(new[word], old.get(word, ())):
        yield at.breaks(_untold(word), word)


def _together(_: _Comparison, old: dict[str, Any], new: dict[str, Any], word: str, at: _Place) -> Found:
    if not _same(old, new, _TOGETHER[word]):
        yield at.breaks(_untold(word), word)


def _follower(_: _Comparison, _old: dict[str, Any], _new: dict[str, Any], _word: str, _at: _Place) -> Found:
    """Means nothing without its leader, which looks at it."""
    yield from ()


def _unevaluated(_: _Comparison, old: dict[str, Any], new: dict[str, Any], word: str, at: _Place) -> Found:
    """Depends on all that stands beside it."""
    if new[word] is not True and _text(old) != _text(new):
        yield at.breaks(_untold(word), word)


def _unchanged(_: _Comparison, old: dict[str, Any], new: dict[str, Any], word: str, at: _Place) -> Found:
    if not _same(old, new, (word,)):
        yield at.breaks(_untold(word), word)


def _untold(word: str) -> str:
    return f"{word} has changed, and what that refuses cannot be told: it has to stay as it was, or to go"


def _same(old: dict[str, Any], new: dict[str, Any], words: Iterable[str]) -> bool:
    return all((word in old) == (word in new) and _text(old.get(word)) == _text(new.get(word)) for word in words)


def _text(value: Any) -> str:
    """Tells true from 1, which Python takes for equal."""
    return json.dumps(value, sort_keys=True)


def _without_one_of(schema: dict[str, Any]) -> dict[str, Any]:
    """Exactly one of alternatives of different types is any of them: so people write what may be null."""
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
