//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

const (
	yearOld  = "size: {type: integer}, note: {type: string}, "
	weighted = ", w: {type: integer}"
)

// year is a sequence of changes of a kind, each with its title.
var year = []struct {
	what    string
	storage string
	kind    twoVersions
}{
	{"v1 is stored; v1 alone has note and weights, v2 alone has tier", "v1", twoVersions{
		yearOld + fmt.Sprintf(ports, weighted), "scale: {type: integer}, tier: {type: string}, " + fmt.Sprintf(ports, ""),
		rulesOf("v2", "{move: {from: .spec.size, to: .spec.scale}}")}},
	{"v1 gains the field tier", "v1", twoVersions{
		yearOld + "tier: {type: string}, " + fmt.Sprintf(ports, weighted), "scale: {type: integer}, tier: {type: string}, " + fmt.Sprintf(ports, ""),
		rulesOf("v2", "{move: {from: .spec.size, to: .spec.scale}}")}},
	{"v2 calls scale replicas", "v1", twoVersions{
		yearOld + "tier: {type: string}, " + fmt.Sprintf(ports, weighted), "replicas: {type: integer}, tier: {type: string}, " + fmt.Sprintf(ports, ""),
		rulesOf("v2", "{move: {from: .spec.size, to: .spec.replicas}}")}},
	{"v1 is the hub, and v2 is stored", "v2", twoVersions{
		yearOld + "tier: {type: string}, " + fmt.Sprintf(ports, weighted), "replicas: {type: integer}, tier: {type: string}, " + fmt.Sprintf(ports, ""),
		rulesOf("v1", "{move: {from: .spec.replicas, to: .spec.size}}")}},
	{"the list has keys, and v2 gains note, which it calls remark", "v2", twoVersions{
		yearOld + "tier: {type: string}, " + fmt.Sprintf(keyed, weighted), "replicas: {type: integer}, remark: {type: string}, tier: {type: string}, " + fmt.Sprintf(keyed, ""),
		rulesOf("v1", "{move: {from: .spec.replicas, to: .spec.size}}, {move: {from: .spec.remark, to: .spec.note}}")}},
	{"v1 is stored again, and v2 gains weights", "v1", twoVersions{
		yearOld + "tier: {type: string}, " + fmt.Sprintf(keyed, weighted), "replicas: {type: integer}, remark: {type: string}, tier: {type: string}, " + fmt.Sprintf(keyed, weighted),
		rulesOf("v1", "{move: {from: .spec.replicas, to: .spec.size}}, {move: {from: .spec.remark, to: .spec.note}}")}},
}

// written is what clients wrote to an object.
type written struct {
	sync.Mutex
	size, weight int64
	note, tier   string
}

// testYear: a kind changes five times while clients write many objects at both versions.
// After each change all objects are rewritten, as by migrations. Nothing is lost.
func testYear(t *testing.T, s *apiServer) {
	if !s.cached {
		t.Log("it is played with a watch cache: it takes long, and what conversions do does not depend on that")
		return
	}
	const objects = 400
	k := s.install(t, "year", year[0].kind.versions(year[0].storage), year[0].kind.rules)
	all := make([]*written, objects)
	each(objects, func(i int) {
		all[i] = &written{size: int64(i), weight: int64(i % 7), note: fmt.Sprint("note ", i), tier: "none"}
		k.create(t, "v1", name(i), fmt.Sprintf("spec: {size: %d, note: %q, ports: [{name: b}, {name: a, w: %d}]}", i, all[i].note, i%7))
		k.mergePatch(t, "v2", name(i), "spec: {tier: none}")
	})
	for turn, next := range year {
		var clients sync.WaitGroup
		var writes, refused atomic.Int64
		ctx, cancel := context.WithCancel(t.Context())
		for client := range 2 {
			clients.Go(func() { k.keepWriting(ctx, all, uint64(turn*10+client), &writes, &refused) })
		}
		if turn > 0 {
			k.evolve(t, next.kind, next.storage)
		}
		each(objects, func(i int) {
			k.rewrite(t, "v1", name(i))
			k.rewrite(t, "v2", name(i))
		})
		cancel()
		clients.Wait()
		var lost atomic.Int64
		each(objects, func(i int) { lost.Add(k.wantWritten(t, name(i), all[i])) })
		t.Logf("%d. %s: %d objects rewritten, %d writes meanwhile and %d that were refused, %d values lost", turn, next.what, objects, writes.Load(), refused.Load(), lost.Load())
	}
}

// each calls do for all objects, some in parallel.
func each(objects int, do func(i int)) {
	var workers sync.WaitGroup
	var next atomic.Int64
	for range 8 {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < int64(objects); i = next.Add(1) - 1 {
				do(int(i))
			}
		})
	}
	workers.Wait()
}

func name(i int) string { return fmt.Sprint("gadget-", i) }

// keepWriting writes objects at both versions.
func (k *kind) keepWriting(ctx context.Context, all []*written, seed uint64, writes, refused *atomic.Int64) {
	random := rand.New(rand.NewPCG(seed, 0))
	for ctx.Err() == nil {
		i := random.IntN(len(all))
		w := all[i]
		w.Lock()
		next := written{size: random.Int64N(1000), note: fmt.Sprint("note ", random.IntN(1000)), tier: fmt.Sprint("tier ", random.IntN(9))}
		version, patch := "v1", fmt.Sprintf(`{"spec":{"size":%d,"note":%q}}`, next.size, next.note)
		if random.IntN(2) == 0 {
			version, patch = "v2", fmt.Sprintf(`{"spec":{"tier":%q}}`, next.tier)
		}
		// An error does not mean that nothing was stored, so the write is repeated until it is
		// known to be.
		for {
			_, err := k.at(version).Patch(context.WithoutCancel(ctx), name(i), types.MergePatchType, []byte(patch), metav1.PatchOptions{})
			if err == nil {
				break
			}
			refused.Add(1)
		}
		writes.Add(1)
		if version == "v1" {
			w.size, w.note = next.size, next.note
		} else {
			w.tier = next.tier
		}
		w.Unlock()
	}
}

// wantWritten reads an object at both versions, and returns the number of differences to the
// writes.
func (k *kind) wantWritten(t *testing.T, name string, w *written) (lost int64) {
	t.Helper()
	w.Lock()
	defer w.Unlock()
	v1, v2 := k.get(t, "v1", name), k.get(t, "v2", name)
	size, _, _ := unstructured.NestedInt64(v1.Object, "spec", "size")
	note, _, _ := unstructured.NestedString(v1.Object, "spec", "note")
	tier, _, _ := unstructured.NestedString(v2.Object, "spec", "tier")
	list, _, _ := unstructured.NestedSlice(v1.Object, "spec", "ports")
	var weight any
	for _, port := range list {
		if port.(map[string]any)["name"] == "a" {
			weight = port.(map[string]any)["w"]
		}
	}
	for what, pair := range map[string][2]any{"size": {w.size, size}, "note": {w.note, note}, "tier": {w.tier, tier}, "weight": {w.weight, weight}} {
		if pair[0] != pair[1] {
			lost++
			t.Errorf("%s: %s is %v, want %v", name, what, pair[1], pair[0])
		}
	}
	return lost
}
