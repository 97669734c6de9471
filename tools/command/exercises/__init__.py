"""The exercises: what there is, what the learner has done, and whether an answer is right."""
