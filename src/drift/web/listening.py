"""Listen on an address, and serve an application there until it is stopped."""

import socket
from typing import Any

from drift.errors import FileError, needed_for
from drift.web.guard import WEB

HOST = "127.0.0.1"


class Listener:
    """A socket that listens from the start: its address can be printed, and opened, before `run`.

    host: of this machine. port: 0 takes a free one. option: how a user chooses another port.
    """

    def __init__(self, host: str = HOST, port: int = 0, *, option: str = "--port") -> None:
        self.socket = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self.socket.bind((host, port))
            self.socket.listen(64)
        except OSError as error:
            self.socket.close()
            raise FileError(
                f"port {port} of {host} cannot be used ({error.strerror}); give another one with {option}"
            ) from error
        self.port: int = self.socket.getsockname()[1]
        self._server: Any = None

    def run(self, app: Any, *, lifespan: bool = False) -> None:
        """Serve until Ctrl-C, or until `stop` is called. lifespan: tell the application when it begins and ends."""
        with needed_for("drift annotate and drift serve", WEB):
            import uvicorn

        quiet: dict[str, Any] = {"log_level": "warning", "access_log": False, "server_header": False}
        config = uvicorn.Config(
            app,
            lifespan="on" if lifespan else "off",
            ws="none",
            loop="asyncio",
            timeout_graceful_shutdown=2,
            **quiet,
        )
        self._server = uvicorn.Server(config)
        try:
            self._server.run(sockets=[self.socket])
        except KeyboardInterrupt:  # uvicorn passes it on when it has stopped
            pass
        finally:
            self.socket.close()

    def stop(self) -> None:
        """End `run`."""
        if self._server is not None:
            self._server.should_exit = True
