"""tools/course install PACKAGE...: Debian packages, as the course's own. For .ci/run."""

from ..building import folder
from ..machine import packages
from ..messages import Refused


def main(words):
    if not words or any(word.startswith("-") for word in words):
        raise Refused("install needs names of Debian packages: tools/course install shellcheck")
    with folder.locked():
        packages.install(words)
    return 0
