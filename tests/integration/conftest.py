"""All integration tests speak to a real broker, whichever way they ask where it is."""

import pytest


@pytest.fixture(scope="session", autouse=True)
def _real_kafka(kafka_servers: str) -> None:
    from django.conf import settings

    settings.PENSTOCK_KAFKA = kafka_servers
