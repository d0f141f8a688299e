"""Response headers, servers and security of the OpenAPI document."""

from typing import Any, Final

from mgmt.web.document.fields import operations_of
from mgmt.web.idempotency import HEADER, REPLAYED

SERVERS: Final = [
    {
        "url": "{console}",
        "description": "The console of your installation.",
        "variables": {
            "console": {
                "default": "http://127.0.0.1:8800",
                "description": "Address of the console. The default is that of a local box.",
            }
        },
    }
]
_SCHEMES: Final = {
    "basic": "User name and password. After ten failed attempts, wait before you try again.",
    "session": "Session of the console, for scripts of its pages. Other methods than GET also need `csrf`.",
    "token": "API token of a user or a service account, which begins with `pst_`.",
}
_CSRF: Final = {
    "type": "apiKey",
    "in": "header",
    "name": "X-CSRFToken",
    "description": "Value of the cookie `penstock_csrf`, together with the session.",
}
_RETRY_AFTER: Final = {
    "description": "Seconds after which the request may be repeated.",
    "schema": {"type": "integer", "minimum": 1},
    "example": 5,
}
_REPLAYED: Final = {
    "description": "`true` if this is the stored response of the first request with the Idempotency-Key.",
    "schema": {"type": "string", "enum": ["true"]},
    "example": "true",
}
_WWW_AUTHENTICATE: Final = {
    "description": "Authentication that the API accepts.",
    "schema": {"type": "string"},
    "example": 'Basic realm="penstock"',
}


def add_headers(document: dict[str, Any]) -> None:
    """Add servers, the headers of responses, and the security of unsafe methods."""
    document["servers"] = SERVERS
    schemes = document["components"].setdefault("securitySchemes", {})
    for name, scheme in schemes.items():
        if "description" not in scheme:
            scheme["description"] = _SCHEMES[name]
    schemes["csrf"] = _CSRF
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            if method != "get" and path.startswith("/api/"):
                operation["security"] = [_with_csrf(one) for one in operation.get("security", [])]
    for operation in operations_of(document):
        takes_key = any(one["name"] == HEADER for one in operation.get("parameters", []))
        for status, response in operation["responses"].items():
            if found := _headers_of(status, takes_key=takes_key):
                response["headers"] = found | response.get("headers", {})


def _with_csrf(requirement: dict[str, Any]) -> dict[str, Any]:
    return {"session": [], "csrf": []} if "session" in requirement else requirement


def _headers_of(status: str, *, takes_key: bool) -> dict[str, Any]:
    if status in ("429", "503") or (status == "409" and takes_key):
        return {"Retry-After": _RETRY_AFTER}
    if status == "401":
        return {"WWW-Authenticate": _WWW_AUTHENTICATE}
    return {REPLAYED: _REPLAYED} if takes_key and status.startswith("2") else {}
