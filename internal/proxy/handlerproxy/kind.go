package handlerproxy

import (
	"path"

	"google.golang.org/protobuf/encoding/protowire"
)

// A Kind is a kind of handler, by the name of its socket.
type Kind string

// The kinds of handlers with messages to draw for.
const (
	Map           Kind = "map"
	BatchMap      Kind = "batchmap"
	MapStream     Kind = "mapstream"
	Sink          Kind = "sink"
	FallbackSink  Kind = "fb-sink"
	OnSuccessSink Kind = "ons-sink"
	Source        Kind = "source"
	Transform     Kind = "sourcetransform"
)

// Kinds returns every kind.
func Kinds() []Kind {
	return []Kind{Map, BatchMap, MapStream, Sink, FallbackSink, OnSuccessSink, Source, Transform}
}

// The folders in which the proxy meets the platform and the handler.
const (
	platformDir = "/var/run/numaflow"
	handlerDir  = "/var/run/handler"
)

// A layout describes a kind's files and messages.
type layout struct {
	// info is the name of the server-info file, mode the map mode in it.
	info, mode string
	// service is the gRPC service, method its method for messages.
	service, method string

	request  requestLayout
	response responseLayout
}

// A requestLayout has the field numbers of a request. id is the request's, bodyID the inner message's; one of them is 0.
type requestLayout struct {
	body, id, handshake, status protowire.Number

	keys, value, eventTime, watermark, headers, bodyID, metadata protowire.Number
}

// A responseLayout has the field numbers of a response.
type responseLayout struct {
	results, id, handshake, status, tags protowire.Number
}

var (
	mapRequest = requestLayout{
		body: 1, id: 2, handshake: 3, status: 4,
		keys: 1, value: 2, eventTime: 3, watermark: 4, headers: 5, metadata: 6,
	}
	mapResponse = responseLayout{results: 1, id: 2, handshake: 3, status: 4, tags: 3}
	sinkRequest = requestLayout{
		body: 1, status: 2, handshake: 3,
		keys: 1, value: 2, eventTime: 3, watermark: 4, bodyID: 5, headers: 6, metadata: 7,
	}
	sinkResponse     = responseLayout{results: 1, handshake: 2, status: 3}
	transformRequest = requestLayout{
		body: 1, handshake: 2,
		keys: 1, value: 2, eventTime: 3, watermark: 4, headers: 5, bodyID: 6, metadata: 7,
	}
	transformResponse = responseLayout{results: 1, id: 2, handshake: 3, tags: 4}
	// A read has no results with IDs; its contents are read in source.go.
	readRequest  = requestLayout{body: 1, handshake: 2}
	readResponse = responseLayout{results: 1, status: 2, handshake: 3}
)

func mapLayout(mode string) layout {
	return layout{info: "mapper-server-info", mode: mode, service: "map.v1.Map", method: "MapFn", request: mapRequest, response: mapResponse}
}

func sinkLayout(info string) layout {
	return layout{info: info, service: "sink.v1.Sink", method: "SinkFn", request: sinkRequest, response: sinkResponse}
}

var layouts = map[Kind]layout{
	Map:           mapLayout("unary-map"),
	BatchMap:      mapLayout("batch-map"),
	MapStream:     mapLayout("stream-map"),
	Sink:          sinkLayout("sinker-server-info"),
	FallbackSink:  sinkLayout("fb-sinker-server-info"),
	OnSuccessSink: sinkLayout("ons-sinker-server-info"),
	Source: {
		info: "sourcer-server-info", service: "source.v1.Source", method: "ReadFn", request: readRequest, response: readResponse,
	},
	Transform: {
		info: "sourcetransformer-server-info", service: "sourcetransformer.v1.SourceTransform", method: "SourceTransformFn",
		request: transformRequest, response: transformResponse,
	},
}

// isSink reports whether the kind is a sink.
func (k Kind) isSink() bool { return k == Sink || k == FallbackSink || k == OnSuccessSink }

// isMap reports whether the kind is one of the three kinds of map.
func (k Kind) isMap() bool { return k == Map || k == BatchMap || k == MapStream }

func (k Kind) socket(dir string) string { return path.Join(dir, string(k)+".sock") }

func (k Kind) infoFile(dir string) string { return path.Join(dir, layouts[k].info) }
