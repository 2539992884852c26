"""The store in Redis (extra `redis`): one script a call, times by the server's clock.

Keys of an endpoint, which share a hash slot: `bellman:{ID}:lease` (the holder and its token),
`:token` (the last one given), `:in_flight` (a hash: count and end by gateway), `:level` (a hash).
A script is atomic, so nobody acts on a lease that another one has meanwhile.
"""

from typing import Any

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from bellman.store.base import Published, View

KEPT_MS = 600_000
"""What nobody renews is deleted after ten minutes; ages say long before that it is stale."""

CLOCK = """
local clock = redis.call('TIME')
local now_ms = clock[1] * 1000 + math.floor(clock[2] / 1000)
"""
EXCHANGE = (
    CLOCK
    + """
local lease, tokens, in_flight, level = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local gateway, count, wants, lease_ms, kept_ms = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
redis.call('HSET', in_flight, gateway, count .. ' ' .. (now_ms + lease_ms))
redis.call('PEXPIRE', in_flight, kept_ms)
local elsewhere, gateways = 0, 0
local counts = redis.call('HGETALL', in_flight)
for i = 1, #counts, 2 do
    local n, end_ms = string.match(counts[i + 1], '^(%d+) (%d+)$')
    if tonumber(end_ms) <= now_ms then
        redis.call('HDEL', in_flight, counts[i])
    else
        gateways = gateways + 1
        if counts[i] ~= gateway then elsewhere = elsewhere + tonumber(n) end
    end
end
local holder, token = string.match(redis.call('GET', lease) or '', '^(.*) (%d+)$')
if holder == gateway and wants == '0' then
    redis.call('DEL', lease)
    redis.call('HDEL', level, 'level')
    token = false
elseif holder == gateway then
    redis.call('PEXPIRE', lease, lease_ms)
elseif not holder and wants == '1' then
    token = redis.call('INCR', tokens)
    redis.call('SET', lease, gateway .. ' ' .. token, 'NX', 'PX', lease_ms)
else
    token = false
end
local found = redis.call('HMGET', level, 'level', 'state', 'time_ms')
local age_ms = found[3] and now_ms - found[3] or 0
return {token and tonumber(token) or -1, elsewhere, gateways, found[1], found[2], age_ms}
"""
)
PUBLISH = (
    CLOCK
    + """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[2], 'level', ARGV[2], 'state', ARGV[3], 'time_ms', now_ms)
redis.call('PEXPIRE', KEYS[2], ARGV[4])
return 1
"""
)
LEAVE = """
redis.call('HDEL', KEYS[1], ARGV[1])
if string.match(redis.call('GET', KEYS[2]) or '', '^(.*) %d+$') == ARGV[1] then
    redis.call('DEL', KEYS[2])
end
"""


class RedisSeat:
    """A gateway's place; see `bellman.store.base.Seat`."""

    def __init__(self, client: Redis, endpoint_id: str, gateway_id: str, lease_s: float) -> None:
        keys = [f"bellman:{{{endpoint_id}}}:{n}" for n in ("lease", "token", "in_flight", "level")]
        self._lease, self._tokens, self._in_flight, self._level = keys
        self._gateway_id = gateway_id
        self._lease_ms = max(1, round(1000 * lease_s))
        self._exchange = client.register_script(EXCHANGE)
        self._publish = client.register_script(PUBLISH)
        self._leave = client.register_script(LEAVE)

    async def exchange(self, in_flight: int, wants_lease: bool) -> View:
        """Report, take or renew the lease, look around."""
        found: Any = await self._exchange(
            [self._lease, self._tokens, self._in_flight, self._level],
            [self._gateway_id, in_flight, int(wants_lease), self._lease_ms, KEPT_MS],
        )
        token, elsewhere, gateways, level, state, age_ms = found
        published = None
        if state is not None:
            # A clock that was set back must not make a level younger than new.
            age_s = max(0, int(age_ms)) / 1000
            published = Published(_number(level), state.decode(errors="replace"), age_s)
        return View(None if token < 0 else token, elsewhere, gateways, published)

    async def publish(self, token: int, level: float, state: str) -> bool:
        """Publish a level under a lease that still holds."""
        holder = f"{self._gateway_id} {token}"
        done: Any = await self._publish(
            [self._lease, self._level], [holder, repr(level), state, KEPT_MS]
        )
        return bool(done)

    async def leave(self) -> None:
        """Take everything back."""
        await self._leave([self._in_flight, self._lease], [self._gateway_id])


def _number(level: bytes | None) -> float | None:
    """Return a level that was written, whatever it is; None for none and for what is no number."""
    try:
        return None if level is None else float(level)
    except ValueError:
        return None


class RedisStore:
    """One Redis server, and a pool of connections to it that open anew after a failure."""

    def __init__(self, url: str, deadline_s: float) -> None:
        self._client = Redis.from_url(
            url,
            socket_timeout=deadline_s,
            socket_connect_timeout=deadline_s,
            retry=Retry(NoBackoff(), 0),  # the next period tries again
        )

    def seat(self, endpoint_id: str, gateway_id: str, lease_s: float) -> RedisSeat:
        """Return a gateway's place."""
        return RedisSeat(self._client, endpoint_id, gateway_id, lease_s)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()
