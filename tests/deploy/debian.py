"""Debian's packages: installed where the machine is Debian and ours, or unpacked into a folder beside its own."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tests.deploy.shell import sh

MIRROR = "http://deb.debian.org/debian"

PACKAGES = {"dockerd": "docker.io", "docker-compose": "docker-compose", "debootstrap": "debootstrap"}
"""What the fleet's tests need, by a command of each."""


def install() -> None:
    """Install what is missing, through apt and as root; RuntimeError: it cannot be."""
    missing = [package for command, package in PACKAGES.items() if not shutil.which(command)]
    if not missing:
        return
    if os.geteuid() or not shutil.which("apt-get"):
        raise RuntimeError(f"the fleet's test needs Docker: install {', '.join(missing)}, or run it as root on Debian")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    sh("apt-get", "update", "-qq", env=environment)
    sh("apt-get", "install", "-y", "-qq", "--no-install-recommends", "iptables", *missing, env=environment)


def fetch(package: str, suite: str, folder: Path) -> Path:
    """Download a package of any suite and unpack it in `folder`. The machine's own lists and packages stay as they
    are. RuntimeError: it cannot be had."""
    own = folder / "apt"
    (own / "lists" / "partial").mkdir(parents=True)
    (own / "cache").mkdir()
    sources = own / "sources.list"
    sources.write_text(f"deb {MIRROR} {suite} main\n")
    options = {
        "Dir::Etc::SourceList": str(sources),
        "Dir::Etc::SourceParts": "/dev/null",
        "Dir::State::Lists": str(own / "lists"),
        "Dir::Cache": str(own / "cache"),
        "Acquire::Languages": "none",
        "APT::Sandbox::User": "root",
        # A list that does not arrive is an error, not a warning.
        "APT::Update::Error-Mode": "any",
    }
    apt = ["apt-get", *(f"-o{name}={value}" for name, value in options.items())]
    sh(*apt, "update", "-qq")
    sh(*apt, "download", "-qq", package, cwd=own)
    (archive,) = own.glob("*.deb")
    sh("dpkg-deb", "--extract", str(archive), str(folder))
    return folder
