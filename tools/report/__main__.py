"""Usage: python3 tools/report NAME ARGUMENT...: runs the module NAME, tables for example, in any Python."""

import os
import runpy
import sys

# The package is found as 'report', and its folder's own modules by no other name.
sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
if len(sys.argv) < 2 or not os.path.isfile(os.path.join(sys.path[0], "report", f"{sys.argv[1]}.py")):
    print(__doc__, file=sys.stderr)
    sys.exit(2)
del sys.argv[0]
runpy.run_module(f"report.{sys.argv[0]}", run_name="__main__", alter_sys=True)
