"""One value an engine: a server's processes repeat a metric, and only engines add up.

What servers export, by label:

* `engine` (vLLM) and `dp_rank` (SGLang): a data parallel engine with its own queue and batch. Its
  requests are its own: these add up.
* `tp_rank`, `pp_rank`, `moe_ep_rank` (SGLang with --enable-metrics-for-all-schedulers): processes
  that work on one batch together. Each reports the same batch.
* `pid`: an API server process. Prometheus' multiprocess mode labels gauges of kind `all` so (vLLM's
  kv_cache_usage_perc with --api-server-count before vllm-project/vllm#28792). vLLM tells each step
  to one of these processes, the others keep older values. Counters are never labelled so.
* `priority` (SGLang with priority scheduling): the parts of a total whose `priority` is empty.

Of values that repeat one another the largest counts. It may be a step old; it is no sum.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

from prometheus_client.samples import Sample

RANKS = frozenset(("tp_rank", "pp_rank", "moe_ep_rank"))
PROCESSES = RANKS | {"pid"}

Number = TypeVar("Number", int, float)


def per_engine(
    samples: Sequence[Sample], check: Callable[[object], Number], *, gauge: bool
) -> list[Number]:
    """Return the checked values of one metric, one an engine; `check` raises ValueError."""
    repeating = PROCESSES if gauge else RANKS
    totals = [sample for sample in samples if sample.labels.get("priority") == ""]
    engines: dict[frozenset[tuple[str, str]], Number] = {}
    for sample in totals or samples:
        engine = frozenset(item for item in sample.labels.items() if item[0] not in repeating)
        value = check(sample.value)
        engines[engine] = max(value, engines.get(engine, value))
    return list(engines.values())
