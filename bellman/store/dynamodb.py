"""The store in DynamoDB (extra `dynamodb`): one item an endpoint, conditional writes.

The table has the key `endpoint_id` and TTL on `expire_at`. A condition cannot ask DynamoDB for the
time, so each gateway measures by its own clock how long a number has not changed: a gateway counts,
and keeps its lease, as long as its `beat` does. `expire_at` is the one time by a writer's clock; it
deletes, days later, what nobody uses.
"""

import asyncio
import time
from collections.abc import Mapping
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from bellman.store.base import Published, View

KEPT_S = 86_400
"""An endpoint that nobody writes to is deleted a day later, or when DynamoDB comes to it."""
COUNT = "gateway "
"""Begins the names of the attributes with the gateways' counts."""

Item = Mapping[str, Any]


class DynamoSeat:
    """A gateway's place; see `bellman.store.base.Seat`."""

    def __init__(
        self, client: Any, table: str, endpoint_id: str, gateway_id: str, lease_s: float
    ) -> None:
        self._client = client
        self._table = table
        self._endpoint_id = endpoint_id
        self._gateway_id = gateway_id
        self._lease_s = lease_s
        self._beat = 0
        self._beats: dict[str, tuple[str, float]] = {}
        """The last beat seen of each gateway, and when it was first seen."""
        self._publication: tuple[str, float | None] | None = None
        """The last publication seen, and when it was not there yet."""
        self._looked_s: float | None = None

    async def exchange(self, in_flight: int, wants_lease: bool) -> View:
        """Report, take or keep the lease, look around."""
        now_s = asyncio.get_running_loop().time()
        self._beat += 1
        item = await self._update(
            "SET #count = :count, expire_at = :expire_at",
            {
                ":count": {"M": {"in_flight": _number(in_flight), "beat": _number(self._beat)}},
                ":expire_at": _number(int(time.time()) + KEPT_S),
            },
            {"#count": COUNT + self._gateway_id},
        )
        assert item is not None  # it has no condition
        counts = {
            name.removeprefix(COUNT): value["M"]
            for name, value in item.items()
            if name.startswith(COUNT)
        }
        alive = {
            name: count for name, count in counts.items() if self._is_alive(name, count, now_s)
        }
        published = self._published(item, now_s)
        token = await self._lease(item, alive, wants_lease)
        if token is not None:
            await self._forget(sorted(counts.keys() - alive))
        others = [int(count["in_flight"]["N"]) for count in alive.values()]
        return View(token, sum(others) - in_flight, len(alive), published)

    async def publish(self, token: int, level: float, state: str) -> bool:
        """Publish a level under a lease that still holds."""
        done = await self._update(
            "SET #level = :level, law_state = :state ADD publication :one",
            {":level": _number(level), ":state": {"S": state}, ":one": _number(1)},
            {"#level": "level"},
            token,
        )
        return done is not None

    async def leave(self) -> None:
        """Take everything back."""
        await self._forget([self._gateway_id])
        await self._update(
            "REMOVE lease_holder",
            {":me": {"S": self._gateway_id}},
            condition="lease_holder = :me",
        )

    def _is_alive(self, gateway_id: str, count: Item, now_s: float) -> bool:
        """Whether a gateway's beat has changed within the lease's time, as far as was seen."""
        beat = count["beat"]["N"]
        if self._beats.get(gateway_id, ("", 0.0))[0] != beat:
            self._beats[gateway_id] = (beat, now_s)
        return now_s - self._beats[gateway_id][1] < self._lease_s

    def _published(self, item: Item, now_s: float) -> Published | None:
        """Return what was published; its age counts from the last look that did not show it."""
        if "publication" not in item:
            self._looked_s = now_s
            return None
        number = item["publication"]["N"]
        if self._publication is None or self._publication[0] != number:
            self._publication = (number, self._looked_s)
        self._looked_s = now_s
        since_s = self._publication[1]
        level = float(item["level"]["N"]) if "level" in item else None
        age_s = None if since_s is None else now_s - since_s
        return Published(level, item["law_state"]["S"], age_s)

    async def _lease(self, item: Item, alive: Mapping[str, Item], wants_lease: bool) -> int | None:
        """Return the token of the lease where this gateway has it, or can take it."""
        token = int(item["lease_token"]["N"]) if "lease_token" in item else 0
        holder = item["lease_holder"]["S"] if "lease_holder" in item else None
        if holder == self._gateway_id and wants_lease:
            return token
        if holder == self._gateway_id:
            withdraw = "REMOVE lease_holder, #level"
            await self._update(withdraw, names={"#level": "level"}, token=token)
        elif wants_lease and holder not in alive:
            return await self._take(token)
        return None

    async def _take(self, token: int) -> int | None:
        """Take the lease that had this token, unless another is faster."""
        values = {
            ":me": {"S": self._gateway_id},
            ":next": _number(token + 1),
            ":token": _number(token),
        }
        taken = await self._update(
            "SET lease_holder = :me, lease_token = :next",
            values,
            condition="attribute_not_exists(lease_token) OR lease_token = :token",
        )
        return None if taken is None else token + 1

    async def _forget(self, gateways: list[str]) -> None:
        """Remove counts."""
        if gateways:
            names = {f"#gone{number}": COUNT + name for number, name in enumerate(gateways)}
            await self._update(f"REMOVE {', '.join(names)}", names=names)

    async def _update(
        self,
        change: str,
        values: Item | None = None,
        names: Mapping[str, str] | None = None,
        token: int | None = None,
        condition: str | None = None,
    ) -> Item | None:
        """Change the endpoint's item and return it; None where the condition did not hold.

        With a `token` the condition is that this gateway holds the lease that it came with.
        """
        values = dict(values or {})
        if token is not None:
            condition = "lease_holder = :me AND lease_token = :token"
            values |= {":me": {"S": self._gateway_id}, ":token": _number(token)}
        options = {
            "UpdateExpression": change,
            "ExpressionAttributeValues": values,
            "ExpressionAttributeNames": names,
            "ConditionExpression": condition,
        }
        try:
            answer = await asyncio.to_thread(
                self._client.update_item,
                TableName=self._table,
                Key={"endpoint_id": {"S": self._endpoint_id}},
                ReturnValues="ALL_NEW",
                **{name: value for name, value in options.items() if value},
            )
        except ClientError as error:
            if error.response["Error"]["Code"] == "ConditionalCheckFailedException":
                return None
            raise
        item: Item = answer["Attributes"]
        return item


class DynamoStore:
    """One table; region, address and credentials as boto3 finds them."""

    def __init__(self, table: str, deadline_s: float) -> None:
        self._table = table
        self._client = boto3.client(
            "dynamodb",
            config=Config(
                connect_timeout=deadline_s,
                read_timeout=deadline_s,
                retries={"total_max_attempts": 1},  # the next period tries again
            ),
        )

    def seat(self, endpoint_id: str, gateway_id: str, lease_s: float) -> DynamoSeat:
        """Return a gateway's place."""
        return DynamoSeat(self._client, self._table, endpoint_id, gateway_id, lease_s)

    async def close(self) -> None:
        """Close the connections."""
        self._client.close()


def _number(value: float) -> dict[str, str]:
    return {"N": repr(value)}
