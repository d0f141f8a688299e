"""Each curl command of docs/reference/api.md names its operation, and the API accepts it as it is shown.

A shell expands the commands; requests go to the API in this process and each is undone.
"""

import re
import subprocess
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
from django.middleware.csrf import CSRF_SECRET_LENGTH
from django.test import Client
from rest_framework.test import APIClient

from localbox.settings import ROOT
from mgmt.models import Tenant, User
from tests.db.mgmt.test_token_authentication import token_of
from tests.db.mgmt.test_token_matrix import _no_broker, _undone, values

__all__ = ["_no_broker", "values"]  # fixtures
OPERATION: Final = re.compile(r"^### (\w+) (\S+)\n.*?^```\n(.*?)^```$", re.DOTALL | re.MULTILINE)
INGEST: Final = "/v1/"
FILES: Final = {"@rows.csv": "key,price\nk-1,12\n"}
# Variables that other rows have in paths with this part.
ROWS: Final = {"/rows/": ("KEY", "k"), "/versions/": ("NUMBER", "1"), "/dead-letters/": ("NUMBER", "letter")}
# Refusals that the state of this test causes; the request itself is valid.
REFUSED: Final = {
    ("POST", "/pipes/"): 409,  # the name is taken
    ("POST", "/pipes/{pipe}/replays/"): 409,  # there are no events
    ("POST", "/pipes/{pipe}/replays/{replay}/repeat-failed/"): 409,  # it is under way
    ("POST", "/pipes/{pipe}/shadows/"): 409,  # there are no events
    ("POST", "/pipes/{pipe}/shadows/{shadow}/promote/"): 409,  # there is a newer revision
    ("POST", "/pipes/{pipe}/spread-keys/"): 409,  # nothing to change
    ("POST", "/pipes/{pipe}/compare/"): 409,  # there are no events
    ("POST", "/pipes/{pipe}/revisions/"): 409,  # there is a newer revision
    ("GET", "/pipes/{pipe}/sources/{source}/schemas/{number}/"): 404,  # the source has none
    ("GET", "/pipes/{pipe}/sources/{source}/webhook/"): 404,  # the source has none
    ("PUT", "/pipes/{pipe}/destinations/{name}/credential/"): 400,  # the destination needs none
    ("GET", "/pipes/{pipe}/messages/{position}/"): 404,  # there are no events
    ("GET", "/pipes/{pipe}/tail/"): 503,  # the pipe has no cell
    ("POST", "/pipes/{pipe}/moves/"): 409,  # nothing is undelivered
    ("POST", "/pipes/{pipe}/alerts/{alert}/probe/"): 409,  # nothing is undelivered
    ("POST", "/pipes/{pipe}/alerts/{alert}/snooze/"): 400,  # the time of the example is over
    ("GET", "/pipes/{pipe}/windows/{name}/"): 404,  # the pipe has none
    ("GET", "/lookup-tables/{table}/rows/{key}/"): 404,  # the table is empty
    ("DELETE", "/lookup-tables/{table}/rows/{key}/"): 404,  # the table is empty
    ("POST", "/tenants/{tenant}/invitations/"): 409,  # the address is invited
    ("PUT", "/tenants/{tenant}/single-sign-on/requirement/"): 409,  # it is not enabled
    ("POST", "/tenants/{tenant}/single-sign-on/test/"): 409,  # the provider does not exist
    ("POST", "/tenants/{tenant}/sso-domains/"): 409,  # the domain is listed
    ("POST", "/staff/cells/{cell}/keep/"): 404,  # the tenant of the example does not exist
    ("POST", "/staff/pauses/{pause}/end/"): 404,  # nothing is paused
    ("POST", "/staff/relocations/"): 404,  # the pipe of the example does not exist
    ("POST", "/staff/relocations/{relocation}/give-up/"): 404,  # nothing is migrated
}


def commands() -> Iterator[tuple[str, str, str]]:
    """Yield method, path and command of each operation, but for those of ingest."""
    for method, path, command in OPERATION.findall((ROOT / "docs" / "reference" / "api.md").read_text()):
        if not path.startswith(INGEST):
            yield method, path, command


def arguments(command: str, variables: dict[str, str]) -> list[str]:
    """Return curl's arguments as a shell makes them."""
    script = f"curl() {{ printf '%s\\0' \"$@\"; }}\nset -u\n{command}"
    done = subprocess.run(["bash", "-c", script], env=variables, capture_output=True, text=True, check=True)
    return done.stdout.split("\0")[:-1]


def request_of(words: list[str]) -> tuple[str, str, dict[str, str], str | None]:
    """Return method, address, headers and body of curl's arguments."""
    method, address, body, headers = "", "", None, {}
    left = iter(words)
    for word in left:
        match word:
            case "-sS" | "-N":
                pass
            case "-X":
                method = next(left)
            case "-b":
                headers["Cookie"] = next(left)
            case "-H":
                name, _, value = next(left).partition(": ")
                headers[name] = value
            case "-d" | "--data-binary":
                body = FILES.get(given := next(left), given)
            case _:
                assert not address, words
                address = word
    return method or ("GET" if body is None else "POST"), address, headers, body


@pytest.fixture
def variables(values: dict[str, str], tenant: Tenant, alice: User) -> dict[str, str]:
    """Return the variables of the page's commands."""
    named = {name.upper(): value for name, value in values.items()}
    named |= {"CODE": "name-taken", "CELL": "c9", "CONTROLLER": "scale", "PAUSE": "1", "RELOCATION": "1"}
    _, token = token_of(alice, tenant, scope="admin")
    User.objects.filter(pk=alice.pk).update(is_staff=True)
    browser = Client()
    browser.force_login(alice)
    session = {"SESSION": browser.cookies["penstock_session"].value, "CSRF": "a" * CSRF_SECRET_LENGTH}
    return named | session | {"PENSTOCK": "http://testserver", "PENSTOCK_TOKEN": token}


def test_each_command_is_accepted_as_it_is_shown(variables: dict[str, str]):
    client = APIClient(enforce_csrf_checks=True, raise_request_exception=False)
    wrong: list[str] = []
    for method, path, command in commands():
        name, value = next((row for part, row in ROWS.items() if part in path), ("", ""))
        own = variables | {name: variables.get(value.upper(), value)} if name else variables
        verb, address, headers, body = request_of(arguments(command, own))
        parts = urlsplit(address)
        assert (verb, bool(re.fullmatch(re.sub(r"{\w+}", "[^/]+", f"/api/v1{path}"), parts.path))) == (method, True)
        meta: dict[str, Any] = {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in headers.items()}
        data: dict[str, Any] = {}
        if body is not None:
            data = {"data": body, "content_type": headers.get("Content-Type", "")}
        with _undone():
            answer = client.generic(verb, f"{parts.path}?{parts.query}", **data, **meta)
        expected = REFUSED.get((method, path))
        if answer.status_code != expected if expected else not 200 <= answer.status_code < 300:
            problem = answer.json()
            why = f"{problem['detail']} {problem.get('errors', '')}"
            wrong.append(f"{verb} {path}: {answer.status_code} {why}\n  {command}")
    assert not wrong, "\n".join(wrong)
