"""The fleet's commands of `talkreel`, one file each; found through the entry-point group talkreel.commands."""
