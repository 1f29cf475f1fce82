"""MooseFS, a real distributed file system: its servers on the login host, a client per machine.

Its clients are FUSE processes with caches of their own, so files behave as on a cluster: what one
node wrote has to travel to the next one. It needs root.
"""

from __future__ import annotations

import grp
import os
import subprocess
from pathlib import Path

from cluster.daemons import Daemons, wait_until
from cluster.settings import LOGIN_ADDRESS, Settings

PROGRAMS = ("mfsmaster", "mfschunkserver", "mfsmount", "mfscli", "mfssettrashtime")
_CHUNK_SERVERS = 3
_FIRST_PORT = 9431


def serve(settings: Settings, daemons: Daemons) -> None:
    """Start a master and three chunk servers on the login host."""
    top = settings.path / "moosefs-servers"
    master = top / "master"
    master.mkdir(parents=True)
    (master / "exports").write_text("* / rw,alldirs,admin,maproot=0:0\n")
    (master / "topology").touch()
    (master / "metadata.mfs").write_text("MFSM NEW")  # what an empty file system begins with
    _start(settings, daemons, "mfsmaster", master, {
        "EXPORTS_FILENAME": master / "exports", "TOPOLOGY_FILENAME": master / "topology",
    })  # fmt: skip
    for number in range(_CHUNK_SERVERS):
        server, disk = top / f"chunks{number}", top / f"disk{number}"
        server.mkdir()
        disk.mkdir()
        (server / "disks").write_text(f"{disk}\n")
        _start(settings, daemons, "mfschunkserver", server, {
            "HDD_CONF_FILENAME": server / "disks",
            "HDD_LEAVE_SPACE_DEFAULT": "64MiB",
            "MASTER_HOST": LOGIN_ADDRESS,
            "MASTER_RECONNECTION_DELAY": 1,
            "CSSERV_LISTEN_PORT": _FIRST_PORT + number,
        })  # fmt: skip
    wait_until(_all_connected, "the chunk servers of MooseFS")


def mount(settings: Settings, daemons: Daemons) -> None:
    """Mount it on this machine."""
    place = settings.moosefs_mount
    place.mkdir(exist_ok=True)
    daemons.start(
        f"mfsmount-{os.uname().nodename}", ["mfsmount", "-f", "-H", LOGIN_ADDRESS, str(place)]
    )
    wait_until(place.is_mount, f"MooseFS on {place}")
    wait_until(lambda: os.statvfs(place).f_bavail > 0, "free space on MooseFS")
    # Removed files would stay on the disk for a day.
    forget = ["mfssettrashtime", "-r", "0", str(place)]
    subprocess.run(forget, check=True, timeout=30, stdout=subprocess.DEVNULL)


def unmount(settings: Settings) -> None:
    """Let go of the mount, whose servers are gone, so that its directory can be removed."""
    subprocess.run(["umount", "--lazy", str(settings.moosefs_mount)], check=False, timeout=30)


def _start(
    settings: Settings, daemons: Daemons, program: str, place: Path, options: dict[str, object]
) -> None:
    common: dict[str, object] = {
        "WORKING_USER": settings.user, "WORKING_GROUP": grp.getgrgid(settings.gid).gr_name,
        "DATA_PATH": place, "LOCK_MEMORY": 0,
    }  # fmt: skip
    file = place / "configuration"
    file.write_text("".join(f"{name} = {value}\n" for name, value in (common | options).items()))
    daemons.start(f"{program}-{place.name}", [program, "-f", "-c", str(file), "start"])


def _all_connected() -> bool:
    listing = ["mfscli", "-H", LOGIN_ADDRESS, "-SCS", "-ns", "|"]
    told = subprocess.run(listing, capture_output=True, text=True, timeout=30).stdout
    return all(f"|{_FIRST_PORT + number}|" in told for number in range(_CHUNK_SERVERS))
