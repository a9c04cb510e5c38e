"""How well the embedded pack's lips say what is heard: `python -m tests.benchmarks.speech_motion`."""
