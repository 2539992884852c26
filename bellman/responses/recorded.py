"""A bank of a real model's answers, recorded with `scripts/record_responses.py`.

One parquet file: a row per (document, asked words), and in the schema's metadata, under `bellman`,
a JSON object that says how they were made.
"""

import json
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from statistics import fmean
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bellman.app.prompt import summary_prompt
from bellman.corpus.base import Corpus
from bellman.errors import RunError, require
from bellman.responses.base import NO_CONCISE, Response
from bellman.row_files.text import shown
from bellman.schema import schema

RECORDED_RESPONSES = pa.schema(
    [
        ("document_id", pa.string()),
        ("asked_words", pa.int32()),
        ("text", pa.string()),
        ("words", pa.int32()),
        # As the server reports them: they count the end-of-text token.
        ("output_tokens", pa.int32()),
        ("prompt_tokens", pa.int32()),
        ("finish_reason", pa.string()),
    ]
)
NULLABLE = ("asked_words", "prompt_tokens")
"""No number of words was asked for, but to be concise; a server told no length of the prompt."""
LOWEST = {"asked_words": 1, "words": 0, "output_tokens": 0, "prompt_tokens": 0}
METADATA_KEY = b"bellman"
METADATA_FIELDS = (
    "model",
    "revision",
    "prompt_template",
    "decoding",
    "corpus",
    "text_digests",
    "recorded_utc",
)
PACKAGED = Path(str(files("bellman"))) / "data"
"""Banks that come with the project."""


@schema
class RecordedBank:
    """A recorded bank's file."""

    path: str
    """Name of a bank that comes with the project, or path of your own."""
    prompts_as_recorded: bool = False
    """Whether a prompt has as many tokens as the recorded model counted; else they are estimated
    from its words, for the model of the profile. True where both are the same model."""

    def __post_init__(self) -> None:
        """Check that the file is there."""
        packaged = ", ".join(sorted(path.name for path in PACKAGED.glob("*.parquet"))) or "none"
        require(
            self.file.is_file(),
            "path",
            self.path,
            f"must be an existing file or a bank of the project ({packaged})",
        )

    @property
    def file(self) -> Path:
        """The project's bank of that name, else the path itself."""
        packaged = PACKAGED / self.path
        return packaged if packaged.is_file() else Path(self.path)

    def open(self, corpus: Corpus) -> "RecordedResponses":
        """Read the bank; raises `RunError` unless it was recorded over this corpus."""
        table, metadata = read_recorded(self.file)
        bank = RecordedResponses(self.file, table, metadata)
        bank.check(corpus)
        if self.prompts_as_recorded:
            bank.prompt_tokens = recorded_prompt_tokens(table, corpus)
        return bank


class RecordedResponses:
    """A recorded bank in memory."""

    def __init__(self, file: Path, table: pa.Table, metadata: dict[str, Any]) -> None:
        self._file = file
        self.metadata = metadata
        self.prompt_tokens: dict[str, int] = {}
        """Of each prompt; empty where they are not asked for."""
        self._responses = {
            (row["document_id"], row["asked_words"]): Response(
                row["text"], row["words"], row["output_tokens"], row["finish_reason"]
            )
            for row in table.to_pylist()
        }

    @property
    def kind(self) -> str:
        """`recorded from <model>`."""
        return f"recorded from {self.metadata['model']}"

    @cached_property
    def length_compliance(self) -> dict[int, float]:
        """Mean words over the documents, by asked words."""
        written: dict[int, list[int]] = {}
        for (_, asked_words), response in self._responses.items():
            if asked_words is not None:
                written.setdefault(asked_words, []).append(response.words)
        return {asked: fmean(words) for asked, words in sorted(written.items())}

    @cached_property
    def answers_concise(self) -> bool:
        """Whether answers without a number of words were recorded."""
        return any(asked_words is None for _, asked_words in self._responses)

    def count_tokens(self, text: str) -> int | None:
        """Return the tokens of a prompt that was counted when its answer was recorded."""
        return self.prompt_tokens.get(text)

    def check(self, corpus: Corpus) -> None:
        """Raise `RunError` unless the bank has every document of the corpus, unchanged."""
        recorded = {document_id for document_id, _ in self._responses}
        digests = corpus.text_digests
        missing = sorted(digests.keys() - recorded)
        changed = sorted(
            name for name in digests if self.metadata["text_digests"].get(name) != digests[name]
        )
        problem = None
        if self.metadata["corpus"] != corpus.name:
            problem = f"is over corpus {self.metadata['corpus']}, not {corpus.name}"
        elif missing:
            problem = f"lacks {len(missing)} documents of the corpus, {missing[0]!r} among them"
        elif changed:
            problem = (
                f"was recorded over other texts of {len(changed)} documents, {changed[0]!r} among "
                "them (another cut, corpus.longest_words?)"
            )
        if problem:
            raise RunError(
                f"the response bank {self._file.name} {problem}: record one with "
                "scripts/record_responses.py, or use engine/bank=extractive"
            )

    def lookup(self, document_id: str, asked_words: int | None) -> Response:
        """Return the answer; raises `RunError` naming the asked lengths that the bank has."""
        response = self._responses.get((document_id, asked_words))
        if response is None and asked_words is None:
            raise RunError(f"the response bank {self._file.name} {NO_CONCISE}")
        if response is None:
            lengths = sorted(
                asked
                for known, asked in self._responses
                if known == document_id and asked is not None
            )
            has = f"has {', '.join(map(str, lengths))}" if lengths else "lacks that document"
            raise RunError(
                f"the response bank {self._file.name} has no answer of document {document_id!r} "
                f"for {asked_words} words (it {has}): ask for those, record more with "
                "scripts/record_responses.py, or use engine/bank=extractive"
            )
        return response


def recorded_prompt_tokens(table: pa.Table, corpus: Corpus) -> dict[str, int]:
    """Return the tokens of every prompt over the corpus, as the recorded model counted them."""
    texts = {document.document_id: document.text for document in corpus.documents}
    return {
        summary_prompt(texts[row["document_id"]], row["asked_words"]): row["prompt_tokens"]
        for row in table.select(["document_id", "asked_words", "prompt_tokens"]).to_pylist()
        if row["document_id"] in texts and row["prompt_tokens"] is not None
    }


def read_recorded(file: Path) -> tuple[pa.Table, dict[str, Any]]:
    """Read a bank's rows and metadata; raises `RunError` when the file is not a bank."""
    try:
        table = pq.read_table(file)
        metadata = json.loads((table.schema.metadata or {})[METADATA_KEY])
        rows = table.select(RECORDED_RESPONSES.names).cast(RECORDED_RESPONSES)
        rows.validate(full=True)  # else text that is no UTF-8 fails when it is looked up
    except (OSError, KeyError, ValueError, RecursionError, pa.ArrowException) as error:
        reason = shown(str(error).split("\n", 1)[0])
        raise RunError(f"{file} is no response bank ({reason}); record one again") from None
    if not isinstance(metadata, dict) or not isinstance(metadata.get("text_digests", {}), dict):
        raise RunError(f"{file} is no response bank (its metadata are no object); record one again")
    missing = [field for field in METADATA_FIELDS if field not in metadata]
    if missing:
        raise RunError(
            f"{file} is no response bank, or an older one (no {missing[0]} in its metadata): "
            "record it again with scripts/record_responses.py"
        )
    check_rows(file, rows)
    return rows, metadata


def check_rows(file: Path, table: pa.Table) -> None:
    """Raise `RunError` with row and column of a cell that no answer has, or of a second answer."""
    seen: dict[tuple[str, int | None], int] = {}
    for number, row in enumerate(table.to_pylist(), start=1):
        for column, value in row.items():
            # What a server did not report of a prompt or an answer is null.
            known = value is not None or column in NULLABLE
            lowest = LOWEST.get(column)
            if not known or (lowest is not None and value is not None and value < lowest):
                raise RunError(
                    f"{file}: row {number}: {column}={value} cannot be of an answer; record it "
                    "again with scripts/record_responses.py"
                )
        first = seen.setdefault((row["document_id"], row["asked_words"]), number)
        if first != number:
            raise RunError(
                f"{file}: row {number}: the answer of document {shown(row['document_id'])} for "
                f"{row['asked_words']} words is in row {first}, too"
            )


def write_recorded(table: pa.Table, metadata: dict[str, Any], file: Path) -> None:
    """Write a bank of `RECORDED_RESPONSES` rows; `metadata` has every one of `METADATA_FIELDS`."""
    missing = [field for field in METADATA_FIELDS if field not in metadata]
    if missing:
        raise ValueError(f"metadata lacks {', '.join(missing)}")
    content = json.dumps(metadata, ensure_ascii=False).encode()
    rows = table.cast(RECORDED_RESPONSES).replace_schema_metadata({METADATA_KEY: content})
    pq.write_table(rows, file, compression="zstd")
