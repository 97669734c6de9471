"""From ncu's raw CSV on standard input to what the interpreter's tests compare: launches and their counters.

The only argument lists the metrics, separated by commas.
"""

import csv
import sys

metrics = sys.argv[1].split(",")
lines = sys.stdin.read().splitlines()
header_at = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
if header_at is None:
    sys.exit("ncu_csv: no table in ncu's output:\n" + "\n".join(lines[-20:]))
out = csv.writer(sys.stdout, lineterminator="\n")
out.writerow(["ID", "Kernel Name", *metrics])
for row in csv.DictReader(lines[header_at:]):
    if row["ID"]:  # the row below the header holds units
        out.writerow([row["ID"], row["Kernel Name"], *(row[name].replace(",", "") for name in metrics)])
