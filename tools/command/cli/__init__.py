"""What a learner may type, and what each word means."""
