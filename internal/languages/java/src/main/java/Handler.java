import io.numaproj.numaflow.batchmapper.BatchMapper;
import io.numaproj.numaflow.batchmapper.BatchResponse;
import io.numaproj.numaflow.batchmapper.BatchResponses;
import io.numaproj.numaflow.mapper.Mapper;
import io.numaproj.numaflow.mapper.MessageList;
import io.numaproj.numaflow.mapstreamer.MapStreamer;
import io.numaproj.numaflow.mapstreamer.OutputObserver;
import io.numaproj.numaflow.sinker.Response;
import io.numaproj.numaflow.sinker.ResponseList;
import io.numaproj.numaflow.sinker.Sinker;

import java.nio.charset.StandardCharsets;

/** A handler of numaflow-java that answers with what it was given, for the tests: Handler KIND SOCKET SERVER_INFO */
public final class Handler {
    private static byte[] seen(byte[] value) {
        return ("java " + new String(value, StandardCharsets.UTF_8)).getBytes(StandardCharsets.UTF_8);
    }

    static final class One extends Mapper {
        @Override
        public MessageList processMessage(String[] keys, io.numaproj.numaflow.mapper.Datum datum) {
            String tokens = datum.getHeaders().get("tokens");
            String[] tags = tokens == null ? new String[0] : new String[] {tokens};
            return MessageList.newBuilder()
                    .addMessage(new io.numaproj.numaflow.mapper.Message(seen(datum.getValue()), keys, tags))
                    .build();
        }
    }

    static final class Batch extends BatchMapper {
        @Override
        public BatchResponses processMessage(io.numaproj.numaflow.batchmapper.DatumIterator datums) {
            BatchResponses responses = new BatchResponses();
            try {
                for (var datum = datums.next(); datum != null; datum = datums.next()) {
                    responses.append(new BatchResponse(datum.getId()).append(
                            new io.numaproj.numaflow.batchmapper.Message(seen(datum.getValue()), datum.getKeys())));
                }
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            return responses;
        }
    }

    static final class Many extends MapStreamer {
        @Override
        public void processMessage(String[] keys, io.numaproj.numaflow.mapstreamer.Datum datum, OutputObserver out) {
            for (int i = 0; i < 3; i++) {
                out.send(new io.numaproj.numaflow.mapstreamer.Message(seen(datum.getValue()), keys));
            }
        }
    }

    static final class Store extends Sinker {
        @Override
        public ResponseList processMessages(io.numaproj.numaflow.sinker.DatumIterator datums) {
            var responses = ResponseList.newBuilder();
            try {
                for (var datum = datums.next(); datum != null; datum = datums.next()) {
                    boolean fail = "fail".equals(new String(datum.getValue(), StandardCharsets.UTF_8));
                    responses.addResponse(fail
                            ? Response.responseFailure(datum.getId(), "as asked")
                            : Response.responseOK(datum.getId()));
                }
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            return responses.build();
        }
    }

    public static void main(String[] args) throws Exception {
        String kind = args[0], socket = args[1], info = args[2];
        switch (kind) {
            case "map" -> {
                var server = new io.numaproj.numaflow.mapper.Server(new One(), io.numaproj.numaflow.mapper.GRPCConfig
                        .newBuilder().socketPath(socket).infoFilePath(info).isLocal(false).maxMessageSize(64 << 20).build());
                server.start();
                server.awaitTermination();
            }
            case "batchmap" -> {
                var server = new io.numaproj.numaflow.batchmapper.Server(new Batch(), io.numaproj.numaflow.batchmapper.GRPCConfig
                        .newBuilder().socketPath(socket).infoFilePath(info).isLocal(false).maxMessageSize(64 << 20).build());
                server.start();
                server.awaitTermination();
            }
            case "mapstream" -> {
                var server = new io.numaproj.numaflow.mapstreamer.Server(new Many(), io.numaproj.numaflow.mapstreamer.GRPCConfig
                        .newBuilder().socketPath(socket).infoFilePath(info).isLocal(false).maxMessageSize(64 << 20).build());
                server.start();
                server.awaitTermination();
            }
            case "sink" -> {
                var server = new io.numaproj.numaflow.sinker.Server(new Store(), io.numaproj.numaflow.sinker.GRPCConfig
                        .newBuilder().socketPath(socket).infoFilePath(info).isLocal(false).maxMessageSize(64 << 20).build());
                server.start();
                server.awaitTermination();
            }
            default -> throw new IllegalArgumentException("kind is " + kind + ", allowed: map, batchmap, mapstream, sink");
        }
    }
}
