"""Exact rewrites of a graph: one pass a file, presets that combine them."""
