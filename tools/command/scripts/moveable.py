"""tools/course moveable FOLDER: called by Ninja when CMake has written the build FOLDER anew."""

from ..building import folder


def main(words):
    folder.make_moveable(*words)
    return 0
