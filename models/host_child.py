"""What runs in a model host's process: one language model behind a socket.

It ends when the other end of its socket closes, whatever it is doing: a thread of its own reads the
socket, and llama.cpp lets it run. It looks after its parent too, for a process that was forked from
the parent may hold a copy of the other end. PR_SET_PDEATHSIG would be wrong here: it tells of the
end of the thread that started the child, not of the process.
"""

from __future__ import annotations

import os
import queue
import select
import signal
import socket
import sys
import threading
from contextlib import suppress
from pathlib import Path

import msgspec

from reverie.memory_graph.errors import ModelFailedError, ReverieError
from reverie.models.host_calls import carry_out
from reverie.models.host_wire import Answer, Open, Reply, Request, receive, send
from reverie.models.language import HostedModel, open_in_process

_PARENT_EVERY_S = 1.0  # how often the parent is looked after
_SPARE_BYTES = 2 << 30  # that may be used beyond what the loaded model takes

_decoder = msgspec.msgpack.Decoder(Request)


def main() -> None:
    """Serve the socket whose number is the first argument, for the parent named by the second."""
    sock = socket.socket(fileno=int(sys.argv[1]))
    parent = int(sys.argv[2])
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the parent finishes its work first, then closes
    requests: queue.SimpleQueue[Request] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(sock, parent, requests), daemon=True).start()
    model: HostedModel | None = None
    while True:
        request = requests.get()
        try:
            if isinstance(request, Open):
                model = open_in_process(request.settings)
                _limit_memory()
                answer: Answer = model.info
            elif model is None:
                msg = "the model was not opened"
                raise ModelFailedError(msg)  # noqa: TRY301 (as all errors here)
            else:
                answer = carry_out(model, request)
            reply = Reply(msgspec.Raw(msgspec.msgpack.encode(answer)))
        except ReverieError as exc:
            reply = Reply(error=exc.to_wire())
        except Exception as exc:  # noqa: BLE001 (whatever a model raises goes back)
            reply = Reply(error=ModelFailedError(f"{type(exc).__name__}: {exc}").to_wire())
        try:
            send(sock, reply)
        except OSError:
            os._exit(0)


def _limit_memory() -> None:
    """Let the process end, and not the machine, when a call takes memory without bound (a grammar
    with ever more ways to go on does)."""
    with suppress(OSError, ValueError, ImportError):  # where there is no such limit
        import resource

        pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
        most = pages * resource.getpagesize() + _SPARE_BYTES
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        if hard == resource.RLIM_INFINITY or most < hard:
            resource.setrlimit(resource.RLIMIT_AS, (most, hard))


def _read(sock: socket.socket, parent: int, requests: queue.SimpleQueue[Request]) -> None:
    """Hand over requests; end the process, at once, when nobody is there to ask any more."""
    try:
        while True:
            while not select.select([sock], [], [], _PARENT_EVERY_S)[0]:
                if os.getppid() != parent:
                    os._exit(0)
            requests.put(_decoder.decode(receive(sock)))
    except (EOFError, OSError, msgspec.MsgspecError):
        os._exit(0)


if __name__ == "__main__":
    main()
