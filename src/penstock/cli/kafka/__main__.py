import sys

from penstock.cli.kafka.entry_points import run

run(sys.argv[1], sys.argv[2:])
