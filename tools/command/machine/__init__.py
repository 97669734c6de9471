"""The machine at hand: its processes, packages, compilers, GPU and memory."""
