"""Stores as processes of their own: Redis from Debian's packages, DynamoDB by moto's server."""

import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import boto3
import pytest

from tests.store.network import Host

needs_redis = pytest.mark.skipif(
    shutil.which("redis-server") is None, reason="no redis-server (Debian's package of that name)"
)
PORTS = range(20_000, 32_000)
"""Below those that the kernel gives to connections: a killed server finds its port free again."""
AWS = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_DEFAULT_REGION": "eu-west-1",
}


def free_port() -> int:
    """Return a loopback port that nobody listens on now, and that no connection is given."""
    for port in random.sample(PORTS, len(PORTS)):
        try:
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            continue
        return port
    raise OSError("no free port")


@dataclass
class RedisServer:
    """A redis-server that keeps nothing on disk; it can be killed and started again."""

    folder: Path
    port: int
    host: Host | None = None
    """Where it runs, other than here."""
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        command = ["redis-server", "--port", str(self.port), "--protected-mode", "no"]
        if self.host is None:
            command += ["--bind", "127.0.0.1"]
        else:
            command = [*self.host.run, *command]
        command += ["--save", "", "--appendonly", "no", "--dir", str(self.folder)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        address = "127.0.0.1" if self.host is None else self.host.addresses[0]
        wait_for(address, self.port, self.process)

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def pause(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)


@contextmanager
def redis_server(folder: Path, host: Host | None = None) -> Iterator[RedisServer]:
    """Run a redis-server on a free loopback port, or on a host of the test's own."""
    server = RedisServer(folder, free_port() if host is None else host.port, host)
    try:
        server.start()
        yield server
    finally:
        server.kill()


@contextmanager
def dynamodb_server(table: str) -> Iterator[str]:
    """Run moto's server with a table; yield its URL."""
    with moto_server() as url:
        create_table(url, table)
        yield url


@contextmanager
def moto_server() -> Iterator[str]:
    """Run moto's server, in which AWS's services keep what they are told; yield its URL."""
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for("127.0.0.1", port, process)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def wait_for(address: str, port: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until a process listens."""
    end_s = time.monotonic() + 60
    while time.monotonic() < end_s:
        assert process.poll() is None, f"{process.args} has ended"
        try:
            socket.create_connection((address, port)).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    raise TimeoutError(f"nothing listens on {address}:{port}")


def create_table(url: str, table: str) -> None:
    """Create the table that `deploy/` describes."""
    client = boto3.client(
        "dynamodb",
        endpoint_url=url,
        region_name=AWS["AWS_DEFAULT_REGION"],
        aws_access_key_id="testing",
        aws_secret_access_key="testing",
    )
    client.create_table(
        TableName=table,
        KeySchema=[{"AttributeName": "endpoint_id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "endpoint_id", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
