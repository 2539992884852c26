"""Summarization data sets of the Hugging Face Hub by name, for machines with internet."""

import urllib.error
import urllib.request

from bellman.corpus.base import Corpus
from bellman.corpus.documents import (
    corpus_from_documents,
    documents_from_rows,
    wanted_columns,
)
from bellman.errors import ConfigError, RunError
from bellman.schema import Count, schema

REACHABLE_WITHIN_S = 5.0


@schema
class HubDataset:
    """A data set of the Hub; downloaded once, then read from the local cache."""

    name: str
    """Shown in tables and figures."""
    repository: str
    """`owner/name` on the Hub."""
    subset: str | None
    """The data set's configuration; null if it has one only."""
    split: str
    revision: str
    """Branch, tag or commit."""
    document_column: str
    summary_column: str
    id_column: str | None
    licence: str
    limit_documents: Count | None = 1000

    def load(self) -> Corpus:
        """Load the rows in the split's order; raises `RunError` when the Hub is out of reach."""
        import datasets  # noqa: PLC0415  (a second's import, only where a corpus is loaded)

        offline = datasets.config.HF_HUB_OFFLINE
        if not offline and not _reachable(datasets.config.HF_ENDPOINT):
            # Asking first: the library would try for half a minute, one log line a try.
            raise RunError(self._remedy(f"{datasets.config.HF_ENDPOINT} cannot be reached"))
        try:
            rows = datasets.load_dataset(
                self.repository, self.subset, split=self.split, revision=self.revision
            )
        except (OSError, ValueError, RuntimeError) as error:
            reason = "HF_HUB_OFFLINE is set and no copy is in the cache" if offline else str(error)
            raise RunError(self._remedy(reason.splitlines()[0])) from None
        for column in filter(None, (self.document_column, self.summary_column, self.id_column)):
            if column not in rows.column_names:
                known = ", ".join(rows.column_names)
                raise ConfigError("corpus column", column, f"{self.repository} has {known}")
        names = (self.document_column, self.summary_column, self.id_column)
        columns = wanted_columns(*names)
        # The other columns are not looked at: images and sound would be decoded.
        placed = (
            (f"{self.repository} row {number}", [row[column] for column in columns])
            for number, row in enumerate(rows.select_columns(list(dict.fromkeys(columns))))
        )
        documents = documents_from_rows(placed, *names)
        return corpus_from_documents(self.name, self.licence, documents, self.limit_documents)

    def _remedy(self, reason: str) -> str:
        return (
            f"corpus={self.name}: {reason}; load it once on a machine with internet "
            "and run with HF_HUB_OFFLINE=1 and its cache (HF_HOME), or use corpus=aclsum, "
            "which needs no download"
        )


def _reachable(endpoint: str) -> bool:
    try:
        request = urllib.request.Request(endpoint, method="HEAD")
        with urllib.request.urlopen(request, timeout=REACHABLE_WITHIN_S):
            return True
    except urllib.error.HTTPError:
        return True  # it answered
    except OSError:
        return False
