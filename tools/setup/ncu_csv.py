"""From ncu's raw CSV on standard input to the columns that the interpreter's tests compare: which launch, and its counters."""

import csv
import sys

lines = sys.stdin.read().splitlines()
header_at = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
if header_at is None:
    sys.exit("ncu_csv: no table in ncu's output:\n" + "\n".join(lines[-20:]))
rows = list(csv.DictReader(lines[header_at:]))
metrics = [name for name in rows[0] if "__" in name]
out = csv.writer(sys.stdout, lineterminator="\n")
out.writerow(["ID", "Kernel Name", *metrics])
for row in rows:
    if row["ID"]:  # the row below the header holds units
        out.writerow([row["ID"], row["Kernel Name"], *(row[name].replace(",", "") for name in metrics)])
