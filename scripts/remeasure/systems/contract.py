"""What a system is told and what it tells, one JSON object per line: the whole contract of an adapter.

An adapter is one file, ``scripts/systems/<adapter>.py``, run by the Python of its own environment: this
module imports nothing but the standard library. It reads commands from its standard input, answers each with
one line on its standard output in the order of the commands, writes what people may read to standard error,
and ends when its input ends. It keeps no state between commands but what makes it fast.

Commands are objects with ``do``:

``describe``  → ``{"ok": true, "versions": {package: version}, "arms": [...]}``.
``open``      ``database`` (folder), ``create`` (bool: it may be made and written; false: read only),
              ``embedder``, ``reranker``, ``answerer`` (endpoints, or null), ``options`` of database and
              system together. →
              ``{"ok": true, "stamp": {"model": name, "vector_dim": n, …}}``: what the database
              itself says of the embedder that its vectors come from, so that the workflow can compare. Never
              what it was told just now: a database of another embedder is opened, or refused with ``fatal``.
``ingest``    ``documents``: list of ``records.Document``. → ``{"ok": true, "n_documents": n, "n_chunks": n,
              "failed": [{"uri": ..., "reason": ...}]}``. A uri that is there already with chunks is skipped.
``finish``    after the last ``ingest``: makes the full text index cover every row. → ``{"ok": true,
              "n_documents": n, "n_chunks": n, "n_indexed": n}``, counted in the database: documents with
              chunks, chunks, chunks in the full text index. Of what was opened without ``create`` it only
              counts.
``search``    ``queries``: list of texts, ``limit``, ``filter`` (SQL WHERE over documents, or null), ``mode``
              (``hybrid``, or ``text`` for the full text index alone: how the workflow tests it).
              → ``{"ok": true, "results": [{"found": [hit…], "found_documents": [hit…]} | {"error": …}]}``.
``answer``    ``turns`` (the conversation, ending with the question), ``preamble`` (what the model is told of
              the domain beside the system's own instructions, or null), ``target``, ``filter``, ``thinking``,
              ``max_tokens``, ``temperature`` and other words of sampling. → an answer.
``converse``  one turn of a live conversation: ``question``, ``carry`` (null at the first turn), ``compact``,
              the rest as ``answer``. → an answer with ``carry``, anything that JSON can say.
``forget``    nothing more is asked of the open database. → ``{"ok": true}``.

Every command has an ``id``, and its reply repeats it. Standard output carries replies and nothing else: an
adapter turns it away from libraries that print (``os.dup2(2, 1)`` after keeping a copy).

An endpoint is ``{"base_url", "model", "key_env" (name of the variable that holds the key, or null),
"vector_dim" (of an embedder), "timeout_s" (of one request), "concurrency" (most requests in flight),
"dialect" (row of config/dialects.yaml)}``. ``thinking`` is null where the model does so by itself.

An answer is ``{"ok": true, "text", "finish", "trace": {…as records.Trace, without before and seconds…}}``.
What goes wrong with one command is ``{"ok": false, "kind": one of KINDS, "error": one line, "trace": …}``:
the adapter lives on. ``kind`` ``fatal`` means that nothing more can be done; the step stops with the error.
"""

KINDS = (
    "request_limit",  # the model never stopped asking for tools
    "context_length",
    "timeout",
    "connection",
    "server_error",
    "refused",
    "tool_error",
    "no_answer",  # messages without text or tool calls until nothing was left to try
    "bad_filter",
    "fatal",
)
"""Classes of failures."""

EVENTS = (
    "empty_searches",  # a search of an answer found nothing
    "tool_errors",  # a tool call that failed, and the model was told
    "unknown_tools",  # a call of a tool that there is not, or with arguments that cannot be read
    "rejected_searches",  # beyond the search budget
    "rejected_executions",  # beyond the budget of code
    "unresolved_citations",  # ids that stand for nothing
    "repaired_citations",  # ids that were replaced by the closest one retrieved
    "request_limit_reached",  # only citing was left
    "null_answers",  # the last message had no text
    "search_keys",  # different texts that were searched for; searches of code are one together
)
"""What is counted beside tool calls; zeros may be left out."""

DOES = ("search", "answer", "converse")
"""What a question may ask of a system (``task.do`` of a bench)."""

TARGETS = ("rag", "analysis")
"""How an answer is made: with search and citations, or with code on top."""
