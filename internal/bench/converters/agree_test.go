// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package converters

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A few objects are enough: the benchmark itself compares hundreds before it measures.
func TestSubjectsAgree(t *testing.T) {
	all, err := subjects()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		for _, count := range []int{1, 20} {
			b, err := newBody(c.shape, count)
			if err != nil {
				t.Fatal(err)
			}
			if err := agree(b, all); err != nil {
				t.Error(err)
			}
		}
	}
}

// The result on which all subjects agree could still be wrong.
func TestConvertedBody(t *testing.T) {
	all, err := subjects()
	if err != nil {
		t.Fatal(err)
	}
	b, err := newBody(shape{name: "kept", owner: true}, 2)
	if err != nil {
		t.Fatal(err)
	}
	c := newClient(all[0].handler, b.text)
	c.call()
	objects, err := b.objectsOf(&c.answer)
	if err != nil {
		t.Fatal(err)
	}
	object := objects[1].(map[string]any)
	spec := object["spec"].(map[string]any)
	delete(spec, "env")
	want := map[string]any{
		"schedule":    map[string]any{"minute": "*/5", "hour": "9", "dayOfMonth": "1", "month": "*", "dayOfWeek": "1-5"},
		"host":        "task-1.jobs.svc.cluster.local",
		"port":        json.Number("8001"),
		"runtime":     map[string]any{"image": "registry.example.com/jobs/collector:v1.42.0"},
		"concurrency": "Serial",
		"nodes":       []any{"node-1"},
		"description": `runs "collect" & <report>, then C:\temp is emptied`,
		"budget":      json.Number("9007199254740993"),
		"ports": []any{
			map[string]any{"name": "port-1", "containerPort": json.Number("8999"), "protocol": "TCP"},
			map[string]any{"name": "port-2", "containerPort": json.Number("8998"), "protocol": "TCP"},
		},
	}
	if diff := cmp.Diff(want, spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	annotations := object["metadata"].(map[string]any)["annotations"].(map[string]any)
	if got, want := annotations["conversion-operator.io/v1.tasks.bench.example.com"], `{"format":2,"fields":{"/spec/owner":"data team"}}`; got != want {
		t.Errorf("preserved is %s, want %s", got, want)
	}
}

func TestDisagreement(t *testing.T) {
	b, err := newBody(shape{name: "kept", owner: true}, 2)
	if err != nil {
		t.Fatal(err)
	}
	all, err := subjects()
	if err != nil {
		t.Fatal(err)
	}
	honest := newClient(all[0].handler, b.text)
	honest.call()
	tests := map[string]struct {
		old, new string
		converts bool
		want     string
	}{
		"a number that went through a float": {`9007199254740993`, `9007199254740992`, true, "9007199254740992"},
		"nothing preserved":                  {`conversion-operator.io/v1.`, `conversion-operator.io/v2.`, true, "differs"},
		"another version":                    {`bench.example.com/v2`, `bench.example.com/v1`, true, "not in bench.example.com/v2"},
		"another uid":                        {string(b.uid), "1", true, `for uid "1"`},
		"a failure":                          {`"Success"`, `"Failure"`, true, "the conversion failed"},
		"no metadata":                        {`"metadata":`, `"other":`, true, "no metadata"},
		"another kind":                       {`"ConversionReview"`, `"Review"`, true, "is a Review"},
		"no review":                          {`{`, `[`, true, "no ConversionReview"},
		"a body that does not come back":     {`"`, `'`, false, "does not send the body back"},
		"managedFields may be missing":       {`"managedFields":`, `"other":`, true, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			forged := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write(bytes.ReplaceAll(honest.answer.text, []byte(test.old), []byte(test.new)))
			})
			err := agree(b, []subject{all[0], {"forged", forged, test.converts}})
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

// TestBodies: the sizes match the names of the cases.
func TestBodies(t *testing.T) {
	reviews, err := bodies()
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range reviews {
		size := 2 << 10
		if strings.Contains(b.name, "10 KB") {
			size = 10 << 10
		}
		if each := len(b.text) / b.objects; each < size || each > size+size/4 {
			t.Errorf("%s: an object has %d bytes", b.name, each)
		}
	}
}

// BenchmarkSubjects is for tools of go test, such as profiles:
//
//	go test ./internal/bench/converters -run '^$' -bench 'Subjects/kept_10_KB_x_1$/conversion-operator' -cpuprofile cpu.out
func BenchmarkSubjects(b *testing.B) {
	all, err := subjects()
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range cases {
		for _, count := range c.counts {
			b.Run(c.shape.title(count), func(b *testing.B) {
				review, err := newBody(c.shape, count)
				if err != nil {
					b.Fatal(err)
				}
				for _, s := range all {
					b.Run(s.name, func(b *testing.B) {
						call := newClient(s.handler, review.text).call
						b.SetBytes(int64(len(review.text)))
						b.ReportAllocs()
						for b.Loop() {
							call()
						}
					})
				}
			})
		}
	}
}
