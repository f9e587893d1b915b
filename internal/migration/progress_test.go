// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
)

// Every patch takes two seconds: progress is logged with the first rate, and ten seconds later.
func TestLogShowsProgress(t *testing.T) {
	var lines []string
	log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{Verbosity: 1})
	api, clock := newFakeAPI(8), newFakeClock()
	api.onPatch = func(key string) error {
		if err := clock.Sleep(t.Context(), 2*time.Second); err != nil {
			return err
		}
		if key == "ns/a005" {
			return forbidden("a005")
		}
		return nil
	}
	engine := newTestEngine(api, &fakeStore{})
	engine.Clock, engine.PageSize = clock, 1
	if _, err := engine.Run(logr.NewContext(t.Context(), log)); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`"level"=0 "msg"="Migrating stored objects" "policy"="crontabs.example.com" "run"="run-1" "resource"="crontabs.example.com" "version"="v1" "state"="Propagating"`,
		`"level"=0 "msg"="Every API server shows the storage version" "policy"="crontabs.example.com" "run"="run-1" "apiServers"=1`,
		`"level"=0 "msg"="Waiting for writes at the old version to drain" "policy"="crontabs.example.com" "run"="run-1" "propagationDelay"="1m0s"`,
		`"level"=0 "msg"="Barrier passed: writes at the old version have drained" "policy"="crontabs.example.com" "run"="run-1" "barrier"="108" "kind"="AllServers"`,
		`"level"=0 "msg"="Migrating" "policy"="crontabs.example.com" "run"="run-1" "done"=1 "total"=8 "rewritten"=1 "current"=0 "gone"=0 "failed"=0 "perSecond"=0.5`,
		`"level"=1 "msg"="Object failed" "policy"="crontabs.example.com" "run"="run-1" "object"="ns/a005" "reason"="AdmissionDenied" "message"="crontabs.example.com \"a005\" is forbidden: denied by policy" "command"="kubectl patch crontabs.v1.example.com a005 --namespace ns --type merge --patch '{}' --dry-run=server"`,
		`"level"=0 "msg"="Migrating" "policy"="crontabs.example.com" "run"="run-1" "done"=6 "total"=8 "rewritten"=5 "current"=0 "gone"=0 "failed"=1 "perSecond"=0.5`,
		`"level"=0 "msg"="Migration ended with failed objects: objects at the old version remain" "policy"="crontabs.example.com" "run"="run-1" "total"=8 "rewritten"=7 "current"=0 "gone"=0 "failed"=1 "byFallback"=0 "verified"=0 "took"="1m17s" "example"="ns/a005" "reason"="AdmissionDenied" "message"="crontabs.example.com \"a005\" is forbidden: denied by policy"`,
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}
