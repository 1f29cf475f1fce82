"""The network: a bridge on the login host and one cable to every node."""

from __future__ import annotations

import subprocess

from cluster.settings import LOGIN_ADDRESS, NETWORK

_BRIDGE = "bridge0"


def make_bridge() -> None:
    """Make the switch that all machines are plugged into; on the login host."""
    _ip("link", "set", "lo", "up")
    _ip("link", "add", _BRIDGE, "type", "bridge")
    _ip("address", "add", f"{LOGIN_ADDRESS}/24", "dev", _BRIDGE)
    _ip("link", "set", _BRIDGE, "up")


def plug(number: int, pid: int) -> None:
    """Lay a cable from the bridge to the node whose network the process `pid` is in."""
    cable = f"cable{number}"
    # The kernel takes its time to remove the cable of a node that was lost a moment ago.
    subprocess.run(["ip", "link", "delete", cable], stderr=subprocess.DEVNULL, timeout=30)
    _ip("link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", str(pid))
    _ip("link", "set", cable, "master", _BRIDGE, "up")


def take_address(number: int) -> None:
    """Give this node its address, once it is plugged in."""
    _ip("link", "set", "lo", "up")
    _ip("address", "add", f"{NETWORK}.{number}/24", "dev", "eth0")
    _ip("link", "set", "eth0", "up")


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, timeout=30)
