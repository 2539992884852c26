"""The sums are those of the stated prices, and those that the documentation shows."""

from dataclasses import fields
from pathlib import Path

import pytest

from bellman.store.publisher import LOOKS
from deploy.cost import SECONDS, Prices, Use, gateways, report, serverless

OPERATION = Path(__file__).parents[2] / "docs" / "operation.md"
FREE = Prices(**{field.name: 0.0 for field in fields(Prices)})


@pytest.mark.parametrize(
    ("price", "part", "expected"),
    [
        ("lambda_million_requests", "Lambda, requests", 2 * SECONDS / 1e6),
        ("lambda_gb_s", "Lambda, time", 2 * SECONDS * 0.05 * 0.5),
        ("dynamodb_million_writes", "DynamoDB, writes", 2 * SECONDS / 1e6),
        ("dynamodb_million_reads", "DynamoDB, reads", (2 + 8 / 2) * SECONDS / 1e6),
        ("metric_month", "CloudWatch, metric", 1),
        ("metric_thousand_calls", "CloudWatch, metric", SECONDS / 60_000),
        ("alarm_month", "CloudWatch, alarm", 1),
        ("log_gb", "CloudWatch, logs", 2 * SECONDS * 350 / 1e9),
    ],
)
def test_each_price_is_paid_for_what_it_is_of(price: str, part: str, expected: float) -> None:
    use = Use(events_per_s=2.0, reads_per_s=8.0, lambda_ms=50.0, lambda_gb=0.5)
    paid = serverless(use, Prices(**{**vars(FREE), price: 1.0}))
    assert paid[part] == pytest.approx(expected)
    assert sum(paid.values()) == pytest.approx(expected)


def test_gateways_pay_for_their_reports_and_the_publication() -> None:
    assert Use().looks == LOOKS
    use = Use(gateways=4, period_s=2.0, looks=3)
    paid = gateways(use, Prices(dynamodb_million_writes=1.0))
    assert sum(paid.values()) == pytest.approx((2 + 3 * 3) * SECONDS / 2 / 1e6)


def test_the_documentation_shows_what_is_computed() -> None:
    assert report(Use()) in OPERATION.read_text(), "run python deploy/cost.py"
