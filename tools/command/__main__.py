"""Where tools/course starts Python."""

import os
import sys

# The package is found as 'command', and its folder's own modules by no other name.
sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
from command.main import main  # noqa: E402

main(sys.argv[1:])
