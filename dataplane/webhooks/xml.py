"""XML bodies as JSON values.

An element becomes an object with one member for each name of a child, in their order; children of the same name become
an array. Attributes are members that begin with `@`, and text next to either is the member `#text`. An element with
nothing but text is that text, an empty one is null. Namespace prefixes stay part of the names.

    <order id="7"><item>tea</item><item>cup</item><note/></order>
    {"order": {"@id": "7", "item": ["tea", "cup"], "note": null}}

A document with a DTD is refused, so that it can define no entities: neither expansion nor a file or URL outside.
Encodings are an allow-list: Python remembers every encoding name that it has looked up, as long as a sender makes it.
"""

from typing import Any, Final
from xml.parsers.expat import ExpatError, ParserCreate

MAX_DEPTH: Final = 60  # of elements; each adds one level of JSON, or two if it is one of several of its name
MAX_NODES: Final = 10_000  # elements and attributes
TEXT: Final = "#text"
ENCODINGS: Final = frozenset(("utf-8", "utf-16", "us-ascii", "iso-8859-1", "iso-8859-15", "windows-1252"))


class XmlError(ValueError):
    """The body is not XML that can be converted."""


def read_xml(body: bytes, charset: str = "") -> Any:
    """Return the document as a JSON value with the root element as its only member. Raises XmlError.

    charset: of the media type, which replaces the encoding that the document declares (RFC 7303, 3); "" if none
    """
    _check_encoding(charset)
    reader = _Reader()
    parser = ParserCreate(charset or None)
    parser.buffer_text = True
    parser.ordered_attributes = True
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    parser.StartDoctypeDeclHandler = reader.refuse_dtd
    parser.XmlDeclHandler = reader.declaration  # runs before the encoding is looked up
    try:
        parser.Parse(body, True)
    except ExpatError as exc:
        raise XmlError(f"the body is not XML: {exc}") from exc
    except (LookupError, ValueError) as exc:
        raise exc if isinstance(exc, XmlError) else XmlError("the body has an unknown encoding") from exc
    return reader.root


def _check_encoding(name: str) -> None:
    if name and name.lower() not in ENCODINGS:
        raise XmlError(f"needs one of the encodings {', '.join(sorted(ENCODINGS))}, got another one")


class _Reader:
    """Handlers of one document. `_open`: name, members and text of each open element, the outermost first."""

    def __init__(self) -> None:
        self.root: dict[str, Any] = {}
        self._open: list[tuple[dict[str, Any], list[str]]] = []
        self._nodes = 0

    def declaration(self, _version: str, encoding: str | None, _standalone: int) -> None:
        """Check the encoding of the XML declaration."""
        _check_encoding(encoding or "")

    def start(self, _name: str, attributes: list[str]) -> None:
        """Begin an element; `attributes` has names and values in turn."""
        self._nodes += 1 + len(attributes) // 2
        if self._nodes > MAX_NODES:
            raise XmlError(f"needs at most {MAX_NODES} elements and attributes, got more")
        if len(self._open) == MAX_DEPTH:
            raise XmlError(f"needs at most {MAX_DEPTH} levels of elements, got more")
        pairs = zip(attributes[::2], attributes[1::2], strict=True)
        self._open.append(({f"@{key}": value for key, value in pairs}, []))

    def text(self, text: str) -> None:
        """Add text to the element that is open."""
        self._open[-1][1].append(text)

    def end(self, name: str) -> None:
        """End an element: it becomes a member of the one around it."""
        members, texts = self._open.pop()
        text = "".join(texts)
        value: Any = members
        if not members:
            value = text if text.strip() else None
        elif text.strip():
            members[TEXT] = text.strip()
        holder = self._open[-1][0] if self._open else self.root
        if name not in holder:
            holder[name] = value
        elif isinstance(holder[name], list):
            holder[name].append(value)
        else:
            holder[name] = [holder[name], value]

    def refuse_dtd(self, *_: Any) -> None:
        """Refuse the document: only a DTD can define entities."""
        raise XmlError("must not have a document type declaration")
