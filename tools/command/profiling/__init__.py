"""course profile: whose launch it is, what ncu says of it, what was recorded of it before."""
