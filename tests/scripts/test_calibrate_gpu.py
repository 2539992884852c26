"""The GPU calibration, on the CPU: what it computes, fits and writes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from bellman.build import build
from bellman.engines.simulated.front_end import FrontEnd
from bellman.engines.simulated.profile import FittedRange, Profile
from bellman.engines.simulated.step_energy import StepEnergy
from bellman.engines.simulated.step_time import StepTime

# PyTorch comes with vLLM: without it these are skipped.
pytestmark = pytest.mark.slow

SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.fixture(autouse=True)
def torch(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    return pytest.importorskip("torch", reason="PyTorch is not installed")


def test_shapes_have_the_known_number_of_parameters():
    from decoder import SHAPES

    assert SHAPES["llama-3.1-8b"].parameters == pytest.approx(8.03e9, rel=0.001)
    assert SHAPES["qwen3-8b"].parameters == pytest.approx(8.19e9, rel=0.001)
    assert SHAPES["llama-3.1-8b"].kv_bytes_per_token == 131_072


def test_prefill_and_decode_attend_to_the_same(torch):
    """The last token of a prompt, prefilled or decoded, sees the same keys: the same next token."""
    from decoder import SHAPES, Decoder

    torch.manual_seed(0)
    decoder = Decoder(SHAPES["tiny"], 64, torch.device("cpu"))
    decoder.embedding[0] = decoder.embedding[
        15
    ]  # a decoded token is number 0, the prompt's last 15
    decoder.embedding[15] = decoder.embedding[0]
    with torch.inference_mode():
        whole = decoder.step(prefill_tokens=16, prefix=0, sequences=0, context=0)
        decoder.step(prefill_tokens=16, prefix=0, sequences=0, context=0)
        decoded = decoder.step(prefill_tokens=0, prefix=0, sequences=1, context=16)
    assert whole.tolist() == decoded.tolist()


def test_a_prefill_after_a_prefix_is_the_rest_of_the_prompt(torch):
    from decoder import SHAPES, Decoder

    torch.manual_seed(0)
    decoder = Decoder(SHAPES["tiny"], 64, torch.device("cpu"))
    decoder.embedding[8:16] = decoder.embedding[0:8]  # a chunk's tokens are numbered from 0
    with torch.inference_mode():
        whole = decoder.step(16, 0, 0, 0)
        decoder.step(8, 0, 0, 0)
        chunked = decoder.step(8, 8, 0, 0)
    assert whole.tolist() == chunked.tolist()


def test_energy_is_found_again():
    import pandas as pd
    from calibrate_gpu import fit_energy

    truth = StepEnergy(80.0, 700.0, 2.5, 0.012, 0.034, 3e-5)
    rows = []
    for prefill, sequences, context in [
        *((0, n, c) for n in (1, 8, 64, 256) for c in (128, 1024)),
        *((p, 0, 0) for p in (512, 2048, 8192)),
    ]:
        latency_s = 0.02 + 1e-5 * prefill
        joules = truth.unlimited_joules(latency_s, prefill, sequences, sequences * context)
        rows.append((prefill, sequences, sequences * context, 1e3 * latency_s, joules / latency_s))
    names = ["prefill_tokens", "decode_seqs", "kv_tokens", "latency_ms", "power_w"]
    fitted = fit_energy(pd.DataFrame(rows, columns=names), truth.idle_w)
    for name in ("step_j", "prefill_token_j", "sequence_j", "kv_token_j"):
        assert getattr(fitted, name) == pytest.approx(getattr(truth, name), rel=1e-3)


def test_the_written_profile_is_what_the_simulated_engine_builds():
    from calibrate_gpu import profile_node

    profile = Profile(
        "m",
        "1 x card",
        "here",
        100,
        FrontEnd(20.0, 0.4),
        StepTime(1.0, 0.1, 1e-7, 1e-5, 1e-3, 1.0, 0.0, 0.0, 1.0),
        StepEnergy(75.0, 700.0, 2.5, 0.01, 0.03, 3e-5),
        FittedRange(8, 1000, 512),
    )
    assert build(OmegaConf.create(profile_node(profile)), "engine.profile") == profile


def test_a_run_leaves_rows_and_says_what_it_leaves_out(tmp_path):
    command = [sys.executable, str(SCRIPTS / "calibrate_gpu.py"), "--shape", "tiny", "--quick"]
    output = tmp_path / "tiny"
    subprocess.run([*command, "--seconds", "0.01", "--output", str(output)], check=True)
    header, *rows = output.with_suffix(".csv").read_text().splitlines()
    names = "kind,prefill_tokens,prefix,decode_seqs,kv_tokens,ctx_len,latency_ms,power_w"
    assert header == names
    assert {row.split(",")[0] for row in rows} == {"decode", "prefill", "mixed"}
    facts = json.loads(output.with_suffix(".json").read_text())
    assert len(facts["leaves_out"]) > 3
    if facts["power"] is None:
        assert facts["power_reason"]
        assert not output.with_suffix(".yaml").exists()


def test_an_unknown_shape_is_one_line(tmp_path):
    command = [sys.executable, str(SCRIPTS / "calibrate_gpu.py"), "--shape", "llama-9"]
    done = subprocess.run(
        [*command, "--output", str(tmp_path / "x")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stdout.count("\n") == 1
    assert "--shape llama-9" in done.stdout
