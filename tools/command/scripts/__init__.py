"""What tools/plot, tools/sass, tools/registers and tools/figures start, and what tools/gpu-checks and .ci/run ask for. Not in the learner's help."""
