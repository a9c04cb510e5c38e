"""`talkreel`. Imports next to nothing: what takes time to import does so where an interruption is caught."""

from __future__ import annotations

import sys

from .interruption import Interruption

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code: 0, 2 for bad usage or input, 1 for a fault of ours, 130 after
    Ctrl-C (143 after SIGTERM)."""
    with Interruption() as interruption:
        try:
            from .running import run, told

            try:
                return run(sys.argv[1:] if arguments is None else arguments)
            except Exception as error:
                if interruption.signal is None:
                    return told(error)
        except KeyboardInterrupt:
            pass
        except Exception:  # an import that was interrupted may raise ImportError
            if interruption.signal is None:
                raise
        print("talkreel: interrupted", file=sys.stderr)
        return interruption.exit_code


if __name__ == "__main__":
    sys.exit(main())
