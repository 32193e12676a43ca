"""One module per screen, only presentation. A module has `SCREENS`; `screens` lists them, `layout` puts the frame around each."""

import sys

# python-socketio, below NiceGUI, looks for brokers between several servers and for clients of its own, and loads whichever
# is installed: a second of the start and some 20 MB, for nothing. They are out of sight while it is imported.
_OUT_OF_SIGHT = ("aio_pika", "aiohttp", "kafka", "kombu", "redis", "requests", "valkey", "websocket", "zmq")


def _import_without_what_is_not_used() -> None:
    hidden = [name for name in _OUT_OF_SIGHT if name not in sys.modules]
    for name in hidden:
        sys.modules[name] = None  # type: ignore[assignment]
    try:
        import nicegui  # noqa: F401
    finally:
        for name in hidden:
            sys.modules.pop(name, None)


_import_without_what_is_not_used()
