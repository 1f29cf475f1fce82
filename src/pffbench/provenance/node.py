"""Facts about a node and about the binding and limits of its ranks."""

from __future__ import annotations

import os
import platform
import re
import socket
from datetime import UTC, datetime

import psutil

from pffbench.proc import SYS, kernel_number, kernel_text
from pffbench.provenance.facts import Facts

_CPU = SYS / "devices/system/cpu"
_VM_SETTINGS = (
    "dirty_ratio", "dirty_bytes", "dirty_background_ratio", "dirty_background_bytes",
    "dirty_expire_centisecs", "dirty_writeback_centisecs",
)  # fmt: skip
_BOOST = {  # where a kernel driver says whether the clock may rise, and what it says when it may
    "cpufreq/boost": "1",
    "intel_pstate/no_turbo": "0",
}


def host_facts() -> Facts:
    """Find what all ranks of a node share; one rank per node asks.

    Returns
    -------
    dict
        Hardware (``cpu_model``, ``sockets``, ``cores``, ``threads``, ``memory_bytes``,
        ``memory_available_bytes``), system (``kernel``, ``os``, ``machine``, ``boot_time``),
        state (``load_average`` over 1, 5 and 15 minutes, ``governor``, ``turbo``,
        ``transparent_huge_pages``) and ``vm``, the kernel's write-back settings. None stands for
        what this system does not tell.
    """
    memory = psutil.virtual_memory()
    return {
        "host": socket.gethostname(),
        "cpu_model": _cpu_model(),
        "sockets": _sockets(),
        "cores": psutil.cpu_count(logical=False),
        "threads": psutil.cpu_count(),
        "memory_bytes": memory.total,
        "memory_available_bytes": memory.available,
        "kernel": platform.release(),
        "os": _os_name(),
        "machine": platform.machine(),
        "boot_time": datetime.fromtimestamp(psutil.boot_time(), UTC).isoformat(timespec="seconds"),
        "load_average": list(os.getloadavg()),
        "governor": kernel_text(_CPU / "cpu0/cpufreq/scaling_governor"),
        "turbo": _turbo(),
        "transparent_huge_pages": _chosen(
            kernel_text(SYS / "kernel/mm/transparent_hugepage/enabled")
        ),
        "vm": {name: kernel_number(kernel_text(f"/proc/sys/vm/{name}")) for name in _VM_SETTINGS},
    }


def _cpu_model() -> str | None:
    """Return the first model name; ARM kernels give none, so there the part must do."""
    text = kernel_text("/proc/cpuinfo") or ""
    for key in ("model name", "cpu", "CPU part"):
        match = re.search(rf"^{key}\s*:\s*(.+)$", text, re.MULTILINE)
        if match:
            return match[1]
    return None


def _sockets() -> int | None:
    packages = {kernel_text(file) for file in _CPU.glob("cpu[0-9]*/topology/physical_package_id")}
    if not packages:
        packages = set(
            re.findall(
                r"^physical id\s*:\s*(\d+)", kernel_text("/proc/cpuinfo") or "", re.MULTILINE
            )
        )
    return len(packages) or None


def _os_name() -> str | None:
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return None
    return release.get("PRETTY_NAME") or release.get("NAME")


def _turbo() -> bool | None:
    for name, when_on in _BOOST.items():
        text = kernel_text(_CPU / name)
        if text is not None:
            return text == when_on
    return None


def _chosen(text: str | None) -> str | None:
    """Of ``always [madvise] never`` the word in brackets."""
    match = re.search(r"\[(\w+)\]", text or "")
    return match[1] if match else text
