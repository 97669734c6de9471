"""From ncu's raw CSV to what the interpreter's tests compare: launches and their counters.

Usage: tools/report ncu_csv METRIC,METRIC... <RAW_CSV
"""

import csv
import io
import sys


def table(raw, metrics, some=False):
    """A CSV file's text. SOME: leaves empty what ncu does not have, in place of refusing it. Raises ValueError."""
    lines = raw.splitlines()
    header_at = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if header_at is None:
        raise ValueError("no table in ncu's output:\n" + "\n".join(lines[-20:]))
    rows = csv.DictReader(lines[header_at:])
    missing = [name for name in metrics if name not in rows.fieldnames]
    if missing and not some:
        raise ValueError(f"ncu has no column {', '.join(missing)}")
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow(["ID", "Kernel Name", *metrics])
    for row in rows:
        if row["ID"] and row["Kernel Name"]:  # the row below the header holds units; what a program prints in the end is no row
            out.writerow([row["ID"], row["Kernel Name"], *((row.get(name) or "").replace(",", "") for name in metrics)])
    return text.getvalue()


if __name__ == "__main__":
    try:
        sys.stdout.write(table(sys.stdin.read(), sys.argv[-1].split(",")))
    except ValueError as error:
        sys.exit(f"ncu_csv: {error}")
