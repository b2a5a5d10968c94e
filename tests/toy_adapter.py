"""A small real adapter for tests: a folder with one JSON file, vectors from nobody, answers that repeat.

Words in a question make it misbehave: ``break`` ends it, ``hang`` makes it wait, ``junk`` is no reply,
``huge`` a line without an end, ``twice`` two lines, ``limit`` the request limit, ``down`` a connection,
``cut`` a cut answer, ``nothing`` an answer without text. ``breakonce`` ends it the first time only.
"""

import json
import os
import re
import sys
import time
from pathlib import Path


def words_of(text):
    return re.findall(r"[a-z0-9]+", text.lower())


class Toy:
    def __init__(self):
        self.place = None
        self.options = {}

    def describe(self, command):
        return {"ok": True, "versions": {"toy": "1.0"}, "arms": ["search", "rag"]}

    def open(self, command):
        folder = Path(command["database"])
        self.place, self.options = folder / "toy.json", command["options"]
        embedder = command["embedder"]
        if not self.place.exists():
            if not command["create"]:
                return {"ok": False, "kind": "fatal", "error": f"{folder} is no database"}
            folder.mkdir(parents=True, exist_ok=True)
            self.stamp = {"model": embedder["model"], "vector_dim": embedder["vector_dim"]}
            self.documents = {}
            self.save()
        told = json.loads(self.place.read_text())
        self.stamp, self.documents = told["stamp"], told["documents"]
        self.answerer = command["answerer"]
        return {"ok": True, "stamp": self.stamp}

    def save(self):
        beside = self.place.with_suffix(".part")
        beside.write_text(json.dumps({"stamp": self.stamp, "documents": self.documents}))
        beside.replace(self.place)

    def ingest(self, command):
        failed = []
        time.sleep(self.options.get("delay_s", 0))
        with open(self.place.with_name("given.txt"), "a") as given:
            given.writelines(f"{document['uri']}\n" for document in command["documents"])
        for document in command["documents"]:
            text = document["text"] or ""
            misbehave(text, self.place)
            if "unreadable" in text:
                failed.append({"uri": document["uri"], "reason": "cannot be read"})
            else:
                self.documents[document["uri"]] = text
        self.save()
        return {"ok": True, "n_documents": 0, "n_chunks": 0, "failed": failed}

    def finish(self, command):
        n = len(self.documents)
        return {"ok": True, "n_documents": n, "n_chunks": n, "n_indexed": n - self.options.get("n_lost", 0)}

    def search(self, command):
        if (command["filter"] or "").startswith("bad"):
            return {"ok": False, "kind": "bad_filter", "error": "near bad: syntax error"}
        results = []
        for query in command["queries"]:
            misbehave(query, self.place)
            hits = self.hits(query, command["mode"])
            cut = [{"uri": uri, "chunk": uri, "score": float(n), "text": text} for n, uri, text in hits]
            results.append({"found": cut[: command["limit"]], "found_documents": cut[: command["limit"]]})
        return {"ok": True, "results": results}

    def hits(self, query, mode):
        if mode == "text" and self.options.get("deaf"):
            return []
        asked = set(words_of(query))
        found = [(len(asked & set(words_of(text))), uri, text) for uri, text in self.documents.items()]
        return sorted((hit for hit in found if hit[0]), key=lambda hit: (-hit[0], hit[1]))

    def answer(self, command):
        question = command["turns"][-1]["text"]
        return self.told(question, [turn["text"] for turn in command["turns"][:-1]], command)

    def converse(self, command):
        carry = command["carry"] or {"said": []}
        reply = self.told(command["question"], carry["said"], command)
        if reply["ok"]:
            reply["carry"] = {"said": [*carry["said"], command["question"], reply["text"]]}
        return reply

    def told(self, question, before, command):
        with open(self.place.with_name("asked.txt"), "a") as asked:
            asked.write(question + "\n")
        time.sleep(self.options.get("answer_s", 0))
        trouble = misbehave(question, self.place)
        trace = {
            "cited": ["d1"],
            "citation_status": "grounded",
            "requests": [{"input_tokens": 10 + len(before), "output_tokens": 2}],
            "tools": {"search": 1},
        }
        if trouble:
            return trouble | {"trace": trace}
        finish = "length" if "cut" in words_of(question) else "stop"
        text = None if "nothing" in words_of(question) else f"{len(before)} before: {question}"
        return {"ok": True, "text": text, "finish": finish, "trace": trace}

    def forget(self, command):
        return {"ok": True}


def misbehave(text, place):
    words = words_of(text)
    once = place.with_name("broken")
    if "breakonce" in words and not once.exists():
        once.touch()
        os._exit(3)
    if "break" in words:
        print("about to break", file=sys.stderr, flush=True)
        os._exit(3)
    if "hang" in words:
        time.sleep(60)
    if "junk" in words:
        os.write(1, b"Loading weights: 100%\n")
    if "huge" in words:
        block = b"x" * (1 << 20)
        while True:
            os.write(1, block)
    if "twice" in words:
        os.write(1, b'{"ok": true, "text": "a", "trace": {}}\n')
    kinds = {"limit": "request_limit", "down": "connection", "odd": "never_heard_of", "end": "fatal"}
    for word, kind in kinds.items():
        if word in words:
            return {"ok": False, "kind": kind, "error": f"said {word}"}
    return None


def main():
    toy = Toy()
    print("toy starts", file=sys.stderr, flush=True)
    for line in sys.stdin:
        command = json.loads(line)
        reply = getattr(toy, command["do"])(command)
        sys.stdout.write(json.dumps(reply | {"id": command["id"]}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
