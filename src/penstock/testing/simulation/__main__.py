import sys

from penstock.testing.simulation.run import main

sys.exit(main())
