"""AWS Lambda: an observation in, the level out, by the law that runs everywhere else.

The event is `{"endpoint_id": "vllm-a", "dt_s": 1.0, "observation": {"running": 12, "waiting": 3}}`;
`dt_s` is the sender's control period, so no two machines' clocks are compared. The law is the
`controller` of BELLMAN_CONTROL, its state lies in the table between two events, and of two that
meet the second goes on from the first's state. The levels go to CloudWatch once a minute.
"""

import json
import math
import os
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from typing import Any

import boto3
from botocore.exceptions import ClientError

from bellman.controllers.base import Controller
from bellman.controllers.state import read_state, write_state
from bellman.controllers.step import step
from bellman.sensing.numbers import amount, count
from bellman.sensing.observation import Observation
from bellman.serving.control import CONTROL, parse_control

NAMESPACE, METRIC, DIMENSION = "BeLLMan", "CongestionLevel", "EndpointId"
TRIES = 5
"""So many events may meet at one endpoint."""
KEPT_S = 120
"""A level that no event follows is none after so long; DynamoDB deletes it some time later."""
FLUSH_S = 60.0
"""CloudWatch keeps values by the minute, and each call costs money."""
MOST_VALUES = 150
"""Values of one metric in one call (CloudWatch's limit)."""

levels: defaultdict[str, list[float]] = defaultdict(list)
"""Levels that CloudWatch has not got yet, by endpoint; those of a container that ends are lost."""
flushed_s: dict[str, float] = {}


@cache
def law() -> Controller:
    """Return the law; raises `ConfigError`."""
    return parse_control(json.loads(os.environ[CONTROL])).controller


@cache
def client(service: str) -> Any:
    """Return the client of a service, which lives as long as the container."""
    return boto3.client(service)


def handler(event: Mapping[str, Any], context: object) -> dict[str, object]:
    """Run the law once; raises ValueError for an event that is none, which publishes nothing."""
    endpoint_id, dt_s = event["endpoint_id"], amount(event["dt_s"])
    if not isinstance(endpoint_id, str) or not endpoint_id:
        raise ValueError("endpoint_id must be a name")
    observation = read_observation(event["observation"])
    for _ in range(TRIES):
        level = publish(endpoint_id, observation, dt_s)
        if level is not None:
            measure(endpoint_id, level)
            return {"endpoint_id": endpoint_id, "level": level}
    raise RuntimeError(f"{TRIES} events met at {endpoint_id}: send them less often")


def read_observation(values: Mapping[str, Any]) -> Observation:
    """Return what an event observed; raises ValueError for a number that is none."""
    checks = {
        field.name: count if "int" in str(field.type) else amount for field in fields(Observation)
    }
    if unknown := values.keys() - checks.keys():
        raise ValueError(f"no quantity is called {', '.join(sorted(unknown))}")
    given = {name: checks[name](value) for name, value in values.items() if value is not None}
    return Observation(**{"time_s": 0.0, **given})


def publish(endpoint_id: str, observation: Observation, dt_s: float) -> float | None:
    """Run the law from the state in the table and write the next; None where another event did."""
    address = {"TableName": os.environ["TABLE"], "Key": {"endpoint_id": {"S": endpoint_id}}}
    item = client("dynamodb").get_item(ConsistentRead=True, **address).get("Item", {})
    before = item.get("publication", {"N": "0"})
    state = read_state(law(), item["law_state"]["S"]) if "law_state" in item else law().start()
    state, level = step(law(), state, observation, dt_s)
    try:
        client("dynamodb").update_item(
            UpdateExpression="SET #level = :level, law_state = :state, expire_at = :expire_at, "
            "publication = :next",
            ConditionExpression="attribute_not_exists(publication) OR publication = :before",
            ExpressionAttributeNames={"#level": "level"},
            ExpressionAttributeValues={
                ":level": {"N": repr(level)},
                ":state": {"S": write_state(state)},
                ":expire_at": {"N": str(int(time.time()) + KEPT_S)},
                ":before": before,
                ":next": {"N": str(int(before["N"]) + 1)},
            },
            **address,
        )
    except ClientError as error:
        if error.response["Error"]["Code"] == "ConditionalCheckFailedException":
            return None
        raise
    return level


def measure(endpoint_id: str, level: float) -> None:
    """Give CloudWatch the levels of the last minute."""
    waiting, now_s = levels[endpoint_id], time.monotonic()
    waiting.append(level)
    if now_s - flushed_s.get(endpoint_id, -math.inf) < FLUSH_S and len(waiting) < MOST_VALUES:
        return
    client("cloudwatch").put_metric_data(
        Namespace=NAMESPACE,
        MetricData=[
            {
                "MetricName": METRIC,
                "Dimensions": [{"Name": DIMENSION, "Value": endpoint_id}],
                "Values": list(waiting),
                "Unit": "None",
            }
        ],
    )
    waiting.clear()
    flushed_s[endpoint_id] = now_s
