package natsstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// Pools in use write far more often. An expired record starts over.
	recordAge    = 7 * 24 * time.Hour
	minRecordAge = 24 * time.Hour

	// A replicated stream takes until its servers have elected a leader.
	createTimeout = 3 * time.Second

	// The size of a record: a base, and a row of about a hundred bytes (name and note) for each processor. A hundred processors with busy
	// texts, a thousand tag buckets and documents of all sizes stay below poolMsgSize; leastMsgSize hardly fits a few processors.
	valueBase    = 1 << 10
	valueOfRow   = 200
	leastMsgSize = 4 << 10
	poolMsgSize  = 128 << 10

	retentionLimits = "limits"
	discardNew      = "new"
	storageFile     = "file"
	persistAsync    = "async"
)

// streamConfig is the part of a stream's configuration that matters here. A server omits fields that it is too old to know.
//
//nolint:tagliatelle // the names are JetStream's
type streamConfig struct {
	Name              string        `json:"name"`
	Subjects          []string      `json:"subjects"`
	Retention         string        `json:"retention"`
	MaxConsumers      int           `json:"max_consumers"`
	MaxMsgs           int64         `json:"max_msgs"`
	MaxBytes          int64         `json:"max_bytes"`
	MaxAge            time.Duration `json:"max_age"`
	MaxMsgsPerSubject int64         `json:"max_msgs_per_subject"`
	MaxMsgSize        int32         `json:"max_msg_size"`
	Discard           string        `json:"discard"`
	Storage           string        `json:"storage"`
	Replicas          int           `json:"num_replicas"`
	DenyDelete        bool          `json:"deny_delete"`
	AllowRollup       bool          `json:"allow_rollup_hdrs"`

	// Never set, only checked in a bucket made by somebody else.
	NoAck            bool            `json:"no_ack,omitempty"`
	Sealed           bool            `json:"sealed,omitempty"`
	DiscardNewPer    bool            `json:"discard_new_per_subject,omitempty"`
	Mirror           json.RawMessage `json:"mirror,omitempty"`
	Sources          json.RawMessage `json:"sources,omitempty"`
	SubjectTransform json.RawMessage `json:"subject_transform,omitempty"`
	PersistMode      string          `json:"persist_mode,omitempty"`
	MsgCounter       bool            `json:"allow_msg_counter,omitempty"`
}

// streamInfo is the information from the stream's leader.
//
//nolint:tagliatelle // the names are JetStream's
type streamInfo struct {
	apiReply
	Config  streamConfig `json:"config"`
	Created time.Time    `json:"created"`
	State   struct {
		LastSeq uint64 `json:"last_seq"`
	} `json:"state"`
	Cluster *clusterInfo `json:"cluster"`
	// TimeStamp is set by servers from 2.10 on.
	TimeStamp *time.Time `json:"ts"`
}

// clusterInfo is the part of the stream's information about its servers.
type clusterInfo struct {
	Leader   string    `json:"leader"`
	Replicas []replica `json:"replicas"`
}

// A replica is another server of the stream than its leader.
type replica struct {
	Active time.Duration `json:"active"` // how long ago the leader last heard from it
}

// unheard is how long a leader can be without its followers and still be the only one: they elect another after four seconds at least.
// Heartbeats come every second.
const unheard = 3 * time.Second

// isolated reports whether the leader has lost the majority of the stream's servers. For ten seconds it believes that it leads: it answers
// reads, and takes writes that it can't commit, while another one may lead.
func (i *streamInfo) isolated() bool {
	if i.Cluster == nil {
		return false
	}
	received := 1 // by itself
	for _, r := range i.Cluster.Replicas {
		if r.Active < unheard {
			received++
		}
	}
	return received <= (len(i.Cluster.Replicas)+1)/2
}

// since returns the time from micros, in microseconds, to the server's time stamp; 0 if either is unknown.
func (i *streamInfo) since(micros int64) time.Duration {
	if i.TimeStamp == nil || micros == 0 {
		return 0
	}
	return max(0, i.TimeStamp.Sub(time.UnixMicro(micros)))
}

// identity names this life of the bucket; see the package documentation.
func (i *streamInfo) identity() (string, error) {
	id := i.Created.UTC().Format(time.RFC3339Nano)
	switch {
	case i.Created.IsZero():
		return "", errMade // not quite yet
	case i.Cluster == nil:
		return id, nil
	case i.Cluster.Leader == "":
		return "", errNoLeader
	default:
		return id + " " + i.Cluster.Leader, nil
	}
}

// checksTwice reports whether the server is known to check the expected sequence of a subject also when it applies a write.
func (i *streamInfo) checksTwice() bool {
	replicated := i.Config.Replicas > 1 || i.Cluster != nil && len(i.Cluster.Replicas) > 0
	return !replicated || i.TimeStamp != nil
}

// info requests the stream's information from its leader, which must not be isolated.
func (s line) info(ctx context.Context) (*streamInfo, error) {
	var info streamInfo
	if err := s.ask(ctx, callTimeout, s.api("STREAM.INFO"), nil, &info); err != nil {
		return nil, err
	}
	if info.isolated() {
		return nil, errIsolated
	}
	return &info, s.check(&info.Config)
}

// create makes the bucket. It returns a passing error once the bucket exists.
func (s line) create(ctx context.Context) error {
	replicas := []int{s.opts.replicas}
	if s.opts.replicas == 0 {
		// Only the server knows whether it is part of a cluster.
		replicas = []int{clusterReplicas, 1}
	}
	var err error
	for _, n := range replicas {
		var info streamInfo
		err = s.ask(ctx, createTimeout, s.api("STREAM.CREATE"), s.config(n), &info)
		switch {
		case err == nil:
			s.opts.log.Info("the NATS bucket for the pools is made", "bucket", s.opts.bucket, "replicas", info.Config.Replicas)
			return errMade
		case is(err, codeNameInUse):
			return errMade // by somebody else, with other settings
		case !is(err, codeNotClustered):
			return err
		}
	}
	return err
}

func (s *Store) config(replicas int) *streamConfig {
	return &streamConfig{
		Name: s.stream, Subjects: []string{s.subjects}, Retention: retentionLimits,
		MaxConsumers: -1, MaxMsgs: -1, MaxMsgSize: -1, MaxMsgsPerSubject: 1,
		MaxBytes: s.opts.maxBytes, MaxAge: recordAge,
		// A full bucket drops the pool that was silent for the longest time.
		Discard: "old", Storage: storageFile, Replicas: replicas,
		// As in every bucket, so that its tools work.
		DenyDelete: true, AllowRollup: true,
	}
}

// check returns an error with all reasons for a bucket that cannot hold pools. It warns once about a bucket with other settings than this
// package would choose.
func (s *Store) check(c *streamConfig) error {
	var faults []string
	fault := func(wrong bool, format string, args ...any) {
		if wrong {
			faults = append(faults, fmt.Sprintf(format, args...))
		}
	}
	fault(!slices.Contains(c.Subjects, s.subjects), "its subjects are %q, must include %q", c.Subjects, s.subjects)
	fault(c.Retention != retentionLimits, "its retention is %q, allowed: %q", c.Retention, retentionLimits)
	fault(c.MaxAge != 0 && c.MaxAge < minRecordAge, "its max_age is %v, allowed: 0 or %v and more", c.MaxAge, minRecordAge)
	fault(c.MaxMsgSize > 0 && c.MaxMsgSize < leastMsgSize, "its max_msg_size (max_value_size of a bucket) is %d, "+
		"allowed: -1, or %d and more for a pool of a hundred pods", c.MaxMsgSize, poolMsgSize)
	fault(c.MaxBytes > 0 && c.MaxBytes < minMaxBytes, "its max_bytes is %d, allowed: -1, or %d and more", c.MaxBytes, minMaxBytes)
	fault(c.Discard == discardNew && c.DiscardNewPer, "it refuses updates (discard_new_per_subject)")
	fault(c.Sealed, "it is sealed")
	fault(c.NoAck, "it acknowledges no writes (no_ack)")
	fault(c.PersistMode == persistAsync, "it acknowledges writes before they are kept (persist_mode async)")
	fault(isSet(c.Mirror), "it is a mirror")
	fault(isSet(c.Sources), "it copies other streams (sources)")
	fault(isSet(c.SubjectTransform), "it changes subjects (subject_transform)")
	fault(c.MsgCounter, "it keeps counters (allow_msg_counter)")
	if len(faults) > 0 {
		return fmt.Errorf("natsstore: the stream %s cannot keep pools: %s; change it (nats stream edit %s), or delete it and let the first pod make it",
			s.stream, strings.Join(faults, "; "), s.stream)
	}
	s.warnOnce(c)
	return nil
}

func (s *Store) warnOnce(c *streamConfig) {
	var odd []string
	if c.Storage != storageFile {
		odd = append(odd, "storage "+c.Storage+": a restart of the servers loses all pools")
	}
	if c.MaxMsgsPerSubject != 1 {
		odd = append(odd, fmt.Sprintf("max_msgs_per_subject %d: old values are kept", c.MaxMsgsPerSubject))
	}
	if c.MaxMsgSize > 0 && c.MaxMsgSize < poolMsgSize {
		odd = append(odd, fmt.Sprintf("max_msg_size %d: enough for about %d pods in a pool, and no more can join; set it to -1, or to %d and more",
			c.MaxMsgSize, (c.MaxMsgSize-valueBase)/valueOfRow, poolMsgSize))
	}
	if c.Discard == discardNew && (c.MaxBytes > 0 || c.MaxMsgs > 0) {
		odd = append(odd, fmt.Sprintf("discard new with max_bytes %d and max_msgs %d: once it is full it refuses what grows, "+
			"so that nobody can join; set discard to old", c.MaxBytes, c.MaxMsgs))
	} else if c.MaxMsgs > 0 {
		odd = append(odd, fmt.Sprintf("max_msgs %d: of more pools than that some go; set it to -1", c.MaxMsgs))
	}
	if c.Replicas < s.opts.replicas {
		odd = append(odd, fmt.Sprintf("%d replicas instead of %d", c.Replicas, s.opts.replicas))
	}
	if len(odd) > 0 && s.warned.CompareAndSwap(false, true) {
		s.opts.log.Warn("the NATS bucket exists with other settings", "bucket", s.opts.bucket, "settings", odd)
	}
}

// refused explains why the server rejects a value of size bytes, if a setting of the stream is the cause.
func (s *Store) refused(err error, size int, c *streamConfig) error {
	var api *apiError
	full := errors.As(err, &api) && api.ErrCode == codeStoreFailed && strings.Contains(api.Description, "maximum")
	switch {
	case is(err, codeTooLarge):
		return fmt.Errorf("natsstore: the record of the pool has %d bytes and grows with its pods, and the stream %s takes no more than its "+
			"max_msg_size of %d: set that to -1, or to %d and more (nats stream edit %s --max-msg-size=-1): %w",
			size, s.stream, c.MaxMsgSize, poolMsgSize, s.stream, err)
	case errors.Is(err, nats.ErrMaxPayload):
		return fmt.Errorf("natsstore: the record of the pool has %d bytes, and the server takes no more than its max_payload of %d: raise that: %w",
			size, s.nc.MaxPayload(), err)
	case full:
		return fmt.Errorf("natsstore: the stream %s is full and refuses what grows: its discard is %q with max_bytes %d and max_msgs %d: "+
			"set discard to old, or raise the limits (nats stream edit %s --discard=old): %w", s.stream, c.Discard, c.MaxBytes, c.MaxMsgs, s.stream, err)
	}
	return err
}

// isSet reports whether a field has a non-empty value.
func isSet(raw json.RawMessage) bool {
	switch string(raw) {
	case "", "null", "[]", "{}":
		return false
	}
	return true
}
