"""tools/course build PRESET [--with COMMAND,...] [TARGET...]: installs what is missing, configures, builds. For .ci/run."""

from ..build import folder
from ..messages import Refused


def main(words):
    commands = []
    if "--with" in words[:-1]:
        at = words.index("--with")
        commands = words[at + 1].split(",")
        words = words[:at] + words[at + 2 :]
    if not words or words[0].startswith("-"):
        raise Refused("build needs the name of a preset: tools/course build interpreter [TARGET...]")
    if words[0] not in folder.PRESETS:
        raise Refused(f"no preset '{words[0]}'. There are: {' '.join(folder.PRESETS)}.")
    for word in words[1:]:
        if not word or word.startswith("-"):
            raise Refused(f"'{word}' is no target: tools/course build interpreter [TARGET...]")
    folder.prepare(words[0], commands, words[1:])
    return 0
