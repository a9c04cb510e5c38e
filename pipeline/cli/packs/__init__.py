"""The commands below `talkreel pack`. They import the tools when they run, so that each waits for its own alone."""
