// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestViolationHasSteps(t *testing.T) {
	p := &player{played: stepsOf(7, 3)[:3]}
	says := p.explain(7, errors.New("expected this, found that")).Error()
	for _, want := range []string{
		p.played[0].String() + "\n" + p.played[1].String() + "\n" + p.played[2].String() + "\n",
		"FAILED with seed 7 in step 3 (make soak SOAKSEED=7 plays it again):\nexpected this, found that",
	} {
		if !strings.Contains(says, want) {
			t.Errorf("the message lacks %q:\n%s", want, says)
		}
	}
}

func TestListSteps(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out, 7, time.Hour, 3, 0); err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for _, s := range stepsOf(7, 3)[:3] {
		want.WriteString(s.String() + "\n")
	}
	if diff := cmp.Diff(want.String(), out.String()); diff != "" {
		t.Error(diff)
	}
}

// TestReadersIgnoreWrittenObjects: objects that a step writes, or can affect in any way, are not
// compared.
func TestReadersIgnoreWrittenObjects(t *testing.T) {
	p := &player{ledger: newLedger()}
	p.ledger.put("a", "job-01", hub, record{HostPort: "host:1"})
	p.ledger.put("a", "job-02", hub, record{HostPort: "host:2"})
	before := []subject{{Name: "a", Served: []string{hub}}}
	s := step{Kind: "serve", Subject: "a", Writes: []write{{Subject: "a", Name: "job-02"}},
		After: []subject{{Name: "a", Served: []string{hub, joined}}}}
	want := []reading{{"a", "job-01", hub, entry{Record: record{HostPort: "host:1"}, WrittenAt: hub}}}
	if diff := cmp.Diff(want, p.readings(s, before), cmp.AllowUnexported(reading{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	s.Kind = "overwrite conversion"
	if got := p.readings(s, before); len(got) != 0 {
		t.Errorf("%v is read while another client's conversion is in force", got)
	}
}

// TestNeighborRecords: every version can express the address that clients write to neighbors, so that
// nothing depends on which version was written last.
func TestNeighborRecords(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	for range 100 {
		for _, version := range versions {
			r := randomRecord(random, false)
			if r.hostOnly() != "" {
				t.Errorf("at %s: %+v", version, r)
			}
			if other := (record{}).overwritten(version, r); !reflect.DeepEqual(other.spec(version), r.spec(version)) {
				t.Errorf("at %s, %v is read as %v", version, r.spec(version), other.spec(version))
			}
		}
	}
}
