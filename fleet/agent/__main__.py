"""`python -m fleet.agent`."""

import sys

from fleet.agent.cli import main

sys.exit(main())
