"""The commands below `talkreel pack`, a file each."""
