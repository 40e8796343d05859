import sys

from .sheet import main

sys.exit(main())
