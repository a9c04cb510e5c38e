"""Trains the speech models of the embedded pack; needs the `training` extra, espeak-ng and flite.

`python -m pipeline.packs.embedded.training.texts FILE` gathers what the synthesisers are to say;
`python -m pipeline.packs.embedded.training --texts FILE` makes the speech, trains on one GPU and writes the
weights that the authoring code builds the graphs from. The model card (MODEL_CARD.md of the pack) says the rest.
"""
