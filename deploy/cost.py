"""What sharing the signal through AWS costs a month, computed from prices and use that are stated.

    python deploy/cost.py [--events-per-s 1] [--reads-per-s 1] [--gateways 2] [--lambda-ms 20]

No free tier, no tax, no traffic between regions. The prices are inputs: check them before relying
on the sums.
"""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass

SECONDS = 365.25 / 12 * 86_400
"""Of a month."""
MILLION = 1e6
LOG_BYTES = 350
"""Of the lines that Lambda itself logs for one event (START, END, REPORT)."""
METRIC_CALLS = SECONDS / 60
"""One a minute, of one container."""


@dataclass(frozen=True)
class Prices:
    """US dollars, us-east-1, list prices.

    Those of DynamoDB, the metric and the alarm as third parties quoted them on 2026-11-30; those of
    Lambda, logs and metric calls are not checked.
    """

    lambda_million_requests: float = 0.20
    lambda_gb_s: float = 0.0000166667
    dynamodb_million_writes: float = 0.625
    """Of at most 1 KB."""
    dynamodb_million_reads: float = 0.125
    """Of at most 4 KB, strongly consistent; an eventually consistent read is half of one."""
    metric_month: float = 0.30
    metric_thousand_calls: float = 0.01
    alarm_month: float = 0.10
    log_gb: float = 0.50


@dataclass(frozen=True)
class Use:
    """Of one endpoint."""

    events_per_s: float = 1.0
    reads_per_s: float = 1.0
    """Of the level, by applications, eventually consistent."""
    gateways: int = 2
    period_s: float = 1.0
    """Of control, where gateways share through DynamoDB."""
    looks: int = 4
    """A period, of a gateway that does not run the law: `bellman.store.publisher.LOOKS`."""
    lambda_ms: float = 20.0
    """What an event takes: an assumption; Lambda's own metric Duration tells."""
    lambda_gb: float = 0.25


def serverless(use: Use, prices: Prices) -> dict[str, float]:
    """Return dollars a month of `deploy/serverless`, by what they are for."""
    events = use.events_per_s * SECONDS
    reads = events + use.reads_per_s * SECONDS / 2
    return {
        "Lambda, requests": events / MILLION * prices.lambda_million_requests,
        "Lambda, time": events * use.lambda_ms / 1000 * use.lambda_gb * prices.lambda_gb_s,
        "DynamoDB, writes": events / MILLION * prices.dynamodb_million_writes,
        "DynamoDB, reads": reads / MILLION * prices.dynamodb_million_reads,
        "CloudWatch, metric": prices.metric_month
        + METRIC_CALLS / 1000 * prices.metric_thousand_calls,
        "CloudWatch, alarm": prices.alarm_month,
        "CloudWatch, logs": events * LOG_BYTES / 1e9 * prices.log_gb,
    }


def gateways(use: Use, prices: Prices) -> dict[str, float]:
    """Return dollars a month where gateways share by DynamoDB.

    One reports and publishes once a period, the others report at every look.
    """
    writes = (2 + (use.gateways - 1) * use.looks) * SECONDS / use.period_s
    return {"DynamoDB, writes": writes / MILLION * prices.dynamodb_million_writes}


def table(title: str, parts: Mapping[str, float]) -> str:
    """Return the parts and their sum as a table in Markdown."""
    rows = [f"| {name} | {dollars:.2f} |" for name, dollars in parts.items()]
    total = f"| **sum** | **{sum(parts.values()):.2f}** |"
    return "\n".join([f"| {title} | USD a month |", "| --- | ---: |", *rows, total])


def main() -> None:
    """Print the tables."""
    use = Use()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events-per-s", type=float, default=use.events_per_s)
    parser.add_argument("--reads-per-s", type=float, default=use.reads_per_s)
    parser.add_argument("--gateways", type=int, default=use.gateways)
    parser.add_argument("--period-s", type=float, default=use.period_s)
    parser.add_argument("--lambda-ms", type=float, default=use.lambda_ms)
    parser.add_argument("--lambda-gb", type=float, default=use.lambda_gb)
    print(report(Use(**vars(parser.parse_args()))))


def report(use: Use) -> str:
    """Return both tables for a use."""
    prices = Prices()
    return "\n\n".join(
        (
            table("serverless, one endpoint", serverless(use, prices)),
            table(f"{use.gateways} gateways, one endpoint", gateways(use, prices)),
        )
    )


if __name__ == "__main__":
    main()
