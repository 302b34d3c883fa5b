"""A program that has imported a broker and makes copies of itself: each copy is a `pandomq start`.

`starting.py` runs it, and sends requests over a socket: a JSON object with the arguments of `pandomq`, the directory
and the environment, and with it the open file for the output. The answer is the process id of the broker, whose parent
is the process that sent the request.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import socket
import sys
from typing import Any

REQUEST_BYTES_MAX = 1 << 20
MODULES = ("pandomq.cli.main", "pandomq.runtime.process", "pandomq.admin.application")


def serve(requests: socket.socket) -> list[str] | None:
    """Returns in each copy, with its arguments; and None in this process, at the end of requests."""
    while True:
        data, files, _, _ = socket.recv_fds(requests, REQUEST_BYTES_MAX, 1)
        if not data:
            return None
        told, tell = os.pipe()
        between = os.fork()
        if not between:
            copy = os.fork()
            if copy:
                os.write(tell, b"%d" % copy)
                # Its end makes the copy a child of the process that sent the request.
                os._exit(0)
            os.close(told)
            os.close(tell)
            requests.detach()
            return become(json.loads(data), files[0])
        os.waitpid(between, 0)
        requests.sendall(os.read(told, 100))
        for file in (told, tell, *files):
            os.close(file)


def become(request: dict[str, Any], output: int) -> list[str]:
    nothing = os.open(os.devnull, os.O_RDONLY)
    # The first of them takes the place of the socket.
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    os.close(nothing)
    os.close(output)
    os.chdir(request["directory"])
    os.environ.clear()
    os.environ.update(request["environment"])
    arguments: list[str] = request["arguments"]
    return arguments


if __name__ == "__main__":
    sys.argv[1:] = ["start"]
    main = importlib.import_module(MODULES[0])
    for module in MODULES[1:]:
        importlib.import_module(module)
    # A copy that does not examine these objects shares their memory.
    gc.collect()
    gc.freeze()
    arguments = serve(socket.socket(fileno=0))
    if arguments is not None:
        sys.argv[1:] = arguments
        main.app()
