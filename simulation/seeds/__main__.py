import sys

from simulation.seeds.run import main

sys.exit(main())
