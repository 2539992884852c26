"""The serverless pattern: what Terraform describes, and the handler against moto's server."""

import importlib.util
import json
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from types import ModuleType
from typing import Any

import boto3
import pytest

from bellman.controllers.bellman import QueueLaw
from bellman.sensing.observation import Observation
from bellman.serving.control import parse_control
from tests.deploy.terraform import SERVERLESS, blocks
from tests.store.servers import AWS, moto_server

RESOURCES, VARIABLES = blocks("resource"), blocks("variable")
LAW = QueueLaw(q_low=0, q_high=100, max_step=0.25)
CONTROL = json.dumps(
    {
        "controller": {
            "_target_": "bellman.controllers.bellman.QueueLaw",
            "q_low": 0,
            "q_high": 100,
            "max_step": 0.25,
        }
    }
)
TABLE = RESOURCES["aws_dynamodb_table.signals"]
FUNCTION = RESOURCES["aws_lambda_function.law"]
ALARM = RESOURCES["aws_cloudwatch_metric_alarm.congestion"]


def allowed() -> set[str]:
    """Return the actions that the function's role may do."""
    statements = blocks("data")["aws_iam_policy_document.law"]["statement"]
    return {action for statement in statements for action in statement["actions"]}


def test_every_name_that_is_referred_to_exists() -> None:
    known = {f"var.{name}" for name in VARIABLES}
    known |= set(RESOURCES) | {f"data.{name}" for name in blocks("data")}
    text = " ".join(file.read_text() for file in SERVERLESS.glob("*.tf"))
    text = re.sub(r"#.*", "", text)
    used = set(re.findall(r"\bvar\.\w+", text))
    used |= set(re.findall(r"(?<![.\w])(?:data\.)?aws_\w+\.\w+(?=\.)", text))
    assert used <= known
    assert {f"var.{name}" for name in VARIABLES} <= used


def test_the_table_is_keyed_by_endpoint_and_forgets() -> None:
    assert TABLE["hash_key"] == "endpoint_id"
    assert TABLE["attribute"] == [{"name": "endpoint_id", "type": "S"}]
    assert TABLE["ttl"] == [{"attribute_name": "expire_at", "enabled": True}]


def test_the_function_is_our_handler_with_a_law() -> None:
    module, _, function = FUNCTION["handler"].rpartition(".")
    assert f"def {function}(event" in (SERVERLESS / f"{module}.py").read_text()
    assert FUNCTION["environment"][0]["variables"].keys() == {"TABLE", "BELLMAN_CONTROL"}
    assert parse_control(json.loads(VARIABLES["control"]["default"])).controller.start().level == 0


def test_no_permission_is_for_everything() -> None:
    for statement in blocks("data")["aws_iam_policy_document.law"]["statement"]:
        assert not any("*" in action for action in statement["actions"])
        if "*" in statement["resources"]:
            (condition,) = statement["condition"]
            assert condition["variable"] == "cloudwatch:namespace"
            assert condition["values"] == [ALARM["namespace"]]


@pytest.mark.skipif(shutil.which("terraform") is None, reason="no terraform")
def test_terraform_reads_the_files_as_they_are_formatted() -> None:
    command = ["terraform", "fmt", "-check", "-diff", str(SERVERLESS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def cloud() -> Iterator[str]:
    """Run moto's server with the table that the Terraform describes."""
    with pytest.MonkeyPatch.context() as patch, moto_server() as url:
        variables = {**AWS, "AWS_ENDPOINT_URL": url, "TABLE": "signals", "BELLMAN_CONTROL": CONTROL}
        for name, value in variables.items():
            patch.setenv(name, value)
        client = boto3.client("dynamodb")
        client.create_table(
            TableName="signals",
            BillingMode=TABLE["billing_mode"],
            KeySchema=[{"AttributeName": TABLE["hash_key"], "KeyType": "HASH"}],
            AttributeDefinitions=[
                {"AttributeName": attribute["name"], "AttributeType": attribute["type"]}
                for attribute in TABLE["attribute"]
            ],
        )
        (ttl,) = TABLE["ttl"]
        specification = {"AttributeName": ttl["attribute_name"], "Enabled": ttl["enabled"]}
        client.update_time_to_live(TableName="signals", TimeToLiveSpecification=specification)
        yield url


def load() -> ModuleType:
    """Load the handler as a new container of the function does."""
    spec = importlib.util.spec_from_file_location("handler", SERVERLESS / "handler.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def an_event(endpoint_id: str, waiting: int, **others: Any) -> dict[str, Any]:
    return {
        "endpoint_id": endpoint_id,
        "dt_s": 1.0,
        "observation": {"running": 10, "waiting": waiting},
        **others,
    }


def item(endpoint_id: str) -> Any:
    key = {"endpoint_id": {"S": endpoint_id}}
    return boto3.client("dynamodb").get_item(TableName="signals", Key=key).get("Item")


@pytest.mark.slow
def test_the_level_is_the_laws_whichever_container_runs_it(cloud: str) -> None:
    containers = [load(), load()]
    state = LAW.start()
    for number, waiting in enumerate([90, 90, 90, 0, 40, 90, 90, 90]):
        state = LAW.update(state, Observation(0.0, waiting, 10), 1.0)
        answer = containers[number % 2].handler(an_event("one", waiting), None)
        assert answer == {"endpoint_id": "one", "level": pytest.approx(state.level, abs=1e-12)}
    found = item("one")
    assert float(found["level"]["N"]) == state.level
    assert 0 < int(found["expire_at"]["N"]) - time.time() <= 120


@pytest.mark.slow
def test_cloudwatch_gets_the_mean_and_the_role_allows_all_that_was_called(cloud: str) -> None:
    container = load()
    called = set()

    def note(event_name: str, **_: Any) -> None:
        _, service, operation = event_name.split(".")
        called.add(f"{service}:{operation}")

    for service in ("dynamodb", "cloudwatch"):
        container.client(service).meta.events.register(f"before-call.{service}", note)
    told = []
    for waiting in (90, 90, 90, 90):
        container.flushed_s.clear()  # as if a minute had passed
        told.append(container.handler(an_event("two", waiting), None)["level"])
    now = datetime.now(UTC)
    found = boto3.client("cloudwatch").get_metric_statistics(
        Namespace=ALARM["namespace"],
        MetricName=ALARM["metric_name"],
        Dimensions=[{"Name": name, "Value": "two"} for name in ALARM["dimensions"]],
        StartTime=now - timedelta(hours=1),
        EndTime=now + timedelta(hours=1),
        Period=7200,
        Statistics=[ALARM["statistic"]],
    )["Datapoints"]
    assert told == [0.25, 0.5, 0.75, 1.0]
    assert [point["Average"] for point in found] == [pytest.approx(0.625)]
    assert called == {action for action in allowed() if not action.startswith("logs:")}


@pytest.mark.slow
def test_of_events_that_meet_none_is_lost(cloud: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another container publishes between this one's read and its write."""
    container, other = load(), load()
    container.handler(an_event("three", 90), None)
    update_item, met = container.client("dynamodb").update_item, []

    def late(**arguments: Any) -> Any:
        if not met:
            met.append(other.handler(an_event("three", 90), None)["level"])
        return update_item(**arguments)

    monkeypatch.setattr(container.client("dynamodb"), "update_item", late)
    assert container.handler(an_event("three", 90), None)["level"] == 0.75
    assert met == [0.5]
    assert item("three")["publication"] == {"N": "3"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "wrong",
    [
        {"observation": {"running": -1, "waiting": 0}},
        {"observation": {"running": 1.5, "waiting": 0}},
        {"observation": {"running": "1", "waiting": 0}},
        {"observation": {"running": float("nan"), "waiting": 0}},
        {"observation": {"running": 1, "waiting": 0, "load": 3}},
        {"dt_s": float("inf")},
        {"dt_s": True},
        {"endpoint_id": ""},
        {"endpoint_id": 3},
    ],
)
def test_what_is_no_event_publishes_nothing(cloud: str, wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"is no|is not|must be|is called"):
        load().handler({**an_event("wrong", 0), **wrong}, None)
    assert item("wrong") is None
