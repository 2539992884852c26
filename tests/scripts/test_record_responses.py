"""Recording a response bank, from a mock server that obeys to the word."""

import asyncio
import os
import shutil
import sys
from pathlib import Path

import aiohttp
import pytest

from bellman.app.prompt import CONCISE_TEMPLATE, TEMPLATE
from bellman.corpus.aclsum import AclSum
from bellman.engines.openai.child import child_server
from bellman.responses.recorded import RecordedBank, read_recorded
from tests.servers import MOCK

ROOT = Path(__file__).parents[2]


async def record(cwd: Path, url: str, *arguments: str) -> tuple[int, str, str]:
    """Record two documents at two lengths; return status, output and errors."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(ROOT / "scripts" / "record_responses.py"), "--base-url", url),
        *("--output", "bank.parquet", "--set", "limit_documents=2", "--asked-words", "40", "20"),
        *arguments,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await process.communicate()
    assert process.returncode is not None
    return process.returncode, output.decode(), errors.decode()


async def behave(url: str, **behaviour: object) -> None:
    async with aiohttp.ClientSession() as pool:
        await pool.put(f"{url}/mock", json=behaviour)


@pytest.mark.slow
async def test_records_resumes_and_is_what_the_simulated_engine_reads(tmp_path):
    async with child_server([MOCK]) as url:
        await behave(url, obeys=True, refuse_every=4)
        status, _, errors = await record(tmp_path, url, "--concurrency", "1")
        assert status == 1
        assert "run again to carry on" in errors.splitlines()[-1]
        journal = tmp_path / "outputs" / "banks" / "bank.jsonl"
        assert len(journal.read_text().splitlines()) == 3

        await behave(url, obeys=True)
        status, output, _ = await record(tmp_path, f"{url}/v1")
        assert (status, output.strip()) == (0, "bank.parquet: 4 answers, 1 of them new")

        other = '{"temperature": 1.0}'
        status, _, errors = await record(tmp_path, url, "--sampling", other)
        assert status == 1
        assert "was recorded with another decoding" in errors

    table, metadata = read_recorded(tmp_path / "bank.parquet")
    assert metadata["model"] == "mock"
    assert "{asked_words}" in metadata["prompt_template"]
    assert table["words"].to_pylist() == [40, 20, 40, 20]
    assert table["output_tokens"].to_pylist() == [40, 20, 40, 20]
    assert set(table["finish_reason"].to_pylist()) == {"stop"}
    corpus = AclSum(limit_documents=2).load()
    bank = RecordedBank(str(tmp_path / "bank.parquet")).open(corpus)
    assert bank.lookup(corpus.documents[1].document_id, 20).words == 20


@pytest.mark.slow
async def test_the_prompt_without_a_number_is_recorded_where_asked_for(tmp_path):
    async with child_server([MOCK]) as url:
        await behave(url, obeys=True, chunks=["so", " it", " is"])
        status, _, errors = await record(tmp_path, url, "--concise")
        assert (status, errors.count("error")) == (0, 0)
    table, metadata = read_recorded(tmp_path / "bank.parquet")
    assert metadata["concise_prompt_template"] == CONCISE_TEMPLATE
    assert table["asked_words"].to_pylist() == [40, 20, None] * 2
    assert table["words"].to_pylist() == [40, 20, 3] * 2


@pytest.mark.slow
async def test_answers_are_added_to_a_bank_that_is_there_and_none_of_its_own_change(tmp_path):
    async with child_server([MOCK]) as url:
        await behave(url, obeys=True, chunks=["so", " it", " is"])
        status, output, _ = await record(tmp_path, url)
        assert (status, output.strip()) == (0, "bank.parquet: 4 answers, 4 of them new")
        before, made = read_recorded(tmp_path / "bank.parquet")

        shutil.rmtree(tmp_path / "outputs")  # as on another machine: only the bank is there
        status, output, _ = await record(tmp_path, url, "--concise")
        assert (status, output.strip()) == (0, "bank.parquet: 6 answers, 2 of them new")
        content = (tmp_path / "bank.parquet").read_bytes()
        status, output, _ = await record(tmp_path, url)
        assert (status, output.strip()) == (0, "bank.parquet: 6 answers, 0 of them new")
        assert (tmp_path / "bank.parquet").read_bytes() == content

        shutil.rmtree(tmp_path / "outputs")
        status, _, errors = await record(tmp_path, url, "--sampling", '{"temperature": 1.0}')
        assert (status, errors.count("\n")) == (1, 1)
        assert "bank.parquet was recorded with another decoding" in errors
        assert (tmp_path / "bank.parquet").read_bytes() == content

    table, metadata = read_recorded(tmp_path / "bank.parquet")
    assert [row for row in table.to_pylist() if row["asked_words"]] == before.to_pylist()
    assert table["asked_words"].to_pylist() == [40, 20, None] * 2
    (added,) = metadata["added"]
    assert (added["asked_words"], added["answers"]) == ([None], 2)
    assert metadata["concise_prompt_template"] == CONCISE_TEMPLATE
    assert {key: metadata[key] for key in made} == made


@pytest.mark.slow
async def test_a_server_that_is_not_there_is_one_line(tmp_path):
    status, _, errors = await record(tmp_path, "http://127.0.0.1:9")
    assert status == 1
    assert errors.startswith("error: ")
    assert errors.count("\n") == 1


def test_the_projects_bank_was_recorded_with_the_projects_prompt():
    corpus = AclSum().load()
    bank = RecordedBank("bank_smollm2_135m_aclsum.parquet").open(corpus)
    assert bank.metadata["prompt_template"] == TEMPLATE
    assert bank.metadata["text_digests"] == corpus.text_digests
    assert bank.metadata["concise_prompt_template"] == CONCISE_TEMPLATE
    assert bank.answers_concise
