"""`python -m pyfuser` is the command `pyfuser`."""

import sys

from pyfuser.cli import main

sys.exit(main())
