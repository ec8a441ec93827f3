"""A headless chromium for tests, spoken to over its DevTools protocol, and a server for a folder.

`Browser` starts Debian's chromium with a profile of its own. `Browser.open` loads a page and waits
until it is still; what the page complained about on the way, and what it failed to load, is kept.
"""

import base64
import contextlib
import functools
import http.server
import json
import shutil
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import websocket

PATIENCE = 30  # seconds, for anything
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-port=0",
]


def find_chromium():
    """The path of chromium, or None."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


class Browser:
    """One tab of a headless chromium."""

    def __init__(self):
        self.profile = tempfile.TemporaryDirectory(prefix="ldpcash-chromium-")
        command = [find_chromium(), *FLAGS, f"--user-data-dir={self.profile.name}", "about:blank"]
        self.process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self.socket = self.session = None
        self.count = 0
        self.complaints, self.requests, self.loaded = [], [], False
        try:
            self.socket = websocket.create_connection(
                self._address(), timeout=PATIENCE, suppress_origin=True
            )
            target = self.send("Target.createTarget", url="about:blank")["targetId"]
            attached = self.send("Target.attachToTarget", targetId=target, flatten=True)
            self.session = attached["sessionId"]
            for domain in ("Page", "Runtime", "Network", "Log"):
                self.send(f"{domain}.enable")
        except BaseException:
            self.close()
            raise

    def _address(self):
        """Where it listens: it writes that into its profile."""
        port_file = Path(self.profile.name) / "DevToolsActivePort"
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            with contextlib.suppress(FileNotFoundError, ValueError):
                port, path = port_file.read_text().splitlines()
                return f"ws://127.0.0.1:{port}{path}"
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        raise RuntimeError(f"chromium did not start (exit code {self.process.poll()})")

    def close(self):
        if self.socket is not None:
            self.socket.close()
        self.process.kill()
        self.process.wait()
        with contextlib.suppress(OSError):  # its children may still be writing
            self.profile.cleanup()

    def send(self, method, **parameters):
        """Give a command and wait for its answer; events that come before it are looked at."""
        self.count += 1
        message = {"id": self.count, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        self.socket.send(json.dumps(message))
        while (answer := self._receive()).get("id") != self.count:
            pass
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def _receive(self):
        """The next message; if it is an event, take note of it."""
        message = json.loads(self.socket.recv())
        if "method" in message:
            self._event(message["method"], message["params"])
        return message

    def _event(self, name, event):
        if name == "Page.loadEventFired":
            self.loaded = True
        elif name == "Network.requestWillBeSent":
            self.requests.append(event["request"]["url"])
        elif name == "Network.loadingFailed":
            self.complaints.append(f"request failed: {event['errorText']}")
        elif name == "Network.responseReceived" and event["response"]["status"] >= 400:
            self.complaints.append(f"{event['response']['status']}: {event['response']['url']}")
        elif name == "Runtime.exceptionThrown":
            details = event["exceptionDetails"]
            thrown = details.get("exception", {}).get("description", "")
            self.complaints.append(f"{details['text']} {thrown}")
        elif name == "Runtime.consoleAPICalled" and event["type"] in ("error", "warning", "assert"):
            words = [str(a.get("value", a.get("description"))) for a in event["args"]]
            self.complaints.append(f"console: {' '.join(words)}")
        elif name == "Log.entryAdded" and event["entry"]["level"] in ("error", "warning"):
            self.complaints.append(f"log: {event['entry']['text']}")

    def open(self, url, width=1280, height=900):
        """Load a page in a window of this size, and wait until its mathematics is typeset."""
        self.loaded = False
        self.send("Page.navigate", url="about:blank")  # what the page before still did is its own
        self.wait_for_page()
        self.resize(width, height)
        self.complaints, self.requests, self.loaded = [], [], False
        self.send("Page.navigate", url=url)
        self.wait_for_page()
        self.run("window.MathJax?.startup?.promise?.then(() => 1)")

    def wait_for_page(self):
        """Wait until a page is loaded. Scripts that are run before that may never be answered."""
        while not self.loaded:
            self._receive()

    def resize(self, width, height):
        """Give the window another size, in pixels."""
        size = {"width": width, "height": height}
        self.send(
            "Emulation.setDeviceMetricsOverride", **size, deviceScaleFactor=1, mobile=width < 500
        )

    def run(self, script):
        """The value of a JavaScript expression, waited for if it is a promise."""
        answer = self.send(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"]["description"])
        return answer["result"].get("value")

    def wait_for(self, script):
        """Wait until a JavaScript expression is true, and return its value."""
        deadline = time.monotonic() + PATIENCE
        while not (value := self.run(script)):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{script} did not come true")
            time.sleep(0.02)
        return value

    def press(self, key, code, control=False):
        """Press a key on the keyboard, such as "ArrowRight", whose key code is 39, or "Tab", 9."""
        key = {"key": key, "windowsVirtualKeyCode": code, "modifiers": 2 * control}
        text = {"text": "\r"} if key["key"] == "Enter" else {}
        self.send("Input.dispatchKeyEvent", type="keyDown", **key, **text)
        self.send("Input.dispatchKeyEvent", type="keyUp", **key)

    def screenshot(self, path, whole=False):
        """Save what is seen, or the whole page, as PNG."""
        data = self.send("Page.captureScreenshot", captureBeyondViewport=whole)["data"]
        Path(path).write_bytes(base64.b64decode(data))


@contextlib.contextmanager
def served(folder):
    """A web server of a folder on this machine; its address."""
    handler = functools.partial(QuietHandler, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass
