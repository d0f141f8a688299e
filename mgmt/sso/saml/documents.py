"""XML of strangers: bounded, without document types, entities, comments and processing instructions.

All is refused in the text, before a parser reads it: two readers cannot understand differently what neither sees.
"""

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, wraps
from importlib.resources import files
from threading import Lock
from typing import Any, Final, ParamSpec, TypeVar

from lxml import etree

from mgmt.errors import SsoError

_Given = ParamSpec("_Given")
_Found = TypeVar("_Found")

ASSERTION: Final = "{urn:oasis:names:tc:SAML:2.0:assertion}"
PROTOCOL: Final = "{urn:oasis:names:tc:SAML:2.0:protocol}"
METADATA: Final = "{urn:oasis:names:tc:SAML:2.0:metadata}"
DSIG: Final = "{http://www.w3.org/2000/09/xmldsig#}"
# Bounds of the work before a signature is checked: canonicalisation is slow for many elements with many prefixes, and
# its time grows with the square of the attributes of one element.
MOST_TAGS: Final = 10_000
MOST_PREFIXES: Final = 500
MOST_ATTRIBUTES: Final = 100  # of one element
_DECLARATION: Final = re.compile(r"\A\s*<\?xml\s[^<>]{0,200}\?>")
_ENCODING: Final = re.compile(r"encoding\s*=\s*[\"']([^\"']*)")
_validation: Final = Lock()  # a schema keeps the log of its last validation

Element = Any  # lxml has no types


def in_own_thread(function: Callable[_Given, _Found]) -> Callable[_Given, _Found]:
    """Run a function that parses documents in a thread of its own.

    lxml keeps the names in all documents of a thread until the thread ends: a stranger could fill the memory of a
    thread that lives as long as the process with names that are new in each document.
    """

    @wraps(function)
    def run(*args: _Given.args, **kwargs: _Given.kwargs) -> _Found:
        with ThreadPoolExecutor(max_workers=1, thread_name_prefix="xml") as pool:
            return pool.submit(function, *args, **kwargs).result()

    return run


def parse_strict(content: bytes, what: str) -> Element:
    """Return the root of a document without comments. `what`: its name in errors. Raises SsoError."""
    return _parse(_text(content, what), what)


def parse_with_comments(content: bytes, what: str) -> Element:
    """Return the root of a document, whose comments are left out. Raises SsoError."""
    return _parse(_without_comments(_text(content, what)), what)


def is_valid(root: Element, name: str) -> bool:
    """Return True if a document conforms to a schema of the SAML standard, which python3-saml has."""
    schema = _schema(name)
    with _validation:
        return bool(schema.validate(root))


def text_of(element: Element | None) -> str:
    """Return the text of an element that has no children; "" without an element."""
    return "" if element is None or len(element) else (element.text or "").strip()


@cache
def _schema(name: str) -> Any:
    """Return a compiled schema. It imports others from the same directory, and nothing from the network."""
    return etree.XMLSchema(etree.parse(str(files("onelogin.saml2") / "schemas" / name)))


def _without_comments(text: str) -> str:
    """Return a text without its comments, in linear time: a pattern would look for each end that is missing again."""
    first, *rest = text.split("<!--")
    kept = [first]
    for part in rest:
        _, end, after = part.partition("-->")
        kept.append(after if end else f"<!--{part}")
    return "".join(kept)


def _text(content: bytes, what: str) -> str:
    """Return a document as text without its XML declaration. UTF-8 only: the rules look at characters."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise SsoError(f"{what} is not UTF-8.") from exc
    declaration = _DECLARATION.match(text)
    if declaration is None:
        return text
    named = _ENCODING.search(declaration[0])
    if named and named[1].lower() not in ("utf-8", "utf8", "us-ascii"):
        raise SsoError(f"{what} is not UTF-8.")
    return text[declaration.end() :]


def _parse(text: str, what: str) -> Element:
    if "<!" in text or "<?" in text:
        raise SsoError(f"{what} has a document type, a comment or a processing instruction, which Penstock refuses.")
    if text.count("<") > MOST_TAGS or text.count("xmlns") > MOST_PREFIXES:
        raise SsoError(f"{what} has too many elements. Let the provider send fewer attributes, such as groups.")
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    try:
        root = etree.fromstring(text.strip().encode(), parser)
    except (etree.XMLSyntaxError, ValueError) as exc:
        raise SsoError(f"{what} is not an XML document.") from exc
    if any(len(one.attrib) > MOST_ATTRIBUTES for one in root.iter()):
        raise SsoError(f"{what} has an element with more than {MOST_ATTRIBUTES} XML attributes.")
    return root
