"""mongo-java-server on a port, until it is killed: a server of another make that speaks MongoDB's protocol, with change streams.

MongoDB's own server is in none of the package registries. `python -m tests.connect.mongo_server PORT JARS`.
"""

import sys
import threading
from typing import Any

import jpype


def _version() -> Any:
    """A newer one than it says of itself: PyMongo speaks with none older, and the tests ask for nothing that is missing."""

    @jpype.JImplements("de.bwaldvogel.mongo.MongoVersion")
    class Version:
        @jpype.JOverride
        def getVersionArray(self) -> Any:
            numbers = jpype.JClass("java.util.ArrayList")()
            for number in (5, 0, 0):
                numbers.add(jpype.JInt(number))
            return numbers

        @jpype.JOverride
        def toVersionString(self) -> str:
            return "5.0.0"

        @jpype.JOverride
        def getWireVersion(self) -> Any:
            return jpype.JInt(13)

    return Version()


def main() -> None:
    port, jars = int(sys.argv[1]), sys.argv[2].split(":")
    jpype.startJVM("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", classpath=jars)
    backend = jpype.JClass("de.bwaldvogel.mongo.backend.memory.MemoryBackend")()
    backend.version(_version())
    server = jpype.JClass("de.bwaldvogel.mongo.MongoServer")(backend)
    server.enableOplog()
    server.bind("127.0.0.1", port)
    threading.Event().wait()


if __name__ == "__main__":
    main()
