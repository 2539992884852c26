"""Record a response bank: a real model's answer for every document and a ladder of asked words.

    python scripts/record_responses.py --base-url http://127.0.0.1:8000/v1 \\
        --model-folder models/smollm2-135m-instruct \\
        --output bellman/data/bank_smollm2_135m_aclsum.parquet

Any OpenAI-compatible server will do. Each answer is appended to a journal as it comes, so the same
command carries on after an interruption; the parquet file is written at the end. A bank that is
there already keeps its answers: what else is asked for, `--concise` or other lengths, is added, and
its metadata say when (`added`). Documents go out one after the other with all their lengths, so
that a prefix cache reads each only once.
"""

import argparse
import asyncio
import json
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from omegaconf import OmegaConf
from rich.console import Console
from rich.progress import Progress

from bellman.app.prompt import CONCISE_TEMPLATE, TEMPLATE, summary_prompt
from bellman.build import build
from bellman.corpus.base import Corpus
from bellman.engines.base import Completion, Request, RequestFailed
from bellman.engines.openai.connections import open_pool
from bellman.engines.openai.engine import model_names
from bellman.engines.openai.fetch import NoReply, fetch
from bellman.engines.openai.session import ChatServer, OpenAISession
from bellman.errors import RunError
from bellman.records import JsonLinesWriter, read_json_lines, write_json
from bellman.responses.recorded import RECORDED_RESPONSES, read_recorded, write_recorded
from bellman.words import count_words

LADDER = [round(300 / 2 ** (k / 2)) for k in range(9)]
"""300, 212, 150, 106, 75, 53, 38, 27, 19: the application's budgets and below."""
TOKENS_PER_WORD = 3
MARGIN_TOKENS = 64
"""`max_tokens` = 3 tokens a word + 64: far above a model that obeys, short of endless loops."""
CONCISE_TOKENS = 1024
"""`max_tokens` where no number of words is asked for."""
TIMEOUT_S = 3600.0
PROVENANCE = "bellman_provenance.json"

Row = dict[str, Any]
"""Of the bank, as `RECORDED_RESPONSES` has it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One row of the bank."""

    document_id: str
    asked_words: int | None
    text: str
    words: int
    output_tokens: int
    prompt_tokens: int
    finish_reason: str


@dataclass(frozen=True, slots=True)
class Question:
    """One answer to record."""

    document_id: str
    document_text: str
    asked_words: int | None
    """None: to be concise."""


def load_corpus(name: str, overrides: list[str]) -> Corpus:
    """Load a corpus by its configuration in conf/corpus."""
    file = Path(__file__).parents[1] / "conf" / "corpus" / f"{name}.yaml"
    if not file.is_file():
        raise RunError(f"--corpus {name}: no such file in conf/corpus")
    node = OmegaConf.merge(OmegaConf.load(file), OmegaConf.from_dotlist(overrides))
    corpus: Corpus = build(node, "corpus").load()  # type: ignore[arg-type]
    return corpus


def journal_of(output: Path) -> Path:
    """Return the journal of this bank; its conditions are beside it."""
    journal = Path("outputs") / "banks" / f"{output.stem}.jsonl"
    journal.parent.mkdir(parents=True, exist_ok=True)
    return journal


def conditions_of(journal: Path, conditions: dict[str, Any]) -> dict[str, Any]:
    """Write under which conditions the journal is recorded and return all of them."""
    beside = journal.with_suffix(".json")
    if beside.exists():
        conditions = both(journal, json.loads(beside.read_text()), conditions)
    write_json(conditions, beside)
    return conditions


def bank_of(output: Path) -> tuple[list[Row], dict[str, Any]]:
    """Return rows and metadata of the bank as it is."""
    if not output.exists():
        return [], {}
    table, metadata = read_recorded(output)
    return table.to_pylist(), metadata


def both(file: Path, begun: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """Return the conditions of answers old and new; raises `RunError` where one is another."""
    other = [key for key in begun.keys() & now.keys() if begun[key] != now[key]]
    if other:
        raise RunError(f"{file} was recorded with another {', '.join(sorted(other))}: move it away")
    return begun | now


def request_of(index: int, question: Question) -> Request:
    """Return the request as the application would send it, with a generous token limit."""
    words = question.asked_words
    limit = CONCISE_TOKENS if words is None else TOKENS_PER_WORD * words + MARGIN_TOKENS
    return Request(
        request_id=index,
        document_id=question.document_id,
        prompt=summary_prompt(question.document_text, question.asked_words),
        asked_words=question.asked_words,
        max_tokens=limit,
    )


def answer_of(question: Question, completion: Completion) -> Answer:
    """Return the row; raises `RunError` where the server reports no usage."""
    if completion.prompt_tokens is None or completion.output_tokens is None:
        raise RunError("the server reports no token counts (stream_options.include_usage)")
    text = (completion.text or "").strip()
    return Answer(
        document_id=question.document_id,
        asked_words=question.asked_words,
        text=text,
        words=count_words(text),
        output_tokens=completion.output_tokens,
        prompt_tokens=completion.prompt_tokens,
        finish_reason=completion.finish_reason or "stop",
    )


async def record(
    server: ChatServer, questions: list[Question], writer: JsonLinesWriter, concurrency: int
) -> None:
    """Ask every question, `concurrency` at a time and in order, and append the answers."""
    waiting = iter(enumerate(questions))
    with Progress(console=Console(stderr=True)) as progress:
        bar = progress.add_task("recording", total=len(questions))
        async with open_pool(None) as pool, asyncio.TaskGroup() as workers:
            session = OpenAISession(pool, server)

            async def work() -> None:
                for index, question in waiting:
                    completion = await session.generate(request_of(index, question), lambda _: None)
                    writer.write(answer_of(question, completion))
                    progress.advance(bar)

            for _ in range(concurrency):
                workers.create_task(work())


async def model_name(root_url: str) -> str:
    """Ask the server for its first model."""
    url = f"{root_url}/v1/models"
    try:
        async with open_pool(None) as pool:
            names = model_names((await fetch(pool, "GET", url)).json())
    except NoReply as error:
        raise RunError(f"no server answers at {url}: {error}") from None
    if not names:
        raise RunError(f"{url} names no model")
    return names[0]


def identity(arguments: argparse.Namespace, served: str) -> dict[str, str]:
    """Return model and revision: those of the prepared folder where one is named."""
    if arguments.model_folder is None:
        return {"model": served, "revision": arguments.revision or "unknown"}
    provenance = json.loads((arguments.model_folder / PROVENANCE).read_text())
    return {"model": provenance["model"], "revision": provenance["revision"]}


async def run(arguments: argparse.Namespace) -> str:
    """Record what is missing and write the bank; return what was done."""
    corpus = load_corpus(arguments.corpus, arguments.set)
    root_url = arguments.base_url.rstrip("/").removesuffix("/v1")
    served = await model_name(root_url)
    decoding = json.loads(arguments.sampling)
    metadata = {
        **identity(arguments, served),
        "prompt_template": TEMPLATE,
        "decoding": {
            **decoding,
            "max_tokens": f"{TOKENS_PER_WORD} x asked words + {MARGIN_TOKENS}",
        },
        "corpus": corpus.name,
        "text_digests": corpus.text_digests,
    }
    asks: list[int | None] = list(arguments.asked_words)
    if arguments.concise:
        asks.append(None)
        metadata["concise_prompt_template"] = CONCISE_TEMPLATE
        metadata["concise_max_tokens"] = CONCISE_TOKENS
    before, as_it_was = bank_of(arguments.output)
    both(arguments.output, as_it_was, metadata)
    journal = journal_of(arguments.output)
    as_recorded = as_it_was | conditions_of(journal, metadata)
    done = {answer_key(row) for row in [*before, *rows_of(journal)]}
    questions = [
        Question(document.document_id, document.text, asked_words)
        for document in corpus.documents
        for asked_words in asks
        if (document.document_id, asked_words) not in done
    ]
    server = ChatServer(root_url, served, TIMEOUT_S, decoding)
    with JsonLinesWriter(journal) as writer:
        await record(server, questions, writer, arguments.concurrency)
    rows = {answer_key(row): row for row in [*rows_of(journal), *before]}
    new = [key for key in rows if key not in {answer_key(row) for row in before}]
    if new:
        now_utc = datetime.now(UTC).isoformat(timespec="seconds")
        if before:
            asked = list(dict.fromkeys(asked_words for _, asked_words in new))
            entry = {"recorded_utc": now_utc, "asked_words": asked, "answers": len(new)}
            as_recorded["added"] = [*as_it_was.get("added", []), entry]
        else:
            as_recorded["recorded_utc"] = now_utc
        write_recorded(in_order(rows, corpus), as_recorded, arguments.output)
    return f"{arguments.output}: {len(rows)} answers, {len(questions)} of them new"


def rows_of(journal: Path) -> list[Row]:
    """Return the answers of a journal."""
    if not journal.exists():
        return []
    rows: list[Row] = read_json_lines(journal, RECORDED_RESPONSES).to_pylist()
    return rows


def answer_key(row: Row) -> tuple[str, int | None]:
    """Return what an answer is looked up by."""
    return row["document_id"], row["asked_words"]


def in_order(rows: dict[tuple[str, int | None], Row], corpus: Corpus) -> pa.Table:
    """Sort the answers by document, in the corpus's order, the longest first, concise last."""
    place = {document.document_id: number for number, document in enumerate(corpus.documents)}
    keys = sorted(rows, key=lambda key: (place[key[0]], -(key[1] or 0)))
    return pa.Table.from_pylist([rows[key] for key in keys], schema=RECORDED_RESPONSES)


def main() -> int:
    """Record the bank that the command line describes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--base-url", required=True, help="of the server, with or without /v1")
    parser.add_argument("--output", type=Path, required=True, help="parquet file to write")
    parser.add_argument("--corpus", default="aclsum", help="a file of conf/corpus")
    parser.add_argument("--set", nargs="*", default=[], help="corpus options, e.g. path=my.jsonl")
    parser.add_argument("--asked-words", type=int, nargs="+", default=LADDER)
    parser.add_argument(
        "--concise", action="store_true", help="record the prompt that asks to be concise, too"
    )
    parser.add_argument("--sampling", default='{"temperature": 0.0}', help="JSON; %(default)s")
    parser.add_argument("--model-folder", type=Path, help="prepared folder that the server loaded")
    parser.add_argument("--revision", help="of the model, where it has no prepared folder")
    parser.add_argument("--concurrency", type=int, default=32)
    try:
        print(asyncio.run(run(parser.parse_args())))
    except (RunError, RequestFailed, OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except BaseExceptionGroup as group:
        print(f"error: {group.exceptions[0]}; run again to carry on", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; run again to carry on", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
