"""Shared fixtures: the real broker's address, encryption keys, and the environment of started processes."""

import os
from pathlib import Path

import pytest
from cryptography.fernet import Fernet
from django.conf import LazySettings
from django.db import connection

ROOT = Path(__file__).parents[3]


@pytest.fixture
def kafka(kafka_servers: str) -> str:
    return kafka_servers


@pytest.fixture(autouse=True)
def _fernet_keys(settings: LazySettings) -> None:
    settings.PENSTOCK_FERNET_KEYS = [Fernet.generate_key().decode()]


@pytest.fixture
def environment(kafka: str, tmp_path: Path) -> dict[str, str]:
    """Environment of a process that uses this test's database and broker."""
    where = connection.settings_dict
    url = f"postgresql://{where['USER']}:{where['PASSWORD']}@{where['HOST']}:{where['PORT']}/{where['NAME']}"
    return os.environ | {
        "DATABASE_URL": url,
        "PENSTOCK_KAFKA": kafka,
        "PENSTOCK_VAR": str(tmp_path),
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "platform")]),
        "DJANGO_SETTINGS_MODULE": "config.settings",
    }
