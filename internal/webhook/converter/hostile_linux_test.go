// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/release"
	"github.com/conversion-operator/conversion-operator/internal/webhook"
)

// The rules look into lists and maps, and use what takes most memory.
const (
	hostileV1 = `{l: {type: array, items: {type: object, properties: {a: {type: string}, p: {type: string}}}},
		m: {type: object, additionalProperties: {type: object, properties: {a: {type: string}}}},
		i: {type: array, items: {type: object, properties: {k: {type: string}}}},
		s: {type: string}, j: {type: string}, t: {type: string}, any: {x-kubernetes-preserve-unknown-fields: true}}`
	hostileV2 = `{l: {type: array, items: {type: object, properties: {b: {type: string}, c: {type: string}}}},
		m: {type: object, additionalProperties: {type: object, properties: {b: {type: string}}}},
		i: {type: object, additionalProperties: {type: object}},
		s: {type: array, items: {type: object, properties: {a: {type: string}}}}, j: {type: array, items: {type: string}},
		t: {type: array, items: {type: string}}, any: {x-kubernetes-preserve-unknown-fields: true}}`
	hostileRules = `{hub: v2, spokes: [{version: v1, rules: [
		{move: {from: ".spec.l[*].a", to: ".spec.l[*].b"}}, {default: {to: ".spec.l[*].c", value: a-default-that-is-longer-than-the-element-which-gets-it}},
		{move: {from: ".spec.m[*].a", to: ".spec.m[*].b"}}, {each: {from: .spec.i, to: .spec.i, key: k}},
		{cast: {from: .spec.s, to: .spec.s, as: YAML}}, {cast: {from: .spec.j, to: .spec.j, as: JSON}},
		{cel: {from: {t: .spec.t}, to: {t: .spec.t}, forward: {t: "self.t.split(',')"}, backward: {t: "self.t.join(',')"}}}]}]}`
)

// hostileRuleset compiles the rules.
func hostileRuleset(t *testing.T) *conversion.Ruleset {
	t.Helper()
	var crd apiextensionsv1.CustomResourceDefinition
	var rules v1alpha1.DeclarativeConverter
	version := func(name, schema, storage string) string {
		return "{name: " + name + ", served: true, storage: " + storage + ", schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: " + schema + "}}}}}"
	}
	expect.NoError(t, yaml.Unmarshal([]byte("{metadata: {name: "+crontabs+"}, spec: {group: example.com, scope: Namespaced, names: {kind: CronTab, plural: crontabs}, versions: ["+
		version("v1", hostileV1, "false")+", "+version("v2", hostileV2, "true")+"]}}"), &crd))
	expect.NoError(t, yaml.UnmarshalStrict([]byte(hostileRules), &rules))
	compiled := compile.Compile(&crd, &rules)
	if compiled.Ruleset == nil {
		t.Fatalf("the rules are refused: %v", compiled.Errors)
	}
	return compiled.Ruleset
}

// TestHostileBodies: the worst bodies of each path keep a converter below its memory limit, one after the other, and 24 at
// a time, and a client that behaves well is answered.
func TestHostileBodies(t *testing.T) {
	v := run(t, hostileRuleset(t))
	bad, good := v.client(t, "127.0.0.1"), v.client(t, "127.0.0.2")
	v.serves(t, good)
	check := func(what string) {
		t.Helper()
		peak := v.status(t).VmHWM
		if t.Logf("%4d MiB: %s", peak>>20, what); peak > uint64(webhook.DefaultMemoryLimit) {
			t.Errorf("%s: %d MiB", what, peak>>20)
		}
		// The next peak is counted from what the process has now.
		expect.NoError(t, os.WriteFile(filepath.Join("/proc", strconv.Itoa(v.pid), "clear_refs"), []byte("5"), 0))
	}
	check("at rest")
	all := requests(v.hash)
	names := slices.Sorted(maps.Keys(all))
	send := func(name string, size int) {
		v.send(t.Context(), bad, all[name], all[name].body(size))
	}
	sizes := []int{int(webhook.DefaultMaxBodyBytes) * 9 / 20}
	if release.Playing() {
		sizes = append(sizes, int(webhook.DefaultMaxBodyBytes)-1000, 450<<10)
	}
	for _, size := range sizes {
		for _, name := range names {
			send(name, size)
			check(fmt.Sprint(name, " of ", size))
		}
		v.serves(t, good)
		const parallel = 24
		for next := range slices.Chunk(names, parallel) {
			var flood sync.WaitGroup
			for i := range parallel {
				flood.Go(func() { send(next[i%len(next)], size) })
			}
			v.serves(t, good)
			flood.Wait()
			check(fmt.Sprintf("24 of %d bytes: %v", size, next))
		}
	}
}

// TestHostileClients: a converter stays below its memory limit, and answers an API server and a kubelet, whatever
// others send to it from many addresses. How long calls take is logged beside how long they take while the same is sent to
// another converter on this machine, as the senders need processors, too. Times are not compared: machines differ.
func TestHostileClients(t *testing.T) {
	v, other := run(t, hostileRuleset(t)), run(t, hostileRuleset(t))
	alone := make(chan struct{})
	time.AfterFunc(time.Second, func() { close(alone) })
	t.Logf("alone: %v", v.calls(t, alone))
	for _, attacked := range []*victim{other, v} {
		during := v.calls(t, attacked.attack(t))
		peak := attacked.status(t).VmHWM
		t.Logf("highest memory of the one that is attacked: %.0f MiB; of the calls, to that one: %t: %v", mebibytes(peak), attacked == v, during)
		if peak > uint64(webhook.DefaultMemoryLimit) {
			t.Error("it is above the limit")
		}
	}
}

// attack begins an attack by a process of its own, and returns a channel that is closed at its end.
func (v *victim) attack(t *testing.T) (ended <-chan struct{}) {
	t.Helper()
	order := attack{Address: v.address, Metrics: v.metrics, Hash: v.hash, Seed: release.Seed(t), Count: 500}
	if release.Playing() {
		order.Count = 100_000
	}
	text, err := json.Marshal(order)
	expect.NoError(t, err)
	command := exec.CommandContext(t.Context(), os.Args[0])
	command.Env = append(os.Environ(), asAttacker+"="+string(text))
	command.Stderr = os.Stderr
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		report, err := command.Output()
		if t.Logf("%d requests: %s", order.Count, report); err != nil {
			t.Errorf("the attack: %v", err)
		}
	}()
	return closed
}

// service is how long calls took, sorted, and how many of them API servers had to repeat.
type service struct {
	took     []time.Duration
	repeated int
}

func (s service) String() string {
	at := func(part float64) time.Duration {
		return s.took[int(part*float64(len(s.took)-1))].Round(time.Microsecond)
	}
	return fmt.Sprintf("%d calls, median %v, 99 of 100 within %v, longest %v, %d repeated", len(s.took), at(0.5), at(0.99), at(1), s.repeated)
}

// calls converts an object again and again, as an API server does, until the end. Beside that, a kubelet probes the pod.
func (v *victim) calls(t *testing.T, ended <-chan struct{}) (s service) {
	t.Helper()
	server, kubelet := v.client(t, "127.0.0.2"), v.client(t, "127.0.0.3")
	kubelet.Transport.(*http.Transport).DisableKeepAlives = true
	var probed time.Time
	for {
		if time.Since(probed) > time.Second {
			for _, path := range []string{webhook.ReadyPath, webhook.HealthPath} {
				if status, answer := v.get(t, kubelet, path); status != http.StatusOK {
					t.Errorf("%s: %d %s", path, status, answer)
				}
			}
			probed = time.Now()
		}
		began := time.Now()
		s.repeated += v.serves(t, server)
		s.took = append(s.took, time.Since(began))
		time.Sleep(2 * time.Millisecond) //nolint:forbidigo // it leaves processors to the pod
		select {
		case <-ended:
			slices.Sort(s.took)
			return s
		default:
		}
	}
}

// serves checks that an API server gets an answer, and returns how often it repeats the call. API servers do that
// after a second, ten times, if the answer is 429.
func (v *victim) serves(t *testing.T, client *http.Client) (repeated int) {
	t.Helper()
	body := conversionOf(`{"apiVersion":"example.com/v1","kind":"CronTab","metadata":{"name":"a","uid":"a"},"spec":{"l":[{"a":"x"}]}}`)
	for {
		status, answer := v.send(t.Context(), client, hostile{method: http.MethodPost, path: webhook.ConvertPath + "/" + v.hash}, body)
		switch {
		case status == http.StatusTooManyRequests && repeated < 10:
			time.Sleep(time.Second) //nolint:forbidigo // as API servers
			repeated++
			continue
		case status != http.StatusOK || !strings.Contains(answer, `"b":"x"`):
			t.Errorf("an API server gets %d %s", status, answer)
		}
		return repeated
	}
}
