"""Parts that the emitters of all languages share: texts from schemas, calls of codecs, and runtime files. Pure."""

import re
from collections.abc import Callable, Iterable, Mapping
from importlib.resources import files
from typing import Final

from typed_clients.model import ScalarKind, ScalarType

_UNSAFE: Final = re.compile(r"[^\x20-\x21\x23-\x5b\x5d-\x7e\xa1-\u2027\u202f-\ud7ff]")  # controls, " and \, marks
MAX_COMMENT: Final = 200
MAX_INT32: Final = (1 << 31) - 1


def listed(names: str) -> frozenset[str]:
    """Return the names in a text, separated by spaces."""
    return frozenset(names.split())


def comment(text: str) -> str:
    """Return the documentation of a schema as one line that ends no comment and escapes from none.

    Schemas are written by other people than those who compile the client: a text such as `*/` would be code.
    """
    line = " ".join(_UNSAFE.sub(" ", text).replace("*/", "* /").replace("/*", "/ *").split())
    return line if len(line) <= MAX_COMMENT else f"{line[: MAX_COMMENT - 3]}..."


def literal(text: str, octal: bool = False) -> str:
    r"""Return a text as a literal in double quotes that Python and Go read; with `octal`, Java.

    Java replaces \u escapes before it looks for the end of a literal, so its quotes and controls need octal ones.
    """
    return f'"{"".join(_escaped(one, octal) for one in text)}"'


def _escaped(one: str, octal: bool) -> str:
    code = ord(one)
    if 0x20 <= code < 0x7F and one not in '"\\':
        return one
    if octal and code < 0x80:
        return f"\\{code:03o}"
    if code < 0x10000:
        return f"\\u{code:04x}"
    units = one.encode("utf-16-be").hex(" ", 2).split()
    return "".join(f"\\u{unit}" for unit in units) if octal else f"\\U{code:08x}"


def sections(parts: Iterable[Iterable[str]]) -> list[str]:
    """Return each part, given as lines, as text with one newline at its end."""
    return ["\n".join(lines).rstrip("\n") + "\n" for lines in parts]


def int32_limit(limit: int | None) -> int:
    """Return a limit of a length as a 32-bit integer; -1 for none."""
    return -1 if limit is None else min(limit, MAX_INT32)


def scalar_codec(
    calls: Mapping[ScalarKind, str], kind: ScalarType, limit: Callable[[int | None], object] = int32_limit
) -> str:
    """Return the call that makes the codec of a scalar type.

    calls: by kind, with the fields of ScalarType in braces; `shortest` and `longest` are limits as `limit` writes them
    """
    return calls[kind.kind].format(
        low=kind.low,
        high=kind.high,
        shortest=limit(kind.low),
        longest=limit(kind.high),
        precision=kind.precision,
        scale=kind.scale,
        digits=kind.digits,
    )


def runtime(language: str, name: str) -> str:
    """Return the text of a runtime file."""
    return files("typed_clients.runtime").joinpath(language, name).read_text(encoding="utf-8")
