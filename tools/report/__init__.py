"""Result files: tables, comparisons, plots, figures. 'python3 tools/report NAME ARGUMENT...' runs the module NAME as a program."""
