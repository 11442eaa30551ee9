package mapper

import (
	batchmapsdk "github.com/numaproj/numaflow-go/pkg/batchmapper"
	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"
	mapstreamsdk "github.com/numaproj/numaflow-go/pkg/mapstreamer"
)

// A batchDatum presents a message of a batch as one of a unary map, without metadata, so that one kind of option serves both. Id and Keys
// are there too.
type batchDatum struct{ batchmapsdk.Datum }

func (batchDatum) UserMetadata() *mapsdk.UserMetadata     { return nil }
func (batchDatum) SystemMetadata() *mapsdk.SystemMetadata { return nil }

// A streamDatum does the same for a message of a stream map.
type streamDatum struct{ mapstreamsdk.Datum }

func (streamDatum) UserMetadata() *mapsdk.UserMetadata     { return nil }
func (streamDatum) SystemMetadata() *mapsdk.SystemMetadata { return nil }

// batchMessage turns an answer into one of a batch. It drops metadata, which a batch map does not have.
func batchMessage(m mapsdk.Message) batchmapsdk.Message {
	out := batchmapsdk.NewMessage(m.Value())
	if m.NackOptions() != nil {
		out = batchmapsdk.MessageToNack(m.NackOptions())
	}
	return out.WithKeys(m.Keys()).WithTags(m.Tags())
}

// streamMessage does the same for a stream map.
func streamMessage(m mapsdk.Message) mapstreamsdk.Message {
	out := mapstreamsdk.NewMessage(m.Value())
	if m.NackOptions() != nil {
		out = mapstreamsdk.MessageToNack(m.NackOptions())
	}
	return out.WithKeys(m.Keys()).WithTags(m.Tags())
}

// convert converts a whole answer.
func convert[M any](in []mapsdk.Message, one func(mapsdk.Message) M) []M {
	out := make([]M, len(in))
	for i := range in {
		out[i] = one(in[i])
	}
	return out
}
