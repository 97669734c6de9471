"""What tools/plot, tools/sass, tools/registers and tools/figures start, and what .ci/run asks for. Not in the learner's help."""
