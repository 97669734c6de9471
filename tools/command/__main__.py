"""Where tools/course starts Python."""

import os
import shutil
import signal
import sys

# Ctrl-C waits until there is somebody who knows what it means: main().
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
# The package is found as 'command', and its folder's own modules by no other name.
sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
from command import places

if os.path.isdir(places.BUILD):
    sys.pycache_prefix, sys.dont_write_bytecode = places.PYCACHE, not places.keeps_modules()
try:
    from command.main import main
except EOFError:  # half a module, of a disk that was full
    shutil.rmtree(places.PYCACHE, ignore_errors=True)
    from command.main import main

os._exit(main(sys.argv[1:]))  # all is written; what Python does at its end could be interrupted once more
