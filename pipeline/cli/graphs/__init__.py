"""Subcommands of `talkreel graph`. They import the tools when they run, so that the others need no onnx."""
