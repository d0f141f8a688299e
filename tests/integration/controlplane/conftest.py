"""The real Kafka that these tests run against."""

import pytest

from controlplane.settings import control_settings


@pytest.fixture
def kafka() -> str:
    return control_settings().kafka
