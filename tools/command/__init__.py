"""The learner's command, tools/course. Python 3.9 or newer, its standard library alone.

A subcommand is a module below subcommands/ with COMMAND, a cli.arguments.Command, and a line in main.py. It checks all of its
arguments before anything is installed or built.
"""
