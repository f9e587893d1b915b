// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/soak"
)

const (
	soakSeeds, soakSteps = 8, 20
	// soakPause is the virtual time between steps.
	soakPause = 24 * time.Hour
)

// needCluster are the invariants of what this world does not have: objects as clients read them, their
// annotations, and certificates and rulesets of pods.
var needCluster = []string{"what is read", "annotations hold", "every object is readable", "certificates", "caBundle", "the ruleset", "rulesets", "the definition converts"}

// TestSoak plays random sequences of package soak for thousands of virtual hours, and checks their
// invariants after each change. This world has one policy with pods of its own. It cannot carry fleets,
// failures, the removal of versions, and the end of a policy with its converter or without: make soak performs these.
func TestSoak(t *testing.T) {
	for seed := range uint64(soakSeeds) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			w := &soaked{world: newWorld(t, policyYAML), stored: map[string]soak.Stored{}}
			w.ask("v1", 0)
			steps, start := soak.NewPlannedSequence(seed), w.observed.Now
			for range soakSteps {
				w.play(steps.Next())
			}
			t.Logf("%d steps in %.0f virtual hours", len(w.played), w.observed.Now.Sub(start).Hours())
		})
	}
}

// soaked is a world with objects.
type soaked struct {
	*world
	stored map[string]soak.Stored
	last   soak.Observation
	pruned int64
	played []string
	seen   int64
}

func (w *soaked) play(s soak.Step) {
	w.t.Helper()
	is := s.After.Subjects["a"]
	if len(is.CRD.Spec.Versions) == 0 {
		return
	}
	w.played = append(w.played, s.String())
	w.act(s, is)
	for _, object := range s.Writes {
		if _, exists := is.Objects[object.Name]; !exists {
			delete(w.stored, object.Name)
			continue
		}
		w.seen++
		w.stored[object.Name] = soak.Stored{Name: object.Name, Version: crds.StorageVersion(w.observed.CRD), Revision: w.seen}
	}
	w.finish(s)
}

func (w *soaked) act(s soak.Step, is *soak.Subject) {
	w.t.Helper()
	switch s.Name {
	case "overwrite conversion":
		foreign := w.observed.CRD.Spec.Conversion.DeepCopy()
		expect.NoError(w.t, json.Unmarshal([]byte(s.Detail), foreign))
		w.Write("installer", foreign)
		return
	case "prune storedVersions":
		w.seen++
		w.pruned = w.seen
		w.observed.CRD.Status.StoredVersions = []string{crds.StorageVersion(w.observed.CRD)}
		return
	}
	if !equality.Semantic.DeepEqual(w.observed.Policy.Spec, *is.Policy) {
		w.observed.Policy.Spec = *is.Policy
		w.observed.Policy.Generation++
	}
	if s.Author {
		crd := is.Definition(cmp.Or(w.observed.CRD, &apiextensionsv1.CustomResourceDefinition{}))
		crd.Name, crd.Spec.Group = crontabs, "example.com"
		text, err := yaml.Marshal(crd)
		expect.NoError(w.t, err)
		w.applyCRD(string(text))
	}
}

// finish lets migrations run to their end, and checks the invariants meanwhile and after.
func (w *soaked) finish(s soak.Step) {
	w.t.Helper()
	for pass := range 20 {
		w.later(soakPause)
		w.check(soak.Always, s)
		run := w.observed.Policy.Status.Migration
		waits := run == nil || run.State != v1alpha1.MigrationRunning || w.observed.Policy.Spec.Paused || w.observed.Policy.Spec.Migration.Suspend
		if waits && pass >= 2 {
			break // a change is followed by another one after a delay
		}
		if waits {
			continue
		}
		for name := range w.stored {
			w.seen++
			w.stored[name] = soak.Stored{Name: name, Version: run.StorageVersion, Revision: w.seen}
		}
		w.record(contract.Record{CRDUID: w.observed.CRD.UID, State: contract.StateCompleted, Counters: contract.Counters{Total: int64(len(w.stored)), Rewritten: int64(len(w.stored))}})
	}
	w.check(soak.AtRest, s)
}

func (w *soaked) check(invariants []soak.Invariant, s soak.Step) {
	w.t.Helper()
	now := soak.Observation{Time: w.observed.Now, Subject: s.After.Subjects["a"], CRD: *w.observed.CRD.DeepCopy(), Policy: *w.observed.Policy.DeepCopy(),
		Stored: slices.Collect(maps.Values(w.stored)), Pruned: w.pruned}
	possible := slices.DeleteFunc(slices.Clone(invariants), func(is soak.Invariant) bool {
		return slices.ContainsFunc(needCluster, func(name string) bool { return strings.HasPrefix(is.Name, name) })
	})
	if err := soak.Check(possible, now, w.last); err != nil {
		w.t.Fatalf("after the steps\n%s\nviolated:\n%v", strings.Join(w.played, "\n"), err)
	}
	w.last, w.pruned = now, now.StillPruned()
}
