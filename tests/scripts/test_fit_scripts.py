"""The scripts that fit profiles, as a user calls them: their rows, and mistakes in one line."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.fixture(autouse=True)
def scripts_on_the_path(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))


class Kernels:
    """Stands in for aiconfigurator-core's engine, which is not installed here."""

    def decode_step_latency(self, sequences, context, output):
        return 6.0

    def predict_prefill_latency(self, batch, tokens):
        return 9.0

    def mixed_step_latency(self, tokens, sequences, context, output):
        return 12.0


def test_the_rows_of_kernels_are_the_239_that_the_profiles_were_fitted_on():
    from kernel_step_times import COLUMNS, rows

    found = list(rows(Kernels()))
    assert len(found) == 239
    assert {kind: sum(row[0] == kind for row in found) for kind in ("decode", "prefill")} == {
        "decode": 109,
        "prefill": 16,
    }
    assert all(len(row) == len(COLUMNS) for row in found)


def test_what_the_package_refuses_is_one_line():
    from kernel_step_times import in_words

    text = in_words(RuntimeError("Failed to download x from HuggingFace:\n  no network"))
    assert "\n" not in text
    assert "config.json" in text
    assert in_words(AssertionError()) == "AssertionError"


def fit(*arguments):
    command = [sys.executable, str(SCRIPTS / "fit_profile.py"), "--tokenizer", "x", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=SCRIPTS.parent)


def test_a_part_of_a_models_name_is_not_its_name(tmp_path):
    steps = tmp_path / "steps.csv"
    steps.write_text("kind\n")
    asked = ("--name", "x", "--steps", str(steps), "--kv-blocks", "10", "--output", str(tmp_path))
    done = fit("--model", "Qwen3-8B", *asked)
    assert done.returncode == 2
    assert "no row of model 'Qwen3-8B': it has Qwen/Qwen3-8B" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not list(tmp_path.glob("*.yaml"))


def test_a_profile_with_an_odd_name_is_read_as_it_was_written(tmp_path):
    from dataclasses import replace

    from omegaconf import OmegaConf
    from profile_yaml import to_yaml

    from bellman.build import build
    from bellman.engines.simulated.stalls import Stalls
    from tests.engines.simulated.loads import PROFILE

    source = "kernels: here: there; serving and energy: ours # all"
    time = replace(PROFILE.time, prefill_step_ms=1.5)
    profile = replace(PROFILE, model="a: b # c", source=source, time=time, stalls=Stalls(0.01, 3.0))
    path = tmp_path / "profile.yaml"
    path.write_text(to_yaml(profile, ["kernels: 1 step"]))
    assert build(OmegaConf.to_container(OmegaConf.load(path)), "profile") == profile


def test_the_energy_of_a_kv_token_is_given_or_fitted_model_by_model():
    from fit_profile import joules_or_fit

    assert joules_or_fit("2.4e-5") == 2.4e-5
    assert joules_or_fit("fit") is None
    with pytest.raises(ValueError, match="could not convert"):
        joules_or_fit("fitt")
