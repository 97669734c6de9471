"""Usage: tools/report schema [--check] [FILE...]

docs/results/schema.json says what a result file is. Writes the tables of fields in docs/results/README.md from it; with FILEs, says
whether they are as it says, and writes nothing. That needs Python's jsonschema (Debian: python3-jsonschema).

  --check   change nothing, say whether the tables are current

Exit code: 0 all is as it should be, 1 it is not, 2 refused input, 77 jsonschema is missing.
"""

import json
import os
import re
import sys

from . import results
from .ladder import ROOT
from .terminal import Arguments, run_command

SCHEMA = os.path.join(ROOT, "docs", "results", "schema.json")
README = os.path.join(ROOT, "docs", "results", "README.md")
MARKED = re.compile(r"(<!-- fields (\w+) -->\n\n).*?(\n<!-- end of fields -->)", re.DOTALL)
NO_VALIDATOR = 77


def schema():
    with open(SCHEMA, encoding="utf-8") as file:
        return json.load(file)


def described(whole, name):
    """The properties behind a marker: of the document, of a definition, or of what the results' baselines are."""
    if name == "document":
        return whole["properties"]
    if name == "baselines":
        return whole["definitions"]["result"]["properties"]["baselines"]["properties"]
    return whole["definitions"][name]["properties"]


def table(whole, name):
    """Of the fields that have a description; those beside each other that share it share a row."""
    rows = []
    for field, of_field in described(whole, name).items():
        text = of_field.get("description")
        if text and rows and rows[-1][1] == text:
            rows[-1][0].append(f"`{field}`")
        elif text:
            rows.append(([f"`{field}`"], text))
    head = ["| name | what |" if name == "baselines" else "| field | what |", "| --- | --- |"]
    return "\n".join([*head, *(f"| {', '.join(fields)} | {text} |" for fields, text in rows)]) + "\n"


def with_tables(text, whole):
    return MARKED.sub(lambda match: match[1] + table(whole, match[2]) + match[3], text)


def validator():
    """None where there is none: results are read without it."""
    try:
        import jsonschema
    except ImportError:
        return None
    return jsonschema.Draft7Validator(schema())


def problems(check, document):
    """Lines: where a document is not what the schema says."""
    errors = sorted(check.iter_errors(document), key=lambda error: list(map(str, error.absolute_path)))
    return [f"{'.'.join(map(str, error.absolute_path)) or 'the document'}: {error.message[:300]}" for error in errors]


def check_files(files):
    check = validator()
    if not check:
        print("course: jsonschema is missing, nothing was checked. Debian: apt-get install python3-jsonschema", file=sys.stderr)
        return NO_VALIDATOR
    wrong = 0
    for file in files:
        for line in problems(check, results.load(file)):
            print(f"{file}: {line}")
            wrong = 1
    return wrong


def main():
    arguments = Arguments(prog="tools/report schema", description=__doc__)
    arguments.add_argument("--check", action="store_true")
    arguments.add_argument("files", nargs="*")
    given = arguments.parse_args()
    if given.files:
        return check_files(given.files)
    with open(README, encoding="utf-8") as file:
        old = file.read()
    new = with_tables(old, schema())
    if given.check and new != old:
        print(f"course: {README} is not what schema.json says: run 'python3 tools/report schema'.", file=sys.stderr)
        return 1
    if new != old:
        results.write_text(README, new)
        print(README)
    return 0


if __name__ == "__main__":
    run_command(main)
