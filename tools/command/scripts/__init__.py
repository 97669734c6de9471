"""What tools/plot, tools/sass, tools/registers, tools/figures, tools/gpu-checks and .ci/run start. Not in the learner's help."""
