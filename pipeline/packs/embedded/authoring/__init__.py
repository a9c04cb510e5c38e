"""Writes the embedded pack's own graphs and its manifest; needs the `authoring` extra and a build of onnxruntime.

`python -m pipeline.packs.embedded.authoring` rebuilds every file bit for bit.
"""
