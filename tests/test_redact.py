"""Secrets in configurations, environments, command lines, URLs and headers."""

import json
import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest

from bellman import redact

ROOT = Path(__file__).parents[1]
SECRET = "sk-4815162342-lost"


@pytest.mark.parametrize(
    "text",
    [
        f"http://user:{SECRET}@host:8000/v1 refused",
        f"http://{SECRET}@host/v1",
        f"GET http://host/v1?api_key={SECRET}&x=1",
        f"Authorization: Bearer {SECRET}",
        f"{{'Authorization': 'Bearer {SECRET}'}}",
        f"engine.api_key={SECRET}: unknown key of engine",
        f"+engine.environment.HF_TOKEN={SECRET}",
        f"--api-key={SECRET}",
        f"vllm serve --api-key {SECRET} --port 1",
        f"http://user:p@ss{SECRET}@host/v1",
        f"http://user:p'{SECRET}@host/v1",
        f"http://host/v1?x=1&sig={SECRET}",
        f"http://host/v1?X-Amz-Signature={SECRET}",
        f"authorization: Token {SECRET}",
        f"X-Api-Key: {SECRET}",
        f"{{'api_key': '{SECRET}'}}",
        f'{{"password":"{SECRET}"}}',
        f"Client(api_key='{SECRET}')",
        f"password=a:b,{SECRET}",
    ],
)
def test_what_has_the_form_of_a_secret_is_hidden(text: str) -> None:
    assert SECRET not in redact.conceal(text)
    assert redact.HIDDEN in redact.conceal(text)


@pytest.mark.parametrize(
    "text",
    [
        "application.words_per_token=0.744",
        "engine.api_key_env=MY_KEY",
        "http://127.0.0.1:8000/v1?x=1",
        "output_tokens=12, of a bearer of news",
        "cannot read http://127.0.0.1:8000/v1, ask a@b.example",
        "unknown key, known are a, b: 3 tokens",
        "stop token: </s>",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redact.conceal(text) == text


def test_names_hide_values_in_nested_entries_and_arguments() -> None:
    given = {
        "engine": {"api_key": SECRET, "api_key_env": "X", "headers": {"Authorization": SECRET}},
        "environment": {"HF_TOKEN": SECRET, "TOKENIZERS_PARALLELISM": "false"},
        "command": ["run.py", "--api-key", SECRET, f"engine.api_key={SECRET}", "repeats=1"],
        "application": {"words_per_token": 0.744, "floor_tokens": {"summary": 100}},
        "token": None,
        "api_keys": [SECRET],
        "basic_auth": ["user", SECRET],
        "passphrase": SECRET,
    }
    found = redact.redact(given)
    assert SECRET not in json.dumps(found)
    assert found["application"] == given["application"] and found["token"] is None
    assert found["environment"]["TOKENIZERS_PARALLELISM"] == "false"
    assert found["engine"]["api_key_env"] == "X" and found["command"][-1] == "repeats=1"


def test_a_known_secret_is_hidden_as_urls_and_json_write_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(redact, "_values", set())
    secret = 'p@ss"w\u00f6rd/1'
    redact.learn({"password": secret})
    for text in (secret, quote(secret, safe=""), json.dumps(secret)):
        assert redact.conceal_values(f"<{text.strip(chr(34))}>") == f"<{redact.HIDDEN}>"


@pytest.mark.slow
def test_what_a_supervised_command_writes_has_no_secret() -> None:
    """As vLLM does, which logs its arguments."""
    given, variable = "argument-secret-0004", "variable-secret-0005"
    program = (
        "import os, sys; print('given', sys.argv[2:], flush=True);"
        "sys.stderr.buffer.write(os.environ['HF_TOKEN'].encode() + b' \\xff 50 %\\r100 %')"
    )
    command = [sys.executable, "-c", program, "--api-key", given, f"{given}-2"]
    supervised = subprocess.Popen(
        [sys.executable, "-m", "bellman.supervise", *command],
        cwd=ROOT,
        env={**os.environ, "HF_TOKEN": variable},
        stdin=subprocess.PIPE,  # closed, it would end the command
        stdout=subprocess.PIPE,
    )
    with supervised:
        assert supervised.stdout is not None
        written = supervised.stdout.read()
    assert written == b"given ['***', '***']\n*** \xff 50 %\r100 %"
    assert supervised.returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("sweep", [(), ("-m", "seed=1,2")])
def test_no_file_and_no_line_of_a_run_has_a_secret(tmp_path: Path, sweep: tuple[str, ...]) -> None:
    """A server that nobody reaches: its URL, the environment and the configuration hold secrets."""
    url, variable, sampled = "urlsecret-0001", "variable-secret-0002", "sampling-secret-0003"
    command = [
        sys.executable,
        "run.py",
        *sweep,
        "engine=openai",
        f"engine.base_url='http://user:{url}@127.0.0.1:9/v1'",
        f"+engine.sampling.api_key={sampled}",
        f"+engine.sampling.stop=[{variable}]",
        f"outputs={tmp_path}",
    ]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "SOME_TOKEN": variable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1 and "no OpenAI-compatible server answers" in done.stderr
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    names = ["config.yaml", "provenance.json", "status.json", *(["sweep.yaml"] if sweep else [])]
    assert set(names) <= {path.name for path in files}
    for secret in (url, variable, sampled):
        assert secret not in done.stdout + done.stderr
        for path in files:
            assert secret.encode() not in path.read_bytes(), path.name
    if sweep:
        (written,) = (path.read_text() for path in files if path.name == "sweep.yaml")
        assert "+engine.sampling.api_key=***" in written and "seed=1,2" in written
