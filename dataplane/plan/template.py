"""A destination's template, compiled: what its request for one message is made of. Values are encoded, never pasted."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from functools import partial
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlsplit

from dataplane.expr import Allowance, Duration, EvalError, Expr, LimitError, Timestamp, compile_expr, time_text, to_json
from dataplane.ledger.meta import Meta
from dataplane.plan.about import about
from dataplane.plan.outbound import ascii_value
from dataplane.plan.stage import StageError, decode, encode
from dataplane.spec import Template
from dataplane.spec.checks import EXPRESSION_ROOTS
from dataplane.spec.template import parts_of

CAUSE: Final = "template"
MAX_BODY_BYTES: Final = 1024 * 1024
MAX_URL_CHARS: Final = 8_000
MAX_HEADER_CHARS: Final = 4_000

_Piece = str | Expr
_ValueOf = Callable[[Expr], Any]


class Made(NamedTuple):
    """What a template makes of one message. `body` is None where it leaves that as it is; headers are whole lines."""

    url: str
    headers: list[str]
    body: bytes | None


class CompiledTemplate:
    """Pure, and safe to share between threads. The body is read once, if at all."""

    def __init__(self, url: str, template: Template) -> None:
        """Cannot fail for what parse_pipe_spec accepted."""
        scheme, host, *_ = urlsplit(url)
        self._url, self._base = url, f"{scheme}://{host}"
        self._path = _pieces(template.path) if template.path is not None else None
        self._headers = [(name, _pieces(text)) for name, text in template.headers.items()]
        self._body = compile_expr(template.body, EXPRESSION_ROOTS) if template.body is not None else None
        texts = [piece for pieces in (self._path or (), *(some for _, some in self._headers)) for piece in pieces]
        exprs = [piece for piece in (*texts, self._body) if isinstance(piece, Expr)]
        self._uses = frozenset(root for expr in exprs for root in expr.uses)

    def __call__(self, meta: Meta, body: bytes) -> Made:
        """Raises StageError `template`, naming the field and what was needed."""
        known = about(meta).meta if "meta" in self._uses else {}
        value_of = partial(_value, self._read(body), known, Allowance())
        with _naming("path"):
            url = self._made_url(value_of)
        headers = []
        for name, pieces in self._headers:
            with _naming(f"headers.{name}"):
                headers.append(_line(name, pieces, value_of))
        with _naming("body"):
            return Made(url, headers, self._made_body(value_of))

    def _read(self, body: bytes) -> Any:
        if "body" not in self._uses:
            return None
        try:
            return decode(body)
        except StageError as exc:
            raise StageError(CAUSE, exc.detail) from exc

    def _made_url(self, value_of: _ValueOf) -> str:
        if self._path is None:
            return self._url
        path = "".join(_in_path(piece, value_of) for piece in self._path)
        if any(segment in (".", "..") for segment in path.partition("?")[0].split("/")):
            raise EvalError("the path would lead somewhere else by its dots")
        if len(path) > MAX_URL_CHARS:
            raise LimitError(f"the path may have {MAX_URL_CHARS} characters")
        return self._base + path

    def _made_body(self, value_of: _ValueOf) -> bytes | None:
        if self._body is None:
            return None
        return encode(to_json(value_of(self._body), MAX_BODY_BYTES), "body")


@contextmanager
def _naming(field: str) -> Iterator[None]:
    """Whatever goes wrong inside is a StageError `template` that names the field."""
    try:
        yield
    except (EvalError, LimitError) as exc:
        raise StageError(CAUSE, f"{field}: {exc}") from exc
    except UnicodeEncodeError as exc:
        raise StageError(CAUSE, f"{field}: needs text that UTF-8 can carry") from exc
    except StageError as exc:
        raise StageError(CAUSE, f"{field}: {exc.detail}") from exc


def _pieces(text: str) -> Sequence[_Piece]:
    return [
        compile_expr(part.text, EXPRESSION_ROOTS) if part.is_expression else part.text for part in parts_of("", text)
    ]


def _value(body: Any, meta: Any, allowance: Allowance, expr: Expr) -> Any:
    """What an expression gives for the message; all those of a request take from one allowance."""
    return expr(body, meta, allowance=allowance)


def _in_path(piece: _Piece, value_of: _ValueOf) -> str:
    """A value is one part of the path or query: whatever it holds begins no other part."""
    if isinstance(piece, str):
        return piece
    text = _text(value_of(piece))
    if not text:
        raise EvalError("needs a value that is not empty")
    if len(text) > MAX_URL_CHARS:
        raise LimitError(f"the path may have {MAX_URL_CHARS} characters")
    return quote(text, safe="")


def _line(name: str, pieces: Sequence[_Piece], value_of: _ValueOf) -> str:
    made = "".join(piece if isinstance(piece, str) else _in_header(_text(value_of(piece))) for piece in pieces)
    if len(made) > MAX_HEADER_CHARS:
        raise LimitError(f"a header may have {MAX_HEADER_CHARS} characters")
    return f"{name}: {made}"


def _in_header(text: str) -> str:
    if len(text) > MAX_HEADER_CHARS:
        raise LimitError(f"a header may have {MAX_HEADER_CHARS} characters")
    return ascii_value(text.encode())


def _text(value: Any) -> str:
    """A value as text. Raises EvalError for null, lists and maps, which have none."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int() | float() | Decimal():
            return encode(to_json(value, MAX_URL_CHARS), "").decode()
        case Timestamp() | Duration():
            return time_text(value)
    raise EvalError("needs a string, a number, a bool or a time")
