import sys

from simulation.liar.run import main

if __name__ == "__main__":  # the processes that run seeds import this, too
    sys.exit(main())
