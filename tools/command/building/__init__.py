"""Configuring and building with CMake, and saying what is wrong with a kernel that does not compile."""
