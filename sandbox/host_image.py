"""The host's image: Debian with systemd, sshd and Docker, and the simulated driver's files."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

from .cache import cached, key
from .process import run
from .progress import step
from .rootfs import HOST_PACKAGES, SUITE, rootfs

HERE = Path(__file__).parent
FILES = HERE / "image"
SIMGPU = HERE / "simgpu"
_DOCKERFILE = """
FROM {base}
COPY files/ /
RUN useradd --create-home --shell /bin/bash --groups sudo,docker --password '*' berth \
 && install -d -o berth -g berth -m 700 /home/berth/.ssh \
 && install -d -o berth -g berth -m 755 /data /data/triton /data/triton/weights \
 && rm -f /etc/ssh/ssh_host_* && chmod 440 /etc/sudoers.d/berth \
 && systemctl disable nginx \
 && systemctl enable ssh docker writable-kernel-trees nvidia-persistenced \
 && systemctl mask systemd-logind.service getty.target console-getty.service \
 && systemctl set-default multi-user.target
ENV container=docker LANG=C.UTF-8
STOPSIGNAL SIGRTMIN+3
CMD ["/sbin/init"]
"""


def host_image() -> str:
    """The image's name in the machine's Docker; building what is missing."""
    built_from = key([SUITE, *HOST_PACKAGES, FILES, SIMGPU, _DOCKERFILE])
    name = f"berth-sandbox/host:{built_from}"

    def build(marker: Path) -> None:
        base = rootfs("host", HOST_PACKAGES)
        base_name = f"berth-sandbox/debian:{base.parent.name}"
        with step("building the host image"):
            if run(["docker", "image", "inspect", base_name], check=False).returncode:
                run(["docker", "import", str(base), base_name])
            run(
                ["env", "DOCKER_BUILDKIT=0", "docker", "build", "--tag", name, "-"],
                stdin=_context(base_name),
            )
        marker.write_text(name + "\n")

    if run(["docker", "image", "inspect", name], check=False).returncode:
        marker = cached("host-image.name", built_from, build)
        if run(["docker", "image", "inspect", name], check=False).returncode:
            # The image was pruned while the cache remembered it.
            marker.unlink()
            cached("host-image.name", built_from, build)
    return name


def _context(base_name: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        recipe = _DOCKERFILE.format(base=base_name).encode()
        member = tarfile.TarInfo("Dockerfile")
        member.size = len(recipe)
        archive.addfile(member, io.BytesIO(recipe))
        for root, prefix in ((FILES, "files"), (SIMGPU, "files/usr/lib/simgpu/simgpu")):
            for file in sorted(p for p in root.rglob("*") if p.is_file()):
                if "__pycache__" not in file.parts:
                    archive.add(file, f"{prefix}/{file.relative_to(root)}", filter=_owned_by_root)
    return buffer.getvalue()


def _owned_by_root(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    member.mode = 0o755 if member.mode & 0o100 else 0o644
    return member
