"""Why a download, an installation or a build failed, where its log says so."""

import os
import re

FULL = "The disk is full: make room, then try again."
CAUSES = [
    (r"No space left on device|Disk quota exceeded|enough free (disk )?space", FULL),
    (
        r"certificate verif|CERTIFICATE_VERIFY_FAILED|certificate has expired|Certificate verification failed|SSLError",
        "The network is there, but a certificate could not be verified: is this machine's clock right, and does it trust the"
        " certificate of the proxy in between (Debian: put it into /usr/local/share/ca-certificates and run"
        " update-ca-certificates; pip: set PIP_CERT)?",
    ),
    (r"Could not get lock|is another process using it", "Another program is installing packages: wait for its end, then try again."),
    (r"Unable to locate package", "This system's package lists do not have it. The course needs Debian 12, Ubuntu 22.04 or newer."),
    (r"No matching distribution found", "The package index that pip asks does not have it for this machine and its Python."),
]


def cause_of(lines):
    """A sentence, or an empty string where nobody knows."""
    text = "\n".join(lines)
    return next((cause for pattern, cause in CAUSES if re.search(pattern, text)), "")


def disk_is_full(folder):
    """For programs that say nothing of what they could not write, such as CMake."""
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize < 4 << 20  # it wants to write that much, and takes back what was too long


# The kernel kills a compiler when memory runs out; the compiler's driver says so in several ways.
KILLED = re.compile(r"Killed signal terminated program|\bKilled$|virtual memory exhausted|out of memory|cannot allocate memory", re.I | re.M)


def ran_out_of_memory(lines):
    return bool(KILLED.search("\n".join(lines)))
