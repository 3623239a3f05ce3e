"""`python -m noetl`: the program, by the interpreter that is asked."""

import sys

from noetl.cli.main import main

sys.exit(main())
