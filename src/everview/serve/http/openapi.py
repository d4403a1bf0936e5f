"""What the door by HTTP answers, as OpenAPI says it."""

from __future__ import annotations

from typing import Any, Final

import everview

_REF: Final = "#/components/schemas/"
_FORMAT: Final = {
    "name": "format",
    "in": "query",
    "description": "The format of the answer; the Accept header says it, too.",
    "schema": {"type": "string", "enum": ["json", "arrow", "csv"]},
}
_NAME: Final = {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}


def description() -> dict[str, Any]:
    """The description of all endpoints."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "Everview", "version": everview.__version__, "description": "Views that stay correct."},
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": _SCHEMAS,
        },
        "security": [{"token": []}, {}],
        "paths": {
            path: {method: _operation(**said) for method, said in methods.items()} for path, methods in _PATHS.items()
        },
    }


def _operation(
    summary: str,
    answer: dict[str, Any],
    parameters: tuple[dict[str, Any], ...] = (),
    body: dict[str, Any] | None = None,
    role: str = "read",
) -> dict[str, Any]:
    said: dict[str, Any] = {
        "summary": summary,
        "description": f"Needs the role {role}." if role else "Needs no token.",
        "responses": {
            "200": {"description": "as asked", "content": answer},
            "4XX": {"description": "refused", "content": _json("Error")},
        },
    }
    if parameters:
        said["parameters"] = list(parameters)
    if body is not None:
        said["requestBody"] = {"required": True, "content": body}
    return said


def _json(schema: str) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": _REF + schema}}}


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def _parameter(name: str, said: str, kind: str = "string", place: str = "query") -> dict[str, Any]:
    return {"name": name, "in": place, "description": said, "schema": {"type": kind}}


_TEXT: Final = {"type": "string"}
_INTEGER: Final = {"type": "integer"}
_SECONDS: Final = {"type": "number"}
_COUNTS: Final = {"type": "object", "additionalProperties": _INTEGER}
_SCHEMAS: Final[dict[str, Any]] = {
    "Timeline": _object(epoch=_INTEGER, epochs={"type": "array", "items": {"$ref": _REF + "Epoch"}}),
    "Epoch": _object(
        epoch=_INTEGER,
        began={**_SECONDS, "description": "Seconds since 1970."},
        seconds={**_SECONDS, "description": "How long it took as a whole."},
        rows_in={**_COUNTS, "description": "Changed rows by table or source."},
        rows_out={**_COUNTS, "description": "Changed rows by view."},
        placement={**_TEXT, "description": "process; of a Spark pipeline, driver or cluster."},
        reason={**_TEXT, "description": "Why it was placed there."},
        steps={"type": "object", "additionalProperties": _SECONDS, "description": "Of a pipeline: fetch, tick, …"},
        failure={"type": ["string", "null"], "description": "Why it did not count."},
    ),
    "Error": _object(
        error=_object(
            kind=_TEXT,
            message=_TEXT,
            hint={"type": ["string", "null"]},
            position=_object(line=_INTEGER, column=_INTEGER),
        )
    ),
    "Rows": _object(
        columns={"type": "array", "items": _object(name=_TEXT, type=_TEXT, nullable={"type": "boolean"})},
        rows={"type": "array", "items": {"type": "array"}},
        epoch=_INTEGER,
        next=_TEXT,
        total={"type": "integer", "description": "of all pages, where it is known"},
        result={"description": "of a statement that is no query: how many rows changed, a text, or nothing"},
    ),
    "Query": _object(
        sql=_TEXT,
        params={"type": ["array", "object", "null"]},
        dialect=_TEXT,
        timeout={"type": "number", "description": "seconds"},
        limit={"type": "integer", "description": "rows to send at most; total says how many there are"},
    ),
    "Relations": _object(epoch=_INTEGER, relations={"type": "array", "items": {"type": "object"}}),
    "Receipt": _object(rows=_INTEGER, epoch=_INTEGER, replayed={"type": "boolean"}),
    "Plan": _object(
        name=_TEXT, kind=_TEXT, text=_TEXT, dialect=_TEXT, plan=_TEXT, optimized=_TEXT, columns={"type": "array"}
    ),
    "Row": _object(row={"type": "object", "description": "a value for each column, as rows are told"}),
    "Why": _object(
        node=_TEXT,
        table=_TEXT,
        columns={"type": "array", "items": _TEXT},
        row={"type": ["array", "null"]},
        note=_TEXT,
        times=_INTEGER,
        ways=_INTEGER,
        more={"type": "integer", "description": "rows that are not shown"},
        again={"type": "boolean"},
        because={"type": "array", "items": {"$ref": _REF + "Why"}},
    ),
    "Health": _object(status=_TEXT, epoch=_INTEGER),
}
_ROWS: Final = {
    **_json("Rows"),
    "application/vnd.apache.arrow.stream": {},
    "text/csv": {},
}
_PATHS: Final[dict[str, dict[str, dict[str, Any]]]] = {
    "/v1/query": {
        "get": {
            "summary": "Answer a query.",
            "answer": _ROWS,
            "parameters": (_parameter("sql", "The query."), _FORMAT),
        },
        "post": {
            "summary": "Run statements; the answer is that of the last one.",
            "answer": _ROWS,
            "parameters": (_FORMAT,),
            "body": {**_json("Query"), "application/sql": {"schema": _TEXT}},
            "role": "read, write for changes of rows, or admin for definitions",
        },
    },
    "/v1/views": {
        "get": {
            "summary": "The tables and views with their columns.",
            "answer": _json("Relations"),
            "parameters": (_parameter("count", "Whether to count their rows.", "boolean"),),
        }
    },
    "/v1/views/{name}": {
        "get": {
            "summary": "The rows of a view or a table; other parameters are filters: column=value, column.gt=5.",
            "answer": _ROWS,
            "parameters": (
                _NAME,
                _parameter("select", "The columns, separated by commas."),
                _parameter("order", "The columns to order by, as in amount.desc,name."),
                _parameter("limit", "Rows of the page.", "integer"),
                _parameter("offset", "Rows before the page.", "integer"),
                _parameter("search", "Only rows that have this text in a column, whatever the case of its letters."),
                _parameter("count", "Whether to count all rows that are asked for: total.", "boolean"),
                _FORMAT,
            ),
        }
    },
    "/v1/views/{name}/changes": {
        "get": {
            "summary": "The changes of a view as server-sent events: snapshot, change, end.",
            "answer": {"text/event-stream": {}},
            "parameters": (
                _NAME,
                _parameter("since", "Go on after this epoch.", "integer"),
                _parameter("Last-Event-ID", "The same, as a browser sends it.", "integer", "header"),
                _parameter("snapshot", "Whether to begin with all rows if it must.", "boolean"),
            ),
        }
    },
    "/v1/views/{name}/plan": {
        "get": {
            "summary": "The columns of a table or view, and the text and the plans of a view.",
            "answer": _json("Plan"),
            "parameters": (_NAME,),
        }
    },
    "/v1/views/{name}/why": {
        "post": {
            "summary": "Why a view has a row: a tree of plan nodes down to rows of tables.",
            "answer": _json("Why"),
            "parameters": (_NAME,),
            "body": _json("Row"),
        }
    },
    "/v1/ingest/{name}": {
        "post": {
            "summary": "Take rows into a table, as one tick.",
            "answer": _json("Receipt"),
            "parameters": (
                _NAME,
                _parameter("mode", "insert, upsert or delete."),
                _parameter("Idempotency-Key", "Rows that come again with this key are taken once.", place="header"),
            ),
            "body": {
                "application/x-ndjson": {},
                "application/json": {},
                "text/csv": {},
                "application/vnd.apache.arrow.stream": {},
            },
            "role": "write",
        }
    },
    "/v1/progress": {
        "get": {
            "summary": "The last epochs, oldest first: when each ran, for how long, where, and what came in and out.",
            "answer": _json("Timeline"),
            "parameters": (_parameter("count", "How many epochs, at most; 100 if it is not said.", "integer"),),
        }
    },
    "/metrics": {
        "get": {"summary": "Metrics in Prometheus' text format.", "answer": {"text/plain": {"schema": _TEXT}}}
    },
    "/healthz": {"get": {"summary": "Whether the server answers.", "answer": _json("Health"), "role": ""}},
    "/openapi.json": {"get": {"summary": "This description.", "answer": {"application/json": {}}}},
}
