"""Kernels: the hot loops, compiled by Numba over matrices of 64-bit words. They know nothing else of Everview."""
