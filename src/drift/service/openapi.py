"""The description of a service for programs: OpenAPI 3.1."""

from typing import Any

from drift.tasks.service import Service


def description(service: Service, title: str, version: str, most_rows: int) -> dict[str, Any]:
    """The document at `/openapi.json`. title: of the model."""
    rows = {
        name: {"type": "array", "items": dict(each.schema), "maxItems": most_rows}
        for name, each in service.inputs.items()
    }
    options = {
        "abstain_below": {
            "type": "number",
            "minimum": 0,
            "maximum": 1,
            "default": 0,
            "description": "No label, or no entity, if the confidence is lower.",
        },
        "probabilities": {"type": "boolean", "default": True, "description": "Send those of all classes."},
    }
    request = {
        "type": "object",
        "properties": {**rows, **options},
        "oneOf": [{"required": [name]} for name in rows],
        "additionalProperties": False,
        "example": {name: list(each.example) for name, each in [next(iter(service.inputs.items()))]},
    }
    answer = {
        "type": "object",
        "required": ["predictions"],
        "properties": {"predictions": {"type": "array", "items": dict(service.schema)}},
    }
    error = {"type": "object", "required": ["error"], "properties": {"error": {"type": "string"}}}

    def reply(text: str, schema: dict[str, Any]) -> dict[str, Any]:
        return {"description": text, "content": {"application/json": {"schema": schema}}}

    predict = {
        "operationId": "predict",
        "summary": "Classify rows",
        "requestBody": {"required": True, "content": {"application/json": {"schema": request}}},
        "responses": {
            "200": reply("One prediction per row, in the same order.", answer),
            "400": reply("The request is wrong; the error says what.", error),
            "413": {"description": "The request has too many bytes."},
            "415": {"description": "The request is not JSON."},
            "503": reply("Too much is waiting, or it took too long; try again later.", error),
        },
    }
    health = {
        "operationId": "health",
        "summary": "Whether the service answers",
        "responses": {"200": reply("It does.", {"type": "object"})},
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": version},
        "paths": {"/predict": {"post": predict}, "/health": {"get": health}},
    }
