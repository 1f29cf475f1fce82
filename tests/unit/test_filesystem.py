"""The description of a file system, for the real ones of this machine and for made-up mounts."""

import os
import stat
from pathlib import Path

import pytest

from pffbench.storage import filesystem as module
from pffbench.storage.filesystem import (
    filesystem,
    nearest_existing,
    parse_mountinfo,
    same_filesystem,
    striping,
)

MOUNTINFO = r"""27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard
31 27 0:30 / /lus/my\040data rw,nosuid shared:9 master:3 - lustre 10.0.0.1@tcp:/fs\0111 rw,flock
40 27 254:0 /home/../x /mnt/bind ro - ext4 /dev/vda rw,discard
41 27 0:22 / /proc rw - proc none rw"""


def tool(directory, name, script):
    path = directory / name
    path.write_text("#!/bin/sh\n" + script)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def test_proc_is_known(tmp_path):
    found = filesystem("/proc/self/status")
    assert (found.type, found.mount_point) == ("proc", "/proc")
    assert found.free_inodes is None
    assert not found.in_memory


def test_where_tests_write_there_is_space(tmp_path):
    found = filesystem(str(tmp_path))
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    if any(line.split()[4] == "/" for line in mounts):  # not so inside a bare chroot
        assert tmp_path.is_relative_to(found.mount_point)
        assert {"rw"} & set(found.options.split(","))
    assert 0 < found.free_bytes <= found.total_bytes
    assert found.block_size >= 512
    assert found.striping is None


def test_shared_memory_cannot_be_evicted():
    if not os.path.ismount("/dev/shm"):
        pytest.skip("no /dev/shm")
    found = filesystem("/dev/shm")
    assert (found.type, found.in_memory, found.mount_point) == ("tmpfs", True, "/dev/shm")


def test_a_path_that_does_not_exist_yet_counts_as_its_ancestor(tmp_path):
    missing = tmp_path / "not" / "yet"
    assert nearest_existing(str(missing)) == str(tmp_path.resolve())
    assert filesystem(str(missing)).mount_point == filesystem(str(tmp_path)).mount_point
    assert filesystem(str(missing)).path == str(missing.resolve())


def test_a_symbolic_link_counts_as_its_target(tmp_path):
    link = tmp_path / "link"
    link.symlink_to("/proc")
    assert filesystem(str(link)).type == "proc"


def test_same_file_system(tmp_path):
    assert same_filesystem(str(tmp_path), str(tmp_path / "missing"))
    assert not same_filesystem(str(tmp_path), "/proc")


def test_mountinfo_with_escapes_and_optional_fields():
    mounts = parse_mountinfo(MOUNTINFO)
    lustre = mounts[31]
    assert lustre.mount_point == "/lus/my data"
    assert lustre.device == "10.0.0.1@tcp:/fs\t1"
    assert lustre.type == "lustre"
    assert lustre.options == "rw,nosuid,flock"
    assert mounts[40].mount_point == "/mnt/bind"
    assert mounts[40].options == "ro,rw,discard"
    assert mounts[41].device == "none"


def test_the_tool_of_the_file_system_is_asked(tmp_path, monkeypatch):
    tool(tmp_path, "lfs", 'echo "stripe_count: 8 $1 $2 $3"')
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert striping("lustre", "/some/where") == "stripe_count: 8 getstripe -d /some/where"


def test_the_second_tool_is_asked_when_the_first_is_missing(tmp_path, monkeypatch):
    tool(tmp_path, "beegfs", 'echo "$@"')
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert striping("beegfs", "/data") == "entry info /data"


@pytest.mark.parametrize(
    ("script", "timeout", "expected"),
    [
        ("echo no such file >&2; exit 2", 300, "unknown: lfs failed: no such file"),
        ("exec sleep 1000", 0.2, "unknown: lfs gave no answer within 0.2 s"),
        (None, 300, "unknown: lfs not found"),
    ],
)
def test_a_tool_that_fails_is_recorded_not_raised(script, timeout, expected, tmp_path, monkeypatch):
    if script is not None:
        tool(tmp_path, "lfs", script)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert striping("lustre", "/data", timeout=timeout) == expected


def test_an_ordinary_file_system_has_no_striping():
    assert striping("ext4", "/") is None


# Lines as the kernel lists them, with what the mounts are.
FUSE_MOUNTS = r"""
90 1 0:169 / /x rw,nosuid,nodev,relatime - fuse mfs\04310.98.0.254:9421 rw,user_id=0	moosefs
90 1 0:50 / /x rw,relatime shared:9 - fuse.mfs mfs#mfsmaster:9421 rw,allow_other	moosefs
90 1 0:50 / /x rw,nosuid,nodev - fuse.sshfs me@host:/data rw,user_id=1000,group_id=1000	sshfs
90 1 0:50 / /x rw,relatime - fuse.glusterfs server1:/vol rw,user_id=0	glusterfs
90 1 0:50 / /x rw,relatime shared:1 - fuse.ceph-fuse ceph-fuse rw,user_id=0,allow_other	ceph-fuse
90 1 0:50 / /x rw,nosuid,nodev - fuse ceph-fuse rw,user_id=0,allow_other	ceph-fuse
90 1 0:50 / /x rw,relatime - fuse.juicefs JuiceFS:myjfs rw,user_id=0,max_read=131072	juicefs
90 1 0:50 / /x rw,nosuid,nodev,relatime - fuse JuiceFS:my\040jfs rw,user_id=0	juicefs
90 1 0:50 / /x rw,nosuid,nodev,relatime - fuse.s3fs s3fs rw,user_id=0,allow_other	s3fs
90 1 0:50 / /x rw,nosuid,nodev,relatime - fuse s3fs rw,user_id=0,allow_other	s3fs
90 1 0:50 / /x rw,nosuid,nodev,relatime - fuse.daos dfuse rw,user_id=0	daos
90 1 0:50 / /x ro,nosuid,nodev,relatime - fuse cvmfs2 ro,user_id=0	cvmfs
90 1 0:50 / /x rw,nosuid,nodev,relatime - fuse my-bucket rw,user_id=0	fuse
90 1 0:50 / /x rw,relatime - fuseblk /dev/sda1 rw,user_id=0,blksize=4096	fuseblk
90 1 0:50 / /x rw,relatime - beegfs beegfs_nodev rw,cfgFile=/etc/beegfs/c.conf	beegfs
90 1 0:50 / /x rw,relatime - gpfs gpfs1 rw	gpfs
90 1 0:50 / /x rw,relatime - ceph 10.0.0.1:6789:/ rw,name=admin,acl	ceph
90 1 0:50 / /x rw,relatime - lustre 10.0.0.1@o2ib:/mfs#1 rw,flock	lustre
""".strip().splitlines()


@pytest.mark.parametrize("line", FUSE_MOUNTS)
def test_a_fuse_mount_is_named_by_what_it_is(line, tmp_path, monkeypatch):
    listed, expected = line.split("\t")
    mount = parse_mountinfo(listed)[90]
    monkeypatch.setattr(module, "_mount_of", lambda _: mount)
    found = filesystem(str(tmp_path))
    assert found.type == expected
    assert found.kernel_type == mount.type == listed.split(" - ")[1].split()[0]
    assert not found.in_memory
