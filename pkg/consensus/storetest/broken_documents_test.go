package storetest_test

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// eachReport is a fault in how reports on documents are understood.
func eachReport(spoil func(*driver.DocumentReport)) func(*driver.Request) {
	return func(r *driver.Request) {
		for i := range r.Documents {
			spoil(&r.Documents[i])
		}
	}
}

// untold hides documents from who sends a request.
func untold(hidden func(r driver.Request, d driver.Document) bool) func(driver.Request, *driver.Answer) {
	return func(r driver.Request, ans *driver.Answer) {
		ans.Documents = slices.DeleteFunc(ans.Documents, func(d driver.Document) bool { return hidden(r, d) })
	}
}

// reported tells whether a request reports on a document in a way.
func reported(r driver.Request, d driver.Document, so func(driver.DocumentReport) bool) bool {
	return slices.ContainsFunc(r.Documents, func(by driver.DocumentReport) bool { return by.Name == d.Name && so(by) })
}

// changes tells whether a report proposes a change.
func changes(d *driver.DocumentReport) bool { return d.Base < d.Version && len(d.Body) > 0 }

// nobodyLive tells whether nobody is in a pool.
func nobodyLive(r *driver.Record) bool {
	return !slices.ContainsFunc(r.Rows, func(w driver.Row) bool { return w.State == driver.RowLive })
}

// documentFaults are about documents, notes and the beginning of a pool.
var documentFaults = map[string]fault{
	"a spacing by a document counts as any other": {
		found:   "a spacing by the newest version of a document counts at once",
		request: func(r *driver.Request) { r.SpacingBy = "" },
	},
	"a spacing by an outdated document counts at once": {
		found: "a spacing by the newest version of a document counts at once",
		request: func(r *driver.Request) {
			if r.SpacingBy != "" { // by one that nobody has a newer version of
				r.SpacingBy = "\xff"
				r.Documents = append(slices.Clip(r.Documents), driver.DocumentReport{Name: r.SpacingBy, Version: 1})
			}
		},
		answer: untold(func(_ driver.Request, d driver.Document) bool { return d.Name == "\xff" }),
	},
	"a change of an older version is taken": {
		found: "of two changes of one version the first is taken",
		request: eachReport(func(d *driver.DocumentReport) {
			if len(d.Body) > 0 {
				d.Base = d.Version
			}
		}),
	},
	"nothing is given back": {
		found: "what the store has not is given back",
		request: eachReport(func(d *driver.DocumentReport) {
			if d.Base == d.Version {
				d.Body = nil
			}
		}),
	},
	"changes are not taken": {
		found: "a document is told to whoever has it not",
		request: eachReport(func(d *driver.DocumentReport) {
			if changes(d) {
				d.Version, d.Body = d.Base, nil
			}
		}),
	},
	"a version that was lost is not told": {
		found:  "what the store has not is given back",
		answer: untold(func(_ driver.Request, d driver.Document) bool { return d.Version == 0 }),
	},
	"only newer versions are told": {
		found: "a document is told to whoever has it not",
		answer: untold(func(r driver.Request, d driver.Document) bool {
			return d.Version > 0 && reported(r, d, func(by driver.DocumentReport) bool { return by.Version > d.Version })
		}),
	},
	"versions are compared, and bodies are not": {
		found: "of two changes of one version the first is taken",
		answer: untold(func(r driver.Request, d driver.Document) bool {
			return reported(r, d, func(by driver.DocumentReport) bool { return by.Version == d.Version })
		}),
	},
	"documents go with the last processor": {
		found: "documents outlive the processors",
		record: func(r *driver.Record, _ driver.At) {
			if nobodyLive(r) {
				r.Documents = nil
			}
		},
	},
	"versions are floats": {
		found: "versions are kept exactly",
		record: func(r *driver.Record, _ driver.At) {
			for i := range r.Documents {
				if v := &r.Documents[i].Version; *v < 1<<62 {
					*v = driver.Version(float64(*v))
				}
			}
		},
	},
	"bodies are text": {
		found: "bodies are kept exactly, up to the largest",
		answer: func(_ driver.Request, ans *driver.Answer) {
			for i := range ans.Documents {
				ans.Documents[i].Body = bytes.ToValidUTF8(ans.Documents[i].Body, []byte("?"))
			}
		},
	},
	"there is no limit to documents": {
		found: "a pool has so many documents and no more",
		request: eachReport(func(d *driver.DocumentReport) {
			if d.Name >= "b" && d.Name < "c" {
				d.Body = nil // as if it were kept, and not told
			}
		}),
		answer: untold(func(_ driver.Request, d driver.Document) bool { return d.Name == "b" }),
	},
	"a refused request takes documents": {
		found: "a refused request takes and tells no document",
		sync: func(ctx context.Context, s *server, req driver.Request) (driver.Answer, error) {
			ans, err := s.Sync(ctx, req)
			for _, d := range req.Documents {
				if err == nil && ans.Status != driver.Granted && changes(&d) {
					_, _ = s.Save(ctx, req.Pool, d)
				}
			}
			return ans, err
		},
	},
	"a repeat takes documents": {
		found: "a repeat changes no document, and tells what is there now",
		sync: func(ctx context.Context, s *server, req driver.Request) (driver.Answer, error) {
			if req.Validate() == nil && ctx.Err() == nil {
				s.mu.Lock()
				rec := &s.entry(req.Pool).rec
				for _, row := range rec.Rows {
					if row.ID != req.ID || row.Incarnation != req.Incarnation || row.Seq != req.Seq || row.Nonce != req.Nonce {
						continue
					}
					for i := range req.Documents {
						_, _, _ = rec.Save(&req.Documents[i], driver.At{})
					}
				}
				s.mu.Unlock()
			}
			return s.Sync(ctx, req)
		},
	},
	"notes are lost":    {found: "a note is shown in the roster, exactly", request: func(r *driver.Request) { r.Note = "" }},
	"notes are trimmed": {found: "a note is shown in the roster, exactly", request: func(r *driver.Request) { r.Note = strings.TrimSpace(r.Note) }},
	"every sync is a beginning": {
		found:  "a pool begins when nobody is there, and tells how long it slept",
		answer: granted(func(_ driver.Request, ans *driver.Answer) { ans.Epoch = ans.Time }),
	},
	"a silence is time of the pool": {
		found:  "a pool begins when nobody is there, and tells how long it slept",
		answer: func(_ driver.Request, ans *driver.Answer) { ans.Silence = 0 },
	},
	"a pool never begins anew": {
		found: "a pool begins when nobody is there, and tells how long it slept",
		record: func(r *driver.Record, _ driver.At) {
			if r.Epoch > 0 && nobodyLive(r) {
				r.Rows = append(r.Rows, driver.Row{RowKey: driver.RowKey{ID: "~", Incarnation: "1"}, LastSeen: r.Clock})
			}
		},
	},
	"a beginning is known to who has forgotten it": {
		found:  "a store that has forgotten something does not know when the pool began",
		answer: granted(func(_ driver.Request, ans *driver.Answer) { ans.Epoch = max(ans.Epoch, 1) }),
	},
	"a silence is not shown":     {found: "loading shows documents and live processors", roster: func(w *driver.RosterRow) { w.Silent = 0 }},
	"a claim is removed at once": {found: "loading shows documents and live processors", roster: func(w *driver.RosterRow) { w.Left = 0 }},
	"processors see no silence": {
		found: "loading shows documents and live processors",
		answer: granted(func(_ driver.Request, ans *driver.Answer) {
			for i := range ans.Roster {
				ans.Roster[i].Silent, ans.Roster[i].Left = 0, 0
			}
		}),
	},
	"who has just spoken is silent": {found: "loading shows documents and live processors", roster: func(w *driver.RosterRow) { w.Silent += time.Second }},
	"a document is saved over another": {
		found: "a document is saved if nobody has changed it",
		save: func(ctx context.Context, s *server, pool string, d driver.DocumentReport) (driver.Version, error) {
			current, err := s.Save(ctx, pool, d)
			var conflict *driver.ConflictError
			if errors.As(err, &conflict) && current < d.Version {
				d.Base = current
				return s.Save(ctx, pool, d)
			}
			return current, err
		},
	},
	"saving again is a conflict": {
		found: "a document is saved if nobody has changed it",
		save: func(ctx context.Context, s *server, pool string, d driver.DocumentReport) (driver.Version, error) {
			docs, _, err := s.Load(ctx, pool)
			for _, doc := range docs {
				if doc.Name == d.Name && doc.Version != d.Base {
					return doc.Version, &driver.ConflictError{Name: d.Name, Base: d.Base, Current: doc.Version}
				}
			}
			if err != nil {
				return 0, err
			}
			return s.Save(ctx, pool, d)
		},
	},
	"saving makes a pool": {
		found: "a pool without a record has no documents, and saving makes none",
		save: func(ctx context.Context, s *server, pool string, d driver.DocumentReport) (driver.Version, error) {
			current, err := s.Save(ctx, pool, d)
			if errors.Is(err, driver.ErrNoPool) {
				return d.Version, nil
			}
			return current, err
		},
	},
	"saving is not atomic": {
		found: "of many changes at once none is lost",
		save: func(ctx context.Context, s *server, pool string, d driver.DocumentReport) (driver.Version, error) {
			docs, _, err := s.Load(ctx, pool)
			if err != nil {
				return 0, err
			}
			current := driver.Version(0)
			for _, doc := range docs {
				if doc.Name == d.Name {
					current = doc.Version
				}
			}
			if current != d.Base {
				return current, &driver.ConflictError{Name: d.Name, Base: d.Base, Current: current}
			}
			runtime.Gosched() // where there is one core, too
			s.mu.Lock()
			defer s.mu.Unlock()
			s.pools[pool].rec.Documents = []driver.Document{{Name: d.Name, Version: d.Version, Body: d.Body}}
			return d.Version, nil
		},
	},
}
