"""A run folder that somebody sent: nothing in it is run, resolved, or taken for markup."""

import io
import sys

import pytest
from omegaconf import OmegaConf
from rich.console import Console

from analysis import read
from analysis.capacity.present import open_table
from analysis.capacity.study import Study
from analysis.frames import load_run
from analysis.report import write
from analysis.summarize import summarize
from analysis.sweep import config_settings
from analysis.tables import print_tables
from bellman.errors import ConfigError
from bellman.slo import Slo
from tests.analysis.synthetic_run import Synthetic, write_run

SECRET = "the-readers-own-secret"
ARMS = ("none [/x]", "bellman<b>[bold]$x")


@pytest.fixture
def folder(tmp_path):
    return write_run(tmp_path / "run", Synthetic(repeats=2, arms=ARMS))


def test_interpolations_stay_text(folder, monkeypatch):
    monkeypatch.setenv("READERS_VALUE", SECRET)
    with (folder / "config.yaml").open("a") as config:
        config.write("note: ${oc.env:READERS_VALUE}\nother: {api_key: hidden-one}\n")
    assert read.config(folder / "config.yaml")["note"] == "${oc.env:READERS_VALUE}"
    summarize(load_run(folder))
    page = write(folder).read_text()
    assert SECRET not in page and "oc.env:READERS_VALUE" in page and "hidden-one" not in page
    assert SECRET not in str(config_settings(folder))


def test_an_interpolated_limit_is_refused_unresolved(folder, monkeypatch):
    monkeypatch.setenv("READERS_VALUE", "1.5")
    with (folder / "config.yaml").open("a") as config:
        config.write("slo: {ttft_s: '${oc.decode:${oc.env:READERS_VALUE}}'}\n")
    with pytest.raises(ConfigError, match=r"slo\.ttft_s=.*oc\.env.*not an interpolation"):
        summarize(load_run(folder))


@pytest.mark.parametrize("node", ["load_model", "corpus", "study", "executor"])
def test_nothing_that_the_folder_names_is_imported(folder, tmp_path, monkeypatch, node):
    (tmp_path / "planted.py").write_text("raise SystemExit('it ran')")
    monkeypatch.syspath_prepend(tmp_path)
    config = OmegaConf.load(folder / "config.yaml")
    config[node] = {"_target_": "planted.Model"}
    OmegaConf.save(config, folder / "config.yaml")
    summarize(load_run(folder))
    write(folder)
    print_tables(folder, Console(file=io.StringIO()))
    assert "planted" not in sys.modules


def test_names_are_shown_as_they_are(folder):
    summarize(load_run(folder))
    console = Console(width=200, record=True, file=io.StringIO())
    print_tables(folder, console)
    study = Study(load_run(folder), [], {1.0: []}, Slo(), slo_attainment=0.9, saturated=None)
    console.print(open_table(study))
    shown = console.export_text()
    assert all(arm in shown for arm in ARMS)
    page = write(folder).read_text()
    assert "bellman<b>" not in page and "bellman&lt;b&gt;[bold]$x" in page
