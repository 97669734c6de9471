"""What tools/plot, tools/sass, tools/registers, tools/figures, tools/gpu-checks and .ci/run start; not in the help."""
