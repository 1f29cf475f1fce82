"""The command line: start, stop and use a cluster."""

from __future__ import annotations

import argparse
import os
import sys
import time
from typing import Any

from cluster.commands import Cluster
from cluster.machines import Login, Node
from cluster.settings import LOGIN, ClusterError, Settings


def main() -> int:
    """Run the command line and return its exit status."""
    given, words = _split(sys.argv[1:])
    parsed = _parser().parse_args(given)
    parsed.words = words
    try:
        return int(parsed.run(parsed) or 0)
    except ClusterError as error:
        print(f"cluster: {error}", file=sys.stderr)
        return 1


def _split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Part our arguments from a command behind ``--``, which has options of its own."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return arguments[:end], arguments[end + 1 :]


def _start(parsed: argparse.Namespace) -> None:
    began = time.monotonic()
    cluster = Cluster.start(
        Settings(
            os.path.abspath(parsed.directory),
            nodes=parsed.nodes,
            shared=tuple(os.path.abspath(path) for path in parsed.share),
            extra="\n".join(parsed.conf),
            moosefs=parsed.moosefs,
            disks=tuple(parsed.disk),
        )
    )
    cluster.release()
    print(f"{parsed.nodes} nodes ready after {time.monotonic() - began:.1f} s in {cluster.path}")


def _stop(parsed: argparse.Namespace) -> None:
    Cluster.attach(parsed.directory).stop(keep=parsed.keep)


def _exec(parsed: argparse.Namespace) -> None:
    cluster = Cluster.attach(parsed.directory)
    command = cluster.command(*(parsed.words or ["bash"]), on=parsed.on)
    os.execvpe(command[0], command, cluster.environment())


def _status(parsed: argparse.Namespace) -> int:
    print(Cluster.attach(parsed.directory).run("sinfo", "-N", "-l").stdout, end="")
    return 0


def _node(parsed: argparse.Namespace) -> None:
    cluster = Cluster.attach(parsed.directory)
    (cluster.kill if parsed.verb == "kill" else cluster.boot)(parsed.node)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tests/cluster/cluster", description="A disposable, real Slurm cluster for tests."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, text: str | None, run: object) -> argparse.ArgumentParser:
        # Without a text it is not listed: what the machines start with.
        shown: dict[str, Any] = {} if text is None else {"help": text, "description": f"{text}."}
        made = commands.add_parser(name, **shown)
        made.add_argument("directory", metavar="DIR", help="the cluster's directory")
        made.set_defaults(run=run)
        return made

    start = add("start", "start a cluster in DIR, which must be absent or empty", _start)
    start.add_argument("--nodes", type=int, default=4, help="number of nodes (default 4)")
    start.add_argument("--moosefs", action="store_true", help="mount MooseFS on DIR/moosefs (root)")
    start.add_argument("--disk", action="append", default=[], metavar="NODE",
                       help="a node whose disk outlives a power cut")  # fmt: skip
    start.add_argument("--share", action="append", default=[], metavar="PATH",
                       help="a path below /tmp that all nodes are to see")  # fmt: skip
    start.add_argument("--conf", action="append", default=[], metavar="LINE",
                       help="a further line of slurm.conf")  # fmt: skip
    stop = add("stop", "end everything and remove DIR", _stop)
    stop.add_argument("--keep", action="store_true", help="keep DIR with its logs")
    execute = add("exec", "run the command behind -- (else a shell) on the login host", _exec)
    execute.add_argument("--on", default=LOGIN, metavar="NODE", help="on a node instead")
    add("status", "list the nodes and their states", _status)
    node = add("node", "cut the power of a node, or boot it", _node)
    node.add_argument("verb", choices=("kill", "boot"))
    node.add_argument("node", metavar="NODE")
    add("_login", None, lambda parsed: Login(Settings.load(parsed.directory)).run())
    inner = add("_node", None, lambda p: Node(Settings.load(p.directory), p.node).run())
    inner.add_argument("node")
    return parser
