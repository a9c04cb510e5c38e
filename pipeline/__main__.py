"""`python -m pipeline` is `talkreel`."""

import sys

from .cli.main import main

sys.exit(main())
