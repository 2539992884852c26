"""The gateway's command line."""

import argparse
import json
import re
from dataclasses import dataclass
from pathlib import Path

from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf
from yarl import URL

import bellman
from bellman.engines.base import Control
from bellman.errors import ConfigError, require
from bellman.serving.control import control_from_environment, parse_control

NAMED = re.compile(r"([\w.-]+)=(.*)", re.DOTALL)


@dataclass(frozen=True)
class Upstream:
    """A server behind the gateway, and the name under which gateways share its signal."""

    endpoint_id: str
    url: URL
    """Without `/v1`."""


@dataclass(frozen=True)
class Arguments:
    """What the gateway is to do; its worker processes are told the same."""

    upstreams: tuple[Upstream, ...]
    host: str
    port: int
    controller: str | None
    scrape_period_s: float
    shared: bool
    with_parent: bool
    store: str | None
    workers: int
    spill_above: float
    energy: bool


def read_arguments(description: str | None) -> Arguments:
    """Read the command line; raises `ConfigError`."""
    parser = argparse.ArgumentParser(prog="python -m bellman.gateway", description=description)
    parser.add_argument(
        "--upstream",
        action="append",
        required=True,
        metavar="[NAME=]URL",
        help="a server, with or without /v1; repeated, the later ones take what spills over",
    )
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8001, help="0 takes any free port")
    parser.add_argument(
        "--controller",
        help="an arm of conf/arm, for its law, or JSON with _target_; default: BELLMAN_CONTROL",
    )
    parser.add_argument("--scrape-period-s", type=float, default=0.5)
    parser.add_argument(
        "--shared", action="store_true", help="the upstream has clients besides these gateways"
    )
    parser.add_argument(
        "--with-parent", action="store_true", help="end when the standard input closes"
    )
    parser.add_argument(
        "--store",
        metavar="URL",
        help="where several gateways share their signal: redis://HOST:PORT/0, dynamodb://TABLE",
    )
    parser.add_argument("--workers", type=int, default=1, help="processes; several need --store")
    parser.add_argument(
        "--spill-above",
        type=float,
        default=0.8,
        metavar="LEVEL",
        help="an upstream with a higher level is passed over for the next one (0.8)",
    )
    parser.add_argument(
        "--energy", action="store_true", help="count the joules of the server on this machine"
    )
    given = vars(parser.parse_args())
    arguments = Arguments(_upstreams(given.pop("upstream")), **given)
    _check(arguments)
    return arguments


def _check(arguments: Arguments) -> None:
    period_s, workers = arguments.scrape_period_s, arguments.workers
    require(period_s > 0, "--scrape-period-s", period_s, "must be greater than 0")
    require(0 <= arguments.port < 65536, "--port", arguments.port, "must be 0 to 65535")
    require(workers >= 1, "--workers", workers, "must be 1 or more")
    alone = "must be 1 without --store: each process would know its own requests alone"
    require(workers == 1 or arguments.store is not None, "--workers", workers, alone)
    above = arguments.spill_above
    require(0 <= above <= 1, "--spill-above", above, "must be a level, 0 to 1")


def _upstreams(texts: list[str]) -> tuple[Upstream, ...]:
    upstreams: list[Upstream] = []
    for text in texts:
        named = NAMED.fullmatch(text)
        url = upstream_at(named[2] if named else text)
        upstream = Upstream(named[1] if named else str(url).rstrip("/"), url)
        for other in upstreams:
            name = upstream.endpoint_id
            require(other.endpoint_id != name, "--upstream", text, f"{name} is given twice")
        upstreams.append(upstream)
    return tuple(upstreams)


def upstream_at(text: str) -> URL:
    """Return the upstream's URL without `/v1`; raises `ConfigError`."""
    try:
        url = URL(text)
        good = url.scheme in ("http", "https") and bool(url.host) and url.port != 0
    except ValueError:
        good = False
    require(good, "--upstream", text, "must be like http://127.0.0.1:8000")
    bare = url.raw_user is None and url.raw_password is None
    # The value is not shown: it may hold a password.
    require(bare, "--upstream", "...", "must not name a user: clients send their own credentials")
    ends = not url.raw_query_string and not url.raw_fragment
    require(ends, "--upstream", text, "must end with its path")
    return url.with_path(url.raw_path.rstrip("/").removesuffix("/v1"), encoded=True)


def control(controller: str | None) -> Control:
    """Return the control with an arm's law and period, a law as JSON, or the environment's."""
    if controller is None:
        return control_from_environment()
    if not controller.lstrip().startswith("{"):
        arm = _arm(controller)
        return parse_control({key: arm[key] for key in ("controller", "period_s") if key in arm})
    try:
        node = json.loads(controller)
    except ValueError as error:
        raise ConfigError("--controller", controller, f"is not JSON: {error}") from None
    return parse_control({"controller": node})


def _arm(name: str) -> dict[str, object]:
    """Return the parts of a configured arm."""
    conf = Path(bellman.__path__[0]).resolve().parent / "conf"
    names = sorted(path.stem for path in (conf / "arm").glob("*.yaml"))
    require(name in names, "--controller", name, f"must be JSON or one of {', '.join(names)}")
    with initialize_config_dir(str(conf), version_base="1.3"):
        config = compose("config", overrides=[f"arm=[{name}]"])
    parts = OmegaConf.to_container(config.arms[name], resolve=True)
    assert isinstance(parts, dict)
    return {str(key): part for key, part in parts.items()}
