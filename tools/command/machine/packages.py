"""Installing Debian packages."""

import os
import shutil
import sys
import textwrap

from ..messages import Refused, say
from ..places import LOGS
from . import processes
from .progress import Progress, failed


def as_root():
    """What turns a command into root's, or None if only a password would help."""
    if processes.ask(["id", "-u"])[1].strip() == "0":
        return []
    if shutil.which("sudo") and processes.succeeds(["sudo", "-n", "true"]):
        return ["sudo", "-n"]
    return None


def is_allowed(names):
    """Whoever sits at a terminal may say no to what sudo would do."""
    if not (sys.stdin and sys.stdin.isatty() and sys.stderr.isatty()):
        return True
    sys.stderr.write(f"course: install Debian's packages {names} with sudo? [Y/n] ")
    sys.stderr.flush()
    answer = sys.stdin.readline()
    return answer == "\n" or answer[:1] in ("y", "Y")


def line_to_type(packages):
    """The line that a person with the right to install can type."""
    install = f"apt-get update && apt-get install -y --no-install-recommends {' '.join(packages)}"
    install = " \\\n    ".join(textwrap.wrap(install, 160, break_on_hyphens=False, break_long_words=False))
    return f"sudo sh -c '{install}'" if shutil.which("sudo") else f"su -c '{install}'"


def download_and_install(progress, root, packages):
    # Ubuntu's unattended upgrades may hold dpkg's lock just after boot: wait for them.
    apt_get = [*root, "env", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8", "LANGUAGE=", "apt-get"]
    apt_get += ["-o", "DPkg::Lock::Timeout=180", "-o", "Acquire::Retries=2"]
    install = [*apt_get, "install", "-y", "--no-install-recommends"]
    # A broken third-party source fails the update, yet Debian's own lists may be fine: let the installation decide.
    progress.run([*apt_get, "update"])
    code = progress.run([*install, "--download-only", *packages])
    if code:
        return code
    # Ctrl-C in the middle of dpkg would leave half-installed packages, which block every later apt-get. Ignoring the signal is not
    # enough, apt-get has a handler; a session of its own never gets it. What is interrupted here waits for the end.
    return progress.run([*install, *packages], is_protected=True)


def install(packages):
    """Raises Refused if it may not, Failed if it cannot."""
    log = os.path.join(LOGS, "packages.log")
    names = " ".join(packages)
    if not shutil.which("apt-get"):
        raise Refused(
            f"missing: {names}. These are Debian's names: install them with this system's own package manager, then try again."
        )
    root = as_root()
    if root is None or (root and not is_allowed(names)):
        raise Refused(f"missing packages. Install them with this line, then try again:\n  {line_to_type(packages)}")
    say(f"installing Debian's packages {names}")
    with Progress("installing packages", log, may_be_idle=True) as progress:
        code = download_and_install(progress, root, packages)
    if code:
        unknown = "Is there a network? The course needs Debian 12, Ubuntu 22.04 or newer."
        raise failed(f"could not install {names}.", log, unknown)
