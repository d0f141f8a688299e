"""Code blocks of the documentation, which tests run."""

import re
from pathlib import Path
from typing import Final, NamedTuple

from localbox.settings import ROOT

PAGES: Final = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "examples").glob("*.md"))]
GENERATED: Final = ROOT / "docs" / "reference"
# Text in backticks that reads the event and has an operator or a call: an expression.
_READS: Final = re.compile(r"\b(?:body|meta|table)(?:\.\w|\[)")
_OPERATES: Final = re.compile(r"[=!<>]=|&&|\|\||[<>+*?]| in |\(")
_OTHER_TEXT: Final = re.compile(r"penstock |[{\"'\w]+: ")  # a command, or fields of a spec
_CODE: Final = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_FENCE: Final = re.compile(r"^( *)```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """Block of a page. Blocks without a language have an empty one."""

    page: Path
    language: str
    text: str


def blocks() -> list[Block]:
    """Return the blocks of all pages."""
    return [
        Block(path, language, re.sub(rf"^{indent}", "", text, flags=re.MULTILINE))
        for path in PAGES
        for indent, language, text in _FENCE.findall(path.read_text())
    ]


def inline_expressions(text: str) -> list[str]:
    """Return the expressions in the running text of a page: they read a root, and have an operator or a call."""
    found = _CODE.findall(_FENCE.sub("", text))
    return [one for one in found if _READS.search(one) and _OPERATES.search(one) and not _OTHER_TEXT.match(one)]


def documented(page: str, language: str, **replaced: str) -> str:
    """Return the only block of this language on a page of docs/. Raises ValueError if there are none or several.

    replaced: text for each of these names of the block
    """
    (text,) = documented_all(page, language)
    for old, new in replaced.items():
        text = text.replace(old, new)
    return text


def documented_all(page: str, language: str) -> list[str]:
    """Return the blocks of this language on a page of docs/."""
    return [one.text for one in blocks() if one.language == language and one.page == ROOT / "docs" / page]
