"""Benchmarks: each prints its figures with the machine and the date; none is a test."""
