#!/bin/sh
# Apache Kafka's kafka-dump-log, by Penstock. Works from any folder and through symbolic links.
self=$(readlink -f "$0")
root=${self%/bin/*}
if [ -x "$root/.venv/bin/python" ]; then
    PYTHONPATH="$root/src${PYTHONPATH:+:$PYTHONPATH}" exec "$root/.venv/bin/python" -m penstock.cli.kafka.dump_log "$@"
fi
installed=$(command -v penstock) && python=$(dirname "$(readlink -f "$installed")")/python && [ -x "$python" ] &&
    exec "$python" -m penstock.cli.kafka.dump_log "$@"
echo "kafka-dump-log: Penstock is not set up: run 'make setup' in $root, or install penstock" >&2
exit 1
