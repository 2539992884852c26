import pytest

from analysis.frames import Run, load_run
from tests.analysis.synthetic_run import Synthetic, write_run


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A run of three repeats, read only."""
    return write_run(tmp_path_factory.mktemp("run") / "synthetic")


@pytest.fixture(scope="session")
def run(folder) -> Run:
    return load_run(folder)


@pytest.fixture
def make_run(tmp_path):
    """Write a run of two repeats with other settings and load it."""

    def make(name: str = "run", **settings) -> Run:
        return load_run(write_run(tmp_path / name, Synthetic(**{"repeats": 2} | settings)))

    return make
