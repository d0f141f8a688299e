"""Types of the fixtures in tests/db/conftest.py."""

from collections.abc import Callable
from typing import Any

from rest_framework.test import APIClient

from mgmt.models import User

MakeSpec = Callable[..., dict[str, Any]]
MakeClient = Callable[[User], APIClient]
