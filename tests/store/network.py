"""A host of the test's own: a network namespace, with two cables to this machine.

Its addresses are of a network that is kept for examples (RFC 5737).
"""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from shutil import which

import pytest


@dataclass(frozen=True)
class Host:
    """A network namespace and its addresses, one a cable."""

    name: str
    addresses: tuple[str, ...]
    port: int = 6379

    @property
    def run(self) -> list[str]:
        """Begins a command that runs there."""
        return ["ip", "netns", "exec", self.name]

    def cut(self, cable: int) -> None:
        """Pull a cable at its far end: what is sent into it is lost without a word."""
        ip("-n", self.name, "link", "set", f"far{cable}", "down")

    def join(self, cable: int) -> None:
        """Plug a cable in again."""
        ip("-n", self.name, "link", "set", f"far{cable}", "up")


def ip(*arguments: str) -> None:
    """Run iproute2's `ip`."""
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


@contextmanager
def a_host() -> Iterator[Host]:
    """Make a host for a test; skips where this process may not."""
    host = Host(f"bellman{os.getpid()}", ("198.51.100.2", "198.51.100.130"))
    if which("ip") is None:
        pytest.skip("no ip (Debian's package iproute2)")
    try:
        ip("netns", "add", host.name)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no network namespace: {error.stderr.decode().strip()}")
    try:
        for cable in range(2):
            near, far = f"near{cable}-{os.getpid()}", f"far{cable}"
            peer = ("peer", "name", far, "netns", host.name)
            ip("link", "add", near, "type", "veth", *peer)
            ip("addr", "add", f"198.51.100.{1 + 128 * cable}/25", "dev", near)
            ip("link", "set", near, "up")
            ip("-n", host.name, "addr", "add", f"{host.addresses[cable]}/25", "dev", far)
            host.join(cable)
        yield host
    finally:
        ip("netns", "del", host.name)
