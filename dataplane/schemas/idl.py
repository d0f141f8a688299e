"""Avro IDL (.avdl) and protocols (.avpr): the named types in them, each as a schema of its own. Pure.

Messages of a protocol are skipped: the registry keeps types of events. Imports are refused, because nothing is
fetched. Source: the grammar of the Avro project, share/idl_grammar/org/apache/avro/idl/Idl.g4, of Avro 1.12.
"""

import re
from functools import cache
from typing import Any, Final, NamedTuple, cast

from lark import Lark, Token, Tree, UnexpectedCharacters, UnexpectedToken

from dataplane.schemas.avro import PRIMITIVES, document_of, named_types_in, read_json, tree_of_json
from dataplane.schemas.avro_attributes import full_name, namespace_of
from dataplane.schemas.types import SchemaRejectedError
from dataplane.spec.schema import MAX_BYTES, MAX_LEVELS

MAX_TOKENS: Final = 20_000
MAX_TYPES: Final = 100
GRAMMAR: Final = r"""
    file: annotation* "protocol" name "{" item* "}"                        -> protocol
        | namespace? main? item*                                            -> types
    namespace: "namespace" name ";"
    main: "schema" type ";"
    ?item: declaration | import | message
    import: "import" NAME STRING ";"
    declaration: annotation* "fixed" name "(" INTEGER ")" ";"              -> fixed
        | annotation* "enum" name "{" (symbol ("," symbol)*)? "}" default?  -> enum
        | annotation* (RECORD | ERROR) name "{" field* "}"                   -> record
    symbol: annotation* name
    default: "=" name ";"
    field: type variable ("," variable)* ";"
    variable: annotation* name ("=" value)?
    message: annotation* plain name "(" (parameter ("," parameter)*)? ")" ending* ";"
    parameter: type variable
    ending: NAME ("," NAME)*
    type: annotation* plain
    ?plain: "array" "<" type ">"                                            -> array
        | "map" "<" type ">"                                                -> map
        | "union" "{" type ("," type)* "}"                                  -> union
        | NAME OPTIONAL?                                                     -> named
        | "decimal" "(" INTEGER ("," INTEGER)? ")" OPTIONAL?                -> decimal
    annotation: "@" name "(" value ")"
    name: NAME
    ?value: STRING                                                          -> string
        | INTEGER                                                           -> integer
        | FLOAT                                                             -> float
        | "true"                                                            -> true
        | "false"                                                           -> false
        | "null"                                                            -> null
        | "[" (value ("," value)*)? "]"                                     -> list
        | "{" (pair ("," pair)*)? "}"                                       -> object
    pair: STRING ":" value

    RECORD: "record"
    ERROR: "error"
    OPTIONAL: "?"
    NAME: /(`[^\W\d]\w*`|[^\W\d]\w*)([.-](`[^\W\d]\w*`|[^\W\d]\w*))*/
    STRING: /"([^"\\\n\r]|\\.)*"/
    FLOAT.2: /[+-]?(NaN|Infinity|([0-9]+\.[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)[fFdD]?|[0-9]+[fFdD]/
    INTEGER: /-?(0[xX][0-9a-fA-F]+|[0-9]+)[lL]?/
    COMMENT: /\/\*[\s\S]*?\*\/|\/\/[^\n\r]*/
    SPACE: /[ \t\n\r\f]+/
    %ignore COMMENT
    %ignore SPACE
"""
_DOC: Final = re.compile(r"/\*\*(?!/)(.*?)\*/", re.DOTALL)
_SKIPPED: Final = re.compile(r"(?:\s+|//[^\n\r]*|/\*(?!\*(?!/)).*?\*/)*", re.DOTALL)
_LEXED: Final = re.compile(r'"(?:[^"\\\n\r]|\\.)*"|//[^\n\r]*|/\*.*?\*/|([<{\[(])|([>}\])])|\w+|\S', re.DOTALL)
_MARGIN: Final = re.compile(r"^[ \t]*\*+ ?", re.MULTILINE)
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|([0-3]?[0-7]{1,2})|(.))", re.DOTALL)
_SHORT: Final = {"n": "\n", "r": "\r", "b": "\b", "f": "\f", "t": "\t"}
_LOGICAL: Final[dict[str, dict[str, Any]]] = {
    "date": {"type": "int", "logicalType": "date"},
    "time_ms": {"type": "int", "logicalType": "time-millis"},
    "timestamp_ms": {"type": "long", "logicalType": "timestamp-millis"},
    "local_timestamp_ms": {"type": "long", "logicalType": "local-timestamp-millis"},
    "uuid": {"type": "string", "logicalType": "uuid"},
}
_SHOWN: Final = 40
_LEVELS_OF_RECORD: Final = 3  # the record, its list of fields, and the field


class NamedType(NamedTuple):
    """Named type of an IDL or protocol file: its full name, and a schema that has every type it uses."""

    name: str
    text: str


def named_types(text: str) -> list[NamedType]:
    """Return the named types of Avro IDL, of a protocol in JSON or of a schema, in the order of the file.

    Raises SchemaRejectedError; its reason has the line and the column of an error in IDL.
    """
    document = _protocol(text) if text.lstrip().startswith(("{", "[")) else _IdlFile(text).document()
    if len(document) > MAX_TYPES:
        raise SchemaRejectedError("", f"needs at most {MAX_TYPES} types in one file")
    tree = tree_of_json(document)
    found = {one.name: NamedType(one.name, document_of(one)) for one in named_types_in(tree)}
    first = [one["name"] for one in document if isinstance(one, dict) and one.get("name") in found]
    if not found:
        raise SchemaRejectedError("", "needs at least one record, enum or fixed")
    return [found[name] for name in dict.fromkeys((*first, *found))]


def _protocol(text: str) -> list[Any]:
    """Return the types of a protocol in JSON, or a schema, as a list."""
    document = read_json(text)
    if isinstance(document, list):
        return document
    if "protocol" not in document:
        return [document]
    types, namespace = document.get("types", []), document.get("namespace", "")
    if not isinstance(types, list) or not isinstance(namespace, str):
        raise SchemaRejectedError("/types", "a protocol needs a list of types, and a namespace in text")
    return [_in_namespace(one, namespace) for one in types]


def _in_namespace(schema: Any, namespace: str) -> Any:
    if not isinstance(schema, dict):
        return schema
    kind = "record" if schema.get("type") == "error" else schema.get("type")
    return {"namespace": namespace} | schema | {"type": kind}


class _IdlFile:
    """Reads one IDL file to JSON schemas with full names, in which types may be used before their definition."""

    def __init__(self, text: str) -> None:
        if len(text.encode(errors="replace")) > MAX_BYTES:
            raise SchemaRejectedError("", f"needs at most {MAX_BYTES} bytes")
        text = text.partition("\x1a")[0]
        _check_nesting(text)
        self._docs = _docs_in(text)
        self._tree = _parsed(text)
        self._namespace = ""
        self._types: dict[str, dict[str, Any]] = {}
        self._written: set[str] = set()
        self._depth = 0

    def document(self) -> list[Any]:
        """Return the types, each defined where it first occurs. Raises SchemaRejectedError."""
        items = list(_subtrees(self._tree))
        if self._tree.data == "protocol":
            self._namespace = self._annotations(items).get("namespace", "")
        self._namespace = next((_name(one) for one in items if one.data == "namespace"), self._namespace)
        for one in items:
            if one.data == "import":
                raise _at(one, "imports are not supported, because nothing is fetched: needs all types in one file")
            if one.data in ("fixed", "enum", "record"):
                self._declare(one)
        return [self._defined(name) for name in self._types if name not in self._written]

    def _declare(self, tree: "Tree[Token]") -> None:
        annotations = self._annotations(_subtrees(tree))
        namespace = annotations.pop("namespace", self._namespace)
        if not isinstance(namespace, str):
            raise _at(tree, "@namespace needs a text")
        name = full_name(_name(tree), namespace)
        if name in self._types:
            raise _at(tree, f"{name[:_SHOWN]} is already defined")
        if len(self._types) == MAX_TYPES:
            raise _at(tree, f"needs at most {MAX_TYPES} types in one file")
        inside = namespace_of(name)
        built: dict[str, Any] = {"type": str(tree.data), "name": name} | ({} if inside else {"namespace": ""})
        built |= self._doc(tree)
        match tree.data:
            case "fixed":
                built["size"] = _integer(next(one for one in tree.children if isinstance(one, Token)))
            case "enum":
                built["symbols"] = [_name(one) for one in _subtrees(tree) if one.data == "symbol"]
                defaults = [_name(one) for one in _subtrees(tree) if one.data == "default"]
                built |= {"default": defaults[0]} if defaults else {}
            case "record":
                fields = [one for one in _subtrees(tree) if one.data == "field"]
                built["fields"] = [found for one in fields for found in self._fields(one, inside)]
        self._types[name] = built | annotations

    def _fields(self, tree: "Tree[Token]", namespace: str) -> list[dict[str, Any]]:
        kind, *variables = _subtrees(tree)
        shared, found = self._doc(tree), []
        for one in variables:
            values = [part for part in _subtrees(one) if part.data not in ("annotation", "name")]
            default = {"default": _value(values[0])} if values else {}
            field = {"name": _name(one), "type": self._type(kind, namespace, default)}
            found.append(field | shared | self._doc(one) | default | self._annotations(_subtrees(one)))
        return found

    def _type(self, tree: "Tree[Token]", namespace: str, default: dict[str, Any]) -> Any:
        """Return a type; names that are not primitive are `_Reference`s until all types are known."""
        parts = list(_subtrees(tree))
        plain, annotations = parts[-1], self._annotations(parts)
        kind = self._plain(plain, namespace)
        if annotations:
            if isinstance(kind, list | _Reference):
                raise _at(tree, "only a primitive type, an array or a map may have annotations here")
            kind = ({"type": kind} if isinstance(kind, str) else kind) | annotations
        if any(isinstance(one, Token) and one.type == "OPTIONAL" for one in plain.children):
            return [kind, "null"] if default.get("default") is not None else ["null", kind]
        return kind

    def _plain(self, tree: "Tree[Token]", namespace: str) -> Any:
        inner = [self._type(one, namespace, {}) for one in _subtrees(tree)]
        tokens = [one for one in tree.children if isinstance(one, Token)]
        match tree.data:
            case "array":
                return {"type": "array", "items": inner[0]}
            case "map":
                return {"type": "map", "values": inner[0]}
            case "union":
                return inner
            case "decimal":
                numbers = [_integer(one) for one in tokens if one.type == "INTEGER"]
                scale = numbers[1] if len(numbers) > 1 else 0
                return {"type": "bytes", "logicalType": "decimal", "precision": numbers[0], "scale": scale}
        name = str(tokens[0])
        if name in PRIMITIVES:
            return name
        return dict(_LOGICAL[name]) if name in _LOGICAL else _Reference(name.replace("`", ""), namespace, tree)

    def _defined(self, name: str) -> Any:
        """Return a type with the definition of each other type where it first occurs."""
        self._written.add(name)
        self._depth += 1
        if self._depth > MAX_LEVELS // _LEVELS_OF_RECORD:
            raise SchemaRejectedError("", f"{name[:_SHOWN]}: types need at most {MAX_LEVELS} levels in each other")
        built = dict(self._types[name])
        if "fields" in built:
            built["fields"] = [one | {"type": self._resolved(one["type"])} for one in built["fields"]]
        self._depth -= 1
        return built

    def _resolved(self, kind: Any) -> Any:
        if isinstance(kind, list):
            return [self._resolved(one) for one in kind]
        if isinstance(kind, dict):
            return {word: self._resolved(one) if word in ("items", "values") else one for word, one in kind.items()}
        if not isinstance(kind, _Reference):
            return kind
        name = full_name(kind.name, kind.namespace)
        if name not in self._types:
            raise _at(kind.tree, f"type {name[:_SHOWN]} is not defined in this file")
        return name if name in self._written else self._defined(name)

    def _annotations(self, parts: Any) -> dict[str, Any]:
        found = {}
        for one in parts:
            if one.data == "annotation":
                name, value = _subtrees(one)
                found[_text_of(name)] = _value(value)
        return found

    def _doc(self, tree: "Tree[Token]") -> dict[str, str]:
        doc = self._docs.get(tree.meta.start_pos)
        return {} if doc is None else {"doc": doc}


class _Reference(NamedTuple):
    """Name of a type as written, the namespace in which it is used, and its place."""

    name: str
    namespace: str
    tree: "Tree[Token]"


@cache
def _parser() -> "Lark":
    return Lark(GRAMMAR, parser="lalr", start="file", propagate_positions=True, maybe_placeholders=False)


def _parsed(text: str) -> "Tree[Token]":
    try:
        return _parser().parse(text)
    except UnexpectedToken as exc:
        came = "the end of the file" if exc.token.type == "$END" else f"`{str(exc.token)[:_SHOWN]}`"
        raise SchemaRejectedError("", f"line {exc.line} column {exc.column}: {came} is not expected here") from exc
    except UnexpectedCharacters as exc:
        raise SchemaRejectedError("", f"line {exc.line} column {exc.column}: is not Avro IDL") from exc


def _check_nesting(text: str) -> None:
    depth = 0
    for count, found in enumerate(_LEXED.finditer(text)):
        if count > MAX_TOKENS:
            raise SchemaRejectedError("", f"needs at most {MAX_TOKENS} tokens")
        depth += (found[1] is not None) - (found[2] is not None)
        if depth > MAX_LEVELS:
            raise SchemaRejectedError("", f"needs at most {MAX_LEVELS} levels")


def _docs_in(text: str) -> dict[int, str]:
    """Return the text of each documentation comment by the position of the word that follows it."""
    found = {}
    for lexed in _LEXED.finditer(text):
        if doc := _DOC.fullmatch(lexed[0]):
            after = _SKIPPED.match(text, lexed.end())
            found[after.end() if after else lexed.end()] = _MARGIN.sub("", doc[1]).strip()
    return found


def _subtrees(tree: "Tree[Token]") -> "list[Tree[Token]]":
    return [one for one in tree.children if isinstance(one, Tree)]


def _name(tree: "Tree[Token]") -> str:
    return _text_of(next(one for one in _subtrees(tree) if one.data == "name"))


def _text_of(tree: "Tree[Token]") -> str:
    return str(tree.children[0]).replace("`", "")


def _integer(token: Any) -> int:
    text = str(token).rstrip("lL")
    sign, digits = (-1, text[1:]) if text.startswith("-") else (1, text)
    if digits[:2] in ("0x", "0X"):
        return sign * int(digits, 16)
    is_octal = len(digits) > 1 and digits.startswith("0") and set(digits) <= set("01234567")
    return sign * int(digits, 8 if is_octal else 10)


def _value(tree: "Tree[Token]") -> Any:
    match tree.data:
        case "string":
            return _string(str(tree.children[0]))
        case "integer":
            return _integer(tree.children[0])
        case "float":
            text = str(tree.children[0]).rstrip("fFdD")
            return text if "N" in text or "I" in text else float(text)
        case "list":
            return [_value(one) for one in _subtrees(tree)]
        case "object":
            pairs = [one.children for one in _subtrees(tree)]
            return {_string(str(name)): _value(cast("Tree[Token]", value)) for name, value in pairs}
    return {"true": True, "false": False, "null": None}[str(tree.data)]


def _string(quoted: str) -> str:
    """Return the text of a literal; two escapes that form a surrogate pair are one character. Raises as `read_json`."""

    def plain(found: re.Match[str]) -> str:
        if found[1]:
            return chr(int(found[1], 16))
        return chr(int(found[2], 8)) if found[2] else _SHORT.get(found[3], found[3])

    text = _ESCAPE.sub(plain, quoted[1:-1])
    try:
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError as exc:
        raise SchemaRejectedError("", "contains an unpaired surrogate") from exc


def _at(tree: "Tree[Token]", reason: str) -> SchemaRejectedError:
    return SchemaRejectedError("", f"line {tree.meta.line} column {tree.meta.column}: {reason}")
