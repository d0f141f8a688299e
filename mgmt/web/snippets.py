"""Code snippets for sending events and for API calls, with the user's own endpoint and key."""

import json
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dataplane.names import EVENTS_PATH

SAMPLE: Final = '{"type": "order.created", "order": {"id": 4711, "total": 129.9}}'
KEY_PLACEHOLDER: Final = "$PENSTOCK_KEY"
TOKEN_PLACEHOLDER: Final = "$PENSTOCK_TOKEN"  # noqa: S105 the name of a variable


@dataclass(frozen=True)
class Snippet:
    """Command or a few lines of code; `slug` is part of the element id."""

    slug: str
    language: str
    text: str


def endpoint(ingest_url: str) -> str:
    """Return the URL for events."""
    return f"{ingest_url}{EVENTS_PATH}"


def send_curl(*, ingest_url: str, event: str, key: str = "", headers: Iterable[str] = ()) -> str:
    """Return the curl command that sends an event in JSON; without `key` it reads the key from the environment.

    headers: further ones, as `name: value`
    """
    lines = [f"curl -sS {endpoint(ingest_url)}", f'-H "Authorization: Bearer {key or KEY_PLACEHOLDER}"']
    lines += ['-H "Content-Type: application/json"', *(f"-H {shlex.quote(header)}" for header in headers)]
    return _in_lines([*lines, f"-d {shlex.quote(event)}"])


def send_snippets(*, ingest_url: str, key: str = "", sample: str = "") -> list[Snippet]:
    """Return snippets that send one event; without `key` they read it from the environment.

    `sample`: the event as JSON; "" for a general one
    """
    url = endpoint(ingest_url)
    event = json.loads(sample or SAMPLE)
    text = json.dumps(event, ensure_ascii=False)
    python_key = repr(key) if key else 'os.environ["PENSTOCK_KEY"]'
    script_key = f'"{key}"' if key else "process.env.PENSTOCK_KEY"
    return [
        Snippet("curl", "curl", send_curl(ingest_url=ingest_url, event=text, key=key)),
        Snippet(
            "python",
            "Python",
            "import json"
            + ("" if key else ", os")
            + ", urllib.request\n\n"
            + f'request = urllib.request.Request(\n    "{url}",\n    data=json.dumps({event!r}).encode(),\n'
            + f'    headers={{"Authorization": "Bearer " + {python_key}, "Content-Type": "application/json"}},\n)\n'
            + "print(urllib.request.urlopen(request, timeout=10).read().decode())",
        ),
        Snippet(
            "javascript",
            "JavaScript",
            f'const response = await fetch("{url}", {{\n  method: "POST",\n'
            f'  headers: {{ Authorization: `Bearer ${{{script_key}}}`, "Content-Type": "application/json" }},\n'
            f"  body: JSON.stringify({text}),\n}});\nconsole.log(await response.json());",
        ),
        Snippet(
            "url", "URL with the API key, for services without custom headers", _with_key(url, key or KEY_PLACEHOLDER)
        ),
    ]


def _with_key(url: str, key: str) -> str:
    """Return the URL with embedded credentials: services without custom headers send these as HTTP Basic."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://events:{key}@{rest}"


def api_curl(
    *, web_url: str, path: str, body: Mapping[str, Any] | None = None, method: str = "", token: str = ""
) -> str:
    """Return the curl command for the REST call of a page; without `token` it reads the token from the environment.

    method: "" is POST with a body and GET without
    """
    url = shlex.quote(f"{web_url}/api/v1/{path}")
    verb = f" -X {method}" if method else ""
    lines = [f'curl -sS{verb} -H "Authorization: Bearer {token or TOKEN_PLACEHOLDER}" {url}']
    if body is not None:
        text = json.dumps(body, indent=1, ensure_ascii=False)
        lines += ['-H "Content-Type: application/json"', f"-d {shlex.quote(text)}"]
    return _in_lines(lines)


def row_curl(*, url: str) -> str:
    """Return the curl command that reads a row of a look-up table from its host; `url` ends before the row's key.

    It reads the access token and the key from the environment.
    """
    return _in_lines(['curl -sS -H "Authorization: Bearer $ACCESS_TOKEN"', f'{shlex.quote(url)}"$KEY"'])


def changes_curl(*, url: str) -> str:
    """Return the curl command that follows the changes of a look-up table from its host, beginning with its rows.

    It reads the access token from the environment.
    """
    return _in_lines(['curl -sSN -H "Authorization: Bearer $ACCESS_TOKEN"', shlex.quote(f"{url}?from=snapshot")])


def _in_lines(parts: Iterable[str]) -> str:
    """Return a shell command with one part a line."""
    return " \\\n  ".join(parts)
