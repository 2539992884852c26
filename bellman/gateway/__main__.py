"""Run the gateway: `python -m bellman.gateway --upstream http://127.0.0.1:8000 --port 8001`."""

import argparse
import asyncio
import json
import logging
import os
import socket
import sys
from contextlib import suppress
from pathlib import Path

import uvicorn
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf
from yarl import URL

import bellman
from bellman.engines.base import Control
from bellman.errors import ConfigError, RunError, require
from bellman.gateway.protocol import GatewayProtocol
from bellman.gateway.proxy import Proxy, open_upstream_pool
from bellman.gateway.scraper import Scraper
from bellman.gateway.target import accept_absolute_form
from bellman.serving.control import control_from_environment, parse_control
from bellman.serving.middleware import CongestionMiddleware
from bellman.serving.sensor import Sensor

DRAIN_S = 2
"""Requests in flight get so long to end when the gateway is asked to stop."""


def read_arguments() -> argparse.Namespace:
    """Read the command line; raises `ConfigError`."""
    parser = argparse.ArgumentParser(prog="python -m bellman.gateway", description=__doc__)
    parser.add_argument("--upstream", required=True, help="URL of the server, with or without /v1")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8001, help="0 takes any free port")
    parser.add_argument(
        "--controller",
        help="an arm of conf/arm, for its law, or JSON with _target_; default: BELLMAN_CONTROL",
    )
    parser.add_argument("--scrape-period-s", type=float, default=0.5)
    parser.add_argument(
        "--shared", action="store_true", help="the upstream has clients besides this gateway"
    )
    parser.add_argument(
        "--with-parent", action="store_true", help="end when the standard input closes"
    )
    arguments = parser.parse_args()
    arguments.upstream = upstream_at(arguments.upstream)
    period_s = arguments.scrape_period_s
    require(period_s > 0, "--scrape-period-s", period_s, "must be greater than 0")
    require(0 <= arguments.port < 65536, "--port", arguments.port, "must be 0 to 65535")
    return arguments


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
    """Return the control with an arm's controller, one as JSON, or the environment's."""
    if controller is None:
        return control_from_environment()
    return parse_control({"controller": _controller_node(controller)})


def _controller_node(text: str) -> object:
    if text.lstrip().startswith("{"):
        try:
            return json.loads(text)
        except ValueError as error:
            raise ConfigError("--controller", text, f"is not JSON: {error}") from None
    conf = Path(bellman.__path__[0]).resolve().parent / "conf"
    names = sorted(path.stem for path in (conf / "arm").glob("*.yaml"))
    require(text in names, "--controller", text, f"must be JSON or one of {', '.join(names)}")
    with initialize_config_dir(str(conf), version_base="1.3"):
        config = compose("config", overrides=[f"arm=[{text}]"])
    return OmegaConf.to_container(config.arms[text].controller, resolve=True)


def listen(host: str, port: int) -> socket.socket:
    """Bind the gateway's address; raises `RunError` when it is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise RunError(f"cannot listen on {host}:{port}: {error.strerror}; try --port") from None
    # Inherited by every connection: asyncio leaves Nagle's algorithm on for a socket given to it,
    # which holds back each small write of a stream for up to 40 ms.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


async def serve(arguments: argparse.Namespace) -> None:
    """Serve until asked to stop."""
    async with open_upstream_pool() as pool:
        scraper = Scraper(
            pool, arguments.upstream, arguments.scrape_period_s, expected=arguments.shared
        )
        sensor = Sensor(scraper.read, shared=arguments.shared)
        app = CongestionMiddleware(
            Proxy(pool, arguments.upstream), sensor, control(arguments.controller)
        )
        listener = listen(arguments.host, arguments.port)
        await scraper.scrape()  # so that the first response has a level
        config = uvicorn.Config(
            accept_absolute_form(app),
            http=GatewayProtocol,
            ws="none",  # an Upgrade header is this connection's and goes no further
            lifespan="off",
            proxy_headers=False,  # a client does not choose its own address
            log_level="warning",
            server_header=False,  # the upstream's own pass through
            date_header=False,
            timeout_graceful_shutdown=DRAIN_S,
        )
        server = uvicorn.Server(config)
        if arguments.with_parent:
            _end_with_parent(server)
        host = f"[{arguments.host}]" if ":" in arguments.host else arguments.host
        print(f"http://{host}:{listener.getsockname()[1]}", flush=True)
        scraping = asyncio.create_task(scraper.run())
        try:
            await server.serve(sockets=[listener])
        finally:
            scraping.cancel()


def _end_with_parent(server: uvicorn.Server) -> None:
    """End the server when the standard input, a pipe from the parent, closes."""

    def readable() -> None:
        if not os.read(0, 1024):
            asyncio.get_running_loop().remove_reader(0)
            server.should_exit = True

    asyncio.get_running_loop().add_reader(0, readable)


def main() -> None:
    """Run the command."""
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    try:
        arguments = read_arguments()
        with suppress(KeyboardInterrupt):
            asyncio.run(serve(arguments))
    except (ConfigError, RunError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
