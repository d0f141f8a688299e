from pathlib import Path

import pytest
from pytest_django import Settings


@pytest.fixture
def var(tmp_path: Path, settings: Settings) -> Path:
    settings.PENSTOCK_VAR = tmp_path
    return tmp_path
