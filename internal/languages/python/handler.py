"""A handler of pynumaflow that answers with what it was given, for the tests.

    handler.py KIND SOCKET SERVER_INFO

A payload of "die" ends the process at once, with the message unanswered.
"""

import os
import sys
from collections.abc import AsyncIterable

from pynumaflow import batchmapper, mapper, mapstreamer, sinker, sourcetransformer


def seen(value: bytes) -> bytes:
    if value == b"die":
        os._exit(9)
    return b"python " + value


async def map_one(keys: list[str], datum: mapper.Datum) -> mapper.Messages:
    if datum.value == b"drop":
        return mapper.Messages(mapper.Message.to_drop())
    tags = [datum.headers["tokens"]] if "tokens" in datum.headers else None
    return mapper.Messages(mapper.Message(seen(datum.value), keys=keys, tags=tags))


async def map_batch(datums: AsyncIterable[batchmapper.Datum]) -> batchmapper.BatchResponses:
    responses = batchmapper.BatchResponses()
    async for datum in datums:
        response = batchmapper.BatchResponse.from_id(datum.id)
        response.append(batchmapper.Message(seen(datum.value), keys=datum.keys))
        responses.append(response)
    return responses


async def map_stream(keys: list[str], datum: mapstreamer.Datum) -> AsyncIterable[mapstreamer.Message]:
    for _ in range(3):
        yield mapstreamer.Message(seen(datum.value), keys=keys)


async def store(datums: AsyncIterable[sinker.Datum]) -> sinker.Responses:
    responses = sinker.Responses()
    async for datum in datums:
        if seen(datum.value) == b"python fail":
            responses.append(sinker.Response.as_failure(datum.id, "as asked"))
        else:
            responses.append(sinker.Response.as_success(datum.id))
    return responses


def transform(keys: list[str], datum: sourcetransformer.Datum) -> sourcetransformer.Messages:
    return sourcetransformer.Messages(sourcetransformer.Message(seen(datum.value), datum.event_time, keys=keys))


SERVERS = {
    "map": lambda **at: mapper.MapAsyncServer(map_one, **at),
    "batchmap": lambda **at: batchmapper.BatchMapAsyncServer(map_batch, **at),
    "mapstream": lambda **at: mapstreamer.MapStreamAsyncServer(map_stream, **at),
    "sink": lambda **at: sinker.SinkAsyncServer(store, **at),
    "sourcetransform": lambda **at: sourcetransformer.SourceTransformServer(transform, **at),
}

if __name__ == "__main__":
    kind, socket, info = sys.argv[1:]
    SERVERS[kind](sock_path=socket, server_info_file=info).start()
