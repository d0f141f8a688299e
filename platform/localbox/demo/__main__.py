"""`python -m localbox.demo`, which is `make demo`."""

import sys

from localbox.demo.run import main

sys.exit(main())
