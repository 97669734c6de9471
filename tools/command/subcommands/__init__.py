"""One module for each subcommand; main.py lists them."""
