// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package converters

import (
	"encoding/json"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// body is a ConversionReview.
type body struct {
	// name of the case: shape, size and number of the objects.
	name    string
	objects int
	uid     types.UID
	desired string
	text    []byte
}

// shape describes the objects of a case.
type shape struct {
	name string
	// large objects have 10 KB instead of 2 KB, or size bytes.
	large bool
	size  int
	// owner adds a field that has to be preserved.
	owner bool
	// manyPorts fills the object with the list that a rule changes.
	manyPorts bool
	// toSpoke converts in the other direction: objects in v2 to v1.
	toSpoke bool
}

// cases are the bodies to convert. Most have one object, as API servers send one per review.
var cases = []struct {
	shape  shape
	counts []int
}{
	{shape{name: "kept", owner: true}, []int{1, 50, 500}},
	{shape{name: "kept", owner: true, large: true}, []int{1, 50, 500}},
	{shape{name: "plain"}, []int{1, 500}},
	{shape{name: "plain", large: true}, []int{1, 500}},
	{shape{name: "list", large: true, manyPorts: true}, []int{1}},
	{shape{name: "back", owner: true, toSpoke: true}, []int{1}},
	{shape{name: "back", owner: true, toSpoke: true, large: true}, []int{1}},
}

func bodies() ([]body, error) {
	var all []body
	for _, c := range cases {
		for _, count := range c.counts {
			b, err := newBody(c.shape, count)
			if err != nil {
				return nil, fmt.Errorf("making the body of %s: %w", c.shape.name, err)
			}
			all = append(all, b)
		}
	}
	return all, nil
}

// newBody writes a review as an API server does: with an empty response, and sorted members in
// every object.
func newBody(s shape, count int) (body, error) {
	b := body{name: s.title(count), objects: count}
	b.uid, b.desired = "705ab4f5-6393-11e8-b7cc-42010a800002", group+"/v2"
	if s.toSpoke {
		b.desired = group + "/v1"
	}
	review := apiextensionsv1.ConversionReview{
		TypeMeta: metav1.TypeMeta{Kind: "ConversionReview", APIVersion: apiextensionsv1.SchemeGroupVersion.String()},
		Request:  &apiextensionsv1.ConversionRequest{UID: b.uid, DesiredAPIVersion: b.desired},
		Response: &apiextensionsv1.ConversionResponse{},
	}
	for i := range count {
		text, err := s.object(i)
		if err != nil {
			return body{}, err
		}
		review.Request.Objects = append(review.Request.Objects, runtime.RawExtension{Raw: text})
	}
	var err error
	b.text, err = json.Marshal(review)
	return b, err
}

func (s shape) title(count int) string {
	return fmt.Sprintf("%s %d KB x %d", s.name, s.bytes()>>10, count)
}

func (s shape) bytes() int {
	switch {
	case s.size > 0:
		return s.size
	case s.large:
		return 10 << 10
	}
	return 2 << 10
}

// object returns the nth object, filled up to its size.
func (s shape) object(number int) ([]byte, error) {
	object := s.task(number)
	if err := s.fill(object); err != nil {
		return nil, err
	}
	if s.toSpoke {
		toHub(object)
	}
	return json.Marshal(object)
}

// fill appends to a list of the object up to the object's size.
func (s shape) fill(object map[string]any) error {
	list, element := "env", variable
	if s.manyPorts {
		list, element = "ports", port
	}
	spec := object["spec"].(map[string]any)
	text, err := json.Marshal(object)
	for size, number := len(text), 0; size < s.bytes() && err == nil; number++ {
		spec[list] = append(spec[list].([]any), element(number))
		text, err = json.Marshal(element(number))
		size += len(text) + len(",")
	}
	return err
}

// task returns an object in v1 before it is filled.
func (s shape) task(number int) map[string]any {
	spec := map[string]any{
		"cron":              "*/5 9 1 * 1-5",
		"endpoint":          fmt.Sprintf("task-%d.jobs.svc.cluster.local:%d", number, 8000+number),
		"image":             "registry.example.com/jobs/collector:v1.42.0",
		"concurrencyPolicy": "Forbid",
		"nodeName":          fmt.Sprintf("node-%d", number%7),
		"description":       `runs "collect" & <report>, then C:\temp is emptied`,
		"budget":            int64(1<<53 + 1),
		"ports":             []any{port(-1), port(-2)},
		"env":               []any{variable(-1)},
	}
	status := map[string]any{"conditions": conditions(1)}
	if s.large {
		status["conditions"] = conditions(4)
		if !s.manyPorts {
			spec["template"] = template()
		}
	}
	if s.owner {
		spec["owner"] = "data team"
	}
	return map[string]any{
		"apiVersion": group + "/v1", "kind": kind,
		"metadata": s.metadata(number), "spec": spec, "status": status,
	}
}

func (s shape) metadata(number int) map[string]any {
	managers := []any{managedFields("kubectl-client-side-apply", "")}
	if s.large {
		managers = append(managers, managedFields("task-controller", "status"), managedFields("argocd-controller", ""))
	}
	return map[string]any{
		"annotations":       map[string]any{"example.com/note": "für die Nachtläufe, 夜間バッチ", "example.com/revision": "17"},
		"creationTimestamp": "2026-11-02T08:30:00Z",
		"generation":        int64(3),
		"labels":            map[string]any{"app.kubernetes.io/name": "collector", "app.kubernetes.io/part-of": "jobs"},
		"managedFields":     managers,
		"name":              fmt.Sprintf("task-%d", number),
		"namespace":         "jobs",
		"resourceVersion":   fmt.Sprint(1000 + number),
		"uid":               fmt.Sprintf("0b7d3c1e-52a4-4f0e-9d53-%012d", number),
	}
}

// Object returns the nth object in v1 of a group, to be created, of some size in bytes. It has a field
// that v2 lacks. The smallest objects have about 1,500 bytes.
func Object(group string, number, size int) (*unstructured.Unstructured, error) {
	const withTemplate = 8 << 10
	s := shape{owner: true, size: size, large: size >= withTemplate}
	object := s.task(number)
	if err := s.fill(object); err != nil {
		return nil, err
	}
	object["apiVersion"] = group + "/v1"
	created := &unstructured.Unstructured{Object: object}
	metadata := map[string]any{"name": created.GetName()}
	for _, kept := range []string{"labels", "annotations"} {
		metadata[kept] = object["metadata"].(map[string]any)[kept]
	}
	object["metadata"] = metadata
	return created, nil
}
