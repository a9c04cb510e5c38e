"""Writes the embedded pack's own graphs and its manifest; needs the `authoring` extra (onnx).

`python -m pipeline.packs.embedded.authoring` rebuilds every file bit for bit.
"""
