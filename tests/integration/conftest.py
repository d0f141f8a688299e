"""Real broker for all integration tests, whatever source they read its address from."""

import pytest


@pytest.fixture(scope="session", autouse=True)
def _real_kafka(kafka_servers: str) -> None:
    from django.conf import settings

    settings.PENSTOCK_KAFKA = kafka_servers
