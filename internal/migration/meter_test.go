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

// The log of a run is for people: it tells what happens, line by line. The
// clock moves 0.7 s at every look.
func TestLogTellsTheStory(t *testing.T) {
	var lines []string
	log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
	api := newFakeAPI(8)
	api.onPatch = func(key string) error {
		if key == "ns/a005" {
			return forbidden("a005")
		}
		return nil
	}
	engine := newTestEngine(api, &fakeStore{})
	engine.Clock = steppingClock(700 * time.Millisecond)
	if _, err := engine.Run(logr.NewContext(t.Context(), log)); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`"level"=0 "msg"="Migrating stored objects" "run"="run-1" "resource"="crontabs.example.com" "version"="v1"`,
		`"level"=0 "msg"="Waiting for writes at the old version to drain" "settle"="1m0s"`,
		`"level"=0 "msg"="Barrier passed: objects written from now on are current" "barrier"="108"`,
		`"level"=0 "msg"="Migrating" "done"=3 "total"=8 "rewritten"=3 "current"=0 "gone"=0 "failed"=0 "perSecond"=0`,
		`"level"=0 "msg"="Object failed" "object"="ns/a005" "message"="crontabs.example.com \"a005\" is forbidden: denied by policy"`,
		`"level"=0 "msg"="Migrating" "done"=6 "total"=8 "rewritten"=5 "current"=0 "gone"=0 "failed"=1 "perSecond"=0`,
		`"level"=0 "msg"="Migration ended with failed objects: objects at the old version remain" "total"=8 "rewritten"=7 "current"=0 "gone"=0 "failed"=1 "took"="1m21s"`,
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}
