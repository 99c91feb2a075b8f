"""Runs a command on a terminal of its own: terminal.py <steps as JSON> <command...>.

Steps are ["see", text], which waits until the terminal shows it, and ["type", keys]. Prints what was shown and how the
command ended, as JSON. Ends after 25 seconds whatever happens.
"""
import json
import os
import pty
import select
import signal
import sys
import time

steps, command = json.loads(sys.argv[1]), sys.argv[2:]
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(command[0], command)

deadline = time.monotonic() + 25
shown, seen, missing = "", 0, None


def read_more():
    """False when the command has closed the terminal, or time is up."""
    global shown
    remaining = deadline - time.monotonic()
    if remaining <= 0 or not select.select([terminal], [], [], remaining)[0]:
        return False
    try:
        chunk = os.read(terminal, 65536)
    except OSError:
        return False
    shown += chunk.decode("utf-8", "replace")
    return chunk != b""


for action, text in steps:
    if action == "type":
        os.write(terminal, text.encode())
        continue
    while text not in shown[seen:] and missing is None:
        if not read_more():
            missing = text
    if missing is not None:
        break
    seen = shown.index(text, seen) + len(text)
if missing is None:
    while read_more():
        pass
if time.monotonic() >= deadline or missing is not None:
    os.kill(pid, signal.SIGKILL)
_, status = os.waitpid(pid, 0)
print(json.dumps({"shown": shown, "missing": missing, "code": os.waitstatus_to_exitcode(status)}))
