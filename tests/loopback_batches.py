"""A real batch service on the loopback address: files, batches, and every way in which they fail.

It checks what the real service checks (JSONL, doubled ids, limits, purpose), counts what it is asked and how
often each request is handed in, and does what a test tells it:

``behave(prompt, nth)``  what becomes of a request that is handed in for the nth time:
    ok | say TEXT | length | refusal | wrong_model | status N | quota | silent | doubled | stranger | junk
``fate(nth)``            what becomes of the nth batch:
    complete | expire N | expire_silent N | cancel N | fail | late   (N requests are done before; late: never
    ends until ``release`` is called)
``faults[endpoint]``     one word per call, used up in order:
    ok | status N [RETRY_AFTER] | reset | reset_after | cut | hang | html | junk | echo_key | quota |
    unknown_file | token_limit
``after[endpoint]``      a function that is called when the work is done and the reply not yet sent
``before[endpoint]``     a function that is called before the work

Endpoints: ``POST /files``, ``GET /files``, ``GET /files/content``, ``DELETE /files``, ``POST /batches``,
``GET /batches``, ``GET /batches/id``, ``POST /batches/cancel``.
"""

import json
import re
import socket
import sys
import threading
from collections import Counter
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

# The id of a line that nobody asked for.
STRANGER = "f" * 64
_OPEN = ("validating", "in_progress", "finalizing", "cancelling")
_EXPIRED = {
    "code": "batch_expired",
    "message": "This request could not be executed before the completion window expired.",
}
_CANCELLED = {"code": "batch_cancelled", "message": "This request was cancelled."}
_TOKEN_LIMIT = "Enqueued token limit reached for toy in organization org-1. Limit: 90,000 enqueued tokens."


class Refused(Exception):
    """A request that the service does not take: status and error object."""

    def __init__(self, status: int, message: str, code: str | None = None) -> None:
        super().__init__(message)
        self.status, self.error = status, {"message": message, "code": code, "type": "invalid_request_error"}


class BatchLoopback:
    """The service, in threads of its own."""

    def __init__(self, served_name: str = "toy", n_polls: int = 2, page_size: int = 100) -> None:
        self.served_name, self.n_polls, self.page_size = served_name, n_polls, page_size
        self.max_requests, self.max_bytes, self.max_queued = 50_000, 200_000_000, 1_000_000
        self.lists_files, self.keeps_notes = True, True
        self.behave: Callable[[str, int], str] = lambda prompt, nth: "ok"
        self.fate: Callable[[int], str] = lambda nth: "complete"
        self.faults: dict[str, list[str]] = {}
        self.before: dict[str, Callable[[], None]] = {}
        self.after: dict[str, Callable[[], None]] = {}
        self.calls: Counter[str] = Counter()
        self.handed_in: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.headers: list[dict[str, str]] = []
        self.files: dict[str, dict] = {}
        self.deleted: list[str] = []
        self.batches: dict[str, dict] = {}
        self.max_open = 0
        self._bodies: dict[str, bytes] = {}
        self._secret: dict[str, dict] = {}
        self._released: set[str] = set()
        self._lock = threading.RLock()
        self._closing = threading.Event()

    def __enter__(self) -> "BatchLoopback":
        handler = type("Handler", (_Handler,), {"service": self})
        self._server = _Server(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def uploads(self) -> list[list[dict]]:
        """Return the lines of each file that was sent for a batch, decoded."""
        return [
            [json.loads(line) for line in self._bodies[name].splitlines()]
            for name, file in self.files.items()
            if file["purpose"] == "batch"
        ]

    def release(self) -> None:
        """Let late batches end."""
        self._released.update(self.batches)

    def dispatch(self, method: str, path: str, query: dict, body: bytes, kind: str) -> tuple[str, Callable]:
        """Return the name of the endpoint and the function that does its work."""
        parts = path.removeprefix("/v1/").strip("/").split("/")
        match method, parts:
            case "POST", ["files"]:
                return "POST /files", lambda: self._receive(body, kind)
            case "GET", ["files"]:
                return "GET /files", lambda: self._list_files(query)
            case "GET", ["files", name, "content"]:
                return "GET /files/content", lambda: self._content(name)
            case "DELETE", ["files", name]:
                return "DELETE /files", lambda: self._delete(name)
            case "POST", ["batches"]:
                return "POST /batches", lambda: self._create(json.loads(body))
            case "GET", ["batches"]:
                return "GET /batches", lambda: self._page(list(self.batches.values())[::-1], query)
            case "GET", ["batches", name]:
                return "GET /batches/id", lambda: self._look(name)
            case "POST", ["batches", name, "cancel"]:
                return "POST /batches/cancel", lambda: self._cancel(name)
        raise Refused(404, f"no {method} {path}")

    def work(self, endpoint: str, act: Callable) -> dict | bytes:
        """Do what an endpoint does, one call after the other."""
        if endpoint in self.before:
            self.before[endpoint]()
        with self._lock:
            result = act()
        if endpoint in self.after:
            self.after[endpoint]()
        return result

    def take_fault(self, endpoint: str) -> str:
        """Count a call and return what is to go wrong with it."""
        with self._lock:
            self.calls[endpoint] += 1
            words = self.faults.get(endpoint) or ["ok"]
            return words.pop(0) if endpoint in self.faults and self.faults[endpoint] else "ok"

    def hang(self) -> None:
        self._closing.wait(30)

    # Files

    def _receive(self, body: bytes, kind: str) -> dict:
        boundary = re.search(r"boundary=(\S+)", kind)[1].encode()
        fields = {}
        filename = None
        for part in body.split(b"--" + boundary)[1:-1]:
            head, _, data = part.removeprefix(b"\r\n").partition(b"\r\n\r\n")
            name = re.search(rb'name="([^"]*)"', head)[1].decode()
            fields[name] = data.removesuffix(b"\r\n")
            if found := re.search(rb'filename="([^"]*)"', head):
                filename = found[1].decode()
        purpose = fields["purpose"].decode()
        if purpose == "batch" and not filename.endswith(".jsonl"):
            raise Refused(400, f"Invalid file format for Batch API: {filename}. Must be .jsonl")
        return self._store(filename, fields["file"], purpose)

    def _store(self, filename: str, data: bytes, purpose: str) -> dict:
        name = f"file-{len(self.files) + 1}"
        self._bodies[name] = data
        self.files[name] = {
            "id": name,
            "object": "file",
            "bytes": len(data),
            "filename": filename,
            "purpose": purpose,
            "created_at": 1,
            "status": "processed",
        }
        return self.files[name]

    def _list_files(self, query: dict) -> dict:
        if not self.lists_files:
            raise Refused(404, "Not Found")
        purpose = query.get("purpose")
        there = [file for name, file in self.files.items() if name not in self.deleted]
        return self._page([file for file in there if purpose in (None, file["purpose"])], query)

    def _content(self, name: str) -> bytes:
        if name not in self.files or name in self.deleted:
            raise Refused(404, f"No such File object: {name}")
        return self._bodies[name]

    def _delete(self, name: str) -> dict:
        self._content(name)
        self.deleted.append(name)
        return {"id": name, "object": "file", "deleted": True}

    def _page(self, everything: list[dict], query: dict) -> dict:
        names = [one["id"] for one in everything]
        start = names.index(query["after"]) + 1 if "after" in query else 0
        size = min(self.page_size, int(query.get("limit", 20)))
        rows = everything[start : start + size]
        return {"object": "list", "data": rows, "has_more": start + size < len(everything)}

    # Batches

    def _create(self, asked: dict) -> dict:
        source = asked["input_file_id"]
        if source not in self.files or source in self.deleted:
            raise Refused(400, f"Cannot find file {source}, or project proj_1 does not have access to it.")
        if asked.get("completion_window") != "24h" or asked.get("endpoint") != "/v1/chat/completions":
            raise Refused(400, "completion_window must be 24h, endpoint /v1/chat/completions")
        number = len(self.batches) + 1
        name = f"batch_{number}"
        lines, errors = self._check(self._bodies[source])
        queued = sum(b["request_counts"]["total"] for b in self.batches.values() if b["status"] in _OPEN)
        if not errors and queued + len(lines) > self.max_queued:
            errors = [{"code": "token_limit_exceeded", "line": None, "message": _TOKEN_LIMIT}]
        if not errors:
            self.handed_in.update(self._prompt(line) for line in lines)
        self.batches[name] = {
            "id": name,
            "object": "batch",
            "endpoint": asked["endpoint"],
            "completion_window": "24h",
            "input_file_id": source,
            "status": "validating",
            "created_at": number,
            "output_file_id": None,
            "error_file_id": None,
            "errors": None,
            "request_counts": {"total": 0 if errors else len(lines), "completed": 0, "failed": 0},
            "metadata": asked.get("metadata") if self.keeps_notes else None,
        }
        self._secret[name] = {"lines": lines, "errors": errors, "fate": self.fate(number), "looks": 0}
        self.max_open = max(self.max_open, sum(b["status"] in _OPEN for b in self.batches.values()))
        return self.batches[name]

    @staticmethod
    def _prompt(line: dict) -> str:
        content = line["body"]["messages"][-1]["content"]
        if isinstance(content, str):
            return content
        return "".join(part.get("text", "") for part in content)

    def _check(self, data: bytes) -> tuple[list[dict], list[dict]]:
        """Return the lines of a file and what is wrong with it."""
        lines, errors, seen = [], [], set()
        for number, text in enumerate(data.splitlines(), start=1):
            try:
                line = json.loads(text)
                custom_id = line["custom_id"]
                assert line["method"] == "POST" and line["url"] == "/v1/chat/completions"
                assert line["body"]["model"] and line["body"]["messages"]
            except (ValueError, KeyError, AssertionError):
                message = "This line is not parseable as valid JSON."
                errors.append({"code": "invalid_json_line", "line": number, "message": message})
                continue
            if custom_id in seen or not 1 <= len(custom_id) <= 64:
                message = f"The custom_id '{custom_id}' is a duplicate or too long."
                errors.append({"code": "duplicate_custom_id", "line": number, "message": message})
            if line["body"]["model"] != self.served_name:
                message = f"The provided model '{line['body']['model']}' is not supported."
                errors.append({"code": "model_not_found", "line": number, "message": message})
            seen.add(custom_id)
            lines.append(line)
        if not lines and not errors:
            errors.append({"code": "empty_file", "line": None, "message": "The input file is empty."})
        if len(lines) > self.max_requests or len(data) > self.max_bytes:
            errors.append({"code": "file_too_large", "line": None, "message": "Over the limits."})
        return lines, errors

    def _look(self, name: str) -> dict:
        if name not in self.batches:
            raise Refused(404, f"No batch found with id '{name}'.")
        batch, secret = self.batches[name], self._secret[name]
        if batch["status"] not in _OPEN:
            return batch
        secret["looks"] += 1
        word, _, value = secret["fate"].partition(" ")
        if secret["errors"] or word == "fail":
            data = secret["errors"] or [{"code": "internal", "line": 2, "message": "Something was wrong."}]
            batch |= {"status": "failed", "errors": {"object": "list", "data": data}}
        elif word == "late" and name not in self._released:
            batch["status"] = "in_progress"
        elif secret["looks"] >= self.n_polls:
            self._finish(batch, secret, word, value)
        else:
            batch["status"] = "in_progress"
        return batch

    def _cancel(self, name: str) -> dict:
        self._secret[name]["fate"] = "cancel 0"
        return self.batches[name]

    def _finish(self, batch: dict, secret: dict, word: str, value: str) -> None:
        lines = secret["lines"]
        ended = {"expire": _EXPIRED, "expire_silent": None, "cancel": _CANCELLED}
        n_done = int(value) if word in ended else len(lines)
        output, errors = [], []
        for line in lines[:n_done]:
            self._answer(line, output, errors)
        for line in lines[n_done:]:
            if ended[word]:
                errors.append(json.dumps(self._envelope(line, None, ended[word])))
        status = {"expire": "expired", "expire_silent": "expired", "cancel": "cancelled"}
        batch["status"] = status.get(word, "completed")
        n_completed = sum('"status_code": 200' in row and STRANGER not in row for row in set(output))
        batch["request_counts"] |= {"completed": n_completed, "failed": len(errors)}
        for field, rows in (("output_file_id", output), ("error_file_id", errors)):
            if rows:
                # Not in the order of the requests: nobody may rely on it.
                data = "".join(f"{row}\n" for row in rows[::-1]).encode()
                batch[field] = self._store(f"{batch['id']}_{field}.jsonl", data, "batch_output")["id"]

    @staticmethod
    def _envelope(line: dict, response: dict | None, error: dict | None) -> dict:
        return {"id": "batch_req_1", "custom_id": line["custom_id"], "response": response, "error": error}

    def _answer(self, line: dict, output: list[str], errors: list[str]) -> None:
        """Append the result lines of a request."""
        prompt = self._prompt(line)
        word, _, value = self.behave(prompt, self.handed_in[prompt]).partition(" ")
        if word in ("status", "quota"):
            number = int(value or 429)
            code = "insufficient_quota" if word == "quota" else None
            body = {"error": {"message": f"told {number}", "type": "x", "param": None, "code": code}}
            reply = {"status_code": number, "request_id": "req_1", "body": body}
            errors.append(json.dumps(self._envelope(line, reply, None)))
            return
        if word == "silent":
            return
        message = {"role": "assistant", "content": value if word == "say" else f"answer to {prompt}"}
        message["refusal"] = "I will not" if word == "refusal" else None
        body = {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "model": "another" if word == "wrong_model" else self.served_name,
            "choices": [
                {"index": 0, "message": message, "finish_reason": "length" if word == "length" else "stop"}
            ],
            "usage": {"prompt_tokens": len(prompt), "completion_tokens": 3, "total_tokens": len(prompt) + 3},
        }
        text = json.dumps(self._envelope(line, {"status_code": 200, "request_id": "r", "body": body}, None))
        self.answered[prompt] += 1
        output.append(text)
        if word == "doubled":
            output.append(text)
        if word == "stranger":
            output.append(text.replace(line["custom_id"], STRANGER))
        if word == "junk":
            output.append('{"id": "batch_req_2", "custom_')


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, address) -> None:
        # A client that was killed is no error of the service.
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, address)


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True
    service: BatchLoopback

    def log_message(self, *_) -> None:
        pass

    def do_GET(self) -> None:
        self._handle()

    do_POST = do_DELETE = do_GET

    def _handle(self) -> None:
        service = self.service
        body = self._body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        place = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(place.query).items()}
        service.headers.append({name.lower(): value for name, value in self.headers.items()})
        try:
            endpoint, act = service.dispatch(
                self.command, place.path, query, body, self.headers.get("Content-Type", "")
            )
            word, _, value = service.take_fault(endpoint).partition(" ")
            if word in ("ok", "reset_after", "cut"):
                result = service.work(endpoint, act)
                data = result if isinstance(result, bytes) else json.dumps(result).encode()
                self._finish(word, data)
            else:
                self._fail(word, value)
        except Refused as refused:
            self._reply(refused.status, json.dumps({"error": refused.error}).encode())

    def _finish(self, word: str, data: bytes) -> None:
        if word == "reset_after":
            self._reset()
        elif word == "cut":
            self._reply(200, data, n_sent=len(data) // 2)
            self._reset()
        else:
            self._reply(200, data)

    def _fail(self, word: str, value: str) -> None:
        if word == "reset":
            self._reset()
        elif word == "hang":
            self.service.hang()
            self._reset()
        elif word in ("html", "junk"):
            text = b"<html><body>Please log in to the proxy</body></html>" if word == "html" else b'{"id": 7}'
            self._reply(200, text, kind="text/html" if word == "html" else "application/json")
        elif word == "echo_key":
            raise Refused(400, f"bad request with {self.headers['Authorization']}")
        elif word == "quota":
            raise Refused(429, "You exceeded your current quota.", "insufficient_quota")
        elif word == "token_limit":
            raise Refused(429, _TOKEN_LIMIT, "token_limit_exceeded")
        elif word == "unknown_file":
            name = json.loads(self._body)["input_file_id"]
            raise Refused(400, f"Cannot find file {name}, or project proj_1 does not have access to it.")
        else:
            number, _, retry_after = value.partition(" ")
            more = {"Retry-After": retry_after} if retry_after else {}
            error = {"error": {"message": f"told {number}", "code": None}}
            self._reply(int(number), json.dumps(error).encode(), more=more)

    def _reply(
        self, status: int, data: bytes, kind: str = "application/json", more=None, n_sent: int | None = None
    ) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(data)), **(more or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        try:
            self.wfile.write(data if n_sent is None else data[:n_sent])
            self.wfile.flush()
        except OSError:
            self.close_connection = True

    def _reset(self) -> None:
        self.close_connection = True
        # Zero linger: the other side sees a reset, as from a service that has crashed.
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        self.connection.close()
