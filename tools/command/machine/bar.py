"""A bar for builds, where Rich is installed (Debian: python3-rich). Nobody has to have it: without it there is a line of text."""

import sys


class Bar:
    def __init__(self, rich, console, title):
        columns = [rich.TextColumn("course: {task.description}"), rich.BarColumn(), rich.MofNCompleteColumn()]
        columns += [rich.TimeElapsedColumn(), rich.TextColumn("{task.fields[latest]}", table_column=None)]
        self.progress = rich.Progress(*columns, console=console, transient=True)
        self.task = self.progress.add_task(title, total=None, latest="")
        self.progress.start()

    def update(self, done, total, latest):
        self.progress.update(self.task, completed=done, total=total, latest=latest.rsplit("/", 1)[-1])

    def stop(self):
        self.progress.stop()


def make(title):
    """None where there is no Rich, or one that is too old."""
    try:
        from rich import progress
        from rich.console import Console

        return Bar(progress, Console(file=sys.stderr, highlight=False), title)
    except (ImportError, AttributeError):
        return None
