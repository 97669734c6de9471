"""From ncu's raw CSV on standard input to what the interpreter's tests compare: launches and their counters.

Usage: ncu_csv.py [--some] METRIC,METRIC...

  --some   leave empty what ncu does not have, in place of refusing it
"""

import csv
import sys

some, metrics = "--some" in sys.argv[1:-1], sys.argv[-1].split(",")
lines = sys.stdin.read().splitlines()
header_at = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
if header_at is None:
    sys.exit("ncu_csv: no table in ncu's output:\n" + "\n".join(lines[-20:]))
out = csv.writer(sys.stdout, lineterminator="\n")
out.writerow(["ID", "Kernel Name", *metrics])
table = csv.DictReader(lines[header_at:])
missing = [name for name in metrics if name not in table.fieldnames]
if missing and not some:
    sys.exit(f"ncu_csv: ncu has no column {', '.join(missing)}")
for row in table:
    if row["ID"] and row["Kernel Name"]:  # the row below the header holds units; what a program prints in the end is no row
        out.writerow([row["ID"], row["Kernel Name"], *((row.get(name) or "").replace(",", "") for name in metrics)])
